"""The environments' and scenarios' records in a store: each written once, each read and validated once."""

import threading
from collections import OrderedDict
from typing import TypeVar

from langchain_envscaler.environments.metadata import EnvironmentSpec, Scenario
from langchain_envscaler.environments.store import Store

__all__ = ["Records"]

_KEPT = 256

K = TypeVar("K")
V = TypeVar("V")


class Records:
    """Records by their hash. Safe for use by several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._hashes: OrderedDict[int, tuple[EnvironmentSpec | Scenario, str]] = OrderedDict()
        self._known: OrderedDict[str, EnvironmentSpec | Scenario] = OrderedDict()

    def put(self, record: EnvironmentSpec | Scenario) -> str:
        """Keep a record in the store; gives its hash.

        What was kept before is known by identity, since a large record takes a while to hash.
        """
        with self._lock:
            known = self._hashes.get(id(record))
        if known is not None and known[0] is record:
            return known[1]
        key = self._store.put_document(record.model_dump(mode="json"))
        with self._lock:
            self._hashes[id(record)] = (record, key)
            self._known[key] = record
            _trim(self._hashes)
            _trim(self._known)
        return key

    def environment(self, key: str) -> EnvironmentSpec:
        """An environment by its record's hash."""
        with self._lock:
            known = self._known.get(key)
        if not isinstance(known, EnvironmentSpec):
            known = EnvironmentSpec.model_validate(self._store.document(key))
            self._remember(key, known)
        return known

    def scenario(self, key: str) -> Scenario:
        """A scenario by its record's hash."""
        with self._lock:
            known = self._known.get(key)
        if not isinstance(known, Scenario):
            known = Scenario.model_validate(self._store.document(key))
            self._remember(key, known)
        return known

    def _remember(self, key: str, record: EnvironmentSpec | Scenario) -> None:
        with self._lock:
            self._known[key] = record
            _trim(self._known)


def _trim(cache: OrderedDict[K, V]) -> None:
    while len(cache) > _KEPT:
        cache.popitem(last=False)
