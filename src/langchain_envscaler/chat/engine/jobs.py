"""One output in the making, from its request to its last chunk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from langchain_envscaler.chat.backends.base import (
    ContextOverflow,
    FinishReason,
    GeneratedToken,
    GenerationChunk,
    GenerationRequest,
    Usage,
)
from langchain_envscaler.chat.engine.key_values import KeyValues
from langchain_envscaler.chat.engine.mailbox import Mailbox
from langchain_envscaler.chat.engine.plan import OutputPlan
from langchain_envscaler.chat.engine.prefixes import Prefix, joined_pieces
from langchain_envscaler.chat.engine.sampler import RowSampler
from langchain_envscaler.chat.engine.tokens import Detokenizer, Piece, QwenTokenizer, pieces_ids
from langchain_envscaler.chat.profile import MAX_OUTPUT_TOKENS

if TYPE_CHECKING:
    from xgrammar import GrammarMatcher

__all__ = ["Job"]


class Job:
    """One request on its way through the engine.

    Args:
        request: What is asked for.
        matcher: The grammar of the answer; None where it is free.
        mailbox: Where chunks, or an error, go.
    """

    def __init__(
        self, request: GenerationRequest, matcher: "GrammarMatcher | None", mailbox: Mailbox
    ) -> None:
        self.request = request
        self.is_cancelled = False
        """Whether nobody reads on."""
        self.cached_tokens = 0
        self._matcher = matcher
        self._mailbox = mailbox
        self._output: list[int] = []

    def begin(self, pieces: Sequence[Piece], tokenizer: QwenTokenizer, context_size: int) -> None:
        """Takes the prompt's tokens.

        Raises:
            ContextOverflow: They leave no room for an output.
        """
        self._pieces = pieces
        self.ids = pieces_ids(pieces)
        room = context_size - len(self.ids)
        if room < 1:
            raise ContextOverflow(
                f"the prompt has {len(self.ids)} tokens, but the model's context holds {context_size}, the "
                "answer included; shorten the conversation, or raise context_size if the model takes more"
            )
        self._tokenizer = tokenizer
        self._max_tokens = min(self.request.max_tokens or MAX_OUTPUT_TOKENS, room)
        self.plan = OutputPlan(self.request, self._max_tokens, tokenizer, self._matcher)
        self.sampler = RowSampler(self.request.sampling, self.ids)
        self._detokenizer = Detokenizer(tokenizer)

    def cancel(self) -> None:
        """Ends the output, from any thread: nobody reads on."""
        self.is_cancelled = True

    @property
    def last_token(self) -> int:
        """The token that the next forward pass takes in."""
        return self._output[-1]

    def write(self, token: int, scores: torch.Tensor) -> bool:
        """Adds a token to the output and hands it on; tells whether the output goes on.

        Args:
            token: The token.
            scores: The logits that it was drawn from, before any sampling option.
        """
        is_written = self.plan.forced() is None
        self.plan.accept(token)
        self.sampler.note(token)
        self._output.append(token)
        reason: FinishReason | None = None
        if token in self._tokenizer.end_ids and is_written:
            reason = "stop"
        elif len(self._output) >= self._max_tokens:
            reason = "length"
        chunk = GenerationChunk(
            text="" if reason == "stop" else self._detokenizer.feed(token),
            finish_reason=reason,
            usage=Usage(len(self.ids), len(self._output), self.cached_tokens),
            tokens=self._tokens(token, scores, is_written=is_written),
        )
        if not self._mailbox.put(chunk):
            self.is_cancelled = True
        return reason is None and not self.is_cancelled

    def fail(self, error: BaseException) -> None:
        """Ends the output with an error."""
        self.is_cancelled = True
        self._mailbox.put(error)

    def prefix(self, key_values: KeyValues) -> Prefix:
        """What of the sequence is computed, for later prompts that repeat it."""
        pieces = joined_pieces(self._pieces, self._tokenizer.output_pieces(self._output))
        return Prefix(pieces, [*self.ids, *self._output][: key_values.lengths[0]], key_values)

    def known_pieces(self) -> Sequence[Piece]:
        """The prompt's tokens, for other prompts that begin alike."""
        return self._pieces

    def _tokens(self, token: int, scores: torch.Tensor, *, is_written: bool) -> tuple[GeneratedToken, ...]:
        wanted = self.request.logprobs
        if wanted is None and not self.request.return_tokens:
            return ()
        text = self._tokenizer.token_text(token)
        if wanted is None:
            return (GeneratedToken(token, text, is_written),)
        logprobs = scores.log_softmax(dim=-1)
        best = logprobs.topk(wanted) if wanted else None
        top = zip(best.indices.tolist(), best.values.tolist(), strict=True) if best else ()
        return (GeneratedToken(token, text, is_written, float(logprobs[token]), tuple(top)),)
