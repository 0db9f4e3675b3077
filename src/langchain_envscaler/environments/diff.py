"""What changed between two states of an environment."""

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = ["StateChange", "state_changes"]


class StateChange(BaseModel):
    """One difference: where (a JSON pointer, RFC 6901), and the value before and after."""

    model_config = ConfigDict(frozen=True)

    op: Literal["add", "remove", "replace"]
    path: str
    before: JsonValue = None
    after: JsonValue = None


def state_changes(before: JsonValue, after: JsonValue) -> list[StateChange]:
    """The differences of two JSON values, depth first; cost is linear in their size.

    Objects are compared key by key. Lists are compared by position, after a common beginning and a common
    end are set aside, so that one element inserted or taken out is one change.
    """
    return list(_changes("", before, after))


def _changes(path: str, before: JsonValue, after: JsonValue) -> Iterator[StateChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _member_changes(f"{path}/{_escaped(key)}", before, after, key)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_changes(path, before, after)
    elif type(before) is not type(after) or before != after:
        yield StateChange(op="replace", path=path, before=before, after=after)


def _same(before: JsonValue, after: JsonValue) -> bool:
    # Python's == would take True for 1, at any depth.
    return next(_changes("", before, after), None) is None


def _member_changes(
    path: str, before: dict[str, JsonValue], after: dict[str, JsonValue], key: str
) -> Iterator[StateChange]:
    if key not in after:
        yield StateChange(op="remove", path=path, before=before[key])
    elif key not in before:
        yield StateChange(op="add", path=path, after=after[key])
    else:
        yield from _changes(path, before[key], after[key])


def _list_changes(path: str, before: list[JsonValue], after: list[JsonValue]) -> Iterator[StateChange]:
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and _same(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and _same(before[-1 - end], after[-1 - end]):
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for offset in range(max(len(old), len(new))):
        here = f"{path}/{start + offset}"
        if offset >= len(new):
            yield StateChange(op="remove", path=here, before=old[offset])
        elif offset >= len(old):
            yield StateChange(op="add", path=here, after=new[offset])
        else:
            yield from _changes(here, old[offset], new[offset])


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
