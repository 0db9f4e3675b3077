"""What every engine behind the chat model is: a prompt in, a stream of text and a finish reason out.

Prompt rendering, output reading, stop sequences and constraints are the model's and shared by all, so each
engine behaves the same. Two kinds of engine exist: a :class:`Backend` takes a rendered prompt and hands back
raw text; a :class:`ChatBackend` takes messages and hands back what a server already read.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from langchain_core.exceptions import ContextOverflowError

from langchain_envscaler.chat.constraint import Constraint
from langchain_envscaler.chat.history import Message, Turn
from langchain_envscaler.chat.output import OutputDelta
from langchain_envscaler.chat.prompt import Segment, render_segments
from langchain_envscaler.errors import UsageError

__all__ = [
    "Backend",
    "ChatBackend",
    "ChatChunk",
    "ChatRequest",
    "ContextOverflow",
    "FinishReason",
    "GeneratedToken",
    "GenerationChunk",
    "GenerationRequest",
    "Prompt",
    "Sampling",
    "Usage",
]

FinishReason: TypeAlias = Literal["stop", "length"]
"""Why an output ended: the model ended its turn, or a token limit cut it off."""


class ContextOverflow(UsageError, ContextOverflowError):
    """A prompt longer than the model's context; raised before anything is generated."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt in pieces, so that a message which spells a control token stays text."""

    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The prompt as one string, in which a message that spells a control token looks like one."""
        return "".join(segment.text for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn. None leaves a choice to the engine.

    Attributes:
        temperature: 0 takes the likeliest token.
        top_p: The share of probability mass that stays.
        top_k: How many of the likeliest tokens stay.
        min_p: The least share of the likeliest token's probability that a token needs.
        repetition_penalty: Above 1 makes tokens that already occurred less likely.
        presence_penalty: Taken from the score of each token that the output already holds.
        seed: With it, the same request draws the same tokens.
    """

    temperature: float = 0.7
    top_p: float = 0.95
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One output asked of a :class:`Backend`.

    Attributes:
        prompt: What the output continues.
        sampling: How tokens are drawn.
        max_tokens: The most tokens that may be generated, reasoning included; None: what the context leaves.
        enable_thinking: Whether the output begins with reasoning (else the prompt closed it already).
        thinking_budget: After so many tokens of reasoning the backend writes `</think>` in the model's place.
        constraint: What the answer, after the reasoning, must look like. A backend that cannot hold it raises
            UsageError before generating; it never ignores it.
        logprobs: The number of likeliest alternatives wanted for each token, 0 for none but the token's own
            log-probability; None asks for no log-probabilities.
        return_tokens: Whether chunks shall carry their tokens (`logprobs` implies it).
        extra: The backend's own sampling options, passed on as they are.
    """

    prompt: Prompt
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    enable_thinking: bool = True
    thinking_budget: int | None = None
    constraint: Constraint | None = None
    logprobs: int | None = None
    return_tokens: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One output asked of a :class:`ChatBackend`: as :class:`GenerationRequest`, with messages for a prompt.

    Attributes:
        turns: The conversation.
        tools: OpenAI function schemas that the model may call, as they are to reach the prompt.
        tool_choice: "auto", "none", "required", or the name of the one tool to call.
        parallel_tool_calls: Whether more than one call may be written.
        strict: Whether calls must fit their schema even where `tool_choice` is "auto".
        response_schema: The JSON schema of the answer; None: free text.
        json_object: Whether the answer must be a JSON object where no schema is given.
        constraint: All this as a constraint, for servers that take one.
        stop: Texts at which the answer ends.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: str = "auto"
    parallel_tool_calls: bool = False
    strict: bool = False
    response_schema: Mapping[str, Any] | None = None
    json_object: bool = False
    constraint: Constraint | None = None
    stop: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    enable_thinking: bool = True
    thinking_budget: int | None = None
    logprobs: int | None = None
    return_tokens: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens used so far; `reasoning_tokens` is None where the engine does not know, and the model counts."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class GeneratedToken:
    """One token of an output.

    Attributes:
        id: Its id; None where the engine tells only its text.
        text: Its text, as far as the engine knows it.
        is_written: False where the backend wrote it in the model's place, to open or close the reasoning.
        logprob: The natural logarithm of its probability before sampling options; None if not asked for.
        top: The likeliest alternatives, each an id or a text with its log-probability, the likeliest first.
    """

    id: int | None
    text: str = ""
    is_written: bool = True
    logprob: float | None = None
    top: tuple[tuple[int | str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationChunk:
    """A piece of an output.

    Attributes:
        text: New text, whole characters only; the control token that ends the turn is not part of it.
        finish_reason: Why the output ended; on the last chunk only.
        usage: Tokens used up to here; the latest counts. On every chunk where the engine knows it, since a
            consumer that has seen enough leaves before the last one.
        tokens: The tokens behind this chunk, where asked for.
    """

    text: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    tokens: tuple[GeneratedToken, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatChunk:
    """A piece of an output that was already read, otherwise as :class:`GenerationChunk`."""

    deltas: tuple[OutputDelta, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    tokens: tuple[GeneratedToken, ...] = ()
    model_name: str | None = None


class _Engine:
    """What both kinds of engine can tell about themselves."""

    @property
    def model_name(self) -> str | None:
        """The name of the model that answers; None where only the chat model knows it."""
        return None

    @property
    def context_size(self) -> int | None:
        """The most tokens that prompt and output may have together; None where it is not known (yet)."""
        return None

    def close(self) -> None:
        """Gives back what the engine holds; using it again may take it anew."""


class Backend(_Engine, ABC):
    """An engine that continues a prompt. Only :meth:`stream` must be written; any thread may call it."""

    @abstractmethod
    def stream(self, request: GenerationRequest) -> Iterator[GenerationChunk]:
        """The output, as it comes. Closing the iterator ends the generation.

        Raises:
            UsageError: The request cannot be met: its options, its constraint, a prompt that is too long.
            InfrastructureError: The engine failed.
        """

    async def astream(self, request: GenerationRequest) -> AsyncIterator[GenerationChunk]:
        """As :meth:`stream`, for asyncio; unless overridden each chunk is waited for in a worker thread."""
        chunks = _Steps(self.stream(request))
        try:
            while (chunk := await asyncio.to_thread(chunks.next)) is not None:
                yield chunk
        finally:
            await asyncio.shield(asyncio.to_thread(chunks.close))

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[Any] | None = None, *, enable_thinking: bool = True
    ) -> Prompt:
        """The prompt of a conversation, in Qwen3's carried format unless the engine has its own."""
        return Prompt(tuple(render_segments(messages, tools, enable_thinking=enable_thinking)))

    def token_ids(self, prompt: Prompt) -> list[int] | None:
        """The prompt's tokens; None where the engine has no tokenizer."""
        return None

    def count_tokens(self, prompt: Prompt) -> int | None:
        """The prompt's length in tokens; None where the engine cannot tell without generating."""
        ids = self.token_ids(prompt)
        return None if ids is None else len(ids)


class ChatBackend(_Engine, ABC):
    """An engine that answers messages: a server with a chat template and perhaps parsers of its own."""

    @abstractmethod
    def stream_chat(self, request: ChatRequest) -> Iterator[ChatChunk]:
        """The output, read, as it comes. Closing the iterator ends the generation.

        Raises:
            UsageError: The request cannot be met.
            InfrastructureError: The server failed or cannot be reached.
        """

    @abstractmethod
    def astream_chat(self, request: ChatRequest) -> AsyncIterator[ChatChunk]:
        """As :meth:`stream_chat`, for asyncio."""


class _Steps:
    """An iterator that worker threads advance: it is closed only when no thread is inside it any more."""

    def __init__(self, chunks: Iterator[GenerationChunk]) -> None:
        self._chunks = chunks
        self._lock = threading.Lock()
        self._is_closed = False

    def next(self) -> GenerationChunk | None:
        with self._lock:
            return None if self._is_closed else next(self._chunks, None)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if isinstance(self._chunks, Generator):
                self._chunks.close()
