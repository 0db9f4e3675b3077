"""Recorded traces of real environments give the same observations, states and rewards through MCP."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from starlette.types import ASGIApp

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp.app import create_app
from langchain_envscaler.mcp.server import create_server

SAMPLE = slice(0, 132, 44)


@pytest.fixture(scope="module")
def envscaler(shared: Path) -> Catalog:
    return Catalog.load(shared / "envscaler")


@pytest.fixture(scope="module")
def traces(shared: Path) -> list[dict[str, Any]]:
    lines = (shared / "golden" / "envscaler_traces.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


async def _replayed(client: Client, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps as the server answers them, with a hash of the state after each."""
    seen = []
    for step in steps:
        result = await client.call_tool(step["name"], step["arguments"])
        (block,) = result.content
        assert isinstance(block, types.TextContent)
        (state,) = (await client.read_resource("envscaler://state")).contents
        assert isinstance(state, types.TextResourceContents)
        canonical = json.dumps(json.loads(state.text), sort_keys=True, default=repr)
        seen.append(
            {
                "name": step["name"],
                "arguments": step["arguments"],
                "observation": block.text,
                "state_sha256": hashlib.sha256(canonical.encode()).hexdigest(),
            }
        )
    return seen


async def test_every_trace_through_the_server(envscaler: Catalog, traces: list[dict[str, Any]]) -> None:
    service = EpisodeService(envscaler)
    assert len(traces) == 132
    for number, trace in enumerate(traces):
        episode = await service.astart(trace["env_id"], trace["task_id"])
        server = create_server(episode, control=True)
        async with Client(server, mode="legacy" if number % 2 else "2026-07-28") as client:
            assert await _replayed(client, trace["steps"]) == trace["steps"]
            checked = (await client.call_tool("check")).structured_content
        assert checked["reward"] == trace["reward"]
        assert [check["passed"] for check in checked["checks"]] == trace["checks"]
        await service.adelete(episode.episode_id)
    await service.aclose()


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_sample_over_http(
    envscaler: Catalog, traces: list[dict[str, Any]], mode: str, run_app: Callable[[ASGIApp], str]
) -> None:
    service = EpisodeService(envscaler)
    url = run_app(create_app(service))
    async with httpx2.AsyncClient(base_url=url) as http:
        for trace in traces[SAMPLE]:
            started = await http.post(
                "/episodes", json={"env_id": trace["env_id"], "task_id": trace["task_id"]}
            )
            episode = started.json()
            async with Client(episode["url"], mode=mode) as client:
                assert await _replayed(client, trace["steps"]) == trace["steps"]
            evaluated = (await http.post(f"/episodes/{episode['episode_id']}/evaluate")).json()
            assert evaluated["reward"] == trace["reward"]
    await service.aclose()


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_sample_over_stdio(
    shared: Path, traces: list[dict[str, Any]], mode: str, stdio_command: Callable[..., list[str]]
) -> None:
    for trace in traces[SAMPLE][:2]:
        program, *arguments = stdio_command(
            folder=shared / "envscaler", env_id=trace["env_id"], task_id=trace["task_id"]
        )
        server = StdioServerParameters(command=program, args=arguments)
        async with Client(stdio_client(server), mode=mode) as client:
            assert await _replayed(client, trace["steps"]) == trace["steps"]


async def test_tool_schemas_arrive_unchanged(envscaler: Catalog) -> None:
    service = EpisodeService(envscaler)
    arrived = 0
    for env_id, spec in envscaler.environments.items():
        episode = await service.astart(env_id)
        for mode in ("legacy", "2026-07-28"):
            async with Client(create_server(episode), mode=mode) as client:
                tools = (await client.list_tools()).tools
            seen = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.input_schema,
                    },
                }
                for tool in tools
            ]
            assert json.dumps(seen) == json.dumps(spec.tools)
            arrived += len(tools)
    assert arrived == 2 * 272
    await service.aclose()
