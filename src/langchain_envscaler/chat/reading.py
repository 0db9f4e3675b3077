"""One output as it is read: an engine's chunks in, certain pieces out, and when enough has been seen."""

from dataclasses import replace

from langchain_envscaler.chat.backends.base import (
    ChatChunk,
    FinishReason,
    GeneratedToken,
    GenerationChunk,
    Usage,
)
from langchain_envscaler.chat.options import CallOptions
from langchain_envscaler.chat.output import OutputDelta, OutputReader, ParsedOutput
from langchain_envscaler.chat.stops import StopFinder

__all__ = ["Reading"]


class Reading:
    """Reads one output, from either kind of engine, and keeps what it came to.

    Args:
        options: The call's options: whether calls are read, where the answer stops.
    """

    def __init__(self, options: CallOptions) -> None:
        self._first_call_only = not options.parallel_tool_calls
        self._reader = OutputReader(
            options.enable_thinking,
            first_call_only=self._first_call_only,
            read_calls=options.reads_calls,
        )
        self._stops = StopFinder(options.stop)
        self._output = _Output()
        self._usage: Usage | None = None
        self._reasoning_tokens: int | None = None
        self._finish_reason: FinishReason | None = None
        self.tokens: list[GeneratedToken] = []
        self.model_name: str | None = None
        self.is_done = False
        """Whether nothing that may still come changes the result, so the engine can stop."""

    def read(self, chunk: GenerationChunk | ChatChunk) -> list[OutputDelta]:
        """Takes a chunk; returns what became certain by it."""
        if self.is_done:
            return []
        self.tokens.extend(chunk.tokens)
        self._usage = chunk.usage or self._usage
        self._finish_reason = chunk.finish_reason or self._finish_reason
        if isinstance(chunk, ChatChunk):
            self.model_name = chunk.model_name or self.model_name
            return self._keep(chunk.deltas)
        deltas = self._keep(self._reader.feed(chunk.text))
        if self._reasoning_tokens is None and self._usage and not self._reader.is_thinking:
            self._reasoning_tokens = self._usage.output_tokens
        return deltas

    def close(self) -> list[OutputDelta]:
        """Ends the output; returns what its end made certain."""
        deltas = [] if self.is_done else self._keep(self._reader.close(self._finish_reason))
        if not self.is_done and (held := self._stops.close()):
            deltas += self._output.add(OutputDelta(content=held))
        self.is_done = True
        return deltas

    @property
    def result(self) -> ParsedOutput:
        """What was read."""
        return self._output.parsed()

    @property
    def finish_reason(self) -> str:
        """Why the output ended, in OpenAI's words: "stop", "length", or "tool_calls"."""
        if self._finish_reason == "length":
            return "length"
        return "tool_calls" if self._output.has_calls else "stop"

    @property
    def usage(self) -> Usage | None:
        """Tokens used, reasoning counted where the engine did not; None where it told nothing."""
        usage = self._usage
        if usage is None or usage.reasoning_tokens is not None:
            return usage
        counted = self._reasoning_tokens if self._reasoning_tokens is not None else usage.output_tokens
        return replace(usage, reasoning_tokens=counted if self._output.has_reasoning else 0)

    def _keep(self, deltas: "list[OutputDelta] | tuple[OutputDelta, ...]") -> list[OutputDelta]:
        kept: list[OutputDelta] = []
        for delta in deltas:
            if delta.content:
                content = self._stops.feed(delta.content)
                delta = replace(delta, content=content)
            elif (delta.tool_call or delta.invalid_tool_call) and (held := self._stops.close()):
                kept += self._output.add(OutputDelta(content=held))
            kept += self._output.add(delta)
            if self._stops.is_found or (self._first_call_only and delta.tool_call):
                self.is_done = True
                self._finish_reason = "stop"
                break
        return kept


class _Output:
    """What came of an output so far."""

    def __init__(self) -> None:
        self._reasoning: list[str] = []
        self._content: list[str] = []
        self._parsed = ParsedOutput()

    @property
    def has_calls(self) -> bool:
        return bool(self._parsed.tool_calls)

    @property
    def has_reasoning(self) -> bool:
        return bool(self._reasoning)

    def add(self, delta: OutputDelta) -> list[OutputDelta]:
        """Keeps a piece; nothing comes of an empty one."""
        if delta == OutputDelta():
            return []
        if delta.reasoning:
            self._reasoning.append(delta.reasoning)
        if delta.content:
            self._content.append(delta.content)
        if delta.tool_call:
            self._parsed.tool_calls.append(delta.tool_call)
        if delta.invalid_tool_call:
            self._parsed.invalid_tool_calls.append(delta.invalid_tool_call)
        return [delta]

    def parsed(self) -> ParsedOutput:
        return replace(self._parsed, reasoning="".join(self._reasoning), content="".join(self._content))
