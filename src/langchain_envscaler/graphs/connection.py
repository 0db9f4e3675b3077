"""A held connection to one MCP server: opened, kept and closed by one task, opened again when it was lost."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

import httpx2
from mcp import Client, MCPError
from mcp.client.session import ClientSession, ElicitationFnT
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_REQUEST,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolResult,
    InputRequiredResult,
    InputResponses,
    PaginatedRequestParams,
    RequestParamsMeta,
    Tool,
)

from langchain_envscaler.errors import EnvScalerError, InfrastructureError
from langchain_envscaler.graphs.targets import Hooks, Target

__all__ = [
    "CallLostError",
    "CallRequest",
    "CallTimeoutError",
    "Connection",
    "Listing",
    "ServerStatus",
    "ServerUnavailableError",
]

Result = TypeVar("Result")

_MAX_PAGES = 100
_NO_CONNECTION = (httpx2.ConnectError, httpx2.ConnectTimeout)
_BACKOFF = (0.0, 0.1, 0.4, 1.5)
"""Seconds before each try of a call that may be repeated."""


class ServerUnavailableError(InfrastructureError):
    """An MCP server cannot be reached; what was asked of it was not carried out."""


class CallLostError(InfrastructureError):
    """A connection ended in the middle of a call, so that nobody knows whether the call was carried out."""


class CallTimeoutError(EnvScalerError):
    """A call took longer than its limit and was cancelled on the server."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's tools, as it listed them."""

    tools: tuple[Tool, ...]
    meta: Mapping[str, Any]
    """The `_meta` of the listing itself."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is doing."""

    state: Literal["new", "connected", "down"]
    error: str | None = None
    """Why it is down."""
    protocol_version: str | None = None
    server: str | None = None
    """The name and version that it gives itself."""


@dataclass(slots=True)
class CallRequest:
    """One `tools/call`."""

    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any] | None = None
    timeout: float | None = None
    """Seconds; None waits for ever."""
    progress: ProgressFnT | None = None
    repeatable: bool = False
    """Whether sending it twice has no other effect than sending it once."""
    input_responses: InputResponses | None = None
    request_state: str | None = None
    other_call_id: str | None = None
    """The identity to use where the first one belongs to another call already."""


