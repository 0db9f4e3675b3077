"""Two JSON schemas that both must hold, as one."""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["CannotMerge", "merged"]


class CannotMerge(ValueError):
    """The two say things of which no single schema of plain keywords can be made; tells which."""


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of what satisfies both.

    Raises:
        CannotMerge: They say things that no single schema says.
    """
    result = dict(first)
    for keyword, value in second.items():
        result[keyword] = _both(keyword, result[keyword], value) if keyword in result else value
    return result


def _both(keyword: str, first: Any, second: Any) -> Any:
    if first == second:
        return first
    if keyword in _TOGETHER:
        return _TOGETHER[keyword](first, second)
    if keyword in _SCHEMA_MAPS:
        return {**first, **{name: _schemas(first.get(name, True), schema) for name, schema in second.items()}}
    if keyword in _SCHEMAS:
        return _schemas(first, second)
    raise CannotMerge(f"each have a {keyword}")


def _schemas(first: Any, second: Any) -> Any:
    if first is True or second is False:
        return second
    if second is True or first is False:
        return first
    return merged(first, second)


def _types(first: Any, second: Any) -> Any:
    firsts = [first] if isinstance(first, str) else list(first)
    seconds = [second] if isinstance(second, str) else list(second)
    common = [kind for kind in firsts if kind in seconds or (kind == "integer" and "number" in seconds)]
    common += [kind for kind in seconds if kind == "integer" and "number" in firsts and kind not in common]
    if not common:
        raise CannotMerge(f"have the types {first} and {second}")
    return common[0] if len(common) == 1 else common


def _values(first: Any, second: Any) -> Any:
    common = [value for value in first if value in second]
    if not common:
        raise CannotMerge("have no value in common")
    return common


def _required(first: Any, second: Any) -> Any:
    return [*first, *(name for name in second if name not in first)]


def _all_of(first: Any, second: Any) -> Any:
    return [*first, *second]


_TOGETHER: dict[str, Callable[[Any, Any], Any]] = {
    "type": _types,
    "enum": _values,
    "required": _required,
    "allOf": _all_of,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
_SCHEMA_MAPS = frozenset({"properties", "patternProperties"})
_SCHEMAS = frozenset({"items", "additionalProperties", "propertyNames"})
