"""The container files, as far as they can be checked without an engine that builds and runs them."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from langchain_envscaler.mcp.auth import new_token

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0

pytestmark = pytest.mark.skipif(
    not (ROOT / "Dockerfile").is_file(), reason="skipped: Dockerfile does not lie beside the tests"
)


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    services: dict[str, dict[str, Any]] = compose["services"]
    for name, service in services.items():
        assert ("image" in service) != ("build" in service), name
        assert set(service.get("depends_on", ())) <= set(services), name
        assert set(service.get("secrets", ())) <= set(compose["secrets"]), name
        named = {mount.split(":")[0] for mount in service.get("volumes", ()) if mount[0] not in "./"}
        assert named <= set(compose["volumes"]), name
    return services


def _dockerfile() -> str:
    return re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))


def _command_of_image() -> list[str]:
    """The last image's CMD."""
    command: list[str] = json.loads(re.findall(r"^CMD (.*)$", _dockerfile(), re.MULTILINE)[-1])
    return command


def _healthcheck() -> list[str]:
    (check,) = re.findall(r"^HEALTHCHECK .*? CMD (.*)$", _dockerfile(), re.MULTILINE)
    command: list[str] = json.loads(check)
    return command


def test_only_this_machine_reaches_what_is_published(services: dict[str, dict[str, Any]]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_password_stands_in_the_files(services: dict[str, dict[str, Any]]) -> None:
    secrets = [
        value
        for service in services.values()
        for key, value in service.get("environment", {}).items()
        if "PASSWORD" in key
    ]
    assert len(secrets) == 2
    assert all(value.startswith("${POSTGRES_PASSWORD:?") for value in secrets)


def test_services_wait_for_what_can_tell_that_it_is_up(services: dict[str, dict[str, Any]]) -> None:
    for service in services.values():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in services[other]


def test_the_model_server_reads_the_tool_calls_of_the_models_format(
    services: dict[str, dict[str, Any]],
) -> None:
    command = services["model"]["command"]
    assert {"--enable-auto-tool-choice", "--tool-call-parser=hermes", "--reasoning-parser=qwen3"} <= set(
        command
    )


def test_an_image_is_built_from_what_the_package_is_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {"pyproject.toml", "src", project["readme"], *project["license-files"]}
    copied = {
        source
        for sources in re.findall(r"^COPY (?!--)(.*) \S+$", _dockerfile(), re.MULTILINE)
        for source in sources.split()
    }
    let_through = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    assert needed == copied == let_through
    assert all((ROOT / source).exists() for source in copied)


@pytest.mark.parametrize("source", ["image", "compose"])
def test_the_containers_command_serves_and_its_health_check_agrees(
    source: str, services: dict[str, dict[str, Any]], tmp_path: Path, unused_port: int
) -> None:
    token, record = new_token("alice")
    (tmp_path / "tokens.json").write_text(json.dumps({"tokens": [record.model_dump(mode="json")]}))
    written = _command_of_image() if source == "image" else services["server"]["command"]
    # What lies elsewhere outside a container: the secret, the store, the port.
    moved = {
        "/run/secrets/tokens": str(tmp_path / "tokens.json"),
        "/data/episodes.sqlite": str(tmp_path / "episodes.sqlite"),
        "postgresql://envscaler@database/envscaler": str(tmp_path / "episodes.sqlite"),
        "8000": str(unused_port),
    }
    command = [
        f"{option}{equals}{moved.get(value, value)}" if equals else moved.get(option, option)
        for option, equals, value in (part.partition("=") for part in written)
    ]
    assert sum(value in " ".join(command) for value in set(moved.values())) == 3
    check = [part.replace(":8000/", f":{unused_port}/") for part in _healthcheck()]
    check[0] = sys.executable
    assert subprocess.run(check, capture_output=True, timeout=SECONDS, check=False).returncode != 0
    pipe = subprocess.PIPE
    server = [sys.executable, "-m", "langchain_envscaler", *command]
    with subprocess.Popen(server, stdout=pipe, stderr=pipe, text=True, env={**os.environ}) as process:
        try:
            assert process.stderr is not None
            assert f":{unused_port}" in process.stderr.readline()
            assert subprocess.run(check, capture_output=True, timeout=SECONDS, check=False).returncode == 0
            address = f"http://127.0.0.1:{unused_port}/episodes"
            wanted = {"env_id": "smart_home"}
            assert httpx2.post(address, json=wanted, timeout=SECONDS).status_code == 401
            bearer = {"Authorization": f"Bearer {token}"}
            started = httpx2.post(address, json=wanted, headers=bearer, timeout=SECONDS)
            assert started.status_code == 201
        finally:
            process.kill()


@pytest.mark.node
@pytest.mark.timeout(400)
def test_a_linter_of_dockerfiles_finds_nothing(npm: Callable[..., Path], tmp_path: Path) -> None:
    linter = str(npm("dockerfile-utils@0.16.3") / "dockerfile-utils")

    def lint(file: Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [linter, "lint", str(file)], capture_output=True, text=True, timeout=SECONDS, check=False
        )

    found = lint(ROOT / "Dockerfile")
    assert (found.returncode, found.stdout) == (0, "")
    wrong = tmp_path / "Dockerfile"
    wrong.write_text("FROM scratch\nCOPY a\n")
    assert lint(wrong).stdout or lint(wrong).returncode
