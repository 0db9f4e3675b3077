"""The JSON form of Python values: how an environment's state and results are shown outside of its process.

| Python | JSON |
|---|---|
| dict | object; keys that are int, float, bool or None become text as `json.dumps` writes them |
| list, tuple, deque | array |
| set, frozenset | array, in the order of the elements' JSON text |
| NaN, infinities | the texts "NaN", "Infinity", "-Infinity" |
| date, time, datetime | text in ISO 8601 |
| timedelta | seconds, as a number |
| UUID, Decimal, Fraction, complex, range, path | text, Python's `str` |
| bytes, bytearray | text in base64 |
| Enum member | the form of its value (also as a key) |
| dataclass, object with variables | object of its variables without dunder names |

Other dict keys (tuples, dates, enumerations) become the text of their own form; two keys that give the same
text, a value that contains itself, and a value of any other kind (a function, an open file, ...) have no JSON
form: the error names the path.
"""

import base64
import datetime
import decimal
import enum
import fractions
import json
import math
import pathlib
import uuid
from collections import deque
from typing import Any

__all__ = ["NoJsonFormError", "is_dunder", "json_form"]

_MAX_DEPTH = 500
_AS_TEXT = (uuid.UUID, decimal.Decimal, fractions.Fraction, complex, range, pathlib.PurePath)


class NoJsonFormError(ValueError):
    """A value that has no JSON form; the message names its path."""


def json_form(value: Any, path: str = "$") -> Any:
    """The JSON form of a value, made of new objects only; cost is linear in its size.

    Raises:
        NoJsonFormError: A part of it has none.
    """
    return _form(value, path, [])


def _form(value: Any, path: str, inside: list[int]) -> Any:
    kind = type(value)
    if kind is str or kind is bool or value is None or kind is int:
        return value
    if kind is float:
        return value if math.isfinite(value) else _non_finite(value)
    if isinstance(value, enum.Enum):
        return _form(value.value, path, inside)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, float)):
        return _form(int(value) if isinstance(value, int) else float(value), path, inside)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, _AS_TEXT):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return _container_form(value, path, inside)


def _container_form(value: Any, path: str, inside: list[int]) -> Any:
    if id(value) in inside:
        raise NoJsonFormError(f"expected a value without cycles, found one that contains itself at {path}")
    if len(inside) >= _MAX_DEPTH:
        raise NoJsonFormError(f"expected at most {_MAX_DEPTH} levels, found more at {path[:200]}")
    inside.append(id(value))
    try:
        if isinstance(value, dict):
            return _object_form(value, path, inside)
        if isinstance(value, (list, tuple, deque)):
            return [_form(item, f"{path}[{index}]", inside) for index, item in enumerate(value)]
        if isinstance(value, (set, frozenset)):
            items = [_form(item, f"{path}{{}}", inside) for item in value]
            return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
        variables = _variables(value)
        if variables is None:
            raise NoJsonFormError(
                f"expected a value with a JSON form, found {type(value).__qualname__} at {path}"
            )
        return _object_form(variables, path, inside)
    finally:
        inside.pop()


def _object_form(mapping: dict[Any, Any], path: str, inside: list[int]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in mapping.items():
        text = key if type(key) is str else _key_text(key, path, inside)
        if text in result:
            raise NoJsonFormError(f"expected keys with different JSON texts, found {text!r} twice at {path}")
        result[text] = _form(value, f"{path}.{text}", inside)
    return result


def _key_text(key: Any, path: str, inside: list[int]) -> str:
    form = _form(key, f"{path} (a key)", inside)
    return form if isinstance(form, str) else json.dumps(form)


def _variables(value: Any) -> dict[str, Any] | None:
    """The variables of an instance of a class of the environment; None for anything else."""
    if isinstance(value, type) or callable(value):
        return None
    variables = getattr(value, "__dict__", None)
    if variables is None and hasattr(type(value), "__slots__"):
        names = [n for base in type(value).__mro__ for n in _as_names(getattr(base, "__slots__", ()))]
        variables = {name: getattr(value, name) for name in names if hasattr(value, name)}
    if type(variables) is not dict:
        return None
    return {name: item for name, item in variables.items() if not is_dunder(name)}


def _as_names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def is_dunder(name: str) -> bool:
    """Whether a variable's name is of the kind `__name__`."""
    return name.startswith("__") and name.endswith("__")


def _non_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
