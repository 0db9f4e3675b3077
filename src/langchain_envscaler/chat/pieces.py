"""Where text begins and ends: the white space around reasoning and an answer's pieces, as they stream.

White space that may turn out to touch a border is held until text follows it.
"""

__all__ = ["AnswerPieces", "ReasoningPieces"]


class ReasoningPieces:
    """Reasoning without the white space at its borders."""

    def __init__(self) -> None:
        self._has_begun = False
        self._held: list[str] = []

    def text(self, text: str) -> str:
        """Takes the next text; returns what is certain by it."""
        if not self._has_begun:
            text = text.lstrip()
            self._has_begun = bool(text)
        body = text.rstrip()
        if not body:
            if text:
                self._held.append(text)
            return ""
        certain = "".join([*self._held, body]) if self._held else body
        self._held = [text[len(body) :]] if len(body) < len(text) else []
        return certain


class AnswerPieces:
    """The answer: text before, between and after calls, joined by one newline.

    A piece loses the newlines that touch a call or the think block; one that is white space alone is none.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._in_piece = False
        self._is_after_border = False
        self._has_text = False

    def text(self, text: str) -> str:
        """Takes the next text; returns what is certain by it."""
        if not self._in_piece:
            if not text or text.isspace():
                self._held.append(text)
                return ""
            text = self._begin_piece(text)
        body = text.rstrip("\n")
        if not body:
            if text:
                self._held.append(text)
            return ""
        certain = "".join([*self._held, body]) if self._held else body
        self._held = [text[len(body) :]] if len(body) < len(text) else []
        return certain

    def border(self) -> None:
        """A call stands here, or the think block ended here."""
        self._held.clear()
        self._in_piece = False
        self._is_after_border = True

    def close(self) -> str:
        """The output ends here; returns what that makes certain."""
        return "".join(self._held) if self._in_piece else ""

    def _begin_piece(self, text: str) -> str:
        text = "".join([*self._held, text])
        self._held.clear()
        if self._is_after_border:
            text = text.lstrip("\n")
        if self._has_text:
            text = f"\n{text}"
        self._in_piece = self._has_text = True
        return text
