"""Which calls this process has been given and which of them it is making."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from langchain_core.messages import AIMessage, BaseMessage

__all__ = ["CallKey", "CallLedger"]

CallKey: TypeAlias = tuple[str, str]
"""A call's message and its own id."""

_KEPT = 10_000


@dataclass(slots=True)
class _Entry:
    begun: bool = False
    ended: "Future[None]" = field(default_factory=Future)


class CallLedger:
    """The calls that models have asked for in this process and that have not ended yet.

    A call that is to be made and is not in here as new has been begun before: by this process, or by one that
    ended in the middle of it. Safe for use by several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[CallKey, _Entry] = OrderedDict()

    def give(self, messages: Iterable[BaseMessage]) -> None:
        """Note the calls of messages that a model has just given, or a person has just approved."""
        with self._lock:
            for message in messages:
                if isinstance(message, AIMessage):
                    for call in message.tool_calls:
                        self._entries[message.id or "", call["id"] or ""] = _Entry()
            while len(self._entries) > _KEPT:
                self._entries.popitem(last=False)

    @contextmanager
    def making(self, key: CallKey) -> Iterator[None]:
        """Make a call. One that is left by an exception before it was begun stays new."""
        completed = False
        try:
            yield
            completed = True
        finally:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None and (completed or entry.begun):
                    del self._entries[key]
                elif entry is not None:
                    self._entries[key] = _Entry()
            if entry is not None:
                entry.ended.set_result(None)

    def begin(self, key: CallKey) -> bool:
        """Note that a call is sent now; tells whether that is for the first time."""
        with self._lock:
            entry = self._entries.get(key)
            is_new = entry is not None and not entry.begun
            if entry is not None:
                entry.begun = True
            return is_new

    def ending(self, key: CallKey) -> "Future[None] | None":
        """Is done when a call has ended; None if it is none of this process's, or has ended already."""
        with self._lock:
            entry = self._entries.get(key)
        return entry.ended if entry is not None else None
