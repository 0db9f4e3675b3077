"""Limits of what an agent spends in one turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from langchain_envscaler.graphs.state import Turn, starts_turn

__all__ = ["STOP_REASON", "Limits", "counted", "turn_so_far"]

STOP_REASON = "stop_reason"
"""The key of a message's `response_metadata` that tells which limit ended the turn."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a turn may have; None is no limit."""

    max_steps: int | None = None
    """Model calls in a turn."""
    max_tokens: int | None = None
    """Tokens of prompts and outputs in a turn, as far as the model tells them."""
    max_errors: int | None = None
    """Failed tool calls in a row."""

    def ending(self, turn: Turn, messages: Sequence[AnyMessage]) -> AIMessage | None:
        """The message that ends a turn which has had all it may have; None while it may go on."""
        if self.max_steps is not None and turn["steps"] >= self.max_steps:
            return _ended("max_steps", f"the limit of {self.max_steps} model calls in a turn")
        if self.max_tokens is not None and turn["tokens"] >= self.max_tokens:
            return _ended("max_tokens", f"the limit of {self.max_tokens} tokens in a turn")
        if self.max_errors is not None and _errors_in_a_row(messages) >= self.max_errors:
            return _ended("max_errors", f"the limit of {self.max_errors} failed tool calls in a row")
        return None


def turn_so_far(state: Any) -> Turn:
    """What the turn that a state is in has spent."""
    kept: Turn | None = state.get("turn")
    if kept is None or starts_turn(state["messages"]):
        return Turn(steps=0, tokens=0)
    return kept


def counted(turn: Turn, answer: Sequence[BaseMessage]) -> Turn:
    """A turn with one more model call."""
    used = sum(
        message.usage_metadata["total_tokens"]
        for message in answer
        if isinstance(message, AIMessage) and message.usage_metadata is not None
    )
    return Turn(steps=turn["steps"] + 1, tokens=turn["tokens"] + used)


def _errors_in_a_row(messages: Sequence[AnyMessage]) -> int:
    errors = 0
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            if message.status != "error":
                break
            errors += 1
        elif not isinstance(message, AIMessage):
            break
    return errors


def _ended(code: str, text: str) -> AIMessage:
    return AIMessage(content=f"Stopped at {text}.", response_metadata={STOP_REASON: code})
