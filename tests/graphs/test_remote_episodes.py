"""Episodes of a server elsewhere: an address per thread, each effect once even where the server is killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, ToolMessage

from langchain_envscaler import create_tool_agent
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import InfrastructureError, NotFoundError
from langchain_envscaler.graphs.environment import create_environment_agent

EMPTY = {"messages": []}
THREAD = {"configurable": {"thread_id": "1"}}


def append(word: str) -> list:
    return [("append", {"word": word})]


def results(state: dict) -> list[str]:
    return [message.content for message in state["messages"] if isinstance(message, ToolMessage)]


class Server:
    """The command's HTTP server over one store, which can be killed and started again."""

    def __init__(self, folder: Path, store: Path, port: int, wait: Callable[[int], None]) -> None:
        self.folder, self.store, self.port, self._wait = folder, store, port, wait
        self.url = f"http://127.0.0.1:{port}"
        self.start()

    def start(self) -> None:
        options = ["--http", "--port", str(self.port), "--data", str(self.folder), "--store", str(self.store)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "langchain_envscaler", "serve", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self._wait(self.port)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)


@pytest.fixture
def server(words_folder, tmp_path, free_port, wait_until_listening) -> Iterator[Server]:
    server = Server(words_folder, tmp_path / "episodes.sqlite", free_port(), wait_until_listening)
    yield server
    server.kill()


async def test_each_thread_has_an_episode_at_an_address_of_its_own(server, scripted, catalog):
    states = []
    for word in "ab":
        model = scripted(append(word), [("show", {})], "Task Completed")
        agent = create_environment_agent(model, "words", task_id="ab", worlds=server.url, evaluate=True)
        states.append(await agent.ainvoke(EMPTY))
    assert [results(state)[-1] for state in states] == ["['a']", "['b']"]
    assert states[0]["messages"][0].content == "Make the list a, b."
    assert states[0]["evaluation"]["reward"] == 0.0
    assert len({state["episodes"]["environment"]["episode_id"] for state in states}) == 2


class KillOnce(AgentMiddleware):
    """Kills and restarts the server around one of the calls."""

    def __init__(self, server: Server, when: str) -> None:
        super().__init__()
        self.server, self.when, self.calls = server, when, 0

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.calls += 1
        if self.calls == 3 and self.when == "before":
            await asyncio.to_thread(self.server.kill)
            await asyncio.to_thread(self.server.start)
        if self.calls == 3 and self.when == "during":
            restart = asyncio.create_task(asyncio.to_thread(self._restart))
            result = await handler(request)
            await restart
            return result
        return await handler(request)

    def _restart(self) -> None:
        self.server.kill()
        self.server.start()


@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_server_that_is_killed_and_comes_back_costs_no_effect_and_repeats_none(
    server, scripted, catalog, when
):
    turns = [append(f"w{number}") for number in range(6)]
    agent = create_environment_agent(
        scripted(*turns, "Done."), "words", worlds=server.url, middleware=[KillOnce(server, when)]
    )
    state = await agent.ainvoke({"messages": [HumanMessage("go")]})
    place = state["episodes"]["environment"]
    server.kill()
    with EpisodeService(catalog, store=str(server.store)) as service:
        episode = service.get(place["episode_id"])
        assert episode.state(place["revision"]) == {"words": [f"w{number}" for number in range(6)]}
        assert len(episode.history()) == 6


async def test_a_server_that_stays_away_ends_the_run_which_can_be_resumed(
    server, scripted, tmp_path, catalog
):
    address = str(tmp_path / "threads.sqlite")
    agent = create_environment_agent(
        scripted(append("a"), append("b"), "Done."),
        "words",
        worlds=server.url,
        checkpointer=address,
        middleware=[KillBefore(server, 2)],
    )
    with pytest.raises(InfrastructureError):
        await agent.ainvoke({"messages": [HumanMessage("go")]}, THREAD)
    await asyncio.to_thread(server.start)
    again = create_environment_agent(scripted("Done."), worlds=server.url, checkpointer=address)
    state = await again.ainvoke(None, THREAD)
    assert len(results(state)) == 2
    assert "'count': 2" in results(state)[1]


class KillBefore(AgentMiddleware):
    """Kills the server before one of the calls, for good."""

    def __init__(self, server: Server, call: int) -> None:
        super().__init__()
        self.server, self.left = server, call

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            await asyncio.to_thread(self.server.kill)
        return await handler(request)


async def test_an_unknown_environment_or_a_server_that_is_not_there_is_an_error(server, scripted):
    with pytest.raises(NotFoundError, match="nowhere"):
        await create_environment_agent(scripted(), "nowhere", worlds=server.url).ainvoke(EMPTY)
    server.kill()
    with pytest.raises(InfrastructureError, match="answer at its address"):
        await create_environment_agent(scripted(), "words", worlds=server.url).ainvoke(EMPTY)


def test_a_stdio_server_of_the_command_goes_on_with_its_episode(words_folder, tmp_path, scripted):
    args = ["-m", "langchain_envscaler", "serve", "words", "--data", str(words_folder)]
    args += ["--store", str(tmp_path / "episodes.sqlite"), "--episode-id", "mine"]
    config = {"mcpServers": {"words": {"command": sys.executable, "args": args}}}
    address = str(tmp_path / "threads.sqlite")
    for turns in ([append("a"), "One."], [append("b"), [("show", {})], "Two."]):
        agent = create_tool_agent(scripted(*turns), config, checkpointer=address)
        state = agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    assert results(state)[-1] == "['a', 'b']"
    assert state["episodes"] == {"words": {"episode_id": "mine", "revision": 3}}
