"""The HTTP interface beside MCP, over a real connection."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from mcp import Client
from starlette.types import ASGIApp

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp.app import create_app


@pytest.fixture(scope="module")
def url(service: EpisodeService, run_app: Callable[[ASGIApp], str]) -> str:
    return run_app(create_app(service))


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
        yield client


async def _start(http: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await http.post("/episodes", json={"env_id": "counter", "task_id": "to-three"} | body)
    assert response.status_code == 201
    record: dict[str, Any] = response.json()
    return record


async def _call(episode: dict[str, Any], name: str, **arguments: Any) -> Any:
    async with Client(episode["url"]) as client:
        return await client.call_tool(name, arguments)


def _problem(response: httpx2.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem.keys() == {"type", "title", "status", "detail"}
    assert problem["status"] == response.status_code
    return response.status_code, problem["detail"]


async def test_health_tells_the_isolation_level(http: httpx2.AsyncClient, service: EpisodeService) -> None:
    health = (await http.get("/healthz")).json()
    assert (health["status"], health["isolation"]) == ("ok", service.isolation.level)


async def test_environments_are_paged(catalog: Catalog, run_app: Callable[[ASGIApp], str]) -> None:
    spec = catalog.environments["counter"]
    several = Catalog.bundled()
    several.environments.clear()
    several.environments.update({name: spec.model_copy(update={"env_id": name}) for name in "abc"})
    service = EpisodeService(several)
    async with httpx2.AsyncClient(base_url=run_app(create_app(service))) as http:
        first = (await http.get("/environments", params={"limit": 2})).json()
        rest = (await http.get("/environments", params={"cursor": first["next_cursor"]})).json()
    await service.aclose()
    assert first["environments"][0] == {"env_id": "a", "summary": "A counter.", "tools": 10, "scenarios": 0}
    assert [one["env_id"] for one in [*first["environments"], *rest["environments"]]] == ["a", "b", "c"]
    assert rest["next_cursor"] is None


async def test_scenarios_are_listed(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/environments/counter/scenarios")).json() == {
        "scenarios": [{"task_id": "to-three", "task": "Bring the counter to three.", "checks": 2}],
        "next_cursor": None,
    }


async def test_an_environment_and_a_scenario_in_full(http: httpx2.AsyncClient, catalog: Catalog) -> None:
    environment = (await http.get("/environments/counter")).json()
    assert environment["tools"] == catalog.environments["counter"].tools
    assert environment["rules"] == ["Count upwards.", "Say when you are done."]
    scenario = (await http.get("/environments/counter/scenarios/to-three")).json()
    assert (scenario["task"], scenario["init_config"]) == ("Bring the counter to three.", {"value": 1})


async def test_a_started_episode_has_an_address(http: httpx2.AsyncClient) -> None:
    response = await http.post("/episodes", json={"env_id": "counter", "task_id": "to-three"})
    episode = response.json()
    assert response.headers["location"] == f"{http.base_url}/episodes/{episode['episode_id']}"
    assert episode["url"] == f"{http.base_url}/episodes/{episode['episode_id']}/mcp"
    assert (episode["revision"], episode["task"]) == (0, "Bring the counter to three.")
    assert (await http.get(f"/episodes/{episode['episode_id']}")).json() == episode


async def test_an_episode_may_start_from_a_state_of_its_own(http: httpx2.AsyncClient) -> None:
    episode = await _start(http, task_id=None, init_config={"value": 40})
    assert (await http.get(f"/episodes/{episode['episode_id']}/state")).json() == {
        "revision": 0,
        "state": {"value": 40, "ids": []},
    }


async def test_a_seed_repeats_what_is_random(http: httpx2.AsyncClient) -> None:
    texts = []
    for _ in range(2):
        result = await _call(await _start(http, seed=5), "new_id")
        texts.append(result.content[0].text)
    assert texts[0] == texts[1]


async def test_state_diff_and_trajectory_follow_the_calls(http: httpx2.AsyncClient) -> None:
    episode = await _start(http)
    await _call(episode, "add", amount=1)
    await _call(episode, "add", amount=5)
    address = f"/episodes/{episode['episode_id']}"
    assert (await http.get(f"{address}/state", params={"revision": 1})).json()["state"]["value"] == 2
    diff = (await http.get(f"{address}/diff", params={"since": 1})).json()
    assert diff == {
        "since": 1,
        "until": 2,
        "changes": [{"op": "replace", "path": "/value", "before": 2, "after": 7}],
    }
    first = (await http.get(f"{address}/trajectory", params={"limit": 1})).json()
    rest = (await http.get(f"{address}/trajectory", params={"cursor": first["next_cursor"]})).json()
    calls = [*first["calls"], *rest["calls"]]
    assert rest["next_cursor"] is None
    assert [(call["name"], call["arguments"], call["revision"]) for call in calls] == [
        ("add", {"amount": 1}, 1),
        ("add", {"amount": 5}, 2),
    ]
    assert calls[0]["observation"] == "{'success': True, 'value': 2, 'note': None}"


async def test_evaluate_gives_the_reward_and_each_check(http: httpx2.AsyncClient) -> None:
    episode = await _start(http)
    await _call(episode, "add", amount=1)
    address = f"/episodes/{episode['episode_id']}/evaluate"
    evaluated = (await http.post(address)).json()
    assert (evaluated["revision"], evaluated["reward"]) == (1, 0.5)
    assert [(check["item"], check["passed"]) for check in evaluated["checks"]] == [
        ("the counter stands at three", False),
        ("the counter went up", True),
    ]
    assert (await http.post(address, json={"revision": 0})).json()["reward"] == 0.0


async def test_snapshot_and_restore(http: httpx2.AsyncClient) -> None:
    episode = await _start(http)
    address = f"/episodes/{episode['episode_id']}"
    snapshot = (await http.post(f"{address}/snapshot")).json()["snapshot"]
    await _call(episode, "add", amount=9)
    restored = await http.post(f"{address}/restore", json={"snapshot": snapshot})
    assert restored.status_code == 200
    assert (await http.get(f"{address}/state")).json()["state"]["value"] == 1


async def test_a_fork_goes_its_own_way(http: httpx2.AsyncClient) -> None:
    episode = await _start(http)
    await _call(episode, "add", amount=1)
    response = await http.post(f"/episodes/{episode['episode_id']}/fork")
    fork = response.json()
    assert response.status_code == 201
    assert fork["episode_id"] != episode["episode_id"]
    await _call(fork, "add", amount=1)
    values = [(await _call(one, "show")).content[0].text for one in (episode, fork)]
    assert values == ["2", "3"]


async def test_a_deleted_episode_is_gone(http: httpx2.AsyncClient) -> None:
    episode = await _start(http)
    address = f"/episodes/{episode['episode_id']}"
    assert (await http.delete(address)).status_code == 204
    for response in (await http.get(address), await http.delete(address), await http.post(f"{address}/mcp")):
        assert _problem(response)[0] == 404


async def test_episodes_are_listed_in_pages(
    own_service: EpisodeService, run_app: Callable[[ASGIApp], str]
) -> None:
    async with httpx2.AsyncClient(base_url=run_app(create_app(own_service)), timeout=20) as http:
        started = [(await _start(http))["episode_id"] for _ in range(3)]
        first = (await http.get("/episodes", params={"limit": 2})).json()
        rest = (await http.get("/episodes", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [one["episode_id"] for one in [*first["episodes"], *rest["episodes"]]] == started
    assert rest["next_cursor"] is None


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"env_id": "nowhere"}, 404, "nowhere"),
        ({"env_id": "counter", "task_id": "nothing"}, 404, "nothing"),
        ({"env_id": "counter", "taskid": "to-three"}, 422, "taskid"),
        ({"env_id": 7}, 422, "env_id"),
        ({"env_id": "counter", "seed": "7"}, 422, "seed"),
        ({"env_id": "counter", "init_config": []}, 422, "init_config"),
        ({}, 422, "env_id"),
        ([], 422, "all of it"),
    ],
)
async def test_a_start_that_cannot_be_served_says_why(
    http: httpx2.AsyncClient, body: Any, status: int, word: str
) -> None:
    found, detail = _problem(await http.post("/episodes", json=body))
    assert found == status
    assert word in detail


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b'{"env_id": ', "application/json", 400),
        (b'{"env_id": "\xff"}', "application/json", 400),
        (b"env_id=counter", "application/x-www-form-urlencoded", 415),
        (b'{"env_id": "counter"}', "text/plain", 415),
        (b'{"env_id": "counter", "init_config": ' + b"[" * 100_000, "application/json", 400),
        (b" " * (5 * 1024 * 1024), "application/json", 413),
    ],
)
async def test_a_body_of_another_form_is_refused(
    http: httpx2.AsyncClient, content: bytes, media_type: str, status: int
) -> None:
    response = await http.post("/episodes", content=content, headers={"content-type": media_type})
    assert _problem(response)[0] == status


async def test_a_chunked_body_is_bounded_too(http: httpx2.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b" " * (1024 * 1024)

    response = await http.post("/episodes", content=chunks(), headers={"content-type": "application/json"})
    assert _problem(response)[0] == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/environments/nowhere", 404),
        ("GET", "/environments/counter/scenarios/nothing", 404),
        ("GET", "/environments/nowhere/scenarios", 404),
        ("GET", "/episodes/nothing", 404),
        ("GET", "/environments/", 404),
        ("PUT", "/episodes", 405),
        ("GET", "/environments?limit=0", 422),
        ("GET", "/environments?limit=1&limit=2", 422),
        ("GET", "/environments?page=1", 422),
    ],
)
async def test_refusals_have_one_form(http: httpx2.AsyncClient, method: str, path: str, status: int) -> None:
    assert _problem(await http.request(method, path))[0] == status


async def test_a_revision_that_is_not_there_is_named(http: httpx2.AsyncClient) -> None:
    episode = await _start(http)
    status, detail = _problem(await http.get(f"/episodes/{episode['episode_id']}/state?revision=99"))
    assert status == 409
    assert "99" in detail


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "localhost:x@evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:6274"}, 200),
        ({"host": "LOCALHOST:1"}, 200),
    ],
)
async def test_pages_of_other_sites_do_not_reach_the_server(
    http: httpx2.AsyncClient, headers: dict[str, str], status: int
) -> None:
    response = await http.get("/environments", headers=headers)
    assert response.status_code == status
    if status != 200:
        _problem(response)


async def test_a_server_behind_a_proxy_gives_the_address_that_clients_see(
    service: EpisodeService, run_app: Callable[[ASGIApp], str]
) -> None:
    app = create_app(service, public_url="https://envs.example/")
    async with httpx2.AsyncClient(base_url=run_app(app)) as http:
        episode = await _start(http)
        assert episode["url"] == f"https://envs.example/episodes/{episode['episode_id']}/mcp"
