"""An environment as an MCP bundle (.mcpb): one file that a desktop client installs by itself.

A bundle holds a manifest, this package's own server code, the environment with its scenarios, and the names
of the libraries that the server needs. The client's own `uv` fetches those and a Python when the bundle is
first started, because libraries with machine code in them would tie a bundle to one system.
"""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import Distribution, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_envscaler.errors import InfrastructureError
from langchain_envscaler.mcp.install import episode_of

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.metadata import EnvironmentSpec

__all__ = ["bundle", "write_bundle"]

_PACKAGE = "langchain_envscaler"
_DISTRIBUTION = "langchain-envscaler"
_MANIFEST_VERSION = "0.4"
"""The first version of the format with servers that are started by `uv`."""
_SERVER_PARTS = ("__init__.py", "errors.py", "home.py", "environments", "mcp")
"""What a stdio server is made of; the chat model and the graphs stay out, and LangChain with them."""
_LIBRARIES = ("jsonschema", "mcp", "platformdirs", "pydantic", "time-machine")
"""Those of the package's dependencies that the parts above import."""
_EPOCH = (1980, 1, 1, 0, 0, 0)

_MAIN = '''"""Serves the environment that lies in data/, on standard input and output."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.errors import EnvScalerError
from langchain_envscaler.home import EPISODES, default_home
from langchain_envscaler.mcp.stdio import serve

if __name__ == "__main__":
    served = json.loads((HERE / "data" / "served.json").read_text(encoding="utf-8"))
    try:
        serve(
            served["env_id"],
            served["task_id"],
            catalog=Catalog.load(HERE / "data"),
            store=str(default_home() / EPISODES),
            episode_id=served["episode_id"],
        )
    except EnvScalerError as error:
        sys.exit(f"envscaler: {error}")
'''


def write_bundle(catalog: "Catalog", env_id: str, task_id: str | None, out: Path) -> None:
    """Write a bundle of an environment to a file; what is there already is replaced once it is whole.

    Args:
        catalog: Where the environment is looked up.
        env_id: The environment.
        task_id: The scenario that the episode starts from; None starts without a task.
        out: The file.

    Raises:
        NotFoundError: No such environment or scenario.
        InfrastructureError: The file cannot be written.
    """
    content = bundle(catalog, env_id, task_id)
    part = out.with_name(f".{out.name}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(out)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise InfrastructureError(
            f"expected to write {out}, found: {error}; name another file with --out"
        ) from error


def bundle(catalog: "Catalog", env_id: str, task_id: str | None = None) -> bytes:
    """The bytes of an environment's bundle: the same ones each time, for the same environment and version.

    Raises:
        NotFoundError: No such environment or scenario.
    """
    spec = catalog.environment(env_id)
    if task_id is not None:
        catalog.scenario(env_id, task_id)
    package = distribution(_DISTRIBUTION)
    name = _name(env_id)
    contents: dict[str, bytes] = {
        "manifest.json": _json(_manifest(spec, name, package)),
        "pyproject.toml": _project(name, package).encode(),
        "server/main.py": _MAIN.encode(),
        **{f"server/data/{file}": text for file, text in _data(catalog, spec, task_id).items()},
        **{f"server/{_PACKAGE}/{path}": code for path, code in _server_code()},
        # The server tells its clients the version that it finds installed.
        f"server/{_PACKAGE}-{package.version}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: {_DISTRIBUTION}\nVersion: {package.version}\n".encode()
        ),
    }
    if license_text := package.read_text("licenses/LICENSE"):
        contents["LICENSE"] = license_text.encode()
    return _zip(contents)


def _name(env_id: str) -> str:
    """The name by which clients tell bundles apart: lower case and hyphens."""
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in env_id.lower())
    return f"envscaler-{plain.strip('-')}"


def _manifest(spec: "EnvironmentSpec", name: str, package: Distribution) -> dict[str, Any]:
    metadata = package.metadata
    functions = [tool["function"] for tool in spec.tools]
    return {
        "manifest_version": _MANIFEST_VERSION,
        "name": name,
        "display_name": spec.env_id.replace("_", " ").capitalize(),
        "version": package.version,
        "description": spec.environment_summary or f"The environment {spec.env_id}.",
        "long_description": spec.environment_introduction or spec.environment_summary or spec.env_id,
        "author": {"name": metadata["Author"] or _DISTRIBUTION},
        "license": metadata["License-Expression"] or "Apache-2.0",
        "keywords": ["environment", "tool-calling", "agents"],
        "server": {
            "type": "uv",
            "entry_point": "server/main.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "--no-dev", "server/main.py"],
            },
        },
        "tools": [
            {"name": function["name"], "description": _first_line(function.get("description") or "")}
            for function in functions
        ],
        # The server words its prompt from the task when it is asked for it.
        "prompts_generated": True,
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": metadata["Requires-Python"]},
        },
    }


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def _project(name: str, package: Distribution) -> str:
    """What `uv` reads: which Python and which libraries, of the versions that this package asks for."""
    needed = [one for one in package.requires or () if _library(one) in _LIBRARIES and "extra ==" not in one]
    lines = "".join(f"  {json.dumps(one)},\n" for one in sorted(needed))
    return (
        f"[project]\nname = {json.dumps(name)}\nversion = {json.dumps(package.version)}\n"
        f"requires-python = {json.dumps(package.metadata['Requires-Python'])}\n"
        f"dependencies = [\n{lines}]\n\n[tool.uv]\npackage = false\n"
    )


def _library(requirement: str) -> str:
    end = next((at for at, char in enumerate(requirement) if not (char.isalnum() or char in "-_.")), None)
    return requirement[:end].lower().replace("_", "-")


def _data(catalog: "Catalog", spec: "EnvironmentSpec", task_id: str | None) -> Mapping[str, bytes]:
    scenarios = [scenario.to_envscaler() for scenario in catalog.scenarios_of(spec.env_id)]
    return {
        "env_metadata.json": _json({spec.env_id: spec.to_envscaler()}),
        "scenario_metadata.json": _json(scenarios),
        "served.json": _json(
            {
                "env_id": spec.env_id,
                "task_id": task_id,
                "episode_id": episode_of("bundle", spec.env_id, task_id),
            }
        ),
    }


def _server_code() -> Iterator[tuple[str, bytes]]:
    root = files(_PACKAGE)
    for part in _SERVER_PARTS:
        yield from _files(root / part, part)


def _files(at: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    if at.is_file():
        yield path, at.read_bytes()
    elif at.name not in ("__pycache__", "bundled"):
        for child in at.iterdir():
            yield from _files(child, f"{path}/{child.name}")


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _zip(contents: Mapping[str, bytes]) -> bytes:
    """The files in one archive, in a fixed order and with a fixed time."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(contents, key=lambda path: (path != "manifest.json", path)):
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, contents[path])
    return held.getvalue()
