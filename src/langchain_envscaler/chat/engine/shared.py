"""Things that several chat models share: made once, kept while one of them holds them, the latest longer."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["Shared"]


class Shared:
    """Values by key, each made by whoever asks first.

    Args:
        kept: How many values asked for last are kept even when nobody holds them, so that one chat model
            after another can use them; room is made before another is made.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._latest: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._key_locks: dict[Hashable, threading.Lock] = {}
        self._values: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The key's value; while one thread makes it, others that want it wait."""
        with self._lock:
            key_lock = self._key_locks.setdefault(key, threading.Lock())
        with key_lock:
            value = self._values.get(key)
            if value is None:
                self._keep_at_most(self._kept - 1)
                value = self._values[key] = make()
            with self._lock:
                self._latest[key] = value
                self._latest.move_to_end(key)
            self._keep_at_most(self._kept)
            return value

    def forget(self, key: Hashable) -> None:
        """Keeps a value no longer than somebody holds it."""
        with self._lock:
            self._latest.pop(key, None)

    def _keep_at_most(self, count: int) -> None:
        with self._lock:
            while len(self._latest) > count:
                self._latest.popitem(last=False)