class Connection:
    """A connection to one server. It lives on one event loop, and every method is called there."""

    def __init__(
        self, target: Target, *, connect_timeout: float = 30.0, elicitation: ElicitationFnT | None = None
    ) -> None:
        self.name = target.name
        self.listing: Listing | None = None
        """The tools as last listed, whether or not the server is still there."""
        self._target = target
        self._connect_timeout = connect_timeout
        self._elicitation = elicitation
        self._link: _Link | None = None
        self._lock = asyncio.Lock()
        self._error: str | None = None
        self._was_open = False

    @property
    def status(self) -> ServerStatus:
        if self._link is not None and self._link.alive:
            client = self._link.client
            info = client.server_info
            return ServerStatus(
                "connected",
                protocol_version=client.protocol_version,
                server=f"{info.name} {info.version}".strip() if info else None,
            )
        return ServerStatus("down" if self._error else "new", error=self._error)

    @property
    def instructions(self) -> str | None:
        """What the server tells a model about itself, while it is connected."""
        return self._link.client.instructions if self._link is not None and self._link.alive else None

    async def list_tools(self) -> Listing:
        """Ask the server for its tools.

        Raises:
            ServerUnavailableError: The server cannot be reached.
        """
        self.listing = await self.request(_list_all, repeatable=True)
        return self.listing

    async def request(
        self, send: Callable[[ClientSession], Awaitable[Result]], *, repeatable: bool = False
    ) -> Result:
        """Send something over the connection, which is opened when it is not.

        Args:
            send: Called with the SDK's session; once more after a loss if the request is repeatable.
            repeatable: Whether sending it twice has no other effect than sending it once.

        Raises:
            ServerUnavailableError: The server cannot be reached.
            CallLostError: The connection ended before the answer came.
            MCPError: The server answered with a protocol error.
        """
        last: EnvScalerError | None = None
        for pause in _BACKOFF if repeatable else _BACKOFF[:2]:
            await asyncio.sleep(pause)
            try:
                link = await self._opened()
            except ServerUnavailableError as error:
                # One that was there before may be about to come back.
                if not repeatable or not self._was_open:
                    raise
                last = error
                continue
            try:
                with link.counted():
                    return await send(link.client.session)
            except MCPError as error:
                if _is_refused_session(error):
                    # The server forgot the session (it was restarted) and did nothing: start another.
                    await link.close()
                    last = ServerUnavailableError(f"expected MCP server {self.name!r} to know its session")
                    continue
                if error.code != CONNECTION_CLOSED:
                    raise
                await link.close()
                last = self._lost(link)
                if not repeatable and isinstance(last, CallLostError):
                    raise last from error
        assert last is not None
        raise last

    async def call(self, request: CallRequest) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            ServerUnavailableError: The server cannot be reached; nothing was done.
            CallLostError: The connection ended during a call that may not be repeated.
            CallTimeoutError: The call took longer than its limit.
            MCPError: The server answered with a protocol error.
        """

        async def send(session: ClientSession) -> CallToolResult | InputRequiredResult:
            # The SDK puts its own keys into what it is given.
            meta = cast("RequestParamsMeta", dict(request.meta)) if request.meta is not None else None
            return await session.call_tool(
                request.name,
                request.arguments,
                request.timeout,
                request.progress,
                input_responses=request.input_responses,
                request_state=request.request_state,
                meta=meta,
                allow_input_required=True,
            )

        try:
            try:
                return await self.request(send, repeatable=request.repeatable)
            except MCPError as error:
                if error.code != HEADER_MISMATCH:
                    raise
                # The server's schemas have changed since they were listed; it refused, so nothing was done.
                await self.list_tools()
                return await self.request(send, repeatable=request.repeatable)
        except MCPError as error:
            if error.code != REQUEST_TIMEOUT:
                raise
            raise CallTimeoutError(
                f"the tool {request.name!r} did not answer within {request.timeout:g} s and was cancelled"
            ) from None

    async def check(self) -> ServerStatus:
        """Ask the server for a sign of life, after connecting if need be."""
        try:
            # Modern connections have no ping, and every server of tools answers this.
            await self.list_tools()
        except (EnvScalerError, MCPError) as error:
            self._error = str(error)
            return ServerStatus("down", error=self._error)
        return self.status

    async def close(self) -> None:
        """Close the connection and end a server process."""
        async with self._lock:
            if self._link is not None:
                await self._link.close()

    async def _opened(self) -> "_Link":
        async with self._lock:
            if self._link is not None and self._link.alive:
                return self._link
            if self._link is not None:
                await self._link.close()
            link = _Link(self._target, self._elicitation)
            try:
                await link.open(self._connect_timeout)
            except Exception as error:
                reason = _reason(error, self._target.last_words())
                self._error = f"expected MCP server {self.name!r} to answer, found: {reason}"
                raise ServerUnavailableError(self._error) from error
            self._link, self._error, self._was_open = link, None, True
            return link

    def _lost(self, link: "_Link") -> EnvScalerError:
        reason = _reason(link.failure, self._target.last_words())
        if link.never_sent:
            return ServerUnavailableError(
                f"expected MCP server {self.name!r} to accept a connection, found: {reason}"
            )
        return CallLostError(f"the connection to MCP server {self.name!r} ended during the call: {reason}")


@dataclass(slots=True)
class _Link:
    """One life of a connection: a client that one task opens, holds and closes."""

    target: Target
    elicitation: ElicitationFnT | None
    failure: BaseException | None = None
    in_flight: int = 0
    most_in_flight: int = 0
    _client: Client | None = None
    _task: "asyncio.Task[None] | None" = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    @property
    def alive(self) -> bool:
        return self._client is not None and not self._over.is_set()

    @property
    def never_sent(self) -> bool:
        """Whether the link broke because no connection could be made for the one request that it carried."""
        return (
            self.most_in_flight == 1
            and self.failure is not None
            and all(isinstance(one, _NO_CONNECTION) for one in _leaves(self.failure))
        )

    async def open(self, timeout: float) -> None:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(opened))
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(opened)
        except BaseException:
            await self.close()
            # Retrieved, in case that nobody awaits it any more.
            if opened.done() and not opened.cancelled():
                opened.exception()
            raise

    @contextmanager
    def counted(self) -> Iterator[None]:
        self.most_in_flight = max(self.most_in_flight if self.in_flight else 0, self.in_flight + 1)
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        """End the client; bounded by the transport's own limits."""
        self._over.set()
        if self._task is None:
            return
        if self._client is None:
            # Still connecting, which nothing but a cancellation ends.
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _hold(self, opened: "asyncio.Future[None]") -> None:
        """The owner task: whatever is opened here is closed here."""
        try:
            async with self.target.open(Hooks(self._over.set, self.elicitation)) as client:
                self._client = client
                if not opened.done():
                    opened.set_result(None)
                await self._over.wait()
        except asyncio.CancelledError as error:
            if not opened.done():
                opened.set_exception(TimeoutError("no answer in time"))
            self.failure = error
        except BaseException as error:
            self.failure = error
            if not opened.done():
                opened.set_exception(error)
        finally:
            self._over.set()


async def _list_all(session: ClientSession) -> Listing:
    tools: list[Tool] = []
    meta: Mapping[str, Any] = {}
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += page.tools
        meta = {**(page.meta or {}), **meta}
        if page.next_cursor is None or page.next_cursor == cursor:
            return Listing(tuple(tools), meta)
        cursor = page.next_cursor
    raise InfrastructureError(f"expected a server's tools on at most {_MAX_PAGES} pages, found more")


def _is_refused_session(error: MCPError) -> bool:
    return error.code == INVALID_REQUEST and error.error.message == "Session terminated"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _first_answer(refusal: MCPError) -> MCPError:
    before = refusal.__context__
    while isinstance(before, MCPError) and before.code == UNSUPPORTED_PROTOCOL_VERSION:
        before = before.__context__
    return before if isinstance(before, MCPError) else refusal


def _reason(error: BaseException | None, last_words: str) -> str:
    """Why a connection failed, in one line."""
    leaf = next(_leaves(error)) if error is not None else None
    if isinstance(leaf, MCPError) and leaf.code == UNSUPPORTED_PROTOCOL_VERSION:
        # A modern server whose first answer was an error is then asked for the older handshake, which it
        # refuses; what it said at first is the reason.
        leaf = _first_answer(leaf)
    if leaf is None or (isinstance(leaf, MCPError) and leaf.code == CONNECTION_CLOSED):
        text = "it ended the connection"
    elif isinstance(leaf, TimeoutError):
        text = "no answer in time"
    else:
        text = " ".join(f"{type(leaf).__name__}: {leaf}".split())
    last_line = last_words.strip().rpartition("\n")[2].strip()
    return f"{text}; its last words were: {last_line}" if last_line else text
