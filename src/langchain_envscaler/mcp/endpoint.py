"""An MCP server at an HTTP address, for clients of both protocol eras."""

import json
from collections.abc import AsyncIterator
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

    A request is answered with JSON, which costs a fraction of a stream of events; only a client that asked to
    be told of progress gets a stream, since progress needs one.
    """

    def __init__(
        self, server: Server[Any], *, max_body: int, idle_seconds: float, max_sessions: int | None
    ) -> None:
        self._sessions = StreamableHTTPSessionManager(
            server,
            json_response=True,
            max_request_body_size=max_body,
            session_idle_timeout=idle_seconds,
            max_sessions=max_sessions,
        )
        self._streams = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=max_body)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """The time during which the endpoint serves; once only."""
        async with self._sessions.run(), self._streams.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._sessions.handle_request(scope, receive, send)
            return
        body = await _read(receive)
        if _asks_for_progress(body):
            await self._streams.handle_request(_without_session(scope), _replay(body, receive), send)
            return
        attempt = _Attempt(send)
        in_session = MCP_SESSION_ID_HEADER in Headers(scope=scope)
        await self._sessions.handle_request(
            scope, _replay(body, receive), attempt.send if in_session else send
        )
        if attempt.unknown:
            await self._streams.handle_request(_without_session(scope), _replay(body, receive), send)


def _asks_for_progress(messages: list[Message]) -> bool:
    """Whether a body is a tool call whose client wants to be told of progress."""
    body = b"".join(message.get("body", b"") for message in messages)
    if b'"progressToken"' not in body:
        return False
    try:
        request = json.loads(body)
        return request["method"] == "tools/call" and "progressToken" in request["params"]["_meta"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return False


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


def _without_session(scope: Scope) -> Scope:
    # In place: what is noted in the scope is read by the middleware around this.
    scope["headers"] = [(name, value) for name, value in scope["headers"] if name != _SESSION_HEADER]
    return scope


def http_request(ctx: ServerRequestContext[Any, Any]) -> Request:
    """The HTTP request that an MCP request came in."""
    request = ctx.request
    assert isinstance(request, Request)
    return request
