"""What a toolset connects to: each MCP server with its name and the way to open a client for it."""

import asyncio
import logging
import os
import ssl
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, TypeAlias, Union

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.session import ElicitationFnT
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import SessionMessage
from mcp_types import Implementation
from pydantic import BaseModel

from langchain_envscaler.errors import UsageError
from langchain_envscaler.mcp.clients import (
    ClientConfig,
    HttpServerEntry,
    ServerEntry,
    StdioServerEntry,
    parse_clients,
)

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams

    from langchain_envscaler.environments.episode import Episode

__all__ = ["Auth", "ConnectMode", "Hooks", "MCPSource", "Target", "parse_targets"]

# A forward reference, since an episode's module is not needed where there is none.
MCPSource: TypeAlias = Union[ClientConfig, "Episode", Server[Any], MCPServer]
"""What a toolset may be made of: a client configuration in any form, an episode, or a server object."""

Auth: TypeAlias = httpx2.Auth | str
"""How an HTTP server is told who asks: a bearer token, "oauth" (a browser opens), or httpx2's own form."""

ConnectMode: TypeAlias = Literal["auto", "legacy"]
"""Which protocol is spoken: the newest that the server knows, or always the older one with its sessions."""

_STDERR_LINES = 20


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a client calls back, from the loop that it lives on."""

    on_end: Callable[[], None]
    """The server ended the connection."""
    elicitation: ElicitationFnT | None = None
    """Answers a question that a server asks during a call."""
    mode: ConnectMode = "auto"


@dataclass(frozen=True, slots=True)
class Target:
    """One MCP server: its name and how a client for it is opened."""

    name: str
    open: Callable[[Hooks], AbstractAsyncContextManager[Client]]
    last_words: Callable[[], str] = field(default=str)
    """What the server last wrote to its standard error, where there is such a thing."""


def parse_targets(
    source: MCPSource | Iterable[MCPSource] | Mapping[str, Any],
    *,
    auth: Auth | Mapping[str, Auth] | None = None,
    timeout: float = 300.0,
) -> list[Target]:
    """The servers that a toolset is made of, in their order.

    Args:
        source: A client configuration (see `parse_clients`), an episode, a server object of the MCP SDK,
            several of these, or a mapping of names to episodes or server objects.
        auth: For the HTTP servers: one for all, or by the server's name.
        timeout: Seconds without a word from an HTTP server before a read is given up.

    Raises:
        UsageError: Nothing of that kind, or two servers of one name.
        DataError: A configuration of no known form.
    """
    targets: list[Target] = []
    for one in _listed(source):
        targets += _targets(one, auth, timeout)
    names = [target.name for target in targets]
    if not targets:
        raise UsageError("expected at least one MCP server, found none; name one in the configuration")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"expected a name of its own for each MCP server, found {twice!r} twice; rename one")
    return targets


def _listed(source: Any) -> list[Any]:
    if isinstance(source, (str, Path, Mapping, BaseModel, Server, MCPServer)) or _is_episode(source):
        return [source]
    if isinstance(source, Iterable):
        return list(source)
    raise UsageError(
        "expected MCP servers as a configuration, a URL, a file's path, an Episode or a server object, "
        f"found {type(source).__name__}"
    )


def _targets(source: Any, auth: Auth | Mapping[str, Auth] | None, timeout: float) -> list[Target]:
    if isinstance(source, (Server, MCPServer)):
        return [_in_memory(source.name, source)]
    if _is_episode(source):
        return [_episode(source.spec.env_id, source)]
    if isinstance(source, Mapping) and source and all(_is_in_memory(value) for value in source.values()):
        return [
            _episode(name, one) if _is_episode(one) else _in_memory(name, one) for name, one in source.items()
        ]
    return [_entry(entry, auth, timeout) for entry in parse_clients(source)]


def _is_in_memory(value: Any) -> bool:
    return isinstance(value, (Server, MCPServer)) or _is_episode(value)


def _is_episode(value: Any) -> bool:
    # Most toolsets never meet an episode, and where there is one its module has been imported.
    module = sys.modules.get("langchain_envscaler.environments.episode")
    return module is not None and isinstance(value, module.Episode)


def _episode(name: str, episode: "Episode") -> Target:
    from langchain_envscaler.mcp.server import create_server

    return _in_memory(name, create_server(episode))


def _in_memory(name: str, server: Server[Any] | MCPServer) -> Target:
    return Target(name, lambda hooks: Client(server, **_options(hooks)))


def _entry(entry: ServerEntry, auth: Auth | Mapping[str, Auth] | None, timeout: float) -> Target:
    if isinstance(entry, StdioServerEntry):
        process = _Process(entry)
        return Target(entry.name, process.open, process.last_words)
    chosen = auth.get(entry.name) if isinstance(auth, Mapping) else auth
    return Target(entry.name, lambda hooks: _http(entry, chosen, timeout, hooks))


def _options(hooks: Hooks) -> dict[str, Any]:
    return {
        "elicitation_callback": hooks.elicitation,
        "mode": hooks.mode,
        "client_info": Implementation(name="langchain-envscaler", version=version("langchain-envscaler")),
    }


@asynccontextmanager
async def _http(
    entry: HttpServerEntry, auth: Auth | None, timeout: float, hooks: Hooks
) -> AsyncGenerator[Client]:
    headers = dict(entry.headers)
    resolved = _http_auth(auth, entry.url)
    if entry.transport == "sse":
        streams = sse_client(entry.url, headers=headers, auth=resolved, sse_read_timeout=timeout)
        async with Client(_watched(streams, hooks.on_end), **_options(hooks)) as client:
            yield client
        return
    async with httpx2.AsyncClient(
        headers=headers, auth=resolved, timeout=httpx2.Timeout(30.0, read=timeout), verify=_tls()
    ) as http:
        streams = streamable_http_client(entry.url, http_client=http)
        async with Client(_watched(streams, hooks.on_end), **_options(hooks)) as client:
            yield client


@cache
def _tls() -> ssl.SSLContext:
    # To load the certificates anew for every connection would take longer than all else about it.
    return httpx2.create_ssl_context()


def _http_auth(auth: Auth | None, url: str) -> httpx2.Auth | None:
    if auth == "oauth":
        # The only thing that needs the rest of fastmcp: its browser flow and its token store.
        from fastmcp.client.auth import OAuth

        return OAuth(url)
    if isinstance(auth, str):
        return _Bearer(auth)
    return auth


class _Bearer(httpx2.Auth):
    """A token in the Authorization header, sent to the server's own origin only."""

    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Any:
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class _Process:
    """A server in a process of its own, whose standard error goes to the log."""

    def __init__(self, entry: StdioServerEntry) -> None:
        self._entry = entry
        self._lines: deque[str] = deque(maxlen=_STDERR_LINES)

    @asynccontextmanager
    async def open(self, hooks: Hooks) -> AsyncGenerator[Client]:
        self._lines.clear()
        parameters = StdioServerParameters(
            command=self._entry.command,
            args=list(self._entry.args),
            env=dict(self._entry.env),
            cwd=self._entry.cwd,
        )
        async with (
            _line_reader(self._heard) as errlog,
            Client(_watched(stdio_client(parameters, errlog), hooks.on_end), **_options(hooks)) as client,
        ):
            yield client

    def last_words(self) -> str:
        return "\n".join(self._lines)

    def _heard(self, line: str) -> None:
        self._lines.append(line)
        logging.getLogger(f"langchain_envscaler.mcp.{self._entry.name}").info("%s", line)


