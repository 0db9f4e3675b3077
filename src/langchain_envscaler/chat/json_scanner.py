"""Finds where a JSON object ends, or where it stops being JSON, while its text is still coming.

It keeps the object's structure, not its text, so that any chunking costs the same. Numbers, words and escapes
are judged later, by the JSON decoder that reads the whole object.
"""

import re

__all__ = ["ObjectScanner"]

_WHITE_SPACE = re.compile(r"[ \t\n\r]*+")
# Raw control characters within a string are accepted, hence everything but a quote and a backslash.
_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SCALAR = re.compile(r"[-+.0-9A-Za-z]*+")
_SCALAR_START = frozenset("-0123456789tfn")
_OPEN_LISTS = re.compile(r"\[++")
_CLOSED_LISTS = re.compile(r"\]++")

_VALUE, _FIRST_VALUE, _KEY, _FIRST_KEY, _COLON, _NEXT, _IN_KEY, _IN_STRING, _IN_SCALAR = range(9)


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
        while position < end:
            expected = self._expected
            if expected in (_IN_STRING, _IN_KEY):
                position = self._scan_string(text, position, end)
                continue
            if expected == _IN_SCALAR:
                position = _SCALAR.match(text, position).end()  # type: ignore[union-attr]
                if position < end:
                    self._expected = _NEXT
                continue
            character = text[position]
            if character in " \t\n\r":
                position = _WHITE_SPACE.match(text, position).end()  # type: ignore[union-attr]
            elif expected == _COLON:
                if character != ":":
                    return self._fail(position)
                self._expected = _VALUE
                position += 1
            elif expected == _NEXT:
                position = self._scan_next(text, position, character)
                if self.complete or self.failed:
                    return position
            elif character == '"':
                self._expected = _IN_KEY if expected in (_KEY, _FIRST_KEY) else _IN_STRING
                position += 1
            elif expected in (_KEY, _FIRST_KEY):
                if character != "}" or expected == _KEY:
                    return self._fail(position)
                position = self._close(position + 1, 1)
                if self.complete:
                    return position
            elif character == "{":
                self._open.append("{")
                self._expected = _FIRST_KEY
                position += 1
            elif not self._open:
                return self._fail(position)
            elif character == "[":
                run = _OPEN_LISTS.match(text, position).end()  # type: ignore[union-attr]
                self._open.extend(text[position:run])
                self._expected = _FIRST_VALUE
                position = run
            elif character in _SCALAR_START:
                self._expected = _IN_SCALAR
            elif character == "]" and expected == _FIRST_VALUE:
                position = self._close(position + 1, 1)
            else:
                return self._fail(position)
        return position

    def _scan_string(self, text: str, position: int, end: int) -> int:
        if self._escaped:
            self._escaped = False
            position += 1
        position = _STRING.match(text, position).end()  # type: ignore[union-attr]
        if position == end:
            return end
        if text[position] == '"':
            self._expected = _COLON if self._expected == _IN_KEY else _NEXT
        else:
            self._escaped = True
        return position + 1

    def _scan_next(self, text: str, position: int, character: str) -> int:
        innermost = self._open[-1]
        if character == ",":
            self._expected = _KEY if innermost == "{" else _VALUE
            return position + 1
        if character == "}" and innermost == "{":
            return self._close(position + 1, 1)
        if character == "]" and innermost == "[":
            count = _CLOSED_LISTS.match(text, position).end() - position  # type: ignore[union-attr]
            if self._open[-count:] != ["["] * count:
                count = 1
            return self._close(position + count, count)
        return self._fail(position)

    def _close(self, position: int, count: int) -> int:
        del self._open[-count:]
        self.complete = not self._open
        self._expected = _NEXT
        return position

    def _fail(self, position: int) -> int:
        self.failed = True
        return position
