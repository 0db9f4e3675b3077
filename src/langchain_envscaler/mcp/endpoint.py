"""An MCP server at an HTTP address, for clients of both protocol eras."""

from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

__all__ = ["McpEndpoint", "http_request"]

_SESSION_HEADER = MCP_SESSION_ID_HEADER.lower().encode()


class McpEndpoint:
    """ASGI application that serves an MCP server over streamable HTTP.

    A session of the 2025-11-25 protocol holds nothing here but the stream on which a client is told of
    changes. So a session that this process does not know (the server was restarted, a load balancer chose
    another process, the session was idle for long) is served as well, without a stream, instead of being
    refused with 404.
    """

    def __init__(
        self, server: Server[Any], *, max_body: int, idle_seconds: float, max_sessions: int | None
    ) -> None:
        self._sessions = StreamableHTTPSessionManager(
            server,
            max_request_body_size=max_body,
            session_idle_timeout=idle_seconds,
            max_sessions=max_sessions,
        )
        self._sessionless = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=max_body
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """The time during which the endpoint serves; once only."""
        async with self._sessions.run(), self._sessionless.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST" or MCP_SESSION_ID_HEADER not in Headers(scope=scope):
            await self._sessions.handle_request(scope, receive, send)
            return
        body = await _read(receive)
        attempt = _Attempt(send)
        await self._sessions.handle_request(scope, _replay(body, receive), attempt.send)
        if attempt.unknown:
            await self._sessionless.handle_request(_without_session(scope), _replay(body, receive), send)


class _Attempt:
    """Passes a response on, but for one that says that the session is unknown."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.unknown = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 404:
            self.unknown = True
        if not self.unknown:
            await self._send(message)


async def _read(receive: Receive) -> list[Message]:
    """The messages of a request's body; the app has bounded its size before."""
    messages: list[Message] = []
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request" or not message.get("more_body", False):
            return messages


def _replay(messages: list[Message], receive: Receive) -> Receive:
    left = list(reversed(messages))

    async def replayed() -> Message:
        return left.pop() if left else await receive()

    return replayed


def _without_session(scope: Scope) -> MutableMapping[str, Any]:
    headers = [(name, value) for name, value in scope["headers"] if name != _SESSION_HEADER]
    return {**scope, "headers": headers}


def http_request(ctx: ServerRequestContext[Any, Any]) -> Request:
    """The HTTP request that an MCP request came in."""
    request = ctx.request
    assert isinstance(request, Request)
    return request
