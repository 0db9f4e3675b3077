"""Finds where a JSON object ends, or where it stops being JSON, while its text is still coming.

It keeps the object's structure, not its text, so that any chunking costs the same. Numbers, words and escapes
are judged later, by the JSON decoder that reads the whole object.
"""

import re

__all__ = ["ObjectScanner"]

_SPACE = r"[ \t\n\r]*+"
# Raw control characters within a string are accepted, hence everything but a quote and a backslash.
_IN_QUOTES = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = f'"{_IN_QUOTES}"'
_WORD = r"[-0-9tfn][-+.0-9A-Za-z]*+(?=[\s,\]}])"
_PLAIN = f"(?:{_STRING}|{_WORD})"
_LEAF_LIST = rf"\[{_SPACE}(?:{_PLAIN}{_SPACE}(?:,{_SPACE}{_PLAIN}{_SPACE})*+)?+\]"
_PLAIN_MEMBER = f"{_STRING}{_SPACE}:{_SPACE}{_PLAIN}"
_LEAF_OBJECT = rf"\{{{_SPACE}(?:{_PLAIN_MEMBER}{_SPACE}(?:,{_SPACE}{_PLAIN_MEMBER}{_SPACE})*+)?+\}}"
_LEAF = f"(?:{_PLAIN}|{_LEAF_LIST}|{_LEAF_OBJECT})"


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


_WHITE_SPACE = _pattern(_SPACE)
_REST_OF_STRING = _pattern(_IN_QUOTES)
_REST_OF_WORD = _pattern("[-+.0-9A-Za-z]*+")
_OPEN_LISTS = _pattern(r"\[++")
_CLOSED = {"]": ("[", _pattern(r"\]++")), "}": ("{", _pattern(r"\}++"))}
# What most objects are made of is matched in one go; the steps one by one are for what is left, and for the
# edges of a chunk.
_KEY_AND_COLON = _pattern(f"{_STRING}{_SPACE}:")
_VALUES = _pattern(f"{_LEAF}(?:{_SPACE},{_SPACE}{_LEAF})*+")
_MEMBERS = _pattern(
    f"{_STRING}{_SPACE}:{_SPACE}{_LEAF}(?:{_SPACE},{_SPACE}{_STRING}{_SPACE}:{_SPACE}{_LEAF})*+"
)

_VALUE, _FIRST_VALUE, _KEY, _FIRST_KEY, _COLON, _NEXT, _IN_KEY, _IN_STRING, _IN_WORD = range(9)
_WITHIN = frozenset({_IN_KEY, _IN_STRING, _IN_WORD})


class ObjectScanner:
    """Reads one object, from its opening brace on."""

    __slots__ = ("_escaped", "_expected", "_open", "complete", "failed")

    def __init__(self) -> None:
        self.complete = False
        """Whether the object's closing brace was read."""
        self.failed = False
        """Whether something was read that no JSON object can hold at that place."""
        self._expected = _VALUE
        self._open: list[str] = []
        self._escaped = False

    def scan(self, text: str, position: int) -> int:
        """Reads on from `position`.

        Returns:
            The position after the object if it is complete, that of the first character that does not fit if
            the scan failed, else the text's length.
        """
        end = len(text)
        while position < end and not self.complete and not self.failed:
            expected = self._expected
            if expected in _WITHIN:
                position = self._scan_within(text, position, end)
                continue
            character = text[position]
            if character in " \t\n\r":
                position = _end(_WHITE_SPACE, text, position)
            elif expected == _NEXT:
                position = self._scan_next(text, position, character)
            elif expected == _COLON:
                position = self._step(_VALUE, position) if character == ":" else self._fail(position)
            elif expected in (_KEY, _FIRST_KEY):
                position = self._scan_key(text, position, character)
            else:
                position = self._scan_value(text, position, character)
        return position

    def _scan_within(self, text: str, position: int, end: int) -> int:
        """Goes on in a string or a word that began in an earlier step."""
        if self._expected == _IN_WORD:
            position = _end(_REST_OF_WORD, text, position)
            if position < end:
                self._expected = _NEXT
            return position
        if self._escaped:
            self._escaped = False
            position += 1
        position = _end(_REST_OF_STRING, text, position)
        if position == end:
            return end
        if text[position] == '"':
            self._expected = _COLON if self._expected == _IN_KEY else _NEXT
        else:
            self._escaped = True
        return position + 1

    def _scan_key(self, text: str, position: int, character: str) -> int:
        if character == '"':
            if found := _MEMBERS.match(text, position):
                self._expected = _NEXT
                return found.end()
            if found := _KEY_AND_COLON.match(text, position):
                self._expected = _VALUE
                return found.end()
            return self._step(_IN_KEY, position)
        if character == "}" and self._expected == _FIRST_KEY:
            return self._close(position, 1)
        return self._fail(position)

    def _scan_value(self, text: str, position: int, character: str) -> int:
        if self._open and self._open[-1] == "[" and (found := _VALUES.match(text, position)):
            self._expected = _NEXT
            return found.end()
        if character == "{":
            self._open.append("{")
            return self._step(_FIRST_KEY, position)
        if not self._open:
            return self._fail(position)
        if character == "[":
            begin, position = position, _end(_OPEN_LISTS, text, position)
            self._open.extend(text[begin:position])
            self._expected = _FIRST_VALUE
            return position
        if character == "]" and self._expected == _FIRST_VALUE:
            return self._close(position, 1)
        if character == '"':
            return self._step(_IN_STRING, position)
        return self._step(_IN_WORD, position) if character in "-0123456789tfn" else self._fail(position)

    def _scan_next(self, text: str, position: int, character: str) -> int:
        innermost = self._open[-1]
        if character == ",":
            return self._step(_KEY if innermost == "{" else _VALUE, position)
        opening, run = _CLOSED.get(character, ("", _WHITE_SPACE))
        if opening != innermost:
            return self._fail(position)
        count = _end(run, text, position) - position
        return self._close(position, count if self._open[-count:] == [opening] * count else 1)

    def _step(self, expected: int, position: int) -> int:
        self._expected = expected
        return position + 1

    def _close(self, position: int, count: int) -> int:
        del self._open[-count:]
        self.complete = not self._open
        self._expected = _NEXT
        return position + count

    def _fail(self, position: int) -> int:
        self.failed = True
        return position


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Where a pattern that also matches nothing ends."""
    found = pattern.match(text, position)
    return found.end() if found else position
