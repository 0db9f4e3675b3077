"""A stdio server is one process with one episode; here it is a real one."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

LEGACY, MODERN = "legacy", "auto"
SECONDS = 30.0

Command = Callable[..., list[str]]


def _connect(command: list[str], mode: str, **options: Any) -> Client:
    server = StdioServerParameters(command=command[0], args=command[1:])
    return Client(stdio_client(server), mode=mode, **options)


def _text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


class _RawServer:
    """A server process, spoken to line by line."""

    def __init__(self, command: list[str], **options: Any) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options)

    def __enter__(self) -> "_RawServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=SECONDS)

    def request(self, number: int, method: str, **params: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer["id"] == number
        return answer

    def initialize(self) -> None:
        client = {"name": "test", "version": "1"}
        self.request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_state_is_kept_on_a_held_connection(stdio_command: Command, mode: str) -> None:
    async with _connect(stdio_command(task_id="to-three"), mode) as client:
        await client.call_tool("add", {"amount": 1})
        assert _text(await client.call_tool("show")) == "2"


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_state_is_kept_with_a_connection_per_call(
    stdio_command: Command, mode: str, tmp_path: Path
) -> None:
    command = stdio_command(task_id="to-three", episode_id="mine", store=str(tmp_path / "episodes.db"))
    for _ in range(2):
        async with _connect(command, mode) as client:
            await client.call_tool("add", {"amount": 1})
    async with _connect(command, mode) as client:
        assert _text(await client.call_tool("show")) == "3"


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_each_process_has_an_episode_of_its_own(stdio_command: Command, mode: str) -> None:
    command = stdio_command(task_id="to-three")
    async with _connect(command, mode) as one, _connect(command, mode) as other:
        await one.call_tool("add", {"amount": 1})
        assert _text(await other.call_tool("show")) == "1"


async def test_fastmcp_clients_are_served(stdio_command: Command) -> None:
    program, *arguments = stdio_command(task_id="to-three")
    async with FastClient(StdioTransport(program, arguments, keep_alive=False)) as client:
        result = await client.call_tool("add", {"amount": 1}, meta={"envscaler/call_id": "c1"})
        assert result.structured_content == {"success": True, "value": 2, "note": None}
        assert result.meta is not None
        assert result.meta["envscaler/call_id"] == "c1"


async def test_noise_of_an_environment_stays_out_of_the_protocol(stdio_command: Command) -> None:
    async with _connect(stdio_command(), LEGACY) as client:
        assert _text(await client.call_tool("shout")) == "done"
        assert (await client.call_tool("leave")).is_error is True
        assert _text(await client.call_tool("show")) == "0"


def test_end_of_input_ends_the_process_in_order(stdio_command: Command) -> None:
    with _RawServer(stdio_command()) as server:
        server.initialize()
        rest, log = server.process.communicate(timeout=SECONDS)
        assert (server.process.returncode, rest, log) == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="skipped: Windows has no SIGTERM to catch")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_order(stdio_command: Command, number: signal.Signals) -> None:
    with _RawServer(stdio_command()) as server:
        server.initialize()
        assert "result" in server.request(1, "tools/call", name="show", arguments={})
        server.process.send_signal(number)
        assert server.process.wait(SECONDS) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_an_almost_empty_environment_is_enough(stdio_command: Command) -> None:
    with _RawServer(stdio_command(), env={}) as server:
        server.initialize()
        answer = server.request(1, "tools/call", name="add", arguments={"amount": 1})
        assert answer["result"]["structuredContent"]["value"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [({"env_id": "nowhere"}, "nowhere"), ({"task_id": "nothing"}, "nothing")],
)
def test_wrong_use_is_told_before_the_protocol_begins(
    stdio_command: Command, options: dict[str, str], message: str
) -> None:
    done = subprocess.run(
        stdio_command(**options), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.stdout == ""
    assert "NotFoundError" in done.stderr.splitlines()[-1]
    assert message in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_start_puts_another_episode_in_place_and_tells_the_client(
    stdio_command: Command, mode: str
) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    async def note(message: Any) -> None:
        if isinstance(message, types.ResourceListChangedNotification):
            told.put_nowait(message.method)

    async with _connect(stdio_command(control=True), mode, message_handler=note) as client:
        if mode == MODERN:
            async with client.listen(resources_list_changed=True) as events:
                await client.call_tool("add", {"amount": 5})
                started = await client.call_tool("start", {"task_id": "to-three"})
                async with asyncio.timeout(SECONDS):
                    await anext(aiter(events))
        else:
            await client.call_tool("add", {"amount": 5})
            started = await client.call_tool("start", {"task_id": "to-three"})
            async with asyncio.timeout(SECONDS):
                assert await told.get() == "notifications/resources/list_changed"
        assert started.structured_content["task"] == "Bring the counter to three."
        assert _text(await client.call_tool("show")) == "1"
        assert "envscaler://task" in [one.uri for one in (await client.list_resources()).resources]


def test_serving_imports_nothing_heavy(stdio_command: Command) -> None:
    heavy = [
        "langchain",
        "langchain_core",
        "langgraph",
        "fastmcp",
        "torch",
        "jsonschema",
        "prometheus_client",
    ]
    code = (
        stdio_command()[2]
        + f"\nimport sys; print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ},
    )
    assert (done.returncode, done.stderr.strip()) == (0, "[]")
