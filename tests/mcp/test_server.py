"""The MCP server of one episode, spoken to in both protocol eras."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.server import Server

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp import server as server_module
from langchain_envscaler.mcp.control import EvaluateParams
from langchain_envscaler.mcp.server import create_server

LEGACY, MODERN = "legacy", "auto"


@pytest.fixture(params=[LEGACY, MODERN])
def mode(request: pytest.FixtureRequest) -> str:
    """Each protocol era in turn."""
    return str(request.param)


@pytest.fixture
async def episode(service: EpisodeService) -> Episode:
    return await service.astart("counter", "to-three", seed=7)


@pytest.fixture
async def client(episode: Episode, mode: str, hold: Callable[..., Awaitable[Client]]) -> Client:
    return await hold(Client(create_server(episode), mode=mode))


def _text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def test_tools_are_the_environments_and_nothing_else(client: Client, catalog: Catalog) -> None:
    listed = (await client.list_tools()).tools
    seen = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
        for tool in listed
    ]
    expected = [tool["function"] for tool in catalog.environments["counter"].tools]
    # As text, so that the order of the keys counts: a model is prompted with the text.
    assert json.dumps(seen) == json.dumps(expected)
    extras = {"title", "annotations", "output_schema", "icons", "meta", "execution"}
    assert all(getattr(tool, extra) is None for tool in listed for extra in extras)


async def test_listing_names_the_episode_and_its_revision(client: Client, episode: Episode) -> None:
    await client.call_tool("add", {"amount": 1})
    meta = (await client.list_tools()).meta
    assert meta is not None
    assert (meta["envscaler/episode_id"], meta["envscaler/revision"]) == (episode.episode_id, 1)


async def test_an_observation_is_python_text_and_structured_json(client: Client) -> None:
    result = await client.call_tool("add", {"amount": 2})
    assert _text(result) == "{'success': True, 'value': 3, 'note': None}"
    assert result.structured_content == {"success": True, "value": 3, "note": None}
    assert result.is_error is False


@pytest.mark.parametrize(
    ("name", "text", "data"),
    [
        ("show", "1", 1),
        ("nothing", "None", None),
        ("parts", "[1, None, {'a': None, 'b': (1, 2)}]", [1, None, {"a": None, "b": [1, 2]}]),
    ],
)
async def test_structured_content_wraps_what_is_no_object(
    client: Client, name: str, text: str, data: object
) -> None:
    result = await client.call_tool(name)
    assert _text(result) == text
    assert result.structured_content == {"result": data}


async def test_a_tool_that_raises_answers_with_an_error_and_keeps_what_it_changed(client: Client) -> None:
    result = await client.call_tool("explode", {"message": "boom"})
    assert result.is_error is True
    assert "boom" in _text(result)
    assert _text(await client.call_tool("show")) == "2"


@pytest.mark.parametrize(
    ("name", "arguments", "mentioned"),
    [
        ("subtract", {"amount": 1}, ["subtract", "add", "show"]),
        ("__init__", {"init_config": {}}, ["__init__", "add"]),
        ("value", {}, ["value", "add"]),
        ("add", {}, ["add", "amount"]),
        ("add", {"amount": 1, "reason": "x"}, ["add", "reason", "amount"]),
    ],
)
async def test_a_call_that_the_environment_does_not_know_changes_nothing(
    client: Client, name: str, arguments: dict[str, Any], mentioned: list[str]
) -> None:
    result = await client.call_tool(name, arguments)
    assert result.is_error is True
    assert [word for word in mentioned if word not in _text(result)] == []
    assert _text(await client.call_tool("show")) == "1"


async def test_wrong_types_go_to_the_environment(client: Client) -> None:
    result = await client.call_tool("add", {"amount": "2"})
    assert result.is_error is True
    assert "unsupported operand" in _text(result)


async def test_strict_arguments_refuse_wrong_types(episode: Episode, mode: str) -> None:
    async with Client(create_server(episode, strict_arguments=True), mode=mode) as client:
        result = await client.call_tool("add", {"amount": "2"})
        assert result.is_error is True
        assert "amount" in _text(result)
        assert "integer" in _text(result)
        assert _text(await client.call_tool("show")) == "1"
        assert (await client.call_tool("add", {"amount": 2})).is_error is False


async def test_a_call_carries_its_identity_both_ways(client: Client, episode: Episode) -> None:
    meta: Any = {"envscaler/call_id": "call-1", "envscaler/revision": 0}
    first = await client.call_tool("add", {"amount": 1}, meta=meta)
    again = await client.call_tool("add", {"amount": 1}, meta=meta)
    assert _text(first) == _text(again)
    assert _text(await client.call_tool("show")) == "2"
    shown = [
        {key: value for key, value in (result.meta or {}).items() if key.startswith("envscaler/")}
        for result in (first, again)
    ]
    expected = {
        "envscaler/episode_id": episode.episode_id,
        "envscaler/call_id": "call-1",
        "envscaler/revision": 1,
    }
    assert shown == [expected | {"envscaler/replayed": False}, expected | {"envscaler/replayed": True}]


async def test_a_call_at_an_older_revision_forks_there(client: Client) -> None:
    await client.call_tool("add", {"amount": 10})
    await client.call_tool("add", {"amount": 10})
    result = await client.call_tool("add", {"amount": 1}, meta={"envscaler/revision": 0})  # type: ignore[typeddict-unknown-key]
    assert _text(result) == "{'success': True, 'value': 2, 'note': None}"
    assert _text(await client.call_tool("show")) == "2"


async def test_calls_of_one_message_run_in_their_order(client: Client) -> None:
    def call(position: int, name: str, arguments: dict[str, Any]) -> Any:
        meta: Any = {
            "envscaler/call_id": f"c{position}",
            "envscaler/revision": 0,
            "envscaler/position": position,
        }
        return client.call_tool(name, arguments, meta=meta)

    async with asyncio.timeout(20):
        results = await asyncio.gather(
            call(2, "show", {}), call(1, "add", {"amount": 5}), call(0, "add", {"amount": 1})
        )
    assert [_text(result) for result in results] == [
        "7",
        "{'success': True, 'value': 7, 'note': None}",
        "{'success': True, 'value': 2, 'note': None}",
    ]


@pytest.mark.parametrize(
    "meta",
    [
        {"envscaler/revision": "0"},
        {"envscaler/revision": -1},
        {"envscaler/revision": True},
        {"envscaler/position": 1.5},
        {"envscaler/call_id": 7},
        {"envscaler/call_id": ""},
    ],
)
async def test_malformed_meta_is_a_protocol_error(client: Client, meta: Any) -> None:
    with pytest.raises(MCPError) as caught:
        await client.call_tool("add", {"amount": 1}, meta=meta)
    assert caught.value.code == types.INVALID_PARAMS
    assert next(iter(meta)) in str(caught.value)


async def test_one_identity_for_two_calls_is_a_protocol_error(client: Client) -> None:
    meta: Any = {"envscaler/call_id": "c", "envscaler/revision": 0}
    await client.call_tool("add", {"amount": 1}, meta=meta)
    with pytest.raises(MCPError) as caught:
        await client.call_tool("add", {"amount": 2}, meta=meta)
    assert caught.value.code == types.INVALID_PARAMS


async def test_resources_show_the_texts_and_the_state(client: Client) -> None:
    listed = {resource.uri: resource.mime_type for resource in (await client.list_resources()).resources}
    assert listed == {
        "envscaler://introduction": "text/plain",
        "envscaler://rules": "text/plain",
        "envscaler://task": "text/plain",
        "envscaler://state": "application/json",
    }
    contents = {}
    for uri in listed:
        (content,) = (await client.read_resource(uri)).contents
        assert isinstance(content, types.TextResourceContents)
        contents[uri] = content.text
    assert contents["envscaler://introduction"] == "This environment counts."
    assert contents["envscaler://rules"] == "- Count upwards.\n- Say when you are done."
    assert contents["envscaler://task"] == "Bring the counter to three."
    assert json.loads(contents["envscaler://state"]) == {"value": 1, "ids": []}


async def test_state_of_an_earlier_revision(client: Client) -> None:
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "envscaler://state{?revision}"
    await client.call_tool("add", {"amount": 4})
    values = []
    for uri in ("envscaler://state", "envscaler://state?revision=0", "envscaler://state?revision=1"):
        (content,) = (await client.read_resource(uri)).contents
        assert isinstance(content, types.TextResourceContents)
        values.append(json.loads(content.text)["value"])
    assert values == [5, 1, 5]


@pytest.mark.parametrize(
    "uri",
    [
        "envscaler://nothing",
        "envscaler://state?revision=x",
        "envscaler://state?revision=99",
        "envscaler://state?revision=1&revision=2",
        "envscaler://state?other=1",
    ],
)
async def test_an_unknown_resource_is_a_protocol_error(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    assert caught.value.code == types.INVALID_PARAMS


async def test_an_episode_without_a_scenario_has_no_task(service: EpisodeService, mode: str) -> None:
    episode = await service.astart("counter")
    async with Client(create_server(episode), mode=mode) as client:
        assert "envscaler://task" not in [one.uri for one in (await client.list_resources()).resources]
        with pytest.raises(MCPError, match="no task"):
            await client.get_prompt("solve")
        (message,) = (await client.get_prompt("solve", {"task": "Count."})).messages
        assert isinstance(message.content, types.TextContent)
        assert "Count." in message.content.text


async def test_the_prompt_holds_introduction_rules_and_task(client: Client) -> None:
    (listed,) = (await client.list_prompts()).prompts
    assert listed.name == "solve"
    (message,) = (await client.get_prompt("solve")).messages
    assert message.role == "user"
    assert isinstance(message.content, types.TextContent)
    parts = ["This environment counts.", "Count upwards.", "Bring the counter to three.", "Task Completed"]
    assert [part for part in parts if part not in message.content.text] == []


async def test_an_unknown_prompt_is_a_protocol_error(client: Client) -> None:
    with pytest.raises(MCPError, match="solve"):
        await client.get_prompt("other")


async def test_instructions_are_the_environments(client: Client) -> None:
    assert client.instructions is not None
    assert client.instructions.startswith("This environment counts.")


async def test_control_tools_are_off_unless_asked_for(client: Client) -> None:
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert not names & {"start", "reset", "check"}
    assert (await client.call_tool("check")).is_error is True
    request = types.Request[EvaluateParams, str](method="envscaler/evaluate", params=EvaluateParams())
    with pytest.raises(MCPError) as caught:
        await client.session.send_request(request, types.Result)  # type: ignore[arg-type]
    assert caught.value.code == types.METHOD_NOT_FOUND


async def test_control_tools_reset_and_check(episode: Episode, mode: str) -> None:
    async with Client(create_server(episode, control=True), mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[-2:] == ["reset", "check"]
        await client.call_tool("add", {"amount": 1})
        halfway = (await client.call_tool("check")).structured_content
        await client.call_tool("add", {"amount": 1})
        done = (await client.call_tool("check")).structured_content
        before = (await client.call_tool("check", {"revision": 0})).structured_content
        assert [one["reward"] for one in (halfway, done, before)] == [0.5, 1.0, 0.0]
        assert [check["passed"] for check in halfway["checks"]] == [False, True]
        await client.call_tool("reset")
        assert _text(await client.call_tool("show")) == "1"


async def test_a_control_tool_says_what_its_arguments_are(episode: Episode, mode: str) -> None:
    async with Client(create_server(episode, control=True), mode=mode) as client:
        result = await client.call_tool("check", {"revison": 1})
        assert result.is_error is True
        assert "revison" in _text(result)


async def test_evaluate_is_a_request_beside_the_control_tools(episode: Episode, mode: str) -> None:
    class Answer(types.Result):
        reward: float

    async with Client(create_server(episode, control=True), mode=mode) as client:
        request = types.Request[EvaluateParams, str](method="envscaler/evaluate", params=EvaluateParams())
        answer = await client.session.send_request(request, Answer)  # type: ignore[arg-type]
        assert answer.reward == 0.0


async def test_a_long_call_reports_progress(
    episode: Episode, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "PROGRESS_INTERVAL", 0.05)
    reported = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert progress > 0
        assert "wait" in (message or "")
        reported.set()

    async with Client(create_server(episode), mode=mode) as client:
        result = await client.call_tool("wait", {"seconds": 1}, progress_callback=note)
        assert _text(result) == "waited"
        assert reported.is_set()


async def test_one_server_may_serve_the_episode_that_each_request_names(service: EpisodeService) -> None:
    episodes = {name: await service.astart("counter", "to-three") for name in "ab"}

    async def resolve(ctx: Any) -> Episode:
        return episodes[ctx.meta.get("which", "a")]

    server: Server[Any] = create_server(resolve)
    async with Client(server, mode=MODERN) as client:
        await client.call_tool("add", {"amount": 5}, meta={"which": "a"})  # type: ignore[typeddict-unknown-key]
        shown = [_text(await client.call_tool("show", meta={"which": name})) for name in "ab"]  # type: ignore[typeddict-unknown-key]
    assert shown == ["6", "1"]
