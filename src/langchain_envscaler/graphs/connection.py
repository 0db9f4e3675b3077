"""A held connection to one MCP server: opened, kept and closed by one task, opened again when it was lost."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

from mcp import MCPError
from mcp.client.session import ClientSession
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_REQUEST,
    REQUEST_TIMEOUT,
    CallToolResult,
    InputRequest,
    InputRequiredResult,
    InputResponses,
    PaginatedRequestParams,
    RequestParamsMeta,
    Tool,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from langchain_envscaler.errors import EnvScalerError, InfrastructureError
from langchain_envscaler.graphs.asking import CallsUnderWay
from langchain_envscaler.graphs.elicitation import (
    Answers,
    LegacyQuestion,
    QuestionHandler,
    questions,
    responses,
)
from langchain_envscaler.graphs.link import Link, reason
from langchain_envscaler.graphs.requests import (
    CallLostError,
    CallRequest,
    CallTimeoutError,
    ConsentMissingError,
    ServerUnavailableError,
)
from langchain_envscaler.graphs.targets import ConnectMode, Hooks, Target

__all__ = ["Connection", "Listing", "ServerStatus"]

Result = TypeVar("Result")

_MAX_PAGES = 100
_MAX_ROUNDS = 100
_CONTINUE_SECONDS = 0.25
_BACKOFF = (0.0, 0.1, 0.4, 1.5)
"""Seconds before each try of a call that may be repeated."""


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


class Connection:
    """A connection to one server. It lives on one event loop, and every method is called there."""

    def __init__(
        self,
        target: Target,
        *,
        connect_timeout: float = 30.0,
        mode: ConnectMode = "auto",
        question_handler: QuestionHandler | None = None,
    ) -> None:
        self.name = target.name
        self.listing: Listing | None = None
        """The tools as last listed, whether or not the server is still there."""
        self._target = target
        self._connect_timeout = connect_timeout
        self._mode = mode
        self._question_handler = question_handler
        self._calls = CallsUnderWay(target.name, question_handler)
        self._link: Link | None = None
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

    async def call(self, request: CallRequest) -> CallToolResult | InputRequiredResult | LegacyQuestion:
        """Call a tool.

        Returns:
            Its result, or questions that nobody has answered yet. The call is then to be sent again with the
            answers: in the newer protocol it goes on there, in the older one it begins anew.

        Raises:
            ServerUnavailableError: The server cannot be reached; nothing was done.
            CallLostError: The connection ended during a call that may not be repeated.
            CallTimeoutError: The call took longer than its limit.
            ConsentMissingError: The call would have to begin anew with an answer, and nobody consented.
            MCPError: The server answered with a protocol error.
        """
        answers = deque(request.answers)
        for _ in range(_MAX_ROUNDS):
            outcome = await self._sent(request)
            if not isinstance(outcome, InputRequiredResult):
                return outcome
            wanted = outcome.input_requests
            if not wanted:
                # The server is still at work and asks to be asked again.
                await asyncio.sleep(_CONTINUE_SECONDS)
                given: InputResponses | None = None
            elif answers:
                given = responses(wanted, answers.popleft())
            elif self._question_handler is not None:
                given = await self._handled(wanted)
            else:
                return outcome
            request = replace(request, input_responses=given, request_state=outcome.request_state)
        raise CallTimeoutError(f"the tool {request.name!r} asked to be asked again {_MAX_ROUNDS} times")

    async def _handled(self, wanted: Mapping[str, InputRequest]) -> InputResponses:
        assert self._question_handler is not None
        shown = questions(self.name, wanted, sends_again=False)["requests"]
        given = {one["key"]: await self._question_handler(self.name, one) for one in shown}
        return responses(wanted, Answers(responses=given))

    async def _sent(self, request: CallRequest) -> CallToolResult | InputRequiredResult | LegacyQuestion:
        """Send a call once, or again where nothing can have come of it."""

        async def send(session: ClientSession) -> CallToolResult | InputRequiredResult | LegacyQuestion:
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return await _call(session, request)
            return await self._called_the_old_way(session, request)

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

    async def _called_the_old_way(
        self, session: ClientSession, request: CallRequest
    ) -> CallToolResult | InputRequiredResult | LegacyQuestion:
        """A call in which the server may ask a question of its own accord."""
        consented = all(one.get("resend") for one in request.answers)
        if not request.repeatable and not consented:
            raise ConsentMissingError(
                f"the tool {request.name!r} asked a question in the middle of its work; the call was "
                "cancelled at that and, without consent, not sent again"
            )
        with self._calls.one(request.answers) as question:
            call = asyncio.create_task(_call(session, request))
            try:
                either: list[asyncio.Future[Any]] = [call, question]
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                return call.result() if call.done() else LegacyQuestion(question.result())
            finally:
                if not call.done():
                    # Tells the server to stop; that much is waited for.
                    call.cancel()
                    await asyncio.wait([call])

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

    async def _opened(self) -> "Link":
        async with self._lock:
            if self._link is not None and self._link.alive:
                return self._link
            if self._link is not None:
                await self._link.close()
            link = Link(self._target, Hooks(lambda: None, self._calls.ask, self._mode))
            try:
                await link.open(self._connect_timeout)
            except Exception as error:
                why = reason(error, self._target.last_words())
                self._error = f"expected MCP server {self.name!r} to answer, found: {why}"
                raise ServerUnavailableError(self._error) from error
            self._link, self._error, self._was_open = link, None, True
            return link

    def _lost(self, link: Link) -> EnvScalerError:
        why = reason(link.failure, self._target.last_words())
        if link.never_sent:
            return ServerUnavailableError(
                f"expected MCP server {self.name!r} to accept a connection, found: {why}"
            )
        return CallLostError(f"the connection to MCP server {self.name!r} ended during the call: {why}")


async def _call(session: ClientSession, request: CallRequest) -> CallToolResult | InputRequiredResult:
    return await session.call_tool(
        request.name,
        request.arguments,
        request.timeout,
        request.progress,
        input_responses=request.input_responses,
        request_state=request.request_state,
        # The SDK puts its own keys into what it is given.
        meta=cast("RequestParamsMeta", dict(request.meta or {})),
        allow_input_required=True,
    )


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
