"""Pages of a list."""

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["page"]

Entry = TypeVar("Entry")


def page(entries: Sequence[Entry], cursor: int, limit: int) -> tuple[Sequence[Entry], int | None]:
    """The entries from a cursor on, at most `limit` of them, and the next page's cursor (None at the end)."""
    end = cursor + limit
    return entries[cursor:end], end if end < len(entries) else None
