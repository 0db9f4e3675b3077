"""What the MCP tests share: real servers on real ports, catalogs, clients."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import uvicorn
from starlette.types import ASGIApp

STARTUP_SECONDS = 20.0


class _Server(uvicorn.Server):
    """A server in a thread, which tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@pytest.fixture
def run_app() -> Iterator[Callable[[ASGIApp], str]]:
    """Serves an ASGI application on a free port of this machine; gives its address."""
    running: list[tuple[_Server, threading.Thread]] = []

    def run(app: ASGIApp) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        server = _Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        running.append((server, thread))
        assert server.listening.wait(STARTUP_SECONDS), "the server did not start"
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield run
    for server, thread in running:
        server.should_exit = True
        thread.join(STARTUP_SECONDS)
        assert not thread.is_alive(), "the server did not stop"


@pytest.fixture
def unused_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
