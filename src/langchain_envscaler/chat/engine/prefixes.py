"""What the engine remembers of finished outputs, so that a thread's next turn begins where the last ended.

An entry holds a sequence's keys and values, and which text its tokens stand for. The next prompt repeats that
text; it is given the tokens that the model wrote, which its own encoding need not be, and only what is new is
encoded and computed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from langchain_envscaler.chat.engine.key_values import KeyValues
from langchain_envscaler.chat.engine.tokens import Piece, QwenTokenizer
from langchain_envscaler.chat.prompt import Segment

__all__ = ["Prefix", "PrefixStore", "common_length", "encode_with", "joined_pieces"]

# So few tokens beyond what a prompt repeats are given up rather than kept by copying all that comes before.
_SMALL_TAIL = 64


@dataclass(frozen=True, slots=True)
class Prefix:
    """A sequence that was computed: its pieces, the ids that the keys and values cover, and these."""

    pieces: Sequence[Piece]
    ids: Sequence[int]
    key_values: KeyValues


class PrefixStore:
    """Sequences computed lately, the oldest given up first.

    Args:
        max_bytes: The memory that they may take together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: list[Prefix] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def num_bytes(self) -> int:
        """The memory that is taken."""
        return sum(entry.key_values.num_bytes for entry in self._entries)

    def pieces(self) -> Iterable[Sequence[Piece]]:
        """Each entry's pieces."""
        return [entry.pieces for entry in self._entries]

    def add(self, entry: Prefix) -> None:
        """Remembers a sequence, unless it is larger than the store."""
        if not entry.ids or entry.key_values.num_bytes > self._max_bytes:
            return
        self._entries.append(entry)
        while self.num_bytes > self._max_bytes:
            self._entries.pop(0)

    def take(self, ids: Sequence[int]) -> KeyValues:
        """The longest computed beginning of a prompt, as a sequence of its own; perhaps empty.

        The prompt's last token is left to compute, since its scores are wanted.
        """
        best, length = self._longest(ids)
        if best is None:
            return KeyValues.empty_row()
        if length >= len(best.ids) - _SMALL_TAIL:
            self._entries.remove(best)
            best.key_values.crop(length)
            return best.key_values
        return best.key_values.copy_prefix(0, length)

    def longest(self, ids: Sequence[int]) -> int:
        """How many of a prompt's tokens :meth:`take` would not have to compute."""
        return self._longest(ids)[1]

    def clear(self) -> None:
        """Forgets everything."""
        self._entries.clear()

    def _longest(self, ids: Sequence[int]) -> tuple[Prefix | None, int]:
        best, best_length = None, 0
        for entry in reversed(self._entries):
            length = min(common_length(entry.ids, ids), len(ids) - 1)
            if length > best_length:
                best, best_length = entry, length
        return best, best_length


def encode_with(
    segments: Sequence[Segment], known: Iterable[Sequence[Piece]], tokenizer: QwenTokenizer
) -> list[Piece]:
    """A prompt's pieces, those at its beginning taken from the known sequence that repeats most of it."""
    best: Sequence[Piece] = ()
    for pieces in known:
        count = 0
        for piece, segment in zip(pieces, segments, strict=False):
            if piece[0] != segment:
                break
            count += 1
        if count > len(best):
            best = pieces[:count]
    return [*best, *tokenizer.encode(segments[len(best) :])]


def joined_pieces(prompt: Sequence[Piece], output: Sequence[Piece]) -> list[Piece]:
    """A prompt's pieces, then an output's; text on both sides of the border is one piece, as in a prompt."""
    if not prompt or not output or prompt[-1][0].is_control or output[0][0].is_control:
        return [*prompt, *output]
    (before, before_ids), (after, after_ids) = prompt[-1], output[0]
    border = (Segment(before.text + after.text), before_ids + after_ids)
    return [*prompt[:-1], border, *output[1:]]


def common_length(first: Sequence[int], second: Sequence[int]) -> int:
    """How many ids two sequences begin with in common."""
    limit = min(len(first), len(second))
    if first[:limit] == second[:limit]:
        return limit
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low
