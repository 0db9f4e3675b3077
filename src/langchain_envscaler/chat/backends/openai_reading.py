"""The events of an OpenAI-compatible server as the pieces of an output."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from langchain_core.messages import InvalidToolCall, ToolCall

from langchain_envscaler.chat.backends.base import (
    ChatChunk,
    ChatRequest,
    FinishReason,
    GeneratedToken,
    GenerationChunk,
    GenerationRequest,
    Prompt,
    Usage,
)
from langchain_envscaler.chat.backends.course import Course, check_form
from langchain_envscaler.chat.backends.openai_requests import ServerTraits, completion_body, prompt_text
from langchain_envscaler.chat.backends.server import Event
from langchain_envscaler.chat.calls import call_of_parts
from langchain_envscaler.chat.output import OutputDelta, OutputReader
from langchain_envscaler.chat.prompt import render_segments
from langchain_envscaler.errors import InfrastructureError, UsageError

__all__ = ["ChatEvents", "CompletionAnswer"]

_FINISH_REASONS: dict[str, FinishReason] = {"length": "length", "max_tokens": "length"}
_SHARED_FIELDS = {field.name for field in fields(GenerationRequest)} - {"prompt"}
_FAILURES = frozenset({"abort", "error", "content_filter"})


class CompletionAnswer:
    """One answer of the completions endpoint, leg by leg.

    Args:
        model: The server's name for its model.
        request: What was asked for.
        traits: What is known of the server.
    """

    def __init__(self, model: str, request: GenerationRequest, traits: ServerTraits) -> None:
        self._model = model
        self._request = request
        self._traits = traits
        self._course = Course(request, traits.largest_output(request.max_tokens))
        self._leg = self._course.first()
        self._prompt = prompt_text(request.prompt)
        self._usage: Usage | None = None
        self._ending = _Ending(self._wants_tokens)
        self._text: list[str] = []
        self.is_complete = False
        """Whether there is no leg left."""

    @property
    def may_shorten(self) -> bool:
        """Whether the output may be shorter than the body asks for."""
        return self._request.max_tokens is None

    def begin_leg(self) -> GenerationChunk:
        """Begins a leg; what is written in the model's place before it."""
        self._ending = _Ending(self._wants_tokens)
        self._text = []
        text = self._leg.written
        self._prompt += text
        tokens = (GeneratedToken(None, text, is_written=False),) if text and self._wants_tokens else ()
        return GenerationChunk(text, usage=self._usage, tokens=tokens)

    def body(self) -> dict[str, Any]:
        """The request for the leg."""
        return completion_body(self._model, self._request, self._prompt, self._leg, self._traits)

    def read(self, event: Event) -> GenerationChunk:
        """The piece that an event brings."""
        choice = self._ending.read(event)
        text = choice.get("text") or ""
        self._text.append(text)
        tokens = _completion_tokens(choice)
        self._ending.has_tokens |= bool(tokens)
        return GenerationChunk(text, usage=self._sum(), tokens=tokens)

    def end_leg(self) -> GenerationChunk:
        """Ends the leg; a chunk without text that tells how the output ended, if it did.

        Raises:
            UsageError: The server left out what was asked for.
            InfrastructureError: It ended its answer early.
        """
        reason = self._ending.close()
        text = "".join(self._text)
        if self._leg.constraint is not None and reason == "stop":
            check_form(self._leg.constraint, text)
        self._prompt += text
        count = self._ending.usage.output_tokens if self._ending.usage else len(self._text)
        self._usage = self._sum()
        leg = self._course.next(text, count, reason)
        if leg is None:
            self.is_complete = True
            return GenerationChunk(finish_reason=reason, usage=self._usage)
        self._leg = leg
        return GenerationChunk(usage=self._usage)

    @property
    def _wants_tokens(self) -> bool:
        return self._request.return_tokens or self._request.logprobs is not None

    def _sum(self) -> Usage | None:
        """The tokens of the legs so far: what the first read and what all of them wrote."""
        now, before = self._ending.usage, self._usage
        if now is None or before is None:
            return now or before
        return replace(before, output_tokens=before.output_tokens + now.output_tokens)


