"""The MCP inspector, a client that is not ours, lists and calls the tools of a stdio server."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.node, pytest.mark.timeout(400)]

SECONDS = 60.0


@pytest.fixture
def inspect(
    npm: Callable[..., Path], stdio_command: Callable[..., list[str]]
) -> Callable[..., dict[str, Any]]:
    """Runs one request of the inspector on a server of its own; gives the result."""
    inspector = npm("@modelcontextprotocol/inspector@2.12.0") / "mcp-inspector"

    def run(method: str, *options: str) -> dict[str, Any]:
        server = stdio_command(task_id="to-three")
        command = [str(inspector), "--cli", *server, "--method", method, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    return run


def test_tools_are_listed(inspect: Callable[..., dict[str, Any]]) -> None:
    names = [tool["name"] for tool in inspect("tools/list")["tools"]]
    assert names[:2] == ["add", "show"]


def test_a_tool_is_called(inspect: Callable[..., dict[str, Any]]) -> None:
    result = inspect("tools/call", "--tool-name", "add", "--tool-arg", "amount=2")
    assert result["content"] == [{"type": "text", "text": "{'success': True, 'value': 3, 'note': None}"}]
    assert result["structuredContent"] == {"success": True, "value": 3, "note": None}


def test_resources_and_prompts_are_read(inspect: Callable[..., dict[str, Any]]) -> None:
    (content,) = inspect("resources/read", "--uri", "envscaler://task")["contents"]
    assert content["text"] == "Bring the counter to three."
    assert [prompt["name"] for prompt in inspect("prompts/list")["prompts"]] == ["solve"]
