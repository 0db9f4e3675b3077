"""What bundled scenarios are written with: states over a base, tasks unwrapped, checks from expressions."""

from typing import Any

import pytest

from langchain_envscaler.environments.bundled._scenarios import (
    check,
    merged,
    only_changed,
    same,
    same_except,
    scenario,
)

INITIAL = {"rooms": {"r1": {"lit": False}, "r2": {"lit": False}}, "people": {}}


def holds(expression: str, final_state: object) -> bool:
    return bool(eval(expression, {"initial_state": INITIAL, "final_state": final_state}))


def test_changes_are_merged_into_a_copy_that_shares_nothing_with_its_sources() -> None:
    changes = {"rooms": {"r2": {"lit": True}, "r3": {"lit": True}}}
    state = merged(INITIAL, changes)
    assert state == {
        "rooms": {"r1": {"lit": False}, "r2": {"lit": True}, "r3": {"lit": True}},
        "people": {},
    }
    state["rooms"]["r1"]["lit"] = state["rooms"]["r3"]["lit"] = None
    assert INITIAL["rooms"]["r1"]["lit"] is False
    assert changes["rooms"]["r3"]["lit"] is True


def test_same_holds_only_while_every_named_table_is_untouched() -> None:
    assert holds(same("rooms", "people"), merged(INITIAL, {}))
    assert holds(same("people"), merged(INITIAL, {"rooms": {"r1": {"lit": True}}}))
    assert not holds(same("rooms", "people"), merged(INITIAL, {"rooms": {"r1": {"lit": True}}}))


@pytest.mark.parametrize(
    ("rooms", "untouched"),
    [
        pytest.param({"r1": {"lit": True}, "r2": {"lit": False}}, True, id="the exception changed"),
        pytest.param({"r2": {"lit": False}}, True, id="the exception removed"),
        pytest.param({"r1": {"lit": False}, "r2": {"lit": True}}, False, id="another changed"),
        pytest.param({"r1": {"lit": False}}, False, id="another removed"),
        pytest.param({**INITIAL["rooms"], "r3": {"lit": False}}, False, id="one added"),
    ],
)
def test_same_except_allows_changes_of_the_named_records_only(rooms: object, untouched: bool) -> None:
    assert holds(same_except("rooms", "r1"), {"rooms": rooms}) is untouched


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        pytest.param({}, True, id="nothing changed"),
        pytest.param({"rooms": {"r1": {"lit": True}}}, True, id="the named record changed"),
        pytest.param(
            {"rooms": {"r1": {"lit": True}, "r2": {"lit": True}}}, False, id="another record changed"
        ),
        pytest.param({"people": {"p1": {}}}, False, id="a record added elsewhere"),
        pytest.param({"steps": 3, "counters": {"room": 4}}, True, id="only counters and plain values moved"),
    ],
)
def test_only_changed_allows_nothing_beyond_the_named_records(changes: dict[str, Any], allowed: bool) -> None:
    initial = {**INITIAL, "steps": 0, "counters": {"room": 3}}
    state = {"initial_state": initial, "final_state": merged(initial, changes)}
    assert eval(only_changed("r1"), state) is allowed


def test_only_changed_wants_exactly_the_new_records_it_counts() -> None:
    one, two = {"people": {"p1": {}}}, {"people": {"p1": {}, "p2": {}}}
    assert holds(only_changed(people=1), merged(INITIAL, one))
    assert not holds(only_changed(people=1), merged(INITIAL, {}))
    assert not holds(only_changed(people=1), merged(INITIAL, two))


def test_a_check_that_is_not_an_expression_is_refused_when_it_is_written() -> None:
    with pytest.raises(SyntaxError):
        check("Is it lit?", "lit = True")


def test_a_task_loses_the_line_breaks_of_its_source_but_keeps_paragraphs_and_items() -> None:
    task = """
        Please light
        the rooms.

        - First
          the hall.
        - Then the rest.
    """
    built = scenario("home", "Home", "01-light", task=task, state=INITIAL, checks=[], reference=[])
    assert built.task == "Please light the rooms.\n\n- First the hall.\n- Then the rest."
    assert built.task_id == "home-01-light"
