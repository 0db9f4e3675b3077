"""The HTTP server as a process of its own: it listens, is killed, starts again, and ends in order."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client

from langchain_envscaler.mcp.auth import new_token

LEGACY, MODERN = "legacy", "auto"
SECONDS = 30.0


class Process:
    """A server process and its address."""

    def __init__(self, folder: Path, **options: Any) -> None:
        store = options.pop("store", ":memory:")
        code = (
            "from langchain_envscaler.environments.catalog import Catalog\n"
            "from langchain_envscaler.environments.service import EpisodeService\n"
            "from langchain_envscaler.mcp.http import serve\n"
            f"service = EpisodeService(Catalog.load({str(folder)!r}), store={store!r})\n"
            f"serve(service, on_ready=lambda url: print(url, flush=True), **{options!r})"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def end(self, number: signal.Signals) -> str:
        """End the process; gives what it wrote to stderr."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=SECONDS)[1]


@pytest.fixture
def start(counter_folder: Path) -> Iterator[Callable[..., Process]]:
    """Starts server processes; what still runs after the test is killed."""
    started: list[Process] = []

    def start(**options: Any) -> Process:
        started.append(Process(counter_folder, **options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate(timeout=SECONDS)


async def _episode(url: str) -> str:
    async with httpx2.AsyncClient(base_url=url, timeout=20) as http:
        response = await http.post("/episodes", json={"env_id": "counter", "task_id": "to-three"})
        return str(response.json()["url"])


def _text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_a_held_connection_goes_on_after_a_kill_and_a_restart(
    start: Callable[..., Process], tmp_path: Path, unused_port: int, mode: str
) -> None:
    options = {"store": str(tmp_path / "episodes.db"), "port": unused_port}
    first = start(**options)
    meta: Any = {"envscaler/call_id": "last"}
    async with Client(await _episode(first.url), mode=mode) as client:
        await client.call_tool("add", {"amount": 1})
        await client.call_tool("add", {"amount": 1}, meta=meta)
        first.end(signal.SIGKILL)
        start(**options)
        again = await client.call_tool("add", {"amount": 1}, meta=meta)
        assert (again.meta or {})["envscaler/replayed"] is True
        assert _text(await client.call_tool("show")) == "3"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_process_in_order(
    start: Callable[..., Process], number: signal.Signals
) -> None:
    server = start(port=0)
    async with Client(await _episode(server.url), mode=LEGACY) as client:
        await client.call_tool("show")
        log = server.end(number)
    assert server.process.returncode == 0
    assert "Traceback" not in log


def test_a_port_in_use_is_told_in_one_line(start: Callable[..., Process]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        log = start(port=port).process.communicate(timeout=SECONDS)[1]
    last = log.splitlines()[-1]
    assert "UsageError" in last
    assert f"port {port}" in last
    assert "in use" in last


def test_other_machines_are_served_with_tokens_only(start: Callable[..., Process], tmp_path: Path) -> None:
    log = start(host="0.0.0.0", port=0).process.communicate(timeout=SECONDS)[1]
    assert "UsageError" in log.splitlines()[-1]
    assert "tokens" in log.splitlines()[-1]
    _, record = new_token("alice")
    file = tmp_path / "tokens.json"
    file.write_text(f'{{"tokens": [{record.model_dump_json()}]}}')
    server = start(host="0.0.0.0", port=0, tokens=str(file))
    assert server.url.startswith("http://0.0.0.0:")


async def test_the_log_is_lines_of_json_without_secrets(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    token, record = new_token("alice")
    file = tmp_path / "tokens.json"
    file.write_text(f'{{"tokens": [{record.model_dump_json()}]}}')
    server = start(port=0, tokens=str(file))
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=20) as http:
        body = {"env_id": "counter", "init_config": {"value": 987654321}}
        episode = (await http.post("/episodes?hush=1", json=body)).json()
        assert "detail" in episode
        episode = (await http.post("/episodes", json=body)).json()
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "add", "arguments": {"amount": 123454321}},
        }
        accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
        await http.post(episode["url"], json=call, headers=accept | {"mcp-session-id": "0" * 32})
    lines = [json.loads(line) for line in server.end(signal.SIGTERM).splitlines()]
    events = [line["event"] for line in lines]
    assert events.count("request") == 3
    assert [line["tool"] for line in lines if "tool" in line] == ["add"]
    text = json.dumps(lines)
    assert '"principal": "alice"' in text
    assert '"tool": "add"' in text
    secrets = [token, record.sha256, "hush", "987654321", "123454321"]
    assert [secret for secret in secrets if secret in text] == []
