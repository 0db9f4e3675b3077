from typing import Any

import pytest

from langchain_envscaler.environments.diff import StateChange, state_changes


def _rows(before: Any, after: Any) -> list[tuple[str, str, Any, Any]]:
    return [(c.op, c.path, c.before, c.after) for c in state_changes(before, after)]


def test_equal_states_have_no_changes() -> None:
    assert state_changes({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == []


def test_nested_values_are_named_by_pointer() -> None:
    before = {"loans": {"L1": {"status": "open", "days": 3}}, "gone": 1}
    after = {"loans": {"L1": {"status": "closed", "days": 3}}, "new": [1]}
    assert _rows(before, after) == [
        ("replace", "/loans/L1/status", "open", "closed"),
        ("remove", "/gone", 1, None),
        ("add", "/new", None, [1]),
    ]


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ([1, 2, 3], [1, 9, 2, 3], [("add", "/1", None, 9)]),
        ([1, 2, 3], [1, 3], [("remove", "/1", 2, None)]),
        ([1, 2], [1, 2, 3], [("add", "/2", None, 3)]),
        ([1, 1, 1], [1, 1], [("remove", "/2", 1, None)]),
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}], [("replace", "/1/a", 2, 3)]),
    ],
)
def test_lists_set_common_ends_aside(before: list[Any], after: list[Any], rows: list[Any]) -> None:
    assert _rows(before, after) == rows


def test_truth_is_not_one_and_integers_are_not_floats_in_kind() -> None:
    assert _rows({"a": True}, {"a": 1}) == [("replace", "/a", True, 1)]


def test_separators_in_keys_are_escaped() -> None:
    assert state_changes({}, {"a/b~c": 1}) == [StateChange(op="add", path="/a~1b~0c", after=1)]
