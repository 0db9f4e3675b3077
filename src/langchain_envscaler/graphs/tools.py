"""LangChain tools that call MCP tools: with the server's own schema, the call's id, and `_meta` both ways."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, InputRequiredResult, Tool
from pydantic import PrivateAttr

from langchain_envscaler.errors import EnvScalerError, InfrastructureError, UsageError
from langchain_envscaler.graphs.connection import (
    CallLostError,
    CallRequest,
    CallTimeoutError,
    ServerUnavailableError,
)
from langchain_envscaler.graphs.content import artifact, message_content
from langchain_envscaler.graphs.pool import ConnectionPool
from langchain_envscaler.mcp.tools import CALL_ID, EPISODE_ID, POSITION, REVISION

if TYPE_CHECKING:
    from mcp_types import ToolAnnotations

__all__ = ["CallScope", "MCPTool", "ToolRef", "call_scope"]


@dataclass(frozen=True, slots=True)
class ToolRef:
    """One tool of one server, as it is published."""

    name: str
    """The name under which a model knows it."""
    server: str
    tool: Tool
    timeout: float | None
    """Seconds that a call may take."""
    episode_id: str | None = None
    """The episode that the server's listing named, if it serves one."""
    revision: int | None = None
    """The episode's newest revision at the time of the listing."""
    repeat: bool = False
    """The user said that calls of it may be repeated."""

    @property
    def annotations(self) -> "ToolAnnotations | None":
        return self.tool.annotations

    @property
    def read_only(self) -> bool:
        return self.tool.annotations is not None and self.tool.annotations.read_only_hint is True

    @property
    def destructive(self) -> bool:
        """Whether it may destroy something: what MCP supposes of a tool that does not say."""
        hint = self.tool.annotations.destructive_hint if self.tool.annotations is not None else None
        return not self.read_only and hint is not False

    @property
    def repeatable(self) -> bool:
        """Whether calling it twice has no other effect than calling it once.

        The calls of an episode have an identity: the same one again gives the recorded result.
        """
        annotated = self.tool.annotations is not None and self.tool.annotations.idempotent_hint is True
        return self.repeat or self.read_only or annotated or self.episode_id is not None


@dataclass(frozen=True, slots=True)
class CallScope:
    """What a graph knows of a call beyond its name and arguments."""

    revision: int | None = None
    """The revision of the episode's state that the call starts from."""
    position: int | None = None
    """The call's place among those of its message, counted from 0."""
    message_id: str | None = None
    """The id of the model's message, which tells calls of one id apart."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """More for the request's `_meta`."""
    on_progress: Callable[[dict[str, Any]], None] | None = None
    """Is told how far the call has come, in the context that the call was made in."""


_NO_SCOPE = CallScope()
_SCOPE: ContextVar[CallScope] = ContextVar("call_scope", default=_NO_SCOPE)
_CALL_ID: ContextVar[str | None] = ContextVar("call_id", default=None)


@contextmanager
def call_scope(scope: CallScope) -> Iterator[None]:
    """Tool calls made within this context are made with the scope."""
    token = _SCOPE.set(scope)
    try:
        yield
    finally:
        _SCOPE.reset(token)


