"""Reads what Qwen3 writes after its prompt: reasoning, an answer, tool calls, whole or as it comes.

Nothing that was handed out is ever taken back: what cannot be told yet is held. Any chunking gives the same
result, and the cost is linear in the text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal

from langchain_core.messages import InvalidToolCall, ToolCall

from langchain_envscaler.chat.calls import read_call
from langchain_envscaler.chat.lexer import Kind, Lexer, Token
from langchain_envscaler.chat.pieces import AnswerPieces, ReasoningPieces

__all__ = ["OutputDelta", "OutputReader", "ParsedOutput", "parse"]


@dataclass(frozen=True, slots=True)
class OutputDelta:
    """What became certain: a piece of reasoning, a piece of the answer, or one closed call.

    A call comes whole, so that one which turns out to be invalid was never shown as a call.
    """

    reasoning: str = ""
    content: str = ""
    tool_call: ToolCall | None = None
    invalid_tool_call: InvalidToolCall | None = None
    index: int | None = None
    """The call's place among all calls of the output, invalid ones too."""


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """One output, read: calls as LangChain's typed dicts, each with an id of its own."""

    reasoning: str = ""
    content: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    invalid_tool_calls: list[InvalidToolCall] = field(default_factory=list)


def parse(text: str, *, enable_thinking: bool = True, finish_reason: str | None = "stop") -> ParsedOutput:
    """Reads a whole output.

    Args:
        text: What the model generated, control tokens other than the end of its turn included.
        enable_thinking: False if the prompt ended in an empty think block.
        finish_reason: "length" if the token limit cut the text off.
    """
    reader = OutputReader(enable_thinking=enable_thinking)
    reader.feed(text)
    reader.close(finish_reason)
    return reader.result


class _Phase(Enum):
    START = auto()
    """Nothing but white space so far."""
    UNDECIDED = auto()
    """Thinking is on, yet no opening tag came: a closing tag would make all of it reasoning."""
    THINKING = auto()
    ANSWER = auto()
    DONE = auto()


