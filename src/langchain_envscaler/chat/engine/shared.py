"""Things that several chat models share: made once, kept as long as one of them holds them."""

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["Shared"]


class Shared:
    """Values by key, each made by whoever asks first."""

    def __init__(self) -> None:
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
                value = self._values[key] = make()
            return value