class ChatEvents:
    """The events of one answer of the chat endpoint.

    What the server read is written out again as the model wrote it, and goes through our own reader: so text
    that the server's parsers left raw is read too, and white space is treated the same everywhere.
    """

    def __init__(self, request: ChatRequest, traits: ServerTraits) -> None:
        self._request = request
        self._traits = traits
        self._reader = OutputReader(request.enable_thinking, read_calls=request.tool_choice != "none")
        self._ending = _Ending(request.return_tokens or request.logprobs is not None)
        self._has_reasoning = False
        self._has_answer = False
        self._calls: dict[int, _ServerCall] = {}
        self._call_count = 0
        self._reasoning_tokens: int | None = None
        self._model_name: str | None = None

    def read(self, event: Event) -> ChatChunk:
        """The piece that an event brings."""
        choice = self._ending.read(event)
        self._model_name = event.get("model") or self._model_name
        delta = choice.get("delta") or {}
        deltas = [*self._read_reasoning(delta), *self._read_content(delta), *self._read_calls(delta)]
        tokens = _chat_tokens(choice)
        self._ending.has_tokens |= bool(tokens)
        return self._chunk(deltas, tokens=tokens)

    def close(self) -> ChatChunk:
        """The last piece.

        Raises:
            UsageError: The server left out what was asked for.
            InfrastructureError: It ended its answer early.
        """
        finish_reason = self._ending.close()
        deltas = list(itertools.chain.from_iterable(self._end_call(index) for index in list(self._calls)))
        deltas += self._numbered(self._reader.close(finish_reason))
        if (
            finish_reason == "stop"
            and not self._call_count
            and self._request.tool_choice not in ("auto", "none")
        ):
            raise UsageError(
                f"the server answered without a call though tool_choice was {self._request.tool_choice!r}: "
                "it does not support tool_choice; use one that does, or run the model in process"
            )
        return self._chunk(deltas, finish_reason=finish_reason)

    def _chunk(
        self,
        deltas: Sequence[OutputDelta],
        *,
        finish_reason: FinishReason | None = None,
        tokens: tuple[GeneratedToken, ...] = (),
    ) -> ChatChunk:
        usage = self._ending.usage
        if usage is not None and usage.reasoning_tokens is None:
            if self._has_reasoning and not self._has_answer:
                self._reasoning_tokens = usage.output_tokens
            usage = replace(usage, reasoning_tokens=self._reasoning_tokens)
        return ChatChunk(tuple(deltas), finish_reason, usage, tokens, self._model_name)

    def _read_reasoning(self, delta: Mapping[str, Any]) -> Iterator[OutputDelta]:
        text = delta.get("reasoning") or delta.get("reasoning_content")
        if not text or self._has_answer:
            return
        if not self._has_reasoning:
            self._has_reasoning = self._traits.reads_reasoning = True
            yield from self._feed("<think>")
        yield from self._feed(text)

    def _read_content(self, delta: Mapping[str, Any]) -> Iterator[OutputDelta]:
        text = delta.get("content")
        if text:
            yield from self._begin_answer()
            yield from self._feed(text)

    def _read_calls(self, delta: Mapping[str, Any]) -> Iterator[OutputDelta]:
        for part in delta.get("tool_calls") or ():
            index = part.get("index") or 0
            if index not in self._calls:
                yield from self._begin_answer()
                for earlier in list(self._calls):
                    yield from self._end_call(earlier)
                self._reader.pass_call()
                self._calls[index] = _ServerCall()
            self._calls[index].add(part)

    def _begin_answer(self) -> Iterator[OutputDelta]:
        if self._has_answer:
            return
        self._has_answer = True
        if self._has_reasoning:
            yield from self._feed("</think>")
        elif self._traits.reads_reasoning:
            # A server that reads reasoning would have handed it over first.
            yield from self._feed("<think></think>")

    def _end_call(self, index: int) -> Iterator[OutputDelta]:
        call = self._calls[index].read(is_cut_off=self._ending.finish_reason == "length")
        if call is None:
            return
        self._calls[index].is_handed_out = True
        delta = (
            OutputDelta(tool_call=call)
            if call["type"] == "tool_call"
            else OutputDelta(invalid_tool_call=call)
        )
        yield from self._numbered([replace(delta, index=0)])

    def _feed(self, text: str) -> list[OutputDelta]:
        return self._numbered(self._reader.feed(text))

    def _numbered(self, deltas: list[OutputDelta]) -> list[OutputDelta]:
        """The calls among the deltas get their places among all calls, whoever read them."""
        numbered = []
        for delta in deltas:
            if delta.index is not None:
                delta = replace(delta, index=self._call_count)
                self._call_count += 1
            numbered.append(delta)
        return numbered


