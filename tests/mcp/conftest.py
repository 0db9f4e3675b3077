"""What the MCP tests share: an environment to try everything on, real servers on real ports, clients."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvicorn
from starlette.types import ASGIApp

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService

STARTUP_SECONDS = 20.0

COUNTER_CODE = '''
import sys
import time
import uuid


class Counter:
    """A counter with everything that can go wrong."""

    def __init__(self, init_config):
        self.value = init_config.get("value", 0)
        self.ids = []

    def add(self, amount):
        self.value += amount
        return {"success": True, "value": self.value, "note": None}

    def show(self):
        return self.value

    def nothing(self):
        return None

    def parts(self):
        return [1, None, {"a": None, "b": (1, 2)}]

    def new_id(self):
        self.ids.append(str(uuid.uuid4()))
        return self.ids[-1]

    def explode(self, message):
        self.value += 1
        raise ValueError(message)

    def leave(self):
        raise SystemExit(3)

    def shout(self):
        print('{"jsonrpc": "2.0", "id": 1, "result": {}}', flush=True)
        sys.stdout.write("noise")
        return "done"

    def fill(self, size):
        return "x" * size

    def wait(self, seconds):
        time.sleep(seconds)
        return "waited"
'''


def _tool(name: str, **parameters: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool {name}.\n\nReturns:\n    anything",
            "parameters": {
                "type": "object",
                "properties": {parameter: {"type": kind} for parameter, kind in parameters.items()},
                "required": list(parameters),
            },
        },
    }


COUNTER = {
    "env_id": "counter",
    "environment_summary": "A counter.",
    "environment_introduction": "This environment counts.",
    "constraints_rules": ["Count upwards.", "Say when you are done."],
    "env_class_name": "Counter",
    "env_class_code": COUNTER_CODE,
    "tools": [
        _tool("add", amount="integer"),
        _tool("show"),
        _tool("nothing"),
        _tool("parts"),
        _tool("new_id"),
        _tool("explode", message="string"),
        _tool("leave"),
        _tool("shout"),
        _tool("fill", size="integer"),
        _tool("wait", seconds="number"),
    ],
}

SCENARIO = {
    "env_id": "counter",
    "env_class_name": "Counter",
    "task_id": "to-three",
    "init_config": {"value": 1},
    "task": "Bring the counter to three.",
    "checklist_with_func": [
        {
            "check_item": "the counter stands at three",
            "check_func": 'def check_func(final_state):\n    return final_state["value"] == 3',
        },
        {
            "check_item": "the counter went up",
            "check_func": (
                'def check_func(final_state):\n    return final_state["value"] > initial_state["value"]'
            ),
        },
    ],
}


@pytest.fixture(scope="session")
def counter_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of EnvScaler files that holds the counter environment and its one scenario."""
    folder = tmp_path_factory.mktemp("counter")
    (folder / "env_metadata.json").write_text(json.dumps({"counter": COUNTER}))
    (folder / "scenario_metadata.json").write_text(json.dumps([SCENARIO]))
    return folder


@pytest.fixture(scope="session")
def catalog(counter_folder: Path) -> Catalog:
    """The counter environment."""
    catalog = Catalog.load(counter_folder)
    assert not catalog.problems
    return catalog


@pytest.fixture(scope="session")
def service(catalog: Catalog) -> Iterator[EpisodeService]:
    """A service that tests share: each starts episodes of its own."""
    with EpisodeService(catalog) as service:
        yield service


@pytest.fixture
def own_service(catalog: Catalog) -> Iterator[EpisodeService]:
    """A service that no other test uses."""
    with EpisodeService(catalog) as service:
        yield service


T = TypeVar("T")
Hold = Callable[[AbstractAsyncContextManager[T]], Awaitable[T]]


@pytest.fixture
async def hold() -> AsyncIterator[Hold[Any]]:
    """Keeps async context managers open until the test ends; gives what they yield.

    Each is held by a task of its own: a client must be closed in the task that opened it, and a fixture is
    torn down in another than it was set up in.
    """
    over = asyncio.Event()
    holders: list[asyncio.Task[None]] = []

    async def hold(context: AbstractAsyncContextManager[Any]) -> Any:
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def keep() -> None:
            try:
                async with context as value:
                    opened.set_result(value)
                    await over.wait()
            except BaseException as error:
                if opened.done():
                    raise
                opened.set_exception(error)

        holders.append(asyncio.create_task(keep()))
        return await opened

    yield hold
    over.set()
    async with asyncio.timeout(STARTUP_SECONDS):
        await asyncio.gather(*holders)


class _Server(uvicorn.Server):
    """A server in a thread, which tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@pytest.fixture(scope="session")
def run_app() -> Iterator[Callable[[ASGIApp], str]]:
    """Serves ASGI applications on free ports of this machine until the tests end; gives their addresses."""
    running: list[tuple[_Server, threading.Thread]] = []

    def run(app: ASGIApp) -> str:
        # The protocol is named so that asyncio sets TCP_NODELAY: else a response in two parts takes 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = _Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        running.append((server, thread))
        assert server.listening.wait(STARTUP_SECONDS), "the server did not start"
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield run
    for server, _ in running:
        server.should_exit = True
    for _, thread in running:
        thread.join(STARTUP_SECONDS)
        assert not thread.is_alive(), "the server did not stop"


@pytest.fixture
def unused_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def stdio_command(counter_folder: Path) -> Callable[..., list[str]]:
    """The command that serves an environment over stdio, as a program and its arguments."""

    def command(env_id: str = "counter", *, folder: Path = counter_folder, **options: Any) -> list[str]:
        code = (
            "from langchain_envscaler.environments.catalog import Catalog\n"
            "from langchain_envscaler.mcp.stdio import serve\n"
            f"serve({env_id!r}, catalog=Catalog.load({str(folder)!r}), **{options!r})"
        )
        return [sys.executable, "-c", code]

    return command


NPM_SECONDS = 300.0


@pytest.fixture(scope="session")
def npm() -> Callable[..., Path]:
    """Installs npm packages into the project's cache; gives the folder of their commands.

    Packages that were installed before are taken as they are, so that the network is needed once.
    """
    program = shutil.which("npm")
    if program is None:
        pytest.skip("skipped: npm is not installed")

    def install(*packages: str) -> Path:
        name = "+".join(packages).replace("@", "").replace("/", "-")
        folder = Path(__file__).resolve().parents[2] / ".cache" / "npm" / name
        done = folder / ".installed"
        if not done.exists():
            folder.mkdir(parents=True, exist_ok=True)
            command = [program, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
            installed = subprocess.run(
                command, capture_output=True, text=True, timeout=NPM_SECONDS, check=False, cwd=folder
            )
            if installed.returncode:
                pytest.skip(f"skipped: npm cannot install {' '.join(packages)}: {installed.stderr[-300:]}")
            done.touch()
        return folder / "node_modules" / ".bin"

    return install
