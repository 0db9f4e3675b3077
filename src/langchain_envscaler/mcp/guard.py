"""What a request must satisfy before anything reads it: a known Host, a known Origin, a bounded body."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langchain_envscaler.mcp.problems import problem_response

__all__ = ["LOOPBACK_HOSTS", "HostGuard", "SizeLimit", "is_loopback"]

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether a host to listen on is reachable from this machine alone."""
    return host.strip("[]") in ("localhost", "::1") or host.startswith("127.")


class HostGuard:
    """ASGI middleware against DNS rebinding: no page in a browser reaches the server by a name of its own.

    A Host that is not allowed gets 421, an Origin that is not allowed 403. A request without an Origin is not
    from a page. Allowed is a name for every port, a name with its port, or `*` for any name.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not self._allowed(headers.get("host", "")):
                detail = (
                    "expected the Host header to name this server; start it with that name as allowed host"
                )
                await problem_response(421, detail)(scope, receive, send)
                return
            origin = headers.get("origin")
            if origin is not None and not self._allowed_origin(origin):
                detail = (
                    "expected no Origin header, or an allowed one; start the server with it as allowed origin"
                )
                await problem_response(403, detail)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _allowed(self, host: str) -> bool:
        host = host.lower()
        return "*" in self._hosts or host in self._hosts or _without_port(host) in self._hosts

    def _allowed_origin(self, origin: str) -> bool:
        origin = origin.lower()
        if origin in self._origins:
            return True
        # A page that this server's own machine serves.
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and _without_port(parts.netloc) in self._hosts & set(
            LOOPBACK_HOSTS
        )


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


class SizeLimit:
    """ASGI middleware: a request whose body is larger than a limit (in bytes) gets 413."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        declared = headers.get("content-length")
        if declared is not None:
            # The HTTP server itself holds a request to the length that it declares.
            if declared.isdigit() and int(declared) <= self._limit:
                await self._app(scope, receive, send)
            else:
                await self._refusal()(scope, receive, send)
        elif "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
        elif (body := await self._read(receive)) is not None:
            await self._app(scope, _replay(body, receive), send)
        else:
            await self._refusal()(scope, receive, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """A body of undeclared length, or None if it is too large."""
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self._limit:
                return None
            if message["type"] != "http.request" or not message.get("more_body", False):
                return bytes(body)

    def _refusal(self) -> ASGIApp:
        return problem_response(413, f"expected a body of at most {self._limit} bytes; send less")


def _replay(body: bytes, receive: Receive) -> Receive:
    """A receive function that first gives a body that was read already."""
    read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return read.pop() if read else await receive()

    return replayed
