"""The lobby: environments found and played through one MCP address."""

import asyncio
from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from starlette.types import ASGIApp, Receive, Scope, Send

from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp.app import create_app

LEGACY, MODERN = "legacy", "auto"
SECONDS = 20.0


@pytest.fixture(params=[LEGACY, MODERN])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class _App:
    """The application, with the event loop that it runs in."""

    def __init__(self, service: EpisodeService) -> None:
        self._app = create_app(service, control=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        await self._app(scope, receive, send)

    def environments_changed(self) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._app.state.lobby.environments_changed(), self._loop)


@pytest.fixture(scope="module")
def app(service: EpisodeService) -> _App:
    return _App(service)


@pytest.fixture(scope="module")
def lobby(app: _App, run_app: Callable[[ASGIApp], str]) -> str:
    return f"{run_app(app)}/mcp"


async def test_an_agent_finds_an_environment_and_solves_its_task(lobby: str, mode: str) -> None:
    async with Client(lobby, mode=mode) as client:

        async def use(lobby_tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(lobby_tool, arguments)
            assert result.is_error is False
            return result.structured_content

        (environment,) = (await use("list_environments"))["environments"]
        (scenario,) = (await use("list_scenarios", env_id=environment["env_id"]))["scenarios"]
        started = await use("start_episode", env_id="counter", task_id=scenario["task_id"])
        episode_id = started["episode_id"]
        assert started["task"] == "Bring the counter to three."
        tools = (await use("list_tools", episode_id=episode_id))["tools"]
        assert "add" in [tool["function"]["name"] for tool in tools]
        call = {"episode_id": episode_id, "name": "add", "arguments": {"amount": 2}, "call_id": "c1"}
        await use("call_tool", **call)
        again = await use("call_tool", **call)
        assert again == {"success": True, "value": 3, "note": None}
        assert (await use("check", episode_id=episode_id))["reward"] == 1.0
        assert (await use("end_episode", episode_id=episode_id))["ended"] is True
        assert (await client.call_tool("list_tools", {"episode_id": episode_id})).is_error is True


async def test_an_episode_of_the_lobby_is_played_at_its_own_address_too(lobby: str, mode: str) -> None:
    async with Client(lobby, mode=mode) as client:
        started = (await client.call_tool("start_episode", {"env_id": "counter"})).structured_content
        async with Client(started["url"], mode=mode) as episode:
            await episode.call_tool("add", {"amount": 4})
        arguments = {"episode_id": started["episode_id"], "name": "show"}
        assert (await client.call_tool("call_tool", arguments)).structured_content == {"result": 4}


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("start_episode", {"env_id": "nowhere"}, "nowhere"),
        ("start_episode", {"env_id": "counter", "task_id": "nothing"}, "nothing"),
        ("start_episode", {}, "env_id"),
        ("list_scenarios", {"env_id": "nowhere"}, "nowhere"),
        ("list_environments", {"page": 2}, "page"),
        ("list_tools", {"episode_id": "nothing"}, "nothing"),
    ],
)
async def test_a_wrong_call_gets_an_error_to_act_on(
    lobby: str, mode: str, name: str, arguments: dict[str, Any], word: str
) -> None:
    async with Client(lobby, mode=mode) as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error is True
        (block,) = result.content
        assert isinstance(block, types.TextContent)
        assert word in block.text


async def test_an_unknown_tool_is_an_error_to_act_on(lobby: str, mode: str) -> None:
    async with Client(lobby, mode=mode) as client:
        result = await client.call_tool("start", {})
        assert result.is_error is True
        (block,) = result.content
        assert isinstance(block, types.TextContent)
        assert "start_episode" in block.text


async def test_environments_are_resources(lobby: str, mode: str) -> None:
    async with Client(lobby, mode=mode) as client:
        (resource,) = (await client.list_resources()).resources
        assert resource.uri == "envscaler://environments/counter"
        (content,) = (await client.read_resource(resource.uri)).contents
        assert isinstance(content, types.TextResourceContents)
        assert "This environment counts." in content.text
        with pytest.raises(MCPError):
            await client.read_resource("envscaler://environments/nowhere")


async def test_clients_are_told_when_environments_come(lobby: str, mode: str, app: _App) -> None:
    told = asyncio.Event()

    async def note(message: Any) -> None:
        if isinstance(message, types.ResourceListChangedNotification):
            told.set()

    async with asyncio.timeout(SECONDS), Client(lobby, mode=mode, message_handler=note) as client:
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.resources.list_changed is True
        if mode == MODERN:
            async with client.listen(resources_list_changed=True) as events:
                app.environments_changed()
                await anext(aiter(events))
        else:
            while not told.is_set():
                # The client opens its stream after the greeting, in its own time.
                app.environments_changed()
                await client.list_tools()
