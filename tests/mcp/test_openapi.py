"""The OpenAPI document says what the server does: schemathesis tries to prove it wrong."""

import asyncio
import sysconfig
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from starlette.types import ASGIApp

from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp.app import create_app
from langchain_envscaler.mcp.auth import TokenTable, new_token

SECONDS = 100.0

pytest.importorskip("schemathesis", reason="skipped: schemathesis is not installed")


async def _attack(url: str, folder: Path, *options: str) -> tuple[int | None, str]:
    program = Path(sysconfig.get_path("scripts")) / "schemathesis"
    command = [str(program), "run", f"{url}/openapi.json"]
    fixed = ["--max-examples", "10", "--seed", "7", "--no-color", *options]
    process = await asyncio.create_subprocess_exec(
        *command, *fixed, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=folder
    )
    async with asyncio.timeout(SECONDS):
        output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_no_request_contradicts_the_document(
    service: EpisodeService, run_app: Callable[[ASGIApp], str], tmp_path: Path
) -> None:
    token, record = new_token("alice")
    url = run_app(create_app(service, tokens=TokenTable([record])))
    code, output = await _attack(url, tmp_path, "--header", f"Authorization: Bearer {token}")
    assert code == 0, output


async def test_every_operation_is_documented(
    service: EpisodeService, run_app: Callable[[ASGIApp], str]
) -> None:
    async with httpx2.AsyncClient(base_url=run_app(create_app(service))) as http:
        document = (await http.get("/openapi.json")).json()
    names = {
        operation["operationId"]: method
        for methods in document["paths"].values()
        for method, operation in methods.items()
    }
    assert names == {
        "healthz": "get",
        "metrics": "get",
        "list_environments": "get",
        "get_environment": "get",
        "list_scenarios": "get",
        "get_scenario": "get",
        "start_episode": "post",
        "list_episodes": "get",
        "get_episode": "get",
        "delete_episode": "delete",
        "get_state": "get",
        "get_diff": "get",
        "get_trajectory": "get",
        "evaluate_episode": "post",
        "snapshot_episode": "post",
        "restore_episode": "post",
        "fork_episode": "post",
    }
