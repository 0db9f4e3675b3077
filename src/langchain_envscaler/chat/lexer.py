"""Cuts the model's text into plain text, think tags and tool-call blocks, as it comes.

A block begins where `<tool_call>` is followed by white space and an opening brace, and its JSON decides where
it ends: tags within strings are text. What cannot be told yet is held, never guessed.
"""

import re
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from langchain_envscaler.chat.json_scanner import ObjectScanner

__all__ = ["Kind", "Lexer", "Token"]

_OPEN = "<tool_call>"
_CLOSE = "</tool_call>"
_WHITE_SPACE = re.compile(r"\s*+")
_CALL_TAG = re.compile("<tool_call>")
_ANY_TAG = re.compile("<tool_call>|</?think>")
_TAG_STARTS = {
    _CALL_TAG: frozenset({_OPEN}),
    _ANY_TAG: frozenset({_OPEN, "<think>", "</think>"}),
}
# A brace or bracket too many is a common slip; it belongs to the block if the closing tag follows.
_TO_CLOSE = re.compile(r"[\s}\]]*+")
# Where a broken block has to end: at its own closing tag, or where the next block begins.
_BROKEN_END = re.compile(r"</tool_call>|<tool_call>\s{0,16}\{")
_BROKEN_PARTIAL = re.compile(r"<tool_call>\s{0,16}")
# A block boundary that a string swallowed, since its closing quote is missing. Within a string that is JSON
# no quote follows the brace, so that no call can come of text.
_BOUNDARY = re.compile(r"</tool_call>(?=\s*+<tool_call>\s*+\{)")


class Kind(Enum):
    """What a token is."""

    TEXT = auto()
    THINK_OPEN = auto()
    THINK_CLOSE = auto()
    BLOCK = auto()
    """A block whose JSON is complete."""
    BROKEN_BLOCK = auto()
    """A block that stopped being JSON."""
    UNFINISHED_BLOCK = auto()
    """A block that the text's end cut off."""


class Token(NamedTuple):
    """A piece of the text: `raw` is its source, `body` what stands between a block's tags."""

    kind: Kind
    raw: str
    body: str = ""


_Step: TypeAlias = Callable[[bool], Token | None]


