"""LangChain tools that call MCP tools: with the server's own schema, the call's id, and `_meta` both ways."""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, ElicitRequest, InputRequiredResult
from opentelemetry.trace import Span
from pydantic import PrivateAttr, ValidationError

from langchain_envscaler.errors import EnvScalerError, InfrastructureError, UsageError
from langchain_envscaler.graphs.content import artifact, message_content
from langchain_envscaler.graphs.elicitation import (
    LEGACY_KEY,
    LegacyQuestion,
    ask,
    questions,
    recorded_answers,
    responses,
)
from langchain_envscaler.graphs.pool import ConnectionPool
from langchain_envscaler.graphs.refs import ToolRef
from langchain_envscaler.graphs.requests import (
    CallLostError,
    CallRequest,
    CallTimeoutError,
    ConsentMissingError,
    ServerUnavailableError,
)
from langchain_envscaler.graphs.scope import current_scope
from langchain_envscaler.graphs.tracing import note_result, tool_span
from langchain_envscaler.mcp.tools import CALL_ID, EPISODE_ID, POSITION, REVISION

__all__ = ["MCPTool"]


_CALL_ID: ContextVar[str | None] = ContextVar("call_id", default=None)
_FAILURES = (EnvScalerError, MCPError, RuntimeError, ValidationError)
"""What may go wrong with a call. The SDK raises the last two for a result that breaks its own schema."""


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
        step = self._begun(arguments, lambda report: loop.call_soon_threadsafe(report))
        while isinstance(step, CallRequest):
            try:
                with self._span() as span:
                    outcome = await self._pool.arun(_send(self._pool, self._ref, step))
                    note_result(span, outcome)
            except _FAILURES as error:
                return self._failed(error)
            step = self._next(step, outcome)
        return step

    def _run(self, /, **arguments: Any) -> Any:
        step = self._begun(arguments, lambda report: report())
        while isinstance(step, CallRequest):
            try:
                with self._span() as span:
                    outcome = self._pool.run(_send(self._pool, self._ref, step))
                    note_result(span, outcome)
            except _FAILURES as error:
                return self._failed(error)
            step = self._next(step, outcome)
        return step

    def _begun(
        self, arguments: dict[str, Any], deliver: Callable[[Callable[[], None]], Any]
    ) -> "CallRequest | Any":
        """The request to send, or what the model reads in place of a result where there is to be none."""
        scope = current_scope()
        request = self._request(arguments, deliver)
        if scope.begin is None or scope.begin():
            return request
        answers = recorded_answers()
        if not answers and not self._ref.repeatable:
            return self._told(
                f"Error: the run broke off around this call, and the server {self._ref.server!r} cannot go "
                "back. The call may have taken effect already, so it was not made again. Find out before you "
                "call the tool again."
            )
        return replace(request, answers=tuple(answers))

    def _next(
        self, request: CallRequest, outcome: CallToolResult | InputRequiredResult | LegacyQuestion
    ) -> "CallRequest | Any":
        """The request to send next, or the call's result."""
        if isinstance(outcome, CallToolResult):
            return self._answered(outcome)
        try:
            if isinstance(outcome, LegacyQuestion):
                return self._resent(request, outcome)
            wanted = outcome.input_requests or {}
            answers = ask(questions(self.name, wanted, sends_again=False))
        except UsageError as error:
            return self._told(f"Error: {error}.")
        return replace(
            request,
            input_responses=responses(wanted, answers),
            request_state=outcome.request_state,
            # Those before are in the state that is sent back.
            answers=(),
        )

    def _resent(self, request: CallRequest, outcome: LegacyQuestion) -> "CallRequest | Any":
        question = ElicitRequest(params=outcome.params)
        answers = ask(questions(self.name, {LEGACY_KEY: question}, sends_again=True))
        return replace(request, answers=(*request.answers, answers))

    def _span(self) -> AbstractContextManager[Span]:
        return tool_span(self._ref, _CALL_ID.get(), current_scope().revision)

    def _trace(self) -> dict[str, Any]:
        """What a trace of the call should tell of the episode."""
        if self._ref.episode_id is None:
            return {}
        return {EPISODE_ID: self._ref.episode_id, REVISION: current_scope().revision}

    def _request(
        self, arguments: dict[str, Any], deliver: Callable[[Callable[[], None]], Any]
    ) -> CallRequest:
        scope = current_scope()
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

    def _failed(self, error: Exception) -> Any:
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
        return self._told(_explained(error, self._ref))

    def _told(self, text: str) -> Any:
        """An error that is no result of the tool."""
        call_id = _CALL_ID.get()
        if call_id is None:
            raise ToolException(text)
        return ToolMessage(content=text, name=self.name, tool_call_id=call_id, status="error")


async def _send(
    pool: ConnectionPool, ref: ToolRef, request: CallRequest
) -> CallToolResult | InputRequiredResult | LegacyQuestion:
    try:
        return await pool[ref.server].call(request)
    except MCPError as error:
        if error.code != INVALID_PARAMS or request.other_call_id is None:
            raise
        # Some models number their calls, so that a fork may give another call an id that was used there. The
        # second identity is as fixed as the first: a call that is made again finds its result under it.
        meta = {**(request.meta or {}), CALL_ID: request.other_call_id}
        return await pool[ref.server].call(replace(request, meta=meta, other_call_id=None))


def _explained(error: Exception, ref: ToolRef) -> str:
    if isinstance(error, MCPError):
        return f"Error: the server {ref.server!r} refused the call: {error.error.message}"
    unknown = (
        "It is unknown whether the call took effect, and it was not repeated. "
        "Find out before you call the tool again."
    )
    if isinstance(error, CallLostError):
        return f"Error: {error}. {'The call was repeated without an answer.' if ref.repeatable else unknown}"
    if isinstance(error, (RuntimeError, ValidationError)):
        text = " ".join(str(error).split())
        return f"Error: the answer of server {ref.server!r} is not what it was to be: {text}. {unknown}"
    if isinstance(error, ConsentMissingError):
        return f"Error: {error}. It is unknown how much of it took effect."
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
