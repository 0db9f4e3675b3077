"""The files in mcp_servers/ do what they are for."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.mcp.clients import StdioServerEntry, parse_clients

FOLDER = Path(__file__).resolve().parents[2] / "mcp_servers"
SECONDS = 30.0

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="skipped: mcp_servers/ does not lie beside the tests"
)


@pytest.mark.parametrize("name", ["claude_desktop_config.json", "vscode_mcp.json"])
def test_client_configurations_name_bundled_environments(name: str) -> None:
    entries = [entry for entry in parse_clients(FOLDER / name) if isinstance(entry, StdioServerEntry)]
    assert entries
    bundled = Catalog.bundled().environments
    for entry in entries:
        assert (entry.command, entry.args[0]) == ("envscaler", "serve")
        assert entry.args[1] in bundled


async def test_stdio_launcher_serves_an_environment() -> None:
    server = StdioServerParameters(
        command=sys.executable, args=[str(FOLDER / "stdio_server.py"), "smart_home"]
    )
    async with Client(stdio_client(server)) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == [tool["function"]["name"] for tool in Catalog.bundled().environments["smart_home"].tools]


def test_stdio_launcher_names_an_unknown_environment() -> None:
    command = [sys.executable, str(FOLDER / "stdio_server.py"), "nowhere"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "nowhere" in done.stderr


@contextmanager
def _http_server(**settings: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, **{f"ENVSCALER_{name}": value for name, value in settings.items()}}
    command = [sys.executable, str(FOLDER / "http_server.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def test_http_launcher_serves_all_environments(tmp_path: Path) -> None:
    with _http_server(PORT="0", STORE=str(tmp_path / "episodes.db")) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip().removeprefix("Serving at ")
        page = httpx2.get(f"{url}/environments", timeout=SECONDS).json()
    assert [one["env_id"] for one in page["environments"]] == list(Catalog.bundled().environments)


@pytest.mark.parametrize(
    ("settings", "word"), [({"PORT": "eight"}, "eight"), ({"HOST": "0.0.0.0"}, "tokens")]
)
def test_http_launcher_says_what_is_wrong(tmp_path: Path, settings: dict[str, str], word: str) -> None:
    with _http_server(STORE=str(tmp_path / "episodes.db"), **settings) as process:
        output, log = process.communicate(timeout=SECONDS)
    assert (process.returncode, output) == (1, "")
    assert len(log.splitlines()) == 1
    assert word in log
