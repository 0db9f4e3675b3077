"""Who may do what over HTTP: tokens, principals, limits."""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyHttpUrl
from starlette.types import ASGIApp

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp.app import create_app
from langchain_envscaler.mcp.auth import TokenTable, new_token
from langchain_envscaler.mcp.oauth import ResourceServer

START = {"env_id": "counter", "task_id": "to-three"}
RunApp = Callable[[ASGIApp], str]


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


PRINCIPALS = [new_token(f"principal-{number}") for number in range(60)]
UNUSED = iter([token for token, _ in PRINCIPALS])


@pytest.fixture
def tokens() -> dict[str, str]:
    """The tokens of two principals who have done nothing yet."""
    return {"alice": next(UNUSED), "bob": next(UNUSED)}


@pytest.fixture(scope="module")
def url(service: EpisodeService, run_app: RunApp) -> str:
    table = TokenTable([record for _, record in PRINCIPALS])
    return run_app(create_app(service, tokens=table, max_episodes_per_principal=2))


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
        yield client


@pytest.mark.parametrize("path", ["/environments", "/episodes", "/metrics", "/mcp", "/episodes/x/mcp", "/x"])
@pytest.mark.parametrize("authorization", [None, "Bearer nonsense", "Basic YTpi", "Bearer", ""])
async def test_without_a_valid_token_nothing_is_told(
    http: httpx2.AsyncClient, path: str, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    response = await http.get(path, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    assert response.headers["content-type"] == "application/problem+json"


async def test_health_and_the_interface_document_are_public(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/healthz")).status_code == 200
    assert (await http.get("/openapi.json")).status_code == 200


@pytest.mark.parametrize(
    ("method", "suffix"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/state"),
        ("GET", "/diff"),
        ("GET", "/trajectory"),
        ("POST", "/evaluate"),
        ("POST", "/snapshot"),
        ("POST", "/fork"),
        ("POST", "/mcp"),
        ("GET", "/mcp"),
    ],
)
async def test_another_principals_episode_is_not_there(
    http: httpx2.AsyncClient, tokens: dict[str, str], method: str, suffix: str
) -> None:
    started = await http.post("/episodes", json=START, headers=_bearer(tokens["alice"]))
    address = f"/episodes/{started.json()['episode_id']}"
    response = await http.request(method, address + suffix, headers=_bearer(tokens["bob"]))
    missing = await http.request(method, f"/episodes/{'0' * 32}{suffix}", headers=_bearer(tokens["bob"]))
    assert response.status_code == missing.status_code == 404
    assert (await http.get(address, headers=_bearer(tokens["alice"]))).status_code == 200
    assert (await http.get("/episodes", headers=_bearer(tokens["bob"]))).json()["episodes"] == []


async def test_the_lobby_knows_only_the_callers_episodes(
    http: httpx2.AsyncClient, url: str, tokens: dict[str, str]
) -> None:
    started = await http.post("/episodes", json=START, headers=_bearer(tokens["alice"]))
    arguments = {"episode_id": started.json()["episode_id"], "name": "show"}
    answers = []
    for name in ("alice", "bob"):
        async with (
            httpx2.AsyncClient(headers=_bearer(tokens[name]), timeout=20) as authenticated,
            Client(streamable_http_client(f"{url}/mcp", http_client=authenticated)) as client,
        ):
            answers.append(await client.call_tool("call_tool", arguments))
    assert [answer.is_error for answer in answers] == [False, True]


async def test_a_principal_has_a_limit_and_others_go_on(
    http: httpx2.AsyncClient, tokens: dict[str, str]
) -> None:
    async def start(name: str) -> httpx2.Response:
        return await http.post("/episodes", json=START, headers=_bearer(tokens[name]))

    first = await start("alice")
    assert [first.status_code, (await start("alice")).status_code] == [201, 201]
    refused = await start("alice")
    assert refused.status_code == 429
    assert "2" in refused.json()["detail"]
    forked = await http.post(f"/episodes/{first.json()['episode_id']}/fork", headers=_bearer(tokens["alice"]))
    assert forked.status_code == 429
    assert (await start("bob")).status_code == 201
    await http.delete(f"/episodes/{first.json()['episode_id']}", headers=_bearer(tokens["alice"]))
    assert (await start("alice")).status_code == 201


async def test_the_servers_limit_is_named_and_open_episodes_go_on(catalog: Catalog, run_app: RunApp) -> None:
    service = EpisodeService(catalog, max_episodes=1)
    async with httpx2.AsyncClient(base_url=run_app(create_app(service)), timeout=20) as http:
        first = (await http.post("/episodes", json=START)).json()
        refused = await http.post("/episodes", json=START)
        assert refused.status_code == 429
        assert "1" in refused.json()["detail"]
        async with Client(first["url"]) as client:
            assert (await client.call_tool("show")).is_error is False
    await service.aclose()


async def test_metrics_count_starts_and_refusals(
    service: EpisodeService, run_app: RunApp, tokens: dict[str, str]
) -> None:
    table = TokenTable([record for _, record in PRINCIPALS])
    url = run_app(create_app(service, tokens=table, max_episodes_per_principal=2))
    headers = _bearer(tokens["alice"])
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=20) as http:
        for _ in range(3):
            started = await http.post("/episodes", json=START)
        text = (await http.get("/metrics")).text
    assert started.status_code == 429
    assert 'envscaler_episodes_started_total{env_id="counter"} 2.0' in text
    assert "envscaler_episodes_refused_total 1.0" in text
    assert re.search(r"^envscaler_episodes [1-9]", text, re.MULTILINE)
    assert re.search(r"^envscaler_episodes_awake [1-9]", text, re.MULTILINE)
    assert 'envscaler_http_requests_total{method="POST",route="/episodes",status="201"} 2.0' in text


async def test_oauth_metadata_says_where_tokens_come_from(service: EpisodeService, run_app: RunApp) -> None:
    _, record = new_token("alice")
    oauth = ResourceServer(
        resource_url=AnyHttpUrl("https://envs.example"),
        authorization_servers=(AnyHttpUrl("https://issuer.example"),),
        scopes=("episodes",),
    )
    url = run_app(create_app(service, tokens=TokenTable([record]), oauth=oauth))
    async with httpx2.AsyncClient(base_url=url, timeout=20) as http:
        refused = await http.get("/environments")
        metadata = (await http.get("/.well-known/oauth-protected-resource")).json()
    found: Any = refused.headers["www-authenticate"]
    assert 'resource_metadata="https://envs.example/.well-known/oauth-protected-resource"' in found
    assert metadata["resource"].rstrip("/") == "https://envs.example"
    assert [server.rstrip("/") for server in metadata["authorization_servers"]] == ["https://issuer.example"]
    assert metadata["scopes_supported"] == ["episodes"]
