"""Stop sequences: where the answer's text ends before the model ends it."""

from collections.abc import Sequence

__all__ = ["StopFinder"]


class StopFinder:
    """Finds the first stop sequence in text that comes in pieces; the sequence itself is not handed on.

    What may turn out to be the beginning of a sequence is held, so nothing is taken back. The cost is linear
    in the text.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._longest = max(map(len, stops), default=0)
        self._held = ""
        self.is_found = False

    def feed(self, text: str) -> str:
        """Reads on; returns the text that is certain to be part of the answer."""
        if not self._stops or self.is_found:
            return "" if self.is_found else text
        text = self._held + text
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            self.is_found = True
            self._held = ""
            return text[: min(found)]
        certain = self._certain(text)
        self._held = text[certain:]
        return text[:certain]

    def close(self) -> str:
        """Ends the text; returns what was held."""
        held, self._held = self._held, ""
        return held

    def _certain(self, text: str) -> int:
        """Where the longest ending of the text begins that a sequence could begin with."""
        for begin in range(max(0, len(text) - self._longest + 1), len(text)):
            if any(stop.startswith(text[begin:]) for stop in self._stops):
                return begin
        return len(text)
