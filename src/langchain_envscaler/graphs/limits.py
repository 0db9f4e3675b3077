"""Limits of what an agent spends in one turn."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.types import Command

from langchain_envscaler.graphs.state import ToolAgentState, Turn, starts_turn

__all__ = ["STOP_REASON", "LimitsMiddleware"]

STOP_REASON = "stop_reason"
"""The key of a message's `response_metadata` that tells which limit ended the turn."""


class LimitsMiddleware(AgentMiddleware[ToolAgentState, Any, Any]):
    """Ends a turn that has had its model calls, its tokens or its failures.

    It counts around the model call and not in a step of its own, which would cost a checkpoint.
    """

    state_schema = ToolAgentState

    def __init__(
        self, *, max_steps: int | None = None, max_tokens: int | None = None, max_errors: int | None = None
    ) -> None:
        """Set the limits, each None for none.

        Args:
            max_steps: Model calls in a turn.
            max_tokens: Tokens of prompts and outputs in a turn, as far as the model tells them.
            max_errors: Failed tool calls in a row.
        """
        super().__init__()
        self._max_steps = max_steps
        self._max_tokens = max_tokens
        self._max_errors = max_errors

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        turn = _turn(request)
        if (reason := self._spent(turn, request.messages)) is not None:
            return _ended(reason)
        return _counted(handler(request), turn)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        turn = _turn(request)
        if (reason := self._spent(turn, request.messages)) is not None:
            return _ended(reason)
        return _counted(await handler(request), turn)

    def _spent(self, turn: Turn, messages: list[AnyMessage]) -> tuple[str, str] | None:
        if self._max_steps is not None and turn["steps"] >= self._max_steps:
            return "max_steps", f"the limit of {self._max_steps} model calls in a turn"
        if self._max_tokens is not None and turn["tokens"] >= self._max_tokens:
            return "max_tokens", f"the limit of {self._max_tokens} tokens in a turn"
        if self._max_errors is not None and _errors_in_a_row(messages) >= self._max_errors:
            return "max_errors", f"the limit of {self._max_errors} failed tool calls in a row"
        return None


def _turn(request: ModelRequest[Any]) -> Turn:
    kept: Turn | None = cast("ToolAgentState", request.state).get("turn")
    if kept is None or starts_turn(request.state["messages"]):
        return Turn(steps=0, tokens=0)
    return kept


def _errors_in_a_row(messages: list[AnyMessage]) -> int:
    errors = 0
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            if message.status != "error":
                break
            errors += 1
        elif not isinstance(message, AIMessage):
            break
    return errors


def _ended(reason: tuple[str, str]) -> ModelResponse[Any]:
    code, text = reason
    message = AIMessage(content=f"Stopped at {text}.", response_metadata={STOP_REASON: code})
    return ModelResponse(result=[message])


def _counted(response: ModelResponse[Any], turn: Turn) -> ExtendedModelResponse[Any]:
    used = sum(
        message.usage_metadata["total_tokens"]
        for message in response.result
        if isinstance(message, AIMessage) and message.usage_metadata is not None
    )
    counted = Turn(steps=turn["steps"] + 1, tokens=turn["tokens"] + used)
    return ExtendedModelResponse(model_response=response, command=Command(update={"turn": counted}))
