"""A server that answers as it is told, over real HTTP: for what a real one does rarely."""

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from langchain_envscaler.chat.model import ChatEnvScaler

Reply = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Request:
    path: str
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass
class ScriptedServer:
    """Answers each POST with the next reply, the last one again and again."""

    url: str
    requests: list[Request] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "tiny", "owned_by": "somebody"}])
    disconnected: threading.Event = field(default_factory=threading.Event)
    _replies: list[Reply] = field(default_factory=list)

    def reply(self, *events: dict[str, Any]) -> None:
        """A streamed answer of these events."""
        self._replies.append(lambda handler: _stream(handler, events))

    def refuse(self, status: int, body: Any) -> None:
        """An error status with a body of JSON or text."""
        self._replies.append(lambda handler: _send(handler, status, body))

    def break_off(self, *events: dict[str, Any]) -> None:
        """A streamed answer that stops in the middle."""

        def send(handler: BaseHTTPRequestHandler) -> None:
            _stream(handler, events, is_complete=False)
            handler.connection.shutdown(socket.SHUT_RDWR)

        self._replies.append(send)

    def reply_forever(self, event: dict[str, Any]) -> None:
        """An answer that goes on until the client leaves."""

        def send(handler: BaseHTTPRequestHandler) -> None:
            try:
                _stream(handler, (event for _ in iter(int, 1)))
            except OSError:
                self.disconnected.set()

        self._replies.append(send)

    def next_reply(self) -> Reply:
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


def _stream(
    handler: BaseHTTPRequestHandler, events: Iterable[dict[str, Any]], is_complete: bool = True
) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for event in events:
        _chunk(handler, f"data: {json.dumps(event)}\n\n")
    if is_complete:
        _chunk(handler, ": a comment\n\ndata: [DONE]\n\n")
        handler.wfile.write(b"0\r\n\r\n")


def _chunk(handler: BaseHTTPRequestHandler, text: str) -> None:
    data = text.encode()
    handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    handler.wfile.flush()


def _send(handler: BaseHTTPRequestHandler, status: int, body: Any) -> None:
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A scripted server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _send(self, 200, {"object": "list", "data": scripted.models})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            scripted.requests.append(Request(self.path, body, dict(self.headers)))
            scripted.next_reply()(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    http = Server(("127.0.0.1", 0), Handler)
    scripted = ScriptedServer(f"http://127.0.0.1:{http.server_address[1]}/v1")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield scripted
    http.shutdown()
    thread.join(timeout=10)
    http.server_close()


@pytest.fixture
def chat(server: ScriptedServer) -> Callable[..., ChatEnvScaler]:
    """Makes chat models that speak to the scripted server."""

    def make(**options: Any) -> ChatEnvScaler:
        return ChatEnvScaler(**{"base_url": server.url, "model": "tiny", "max_retries": 0, **options})

    return make