class OutputReader:
    """Reads one output incrementally: :meth:`feed` it text in any chunks, then :meth:`close` it.

    Args:
        enable_thinking: False if the prompt ended in an empty think block.
        first_call_only: Read up to the end of the first valid call and ignore what follows it.
        read_calls: False if no call may come of the output: blocks then stay the text that they are.
    """

    def __init__(
        self, enable_thinking: bool = True, *, first_call_only: bool = False, read_calls: bool = True
    ) -> None:
        self._enable_thinking = enable_thinking
        self._first_call_only = first_call_only
        self._read_calls = read_calls
        self._lexer = Lexer(think_tags=True, drafts=enable_thinking)
        self._phase = _Phase.START
        self._reasoning = ReasoningPieces()
        self._answer = AnswerPieces()
        self._undecided: list[str] = []
        self._think_begin: int | None = None
        # Blocks at the end of an open think block: calls if nothing follows, drafts if something does.
        self._drafts: list[Token] = []
        self._deltas = _Deltas()
        self._finish_reason: str | None = "stop"

    @property
    def is_thinking(self) -> bool:
        """Whether a think block is open, or may still turn out to be."""
        if self._phase is _Phase.START:
            return self._enable_thinking
        return self._phase in (_Phase.UNDECIDED, _Phase.THINKING)

    @property
    def is_done(self) -> bool:
        """Whether no further text can change the result: closed, or stopped after its first call."""
        return self._phase is _Phase.DONE

    @property
    def result(self) -> ParsedOutput:
        """What was read so far; all of it once the reader is closed."""
        return self._deltas.result()

    def feed(self, text: str) -> list[OutputDelta]:
        """Reads on; returns what became certain by it."""
        if self._phase is _Phase.DONE:
            return []
        if not self._lexer.is_plain(text):
            self._read_all(self._lexer.feed(text))
        elif self._phase is _Phase.ANSWER:
            self._deltas.content(self._answer.text(text))
        elif self._phase is _Phase.THINKING and not self._drafts:
            self._deltas.reasoning(self._reasoning.text(text))
        elif text:
            self._read(Token(Kind.TEXT, text))
        return self._deltas.take()

    def pass_call(self) -> None:
        """Tells that a call which someone else read stands here: newlines that touch it are no content."""
        self._answer.border()

    def close(self, finish_reason: str | None = "stop") -> list[OutputDelta]:
        """Ends the output; returns what its end made certain.

        Args:
            finish_reason: "length" if the token limit cut the text off; it tells why a call is incomplete.
        """
        if self._phase is not _Phase.DONE:
            self._finish_reason = finish_reason
            self._read_all(self._lexer.close())
            self._close_phase()
            self._phase = _Phase.DONE
        return self._deltas.take()

    def _read_all(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            self._read(token)
            if self._phase is _Phase.DONE:
                break

    def _read(self, token: Token) -> None:
        if self._phase is _Phase.START:
            self._read_start(token)
        elif self._phase is _Phase.UNDECIDED:
            self._read_undecided(token)
        elif self._phase is _Phase.THINKING:
            self._read_thinking(token)
        else:
            self._read_answer(token)

    def _read_start(self, token: Token) -> None:
        if token.kind is Kind.TEXT and token.raw.isspace():
            self._undecided.append(token.raw)
        elif token.kind is Kind.THINK_OPEN:
            self._undecided.clear()
            self._phase = _Phase.THINKING
            self._lexer.drafts = True
        elif self._enable_thinking:
            self._phase = _Phase.UNDECIDED
            self._read_undecided(token)
        else:
            self._begin_answer()
            self._deltas.content(self._answer.text("".join(self._undecided)))
            self._read_answer(token)

    def _read_undecided(self, token: Token) -> None:
        if token.kind is not Kind.THINK_CLOSE:
            if token.kind is Kind.THINK_OPEN and self._think_begin is None:
                self._think_begin = len(self._undecided)
            self._undecided.append(token.raw)
            return
        thought = self._undecided
        if self._think_begin is not None:
            before, thought = thought[: self._think_begin], thought[self._think_begin + 1 :]
            self._reread_as_answer("".join(before))
        self._think(Token(Kind.TEXT, "".join(thought)))
        self._end_thinking()

    def _read_thinking(self, token: Token) -> None:
        if token.kind is Kind.THINK_CLOSE:
            self._keep_drafts(len(self._drafts))
            self._end_thinking()
        elif token.kind is Kind.BLOCK or (self._drafts and token.raw.isspace()):
            self._drafts.append(token)
        else:
            self._keep_drafts(len(self._drafts))
            self._think(token)

    def _read_answer(self, token: Token) -> None:
        is_block = token.kind in (Kind.BLOCK, Kind.BROKEN_BLOCK, Kind.UNFINISHED_BLOCK)
        if is_block and self._read_calls:
            self._answer.border()
            self._add_call(self._call(token))
        else:
            self._deltas.content(self._answer.text(token.raw))

    def _think(self, token: Token) -> None:
        self._deltas.reasoning(self._reasoning.text(token.raw))

    def _keep_drafts(self, count: int) -> None:
        """The first `count` tokens of the run were reasoning after all."""
        for token in self._drafts[:count]:
            self._think(token)
        del self._drafts[:count]

    def _end_thinking(self) -> None:
        if self._phase is not _Phase.DONE:
            self._answer.border()
            self._begin_answer()

    def _begin_answer(self) -> None:
        self._phase = _Phase.ANSWER
        self._lexer.think_tags = self._lexer.drafts = False

    def _reread_as_answer(self, text: str) -> None:
        lexer = Lexer(think_tags=False, drafts=False)
        self._phase = _Phase.ANSWER
        self._read_all(lexer.feed(text))
        if self._phase is not _Phase.DONE:
            self._read_all(lexer.close())

    def _close_phase(self) -> None:
        if self._phase is _Phase.UNDECIDED:
            self._reread_as_answer("".join(self._undecided))
        elif self._phase is _Phase.THINKING:
            self._close_thinking()
        if self._phase is _Phase.ANSWER:
            self._deltas.content(self._answer.close())

    def _close_thinking(self) -> None:
        """The end of a think block that never closed: the valid calls it ends in were meant."""
        calls = [self._call(token) if token.kind is Kind.BLOCK else None for token in self._drafts]
        begin = len(calls)
        for position in range(len(calls) - 1, -1, -1) if self._read_calls else ():
            call = calls[position]
            if call is not None and call["type"] != "tool_call":
                break
            if call is not None:
                begin = position
        self._keep_drafts(begin)
        for call in calls[begin:]:
            if call is not None and self._phase is not _Phase.DONE:
                self._add_call(call)

    def _call(self, token: Token) -> ToolCall | InvalidToolCall:
        ending: Literal["complete", "stopped", "cut_off"] = "complete"
        if token.kind is Kind.UNFINISHED_BLOCK:
            ending = "cut_off" if self._finish_reason == "length" else "stopped"
        return read_call(token.body, ending=ending)

    def _add_call(self, call: ToolCall | InvalidToolCall) -> None:
        self._deltas.call(call)
        if self._first_call_only and call["type"] == "tool_call":
            self._phase = _Phase.DONE


class _Deltas:
    """Collects what became certain, neighbouring text joined, and all of it for the result."""

    def __init__(self) -> None:
        self._pending: list[OutputDelta] = []
        self._pending_reasoning: list[str] = []
        self._pending_content: list[str] = []
        self._reasoning: list[str] = []
        self._content: list[str] = []
        self._tool_calls: list[ToolCall] = []
        self._invalid_tool_calls: list[InvalidToolCall] = []

    def reasoning(self, text: str) -> None:
        if text:
            if self._pending_content:
                self._flush()
            self._pending_reasoning.append(text)

    def content(self, text: str) -> None:
        if text:
            if self._pending_reasoning:
                self._flush()
            self._pending_content.append(text)

    def call(self, call: ToolCall | InvalidToolCall) -> None:
        self._flush()
        index = len(self._tool_calls) + len(self._invalid_tool_calls)
        if call["type"] == "tool_call":
            self._tool_calls.append(call)
            self._pending.append(OutputDelta(tool_call=call, index=index))
        else:
            self._invalid_tool_calls.append(call)
            self._pending.append(OutputDelta(invalid_tool_call=call, index=index))

    def take(self) -> list[OutputDelta]:
        self._flush()
        if not self._pending:
            return []
        pending, self._pending = self._pending, []
        return pending

    def result(self) -> ParsedOutput:
        return ParsedOutput(
            "".join(self._reasoning),
            "".join(self._content),
            list(self._tool_calls),
            list(self._invalid_tool_calls),
        )

    def _flush(self) -> None:
        """The text since the last delta becomes one; only one of both kinds is ever waiting."""
        if self._pending_content:
            text = "".join(self._pending_content)
            self._pending_content.clear()
            self._content.append(text)
            self._pending.append(OutputDelta(content=text))
        elif self._pending_reasoning:
            text = "".join(self._pending_reasoning)
            self._pending_reasoning.clear()
            self._reasoning.append(text)
            self._pending.append(OutputDelta(reasoning=text))
