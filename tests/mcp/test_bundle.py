"""An environment as one file for desktop clients: what it holds, who accepts it, and that it runs."""

import io
import json
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from typer.testing import CliRunner

from langchain_envscaler.cli import app
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.errors import InfrastructureError, NotFoundError
from langchain_envscaler.mcp.bundle import bundle, write_bundle

SECONDS = 60.0
TASK = "to-three"


@pytest.fixture
def unpacked(catalog: Catalog, tmp_path: Path) -> Path:
    """The counter environment's bundle, as a client unpacks it."""
    folder = tmp_path / "extension"
    with zipfile.ZipFile(io.BytesIO(bundle(catalog, "counter", TASK))) as archive:
        archive.extractall(folder)
    return folder


def _manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def test_the_manifest_tells_what_the_environment_is(unpacked: Path) -> None:
    manifest = _manifest(unpacked)
    assert (manifest["name"], manifest["description"]) == ("envscaler-counter", "A counter.")
    assert manifest["version"] == version("langchain-envscaler")
    assert manifest["tools"][0] == {"name": "add", "description": "The tool add."}
    assert len(manifest["tools"]) == 10
    assert (unpacked / manifest["server"]["entry_point"]).is_file()


def test_the_same_environment_gives_the_same_bytes(catalog: Catalog) -> None:
    content = bundle(catalog, "counter", TASK)
    assert content == bundle(catalog, "counter", TASK)
    assert content != bundle(catalog, "counter")
    assert zipfile.ZipFile(io.BytesIO(content)).namelist()[0] == "manifest.json"


def test_a_bundle_holds_no_more_than_the_server_needs(unpacked: Path) -> None:
    package = unpacked / "server" / "langchain_envscaler"
    assert {path.name for path in package.iterdir()} == {
        *("__init__.py", "errors.py", "home.py", "environments", "mcp")
    }
    assert not [path for path in unpacked.rglob("*") if path.name in ("__pycache__", "bundled")]
    assert list(Catalog.load(unpacked / "server" / "data").environments) == ["counter"]


def test_libraries_are_asked_for_as_the_package_asks_for_them(unpacked: Path) -> None:
    project = tomllib.loads((unpacked / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = project["dependencies"]
    assert set(asked) <= set(requires("langchain-envscaler") or ())
    assert any(one.startswith("mcp") for one in asked)
    assert not [one for one in asked if one.startswith(("lang", "fastmcp", "typer", "rich"))]


async def test_a_bundle_that_was_unpacked_serves_its_environment_and_goes_on(
    unpacked: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    server = StdioServerParameters(
        command=sys.executable,
        args=["-P", str(unpacked / "server" / "main.py")],
        env={"HOME": str(tmp_path), "ENVSCALER_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path / "elsewhere",
    )
    async with Client(stdio_client(server), mode="legacy") as client:
        await client.call_tool("add", {"amount": 1})
        assert client.server_info.version == version("langchain-envscaler")
    async with Client(stdio_client(server), mode="legacy") as client:
        assert (await client.call_tool("show")).structured_content == {"result": 2}


def test_the_server_of_a_bundle_is_its_own_copy(unpacked: Path) -> None:
    code = (
        "import runpy, sys\n"
        f"runpy.run_path({str(unpacked / 'server' / 'main.py')!r})\n"
        "own = [m for n, m in sys.modules.items() if n.split('.')[0] == 'langchain_envscaler']\n"
        f"print(len(own) > 5, all(m.__file__.startswith({str(unpacked)!r}) for m in own))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout.split() == ["True", "True"]


def test_the_command_writes_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bundle", "smart_home", "--json"], catch_exceptions=False)
    record = json.loads(done.stdout)
    file = tmp_path / "smart_home.mcpb"
    assert (record["bundle"], record["bytes"]) == (str(file), file.stat().st_size)
    with zipfile.ZipFile(file) as archive:
        served = json.loads(archive.read("server/data/served.json"))
    assert served["task_id"] == record["task_id"]
    assert record["task_id"].startswith("smart_home-01")
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_not_there_is_not_bundled(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        bundle(catalog, "nowhere")
    with pytest.raises(NotFoundError, match="nothing"):
        bundle(catalog, "counter", "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="--out"):
        write_bundle(catalog, "counter", TASK, tmp_path / "file" / "x.mcpb")


@pytest.mark.node
@pytest.mark.timeout(400)
def test_the_bundles_own_tool_accepts_every_bundled_environment(
    npm: Callable[..., Path], tmp_path: Path
) -> None:
    mcpb = str(npm("@anthropic-ai/mcpb@2.1.2") / "mcpb")

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [mcpb, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
        )

    catalog = Catalog.bundled()
    for env_id in catalog.environments:
        file, folder = tmp_path / f"{env_id}.mcpb", tmp_path / env_id
        write_bundle(catalog, env_id, None, file)
        unpacked = run("unpack", str(file), str(folder))
        assert unpacked.returncode == 0, unpacked.stdout + unpacked.stderr
        checked = run("validate", str(folder / "manifest.json"))
        assert checked.returncode == 0, checked.stdout + checked.stderr
    # The tool tells right from wrong.
    (folder / "manifest.json").write_text(json.dumps({**_manifest(folder), "surplus": 1}))
    assert run("validate", str(folder / "manifest.json")).returncode != 0