class Lexer:
    """Feed it text in any chunks; each call yields the tokens that are certain by then.

    `think_tags` (think tags are tokens, not text) and `drafts` (a block that is not complete JSON is plain
    text, in which tags count again) may be changed between two tokens.
    """

    def __init__(self, *, think_tags: bool, drafts: bool) -> None:
        self.think_tags = think_tags
        self.drafts = drafts
        self._step: _Step = self._text
        self._in_region = False
        self._input = ""
        self._position = 0
        self._partial = ""
        # The region is the block in progress: pieces of earlier chunks, then the input from `_start` on.
        self._held: list[str] = []
        self._held_length = 0
        self._start = 0
        self._object_end = 0
        self._scanner = ObjectScanner()

    def is_plain(self, text: str) -> bool:
        """Whether the text would come back whole as one text token."""
        return not self._in_region and not self._partial and "<" not in text

    def feed(self, text: str) -> Iterator[Token]:
        """The tokens that this text completes."""
        return self._run(text, is_end=False)

    def close(self) -> Iterator[Token]:
        """The tokens that the end of the text completes."""
        return self._run("", is_end=True)

    def _run(self, text: str, *, is_end: bool) -> Iterator[Token]:
        self._input = self._partial + text
        self._partial = ""
        self._position = self._start = 0
        while self._position < len(self._input) or (is_end and self._in_region):
            token = self._step(is_end)
            if token is not None:
                yield token
        if self._in_region:
            self._hold(self._input[self._start :])

    def _text(self, is_end: bool) -> Token | None:
        tags = _ANY_TAG if self.think_tags else _CALL_TAG
        found = tags.search(self._input, self._position)
        if found is None:
            text = self._rest() if is_end else self._rest_but_partial(_TAG_STARTS[tags])
            return Token(Kind.TEXT, text) if text else None
        if found.start() > self._position:
            text = self._input[self._position : found.start()]
            self._position = found.start()
            return Token(Kind.TEXT, text)
        self._position = found.end()
        if found.group() == _OPEN:
            self._start = found.start()
            self._in_region = True
            self._step = self._opening
            return None
        return Token(Kind.THINK_OPEN if found.group() == "<think>" else Kind.THINK_CLOSE, found.group())

    def _opening(self, is_end: bool) -> Token | None:
        """After an opening tag: white space, then a brace or not."""
        self._position = _WHITE_SPACE.match(self._input, self._position).end()  # type: ignore[union-attr]
        if self._position < len(self._input):
            if self._input[self._position] == "{":
                self._step = self._block
                self._scanner = ObjectScanner()
                return None
        elif not is_end:
            return None
        return Token(Kind.TEXT, self._end_region())

    def _block(self, is_end: bool) -> Token | None:
        self._position = self._scanner.scan(self._input, self._position)
        if self._scanner.complete:
            self._object_end = self._held_length + self._position - self._start
            self._step = self._after
            return None
        if self._scanner.failed or is_end:
            return self._not_json(is_end=not self._scanner.failed)
        return None

    def _not_json(self, *, is_end: bool) -> Token | None:
        region = self._region()
        if self.drafts:
            self._rewind(region, len(_OPEN))
            return Token(Kind.TEXT, _OPEN)
        boundary = _BOUNDARY.search(region)
        if boundary:
            self._rewind(region, boundary.end())
            return _block_token(Kind.BROKEN_BLOCK, region[: boundary.end()], region[: boundary.start()])
        if is_end:
            self._end_region()
            return _block_token(Kind.UNFINISHED_BLOCK, region, region.rstrip().removesuffix(_CLOSE))
        self._step = self._broken
        return None

    def _broken(self, is_end: bool) -> Token | None:
        found = _BROKEN_END.search(self._input, self._position)
        if found is None:
            if not is_end:
                self._hold_partial()
                return None
            self._position = len(self._input)
            region = self._end_region()
            return _block_token(Kind.BROKEN_BLOCK, region, region)
        self._position = found.start()
        region = self._region()
        if found.group() == _CLOSE:
            self._position = found.end()
        raw = self._end_region()
        return _block_token(Kind.BROKEN_BLOCK, raw, region)

    def _after(self, is_end: bool) -> Token | None:
        """After a block's object: its closing tag, or not."""
        self._position = _TO_CLOSE.match(self._input, self._position).end()  # type: ignore[union-attr]
        rest = self._input[self._position : self._position + len(_CLOSE)]
        if rest == _CLOSE or (is_end and _CLOSE.startswith(rest)):
            self._position += len(rest)
            end = self._object_end
            raw = self._end_region()
            return _block_token(Kind.BLOCK, raw, raw[:end])
        if _CLOSE.startswith(rest):
            self._set_partial(self._position)
            return None
        region = self._region()
        self._rewind(region, self._object_end)
        raw = region[: self._object_end]
        return _block_token(Kind.BLOCK, raw, raw)

    def _rest(self) -> str:
        text = self._input[self._position :]
        self._position = len(self._input)
        return text

    def _rest_but_partial(self, tags: frozenset[str]) -> str:
        """The rest of the input, less a last piece that may turn out to be the beginning of a tag."""
        begin = self._position
        last = self._input.rfind("<", begin)
        if last >= 0 and any(tag.startswith(self._input[last:]) for tag in tags):
            self._set_partial(last)
        else:
            self._position = len(self._input)
        return self._input[begin:]

    def _hold_partial(self) -> None:
        """Keeps apart what may turn out to be the beginning of a broken block's end."""
        last = self._input.rfind("<", self._position)
        piece = self._input[last:] if last >= 0 else ""
        if piece and (
            _CLOSE.startswith(piece) or _OPEN.startswith(piece) or _BROKEN_PARTIAL.fullmatch(piece)
        ):
            self._set_partial(last)
        else:
            self._position = len(self._input)

    def _set_partial(self, position: int) -> None:
        self._partial = self._input[position:]
        self._input = self._input[:position]
        self._position = position

    def _hold(self, text: str) -> None:
        if text:
            self._held.append(text)
            self._held_length += len(text)

    def _region(self) -> str:
        return "".join([*self._held, self._input[self._start : self._position]])

    def _end_region(self) -> str:
        region = self._region()
        self._rewind(region, len(region))
        return region

    def _rewind(self, region: str, offset: int) -> None:
        """Ends the region and goes on as text from its `offset`."""
        if offset == len(region):
            pass
        elif self._held:
            self._input = region + self._input[self._position :]
            self._position = offset
        else:
            self._position = self._start + offset
        self._held.clear()
        self._held_length = 0
        self._in_region = False
        self._step = self._text


def _block_token(kind: Kind, raw: str, region: str) -> Token:
    return Token(kind, raw, region[region.index("{") :].strip())