class TextReading:
    """An output of the completions endpoint, read for who asked with messages.

    Args:
        request: What was asked for.
    """

    def __init__(self, request: ChatRequest) -> None:
        prompt = render_segments(request.turns, request.tools, enable_thinking=request.enable_thinking)
        shared = {name: getattr(request, name) for name in _SHARED_FIELDS}
        self.request = GenerationRequest(Prompt(tuple(prompt)), **shared)
        """The same, asked with a prompt."""
        self._reader = OutputReader(request.enable_thinking, read_calls=request.tool_choice != "none")
        self._reasoning_tokens: int | None = None

    def read(self, chunk: GenerationChunk) -> ChatChunk:
        """The chunk, read."""
        deltas = self._reader.feed(chunk.text)
        if chunk.finish_reason is not None:
            deltas += self._reader.close(chunk.finish_reason)
        usage = chunk.usage
        if usage is not None:
            if self._reader.is_thinking:
                self._reasoning_tokens = usage.output_tokens
            usage = replace(usage, reasoning_tokens=self._reasoning_tokens)
        return ChatChunk(tuple(deltas), chunk.finish_reason, usage, chunk.tokens)


@dataclass(slots=True)
class _ServerCall:
    """A call that the server read, in the pieces in which it comes."""

    name: str = ""
    id: str | None = None
    arguments: list[str] = field(default_factory=list)
    is_handed_out: bool = False

    def add(self, part: Mapping[str, Any]) -> None:
        function = part.get("function") or {}
        self.name = self.name or function.get("name") or ""
        self.id = self.id or part.get("id")
        if function.get("arguments"):
            self.arguments.append(function["arguments"])

    def read(self, *, is_cut_off: bool) -> ToolCall | InvalidToolCall | None:
        """The call; None if it was handed out already."""
        if self.is_handed_out:
            return None
        return call_of_parts(self.name, "".join(self.arguments), self.id, is_cut_off=is_cut_off)


class _Ending:
    """What is the same in every stream: usage, the reason of its end, and whether it was whole."""

    def __init__(self, wants_tokens: bool) -> None:
        self.usage: Usage | None = None
        self.finish_reason: FinishReason | None = None
        self.has_tokens = False
        self._wants_tokens = wants_tokens

    def read(self, event: Event) -> dict[str, Any]:
        """Takes an event; returns its choice, empty where it has none."""
        self.usage = _usage(event.get("usage")) or self.usage
        choices = event.get("choices") or [{}]
        choice: dict[str, Any] = choices[0]
        reason = choice.get("finish_reason")
        if reason in _FAILURES:
            raise InfrastructureError(f"the server gave its answer up ({reason})")
        if reason:
            self.finish_reason = _FINISH_REASONS.get(reason, "stop")
        return choice

    def close(self) -> FinishReason:
        if self.finish_reason is None:
            raise InfrastructureError(
                "the server ended its answer early, without a reason; is it shutting down?"
            )
        if self._wants_tokens and not self.has_tokens and self.usage and self.usage.output_tokens > 1:
            raise UsageError(
                "the server hands out no tokens though they were asked for; leave out logprobs and "
                "return_tokens"
            )
        return self.finish_reason


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    return Usage(usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0, cached or 0, reasoning)


def _chat_tokens(choice: Mapping[str, Any]) -> tuple[GeneratedToken, ...]:
    entries = (choice.get("logprobs") or {}).get("content") or []
    ids = choice.get("token_ids") or []
    if not entries:
        return tuple(GeneratedToken(token_id) for token_id in ids)
    known = ids if len(ids) == len(entries) else [None] * len(entries)
    return tuple(
        GeneratedToken(
            token_id,
            entry.get("token") or "",
            logprob=entry.get("logprob"),
            top=tuple((other["token"], other["logprob"]) for other in entry.get("top_logprobs") or ()),
        )
        for token_id, entry in zip(known, entries, strict=True)
    )


def _completion_tokens(choice: Mapping[str, Any]) -> tuple[GeneratedToken, ...]:
    logprobs = choice.get("logprobs") or {}
    texts = logprobs.get("tokens") or []
    ids = choice.get("token_ids") or []
    if not texts:
        return tuple(GeneratedToken(token_id) for token_id in ids)
    known = ids if len(ids) == len(texts) else [None] * len(texts)
    values = logprobs.get("token_logprobs") or [None] * len(texts)
    tops = logprobs.get("top_logprobs") or [None] * len(texts)
    return tuple(
        GeneratedToken(token_id, text, logprob=value, top=tuple((top or {}).items()))
        for token_id, text, value, top in zip(known, texts, values, tops, strict=True)
    )