class MCPTool(BaseTool):
    """An MCP tool as a LangChain tool, for synchronous and asynchronous use.

    Invoked with a tool call it returns a tool message, with status "error" where the tool or the call failed;
    the message's artifact holds the structured content and the result's `_meta`. Invoked with plain arguments
    it returns the content and raises `ToolException` for an error.
    """

    _ref: ToolRef = PrivateAttr()
    _pool: ConnectionPool = PrivateAttr()

    def __init__(self, ref: ToolRef, pool: ConnectionPool) -> None:
        annotations = ref.annotations.model_dump(exclude_none=True) if ref.annotations is not None else None
        super().__init__(
            name=ref.name,
            description=ref.tool.description or "",
            args_schema=ref.tool.input_schema,
            metadata={"mcp_server": ref.server, "mcp_tool": ref.tool.name}
            | ({"mcp_annotations": annotations} if annotations else {}),
        )
        self._ref = ref
        self._pool = pool

    @property
    def ref(self) -> ToolRef:
        """The MCP tool behind it."""
        return self._ref

    @property
    def function(self) -> dict[str, Any]:
        """The tool in OpenAI's form, with the server's schema as it is.

        LangChain's own conversion resolves references and drops titles, so that a model would be prompted
        with another text than it was trained on.
        """
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self._ref.tool.input_schema,
            },
        }

    async def arun(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        """As LangChain's, with the tool call's id kept for the server."""
        kwargs["metadata"] = {**(kwargs.get("metadata") or {}), **self._trace()}
        token = _CALL_ID.set(tool_call_id)
        try:
            return await super().arun(tool_input, *args, tool_call_id=tool_call_id, **kwargs)
        finally:
            _CALL_ID.reset(token)

    def run(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        """As LangChain's, with the tool call's id kept for the server."""
        kwargs["metadata"] = {**(kwargs.get("metadata") or {}), **self._trace()}
        token = _CALL_ID.set(tool_call_id)
        try:
            return super().run(tool_input, *args, tool_call_id=tool_call_id, **kwargs)
        finally:
            _CALL_ID.reset(token)

    async def _arun(self, /, **arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        request = self._request(arguments, lambda report: loop.call_soon_threadsafe(report))
        try:
            result = await self._pool.arun(_send(self._pool, self._ref, request))
        except (EnvScalerError, MCPError) as error:
            return self._failed(error)
        return self._answered(result)

    def _run(self, /, **arguments: Any) -> Any:
        request = self._request(arguments, lambda report: report())
        try:
            result = self._pool.run(_send(self._pool, self._ref, request))
        except (EnvScalerError, MCPError) as error:
            return self._failed(error)
        return self._answered(result)

    def _trace(self) -> dict[str, Any]:
        """What a trace of the call should tell of the episode."""
        if self._ref.episode_id is None:
            return {}
        return {EPISODE_ID: self._ref.episode_id, REVISION: _SCOPE.get().revision}

    def _request(
        self, arguments: dict[str, Any], deliver: Callable[[Callable[[], None]], Any]
    ) -> CallRequest:
        scope = _SCOPE.get()
        call_id = _CALL_ID.get()
        if call_id is None and self._ref.episode_id is not None:
            # Without an identity a call could not be repeated after a lost connection.
            call_id = uuid.uuid4().hex
        identity: dict[str, str | int | None] = {CALL_ID: call_id}
        if self._ref.episode_id is not None:
            identity |= {REVISION: scope.revision, POSITION: scope.position}
        return CallRequest(
            name=self._ref.tool.name,
            arguments=arguments,
            meta={**scope.meta, **{key: value for key, value in identity.items() if value is not None}},
            timeout=self._ref.timeout,
            progress=_progress(scope.on_progress, self.name, call_id, deliver),
            repeatable=self._ref.repeatable,
            other_call_id=(
                f"{call_id}@{scope.message_id}"
                if self._ref.episode_id is not None and scope.message_id
                else None
            ),
        )

    def _answered(self, result: CallToolResult) -> Any:
        content = message_content(result)
        call_id = _CALL_ID.get()
        if call_id is None:
            if result.is_error:
                raise ToolException(content if isinstance(content, str) else str(content))
            return content
        return ToolMessage(
            content=content,
            artifact=artifact(result),
            name=self.name,
            tool_call_id=call_id,
            status="error" if result.is_error else "success",
        )

    def _failed(self, error: EnvScalerError | MCPError) -> Any:
        """A failure of the call, not of the tool: told to the model in words that it can act on.

        An episode's server that cannot be reached ends the run instead: nothing is lost by that, since the
        run can be resumed and the call's identity lets it happen once.
        """
        if isinstance(error, UsageError):
            raise error
        if self._ref.episode_id is not None:
            if isinstance(error, (ServerUnavailableError, CallLostError)):
                raise error
            if isinstance(error, MCPError) and error.code == INTERNAL_ERROR:
                raise InfrastructureError(
                    f"expected server {self._ref.server!r} to carry out a call, found: {error.error.message}"
                ) from error
        text = _explained(error, self._ref)
        call_id = _CALL_ID.get()
        if call_id is None:
            raise ToolException(text) from error
        return ToolMessage(content=text, name=self.name, tool_call_id=call_id, status="error")


async def _send(pool: ConnectionPool, ref: ToolRef, request: CallRequest) -> CallToolResult:
    try:
        result = await pool[ref.server].call(request)
    except MCPError as error:
        if error.code != INVALID_PARAMS or request.other_call_id is None:
            raise
        # Some models number their calls, so that a fork may give another call an id that was used there. The
        # second identity is as fixed as the first: a call that is made again finds its result under it.
        meta = {**(request.meta or {}), CALL_ID: request.other_call_id}
        result = await pool[ref.server].call(replace(request, meta=meta, other_call_id=None))
    if isinstance(result, InputRequiredResult):
        raise UsageError(f"expected a result of the tool {ref.name!r}, found a question to a person")
    return result


def _explained(error: EnvScalerError | MCPError, ref: ToolRef) -> str:
    if isinstance(error, MCPError):
        return f"Error: the server {ref.server!r} refused the call: {error.error.message}"
    unknown = (
        "It is unknown whether the call took effect, and it was not repeated. "
        "Find out before you call the tool again."
    )
    if isinstance(error, CallLostError):
        return f"Error: {error}. {'The call was repeated without an answer.' if ref.repeatable else unknown}"
    if isinstance(error, CallTimeoutError):
        return f"Error: {error}. {'' if ref.read_only else unknown}".strip()
    return f"Error: {error}. The call was not carried out."


def _progress(
    report: Callable[[dict[str, Any]], None] | None,
    name: str,
    call_id: str | None,
    deliver: Callable[[Callable[[], None]], Any],
) -> ProgressFnT | None:
    if report is None:
        return None
    # The connection's loop calls back in a context of its own, and a stream is found by the caller's.
    context = copy_context()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        event = {
            "type": "tool_progress",
            "tool_call_id": call_id,
            "name": name,
            "progress": progress,
            "total": total,
            "message": message,
        }
        deliver(lambda: context.run(report, event))

    return on_progress
