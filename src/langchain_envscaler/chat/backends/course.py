"""The course of an output on an engine that only continues text, and holds one text to one form.

With a budget or a constraint it takes two legs: the model thinks, then it answers in the form asked for. What
comes between is written in the model's place, as it would write it itself.
"""

import json
from dataclasses import dataclass

from langchain_envscaler.chat.backends.base import FinishReason, GenerationRequest
from langchain_envscaler.chat.constraint import CallConstraint, Constraint
from langchain_envscaler.chat.output import parse
from langchain_envscaler.errors import UsageError

__all__ = ["Course", "Leg", "check_form"]

_CLOSE = "</think>"
_LARGEST_RESERVE = 1024


@dataclass(frozen=True, slots=True)
class Leg:
    """One stretch of an output.

    Attributes:
        written: What is written in the model's place before it goes on.
        max_tokens: The most tokens that the model may then write.
        constraint: What it must look like.
        ends_thinking: Whether it ends with `</think>`, and cannot end otherwise but by its length.
    """

    written: str
    max_tokens: int
    constraint: Constraint | None = None
    ends_thinking: bool = False


class Course:
    """Decides leg by leg over one output.

    Args:
        request: What was asked for.
        max_tokens: The most tokens of the output.
    """

    def __init__(self, request: GenerationRequest, max_tokens: int) -> None:
        self._constraint = request.constraint
        self._left = max_tokens
        is_led = request.constraint is not None or request.thinking_budget is not None
        self._is_thinking = request.enable_thinking and is_led
        self._budget = _budget(request, max_tokens)

    def first(self) -> Leg:
        """The first leg."""
        if not self._is_thinking:
            return Leg("", self._left, self._constraint)
        if self._budget == 0:
            self._is_thinking = False
            return Leg(f"<think>\n\n{_CLOSE}\n\n", self._left, self._constraint)
        return Leg("<think>\n", self._budget, ends_thinking=self._constraint is not None)

    def next(self, text: str, token_count: int, finish_reason: FinishReason) -> Leg | None:
        """The leg after one of this text, length in tokens and ending; None where the output is complete."""
        self._left -= token_count
        if not self._is_thinking or self._left <= 0:
            return None
        self._is_thinking = False
        has_closed = _CLOSE in text
        if finish_reason == "stop" and self._constraint is None:
            return None
        if has_closed:
            return Leg("\n\n" if self._constraint else "", self._left, self._constraint)
        return Leg(f"\n{_CLOSE}\n\n", self._left, self._constraint)


def check_form(constraint: Constraint, text: str) -> None:
    """Makes sure that an answer that ended by itself has the form it was to be held to.

    Raises:
        UsageError: It has another: whoever wrote it does not know constraints.
    """
    output = parse(text, enable_thinking=False)
    if output.tool_calls and not output.invalid_tool_calls:
        return
    if isinstance(constraint, CallConstraint):
        if not constraint.required:
            return
    elif _is_json(text):
        return
    raise UsageError(
        "the server did not hold its answer to the tools or the schema: it does not know structured outputs; "
        "use vLLM, or run the model in process"
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _budget(request: GenerationRequest, max_tokens: int) -> int:
    """The tokens that may be thought: less than asked for where an answer of a given form needs room."""
    allowed = max_tokens if request.thinking_budget is None else request.thinking_budget
    if request.constraint is None:
        return min(allowed, max_tokens)
    return max(0, min(allowed, max_tokens - min(_LARGEST_RESERVE, max_tokens * 3 // 4)))
