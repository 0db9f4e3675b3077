"""MCP over HTTP: both protocol eras, held connections and one connection per call, restarts in between."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import mcp_types as types
import pytest
from fastmcp import Client as FastClient
from mcp import Client
from starlette.types import ASGIApp

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp.app import create_app

LEGACY, MODERN = "legacy", "auto"
RunApp = Callable[[ASGIApp], str]


@pytest.fixture(scope="module")
def url(service: EpisodeService, run_app: RunApp) -> str:
    return run_app(create_app(service, control=True))


async def _start(url: str) -> str:
    async with httpx2.AsyncClient(base_url=url, timeout=20) as http:
        response = await http.post("/episodes", json={"env_id": "counter", "task_id": "to-three"})
        return str(response.json()["url"])


def _text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", [LEGACY, MODERN, "auto"])
async def test_state_is_kept_on_a_held_connection(url: str, mode: str) -> None:
    async with Client(await _start(url), mode=mode) as client:
        await client.call_tool("add", {"amount": 1})
        assert _text(await client.call_tool("show")) == "2"


@pytest.mark.parametrize("mode", [LEGACY, MODERN, "auto"])
async def test_state_is_kept_with_a_connection_per_call(url: str, mode: str) -> None:
    address = await _start(url)
    for _ in range(2):
        async with Client(address, mode=mode) as client:
            await client.call_tool("add", {"amount": 1})
    async with Client(address, mode=mode) as client:
        assert _text(await client.call_tool("show")) == "3"


async def test_clients_of_both_eras_share_an_episode(url: str) -> None:
    address = await _start(url)
    async with Client(address, mode=LEGACY) as old, Client(address, mode=MODERN) as new:
        await old.call_tool("add", {"amount": 1})
        await new.call_tool("add", {"amount": 1})
        assert _text(await old.call_tool("show")) == "3"


async def test_fastmcp_clients_are_served(url: str) -> None:
    async with FastClient(await _start(url)) as client:
        result = await client.call_tool("add", {"amount": 1}, meta={"envscaler/call_id": "c1"})
        assert result.structured_content == {"success": True, "value": 2, "note": None}
        assert result.meta is not None
        assert result.meta["envscaler/call_id"] == "c1"


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_two_clients_of_one_environment_share_nothing(url: str, mode: str) -> None:
    addresses = [await _start(url) for _ in range(8)]

    async def play(address: str, amount: int) -> str:
        async with Client(address, mode=mode) as client:
            for _ in range(5):
                await client.call_tool("add", {"amount": amount})
            return _text(await client.call_tool("show"))

    async with asyncio.timeout(60):
        shown = await asyncio.gather(*(play(address, amount) for amount, address in enumerate(addresses)))
    assert shown == [str(1 + 5 * amount) for amount in range(8)]


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_the_same_call_id_sent_twice_has_one_effect(url: str, mode: str) -> None:
    address = await _start(url)
    meta: Any = {"envscaler/call_id": "c1"}
    results = []
    for _ in range(2):
        async with Client(address, mode=mode) as client:
            results.append(await client.call_tool("add", {"amount": 1}, meta=meta))
            shown = _text(await client.call_tool("show"))
    assert _text(results[0]) == _text(results[1])
    assert shown == "2"


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_the_same_call_sent_at_once_has_one_effect(url: str, mode: str) -> None:
    meta: Any = {"envscaler/call_id": "c1"}
    async with Client(await _start(url), mode=mode) as client:
        results = await asyncio.gather(*(client.call_tool("add", {"amount": 1}, meta=meta) for _ in range(4)))
        assert {_text(result) for result in results} == {"{'success': True, 'value': 2, 'note': None}"}
        assert _text(await client.call_tool("show")) == "2"


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
@pytest.mark.parametrize(
    ("name", "arguments"), [("leave", {}), ("explode", {"message": "x"}), ("add", {"wrong": 1}), ("gone", {})]
)
async def test_the_connection_survives_whatever_a_tool_does(
    url: str, mode: str, name: str, arguments: dict[str, Any]
) -> None:
    async with Client(await _start(url), mode=mode) as client:
        assert (await client.call_tool(name, arguments)).is_error is True
        assert (await client.call_tool("add", {"amount": 1})).is_error is False


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_noise_and_large_results_leave_the_protocol_whole(url: str, mode: str) -> None:
    async with Client(await _start(url), mode=mode) as client:
        assert _text(await client.call_tool("shout")) == "done"
        large = await client.call_tool("fill", {"size": 100_000_000})
        assert len(_text(large)) < 10_000_000
        assert large.is_error is True or "cut" in _text(large)
        assert _text(await client.call_tool("show")) == "1"


async def test_an_unknown_episode_is_not_found(url: str) -> None:
    async with httpx2.AsyncClient(timeout=20) as http:
        response = await http.post(f"{url}/episodes/nothing/mcp", json={})
    assert response.status_code == 404
    assert "nothing" in response.json()["detail"]


async def test_start_gives_the_address_of_another_episode(url: str) -> None:
    async with Client(await _start(url)) as client:
        await client.call_tool("add", {"amount": 1})
        started = (await client.call_tool("start", {"task_id": "to-three"})).structured_content
        assert _text(await client.call_tool("show")) == "2"
    async with Client(started["url"]) as client:
        assert _text(await client.call_tool("show")) == "1"


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_a_long_call_reports_progress(url: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langchain_envscaler.mcp.server.PROGRESS_INTERVAL", 0.05)
    reported: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reported.append(progress)

    async with Client(await _start(url), mode=mode) as client:
        await client.call_tool("wait", {"seconds": 1}, progress_callback=note)
    assert reported
    assert reported == sorted(reported)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_an_episode_that_was_put_to_sleep_comes_back_when_called(
    catalog: Catalog, run_app: RunApp, mode: str
) -> None:
    with EpisodeService(catalog, max_awake=1) as service:
        url = run_app(create_app(service))
        first, second = await _start(url), await _start(url)
        async with Client(first, mode=mode) as client:
            await client.call_tool("add", {"amount": 1})
            async with Client(second, mode=mode) as other:
                await other.call_tool("show")
            assert not service.get(first.split("/")[-2]).is_awake
            assert _text(await client.call_tool("show")) == "2"


@pytest.mark.parametrize(
    ("meta", "media_type"),
    [({}, "application/json"), ({"progressToken": 1}, "text/event-stream")],
)
async def test_a_stream_is_opened_only_for_a_client_that_wants_progress(
    url: str, meta: dict[str, Any], media_type: str
) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "show", "arguments": {}, "_meta": meta},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        # A session of a server that was here before: it holds nothing, so it is served.
        "mcp-session-id": "0" * 32,
    }
    async with httpx2.AsyncClient(timeout=20) as http:
        address = await _start(url)
        unknown = await http.post(address, json=call, headers=headers)
        greeting = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": greeting}
        opened = await http.post(address, json=opening, headers={"accept": headers["accept"]})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        known = await http.post(address, json=call, headers=headers | session)
    assert known.headers["content-type"] == media_type
    for response in (unknown, known):
        assert response.status_code == 200
        assert '"structuredContent":{"result":1}' in response.text
