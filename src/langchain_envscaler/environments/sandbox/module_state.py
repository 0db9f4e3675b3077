"""What an environment's code keeps outside of its instance: in variables of its module and of its classes.

It is no part of the state that is shown, but a process that wakes up has to go on with it, or a counter kept
on a class would start again.
"""

import collections
import itertools
import pickle
import random
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

__all__ = ["ModuleState"]

_FIXED = (type(None), bool, int, float, complex, str, bytes)
_CHANGEABLE = (
    list,
    dict,
    set,
    bytearray,
    collections.deque,
    tuple,
    frozenset,
    random.Random,
    itertools.count,
)

Key = tuple[str, str]
"""The name of a class, or nothing for the module itself, and the name of a variable there."""


class ModuleState:
    """The data that a module and its classes hold, and how it differs from when they were loaded."""

    def __init__(self, module: ModuleType) -> None:
        self._module_name = module.__name__
        self._places: dict[str, ModuleType | type] = {"": module}
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__:
                self._places[name] = value
        self._sizes = [(vars(place), len(vars(place))) for place in self._places.values()]
        self._at_load = dict(self._values())
        self._watched = [
            (vars(self._places[place]), name, value) for (place, name), value in self._at_load.items()
        ]
        self._changeable = [value for value in self._at_load.values() if not isinstance(value, _FIXED)]
        self._pickled = [pickle.dumps(value, 5) for value in self._changeable]

    def changes(self) -> dict[Key, Any] | None:
        """What is not as it was when the module was loaded; None if nothing is. Quick where nothing is."""
        if (
            all(namespace.get(name) is value for namespace, name, value in self._watched)
            and all(len(namespace) == size for namespace, size in self._sizes)
            and [pickle.dumps(value, 5) for value in self._changeable] == self._pickled
        ):
            return None
        as_pickled = {id(value): text for value, text in zip(self._changeable, self._pickled, strict=True)}
        return {
            key: value
            for key, value in self._values()
            if value is not self._at_load.get(key, self)
            or (id(value) in as_pickled and pickle.dumps(value, 5) != as_pickled[id(value)])
        }

    def apply(self, changes: dict[Key, Any]) -> None:
        """Set what had changed."""
        for (place, name), value in changes.items():
            setattr(self._places[place], name, value)

    def _values(self) -> Iterator[tuple[Key, Any]]:
        """All data; functions, imported modules and what cannot be pickled are none."""
        for place, target in self._places.items():
            namespace: Mapping[str, Any] = vars(target)
            for name, value in namespace.items():
                if not name.startswith("__") and self._is_data(value):
                    yield (place, name), value

    def _is_data(self, value: Any) -> bool:
        if isinstance(value, _FIXED):
            return True
        of_module = type(value).__module__ == self._module_name
        if not isinstance(value, _CHANGEABLE) and not of_module:
            return False
        try:
            pickle.dumps(value, 5)
        except Exception:
            return False
        return True
