"""One output's course: what the engine writes in the model's place, and what the model may write next.

With a budget or a constraint the engine opens the reasoning for the model, as Qwen3 always begins it, closes
it when the budget is spent, and then lets a grammar bind. Without either the model is free.
"""

from collections import deque
from typing import TYPE_CHECKING, Any

import torch

from langchain_envscaler.chat.backends.base import GenerationRequest
from langchain_envscaler.chat.engine.tokens import QwenTokenizer

if TYPE_CHECKING:
    from xgrammar import GrammarMatcher

__all__ = ["OutputPlan"]

_LARGEST_RESERVE = 1024


class OutputPlan:
    """Decides, token by token, over one output.

    Args:
        request: What was asked for.
        max_tokens: The most tokens that the output may have.
        tokenizer: Gives the ids of what is written in the model's place.
        matcher: The grammar of the answer; None where it is free.
    """

    def __init__(
        self,
        request: GenerationRequest,
        max_tokens: int,
        tokenizer: QwenTokenizer,
        matcher: "GrammarMatcher | None",
    ) -> None:
        self._tokenizer = tokenizer
        self._matcher = matcher
        self._max_tokens = max_tokens
        self._count = 0
        self._think_count = 0
        self._forced: deque[int] = deque()
        self._open_id, self._close_id = tokenizer.think_ids
        can_think = request.enable_thinking and self._open_id is not None and self._close_id is not None
        self._is_thinking = can_think and (matcher is not None or request.thinking_budget is not None)
        self._budget = self._thinking_budget(request) if self._is_thinking else 0
        if self._is_thinking:
            self._force_open()

    @property
    def is_free(self) -> bool:
        """Whether nothing at all is decided here."""
        return self._matcher is None and not self._is_thinking and not self._forced

    def forced(self) -> int | None:
        """The token that is written next in the model's place; None where the model writes."""
        return self._forced[0] if self._forced else None

    @property
    def masks(self) -> bool:
        """Whether :meth:`fill_mask` has anything to say about the next token."""
        return self._matcher is not None and not self._forced

    def fill_mask(self, mask: torch.Tensor, row: int) -> None:
        """Writes which tokens may come next into a row of a bit mask that allows all."""
        if self._matcher is None or self._forced:
            return
        if self._is_thinking:
            # An output that must be a call or JSON cannot end within its reasoning.
            for token in self._tokenizer.end_ids:
                mask[row, token // 32] &= ~(1 << token % 32) if token % 32 < 31 else 0x7FFFFFFF
        else:
            self._matcher.fill_next_token_bitmask(mask, row)

    def accept(self, token: int) -> None:
        """Takes note of the token that was written."""
        self._count += 1
        if self._forced:
            self._forced.popleft()
        elif self._is_thinking:
            self._think(token)
        elif self._matcher is not None and not self._matcher.is_terminated():
            self._matcher.accept_token(token)

    def _think(self, token: int) -> None:
        self._think_count += 1
        if token == self._close_id:
            self._end_thinking(())
        elif self._think_count >= self._budget:
            self._end_thinking((*self._tokenizer.encode_text("\n"), self._close_id))

    def _end_thinking(self, closing: tuple[Any, ...]) -> None:
        self._is_thinking = False
        self._forced.extend(closing)
        if closing or self._matcher is not None:
            self._forced.extend(self._tokenizer.encode_text("\n\n"))

    def _force_open(self) -> None:
        self._forced.append(self._open_id)  # type: ignore[arg-type]
        if self._budget > 0:
            self._forced.extend(self._tokenizer.encode_text("\n"))
        else:
            self._end_thinking((*self._tokenizer.encode_text("\n\n"), self._close_id))

    def _thinking_budget(self, request: GenerationRequest) -> int:
        """The tokens that may be thought: the budget, less where an answer of a given form needs room."""
        allowed = self._max_tokens if request.thinking_budget is None else request.thinking_budget
        if self._matcher is None:
            return allowed
        return max(0, min(allowed, self._max_tokens - min(_LARGEST_RESERVE, self._max_tokens * 3 // 4)))
