"""Tests that run in an environment made for vLLM, which is not ours to keep free of warnings."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest

from langchain_envscaler.chat.model import ChatEnvScaler

HERE = Path(__file__).parent
START_SECONDS = 420.0
STOP_SECONDS = 30.0
PLUGIN = "langchain_envscaler.chat.vllm_plugin"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = "skipped: vLLM is not installed here (make test-vllm)"
    for item in items:
        if HERE in item.path.parents:
            for category in ("DeprecationWarning", "FutureWarning", "UserWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}"))
            item.add_marker(pytest.mark.skipif(find_spec("vllm") is None, reason=reason))


@pytest.fixture(scope="session")
def hermes_server(qwen3_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a vLLM with the parsers that its users have."""
    options = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3"]
    with serving(qwen3_folder, tmp_path_factory.mktemp("hermes"), options) as url:
        yield url


@pytest.fixture(scope="session")
def plugin_server(qwen3_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a vLLM with our parsers."""
    options = [
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        "envscaler",
        "--reasoning-parser",
        "envscaler",
    ]
    options += ["--tool-parser-plugin", PLUGIN, "--reasoning-parser-plugin", PLUGIN]
    with serving(qwen3_folder, tmp_path_factory.mktemp("plugin"), options) as url:
        yield url


@pytest.fixture(scope="session")
def in_process(qwen3_folder: Path) -> Callable[..., ChatEnvScaler]:
    """Makes chat models that share one vLLM in this process."""
    os.environ.update(environment())
    keepers: list[ChatEnvScaler] = []

    def make(**options: Any) -> ChatEnvScaler:
        defaults = {"backend": "vllm", "max_tokens": 32, "seed": 1, "model_kwargs": {"enforce_eager": True}}
        model = ChatEnvScaler(model=str(qwen3_folder), **{**defaults, **options})
        if not keepers:
            # The first holds the weights for all that come later.
            keepers.append(model)
        return model

    make().invoke("hi", max_tokens=1)
    return make


def environment() -> dict[str, str]:
    return {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
    }


@contextmanager
def serving(folder: Path, logs: Path, options: list[str]) -> Iterator[str]:
    """Runs a server on a free port, its log beside, until it is no longer needed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--max-model-len", "4096", "--enforce-eager", *options]
    log = logs / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env={**os.environ, **environment()}, stdout=output, stderr=output)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=STOP_SECONDS)


def wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"vLLM ended with {process.returncode}: {log.read_text()[-3000:]}")
        try:
            if httpx2.get(url, timeout=5).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.5)
    pytest.fail(f"vLLM was not up after {START_SECONDS:.0f} s: {log.read_text()[-3000:]}")
