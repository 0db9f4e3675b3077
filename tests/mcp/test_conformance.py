"""The protocol's own conformance suite, run against a server over HTTP, for both protocol versions.

Only scenarios that any server can pass are asked of a plain episode. Scenarios that call a tool of a given
name are asked of an environment that has that tool. What is left needs features that this server has no use
for: sampling, elicitation, completion, binary content, resources that belong to the suite's own fixture.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp.app import create_app

pytestmark = [pytest.mark.node, pytest.mark.timeout(400)]

SECONDS = 60.0
PINNED = "@modelcontextprotocol/conformance@0.1.13"
# Releases that know the newer protocol version need a newer Node than many machines have.
NEWER = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22")

FIXTURE_CODE = '''
class Fixture:
    """The tools that the conformance suite calls by name."""

    def __init__(self, init_config):
        pass

    def test_simple_text(self):
        return "This is a simple text response for testing."

    def test_error_handling(self):
        raise RuntimeError("This tool intentionally returns an error for testing")

    def json_schema_2020_12_tool(self, name=None, address=None):
        return "ok"
'''

# A schema with the keywords whose survival the suite looks for.
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "place",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "by": {"enum": ["mail", "visit"]},
    },
    "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
    "if": {"properties": {"by": {"const": "mail"}}, "required": ["by"]},
    "then": {"required": ["address"]},
    "else": {"required": ["name"]},
    "additionalProperties": False,
}


def _tool(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": f"Called by {name}.", "parameters": parameters},
    }


NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
FIXTURE = {
    "env_id": "fixture",
    "env_class_name": "Fixture",
    "env_class_code": FIXTURE_CODE,
    "tools": [
        _tool("test_simple_text", NOTHING),
        _tool("test_error_handling", NOTHING),
        _tool("json_schema_2020_12_tool", SCHEMA_2020_12),
    ],
}

FOR_2025_11_25 = [
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
]
FOR_2026_07_28 = [
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "sep-2164-resource-not-found",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory, run_app: Callable[[ASGIApp], str]) -> Iterator[str]:
    """The address of an episode of the suite's fixture environment."""
    folder = tmp_path_factory.mktemp("fixture")
    (folder / "env_metadata.json").write_text(json.dumps([FIXTURE]))
    with EpisodeService(Catalog.load(folder)) as service:
        url = run_app(create_app(service))
        started = httpx2.post(f"{url}/episodes", json={"env_id": "fixture"}, timeout=20)
        yield str(started.json()["url"])


async def _run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(SECONDS):
        output, _ = await process.communicate()
    return output.decode()


def _failures(output: str) -> str:
    """What failed; the whole output if nothing was checked."""
    counts = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", output)
    if counts is None or counts[1] != counts[2] or counts[2] == "0":
        return output
    return ""


@pytest.mark.parametrize("scenario", FOR_2025_11_25)
async def test_scenarios_of_2025_11_25(endpoint: str, npm: Callable[..., Path], scenario: str) -> None:
    conformance = npm(PINNED) / "conformance"
    assert _failures(await _run(str(conformance), "server", "--url", endpoint, "--scenario", scenario)) == ""


@pytest.mark.parametrize("scenario", FOR_2026_07_28)
async def test_scenarios_of_2026_07_28(endpoint: str, npm: Callable[..., Path], scenario: str) -> None:
    commands = npm(*NEWER)
    output = await _run(
        *(str(commands / name) for name in ("node", "conformance")),
        *("server", "--url", endpoint, "--scenario", scenario, "--spec-version", "2026-07-28"),
    )
    assert _failures(output) == ""