@asynccontextmanager
async def _line_reader(on_line: Callable[[str], None]) -> AsyncGenerator[TextIO]:
    """A text file to write to, each of whose lines is handed on.

    A pipe of our own, since this process's standard error may be no real file (in a notebook) and since what
    a server writes belongs into the log, with the server's name.
    """
    reading, writing = os.pipe()
    thread = threading.Thread(target=_read_lines, args=(reading, on_line), daemon=True)
    thread.start()
    with os.fdopen(writing, "w", encoding="utf-8") as file:
        yield file
    # A grandchild may keep the pipe open; what is unread then is not worth a longer wait.
    await asyncio.to_thread(thread.join, 0.2)


def _read_lines(reading: int, on_line: Callable[[str], None]) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as file:
        for line in file:
            on_line(line.rstrip())


@asynccontextmanager
async def _watched(
    transport: "AbstractAsyncContextManager[TransportStreams]", on_end: Callable[[], None]
) -> "AsyncGenerator[TransportStreams]":
    """The transport, telling when the server ended it."""
    async with transport as (read, write):
        yield _WatchedStream(read, on_end), write


class _WatchedStream:
    """A read stream that tells when it has ended."""

    def __init__(self, inner: "ReadStream[SessionMessage | Exception]", on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        await self._inner.__aexit__(exc_type, exc_value, traceback)
        return False
