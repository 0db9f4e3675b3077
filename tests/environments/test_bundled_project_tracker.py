"""The project tracker keeps its rules: what it refuses and why, and what a step does besides."""

from collections.abc import Iterator
from typing import Any

import pytest

from langchain_envscaler.environments.bundled._scenarios import merged
from langchain_envscaler.environments.bundled.project_tracker.base_state import BASE
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode

Call = tuple[str, dict[str, Any]]
CATALOG = Catalog.bundled()


@pytest.fixture(scope="module")
def shared_tracker() -> Iterator[tuple[Episode, str]]:
    with CATALOG.start("project_tracker", init_config=BASE) as episode:
        yield episode, episode.snapshot()


@pytest.fixture
def tracker(shared_tracker: tuple[Episode, str]) -> Episode:
    """The tracker in the middle of a sprint, used by the lead."""
    episode, start = shared_tracker
    episode.restore(start)
    return episode


def done(tracker: Episode, call: Call) -> dict[str, Any]:
    data = tracker.call(*call).data
    assert isinstance(data, dict)
    assert data["success"] is True, data
    return data


def refused(tracker: Episode, call: Call) -> str:
    """Why a call was refused; that it changed nothing is checked."""
    state = tracker.state()
    data = tracker.call(*call).data
    assert isinstance(data, dict)
    assert data["success"] is False, data
    assert tracker.state() == state
    return str(data["error"])


def status(issue_id: str, new: str) -> Call:
    return "set_status", {"issue_id": issue_id, "status": new}


def assign(issue_id: str, member_id: str) -> Call:
    return "assign_issue", {"issue_id": issue_id, "member_id": member_id}


def review(issue_id: str, reviewer: str) -> Call:
    return "request_review", {"issue_id": issue_id, "reviewer": reviewer}


def estimate(issue_id: str, points: Any) -> Call:
    return "estimate_issue", {"issue_id": issue_id, "points": points}


def move(issue_id: str, sprint_id: str) -> Call:
    return "move_to_sprint", {"issue_id": issue_id, "sprint_id": sprint_id}


def wait(issue_id: str, blocked_by: str) -> Call:
    return "add_dependency", {"issue_id": issue_id, "blocked_by": blocked_by}


def priority(issue_id: str, new: str) -> Call:
    return "set_priority", {"issue_id": issue_id, "priority": new}


def new_sprint(starts_on: str, ends_on: str) -> Call:
    arguments = {"name": "Sprint 14", "starts_on": starts_on, "ends_on": ends_on, "capacity": 20}
    return "create_sprint", arguments


@pytest.mark.parametrize(
    ("before", "call", "reason"),
    [
        pytest.param(
            [], status("T-107", "done"), "can make it in_progress or cancelled", id="a step left out"
        ),
        pytest.param([], status("T-103", "in_review"), "use request_review", id="a review without reviewer"),
        pytest.param([], status("T-108", "in_progress"), "no assignee", id="nobody to start it"),
        pytest.param([], status("T-113", "in_progress"), "is in S-13", id="started before its sprint"),
        pytest.param([], status("T-105", "in_progress"), "blocked by ['T-104']", id="started while blocked"),
        pytest.param(
            [assign("T-107", "U-2")], status("T-107", "in_progress"), "2 issues in progress", id="busy"
        ),
        pytest.param([], assign("T-115", "U-2"), "2 issues in progress", id="handed to someone busy"),
        pytest.param([], assign("T-108", "U-4"), "away until 2026-05-15", id="assigned to someone away"),
        pytest.param([], assign("T-108", "U-6"), "is a guest", id="assigned to a guest"),
        pytest.param([], review("T-103", "U-2"), "choose another reviewer", id="reviewed by its author"),
        pytest.param([], estimate("T-109", 4), "one of [1, 2, 3, 5, 8]", id="four points"),
        pytest.param([], estimate("T-109", "3"), "not '3'", id="points written as text"),
        pytest.param([], estimate("T-103", 5), "only issues in todo", id="estimated after it started"),
        pytest.param([], estimate("T-107", 8), "28 of 30 points planned: 5 more", id="an estimate too large"),
        pytest.param([], move("T-109", "S-13"), "use estimate_issue first", id="planned without estimate"),
        pytest.param([], move("T-118", "S-12"), "3 more do not fit", id="a full sprint"),
        pytest.param([], move("T-118", "S-11"), "is closed", id="a closed sprint"),
        pytest.param([], priority("T-110", "urgent"), "Only bugs can be urgent", id="an urgent feature"),
        pytest.param([], wait("T-113", "T-112"), "would form a circle", id="a circle of two"),
        pytest.param([wait("T-113", "T-110")], wait("T-110", "T-112"), "would form a circle", id="of three"),
        pytest.param([], wait("T-110", "T-110"), "would form a circle", id="an issue waits for itself"),
        pytest.param([], status("T-113", "cancelled"), "blocks ['T-112']", id="a blocker is cancelled"),
        pytest.param(
            [],
            ("create_issue", {"title": "dark MODE", "kind": "feature", "priority": "low"}),
            "Open issue T-110",
            id="a title taken",
        ),
        pytest.param([], new_sprint("2026-05-29", "2026-06-12"), "overlap with S-13", id="sprints overlap"),
        pytest.param([], new_sprint("2026-06-31", "2026-07-12"), "YYYY-MM-DD", id="no such day"),
        pytest.param([], ("start_sprint", {"sprint_id": "S-13"}), "S-12 is active", id="two active sprints"),
        pytest.param(
            [], ("close_sprint", {"sprint_id": "S-12"}), "Unfinished issues", id="unfinished issues"
        ),
    ],
)
def test_the_tracker_refuses_and_changes_nothing(
    tracker: Episode, before: list[Call], call: Call, reason: str
) -> None:
    for earlier in before:
        done(tracker, earlier)
    assert reason in refused(tracker, call)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(priority("T-109", "urgent"), id="urgent priority"),
        pytest.param(status("T-107", "cancelled"), id="cancelling"),
        pytest.param(status("T-117", "todo"), id="reopening"),
        pytest.param(new_sprint("2026-06-01", "2026-06-12"), id="a new sprint"),
        pytest.param(("start_sprint", {"sprint_id": "S-13"}), id="starting a sprint"),
        pytest.param(("close_sprint", {"sprint_id": "S-12"}), id="closing a sprint"),
    ],
)
def test_what_only_leads_may_do_is_refused_to_a_developer(call: Call) -> None:
    with CATALOG.start("project_tracker", init_config=merged(BASE, {"acting_as": "U-3"})) as tracker:
        assert "You act for U-3, and only leads (U-1) can" in refused(tracker, call)


def test_an_issue_of_a_closed_sprint_is_reopened_into_the_backlog(tracker: Episode) -> None:
    issue = done(tracker, status("T-102", "todo"))["issue"]
    assert (issue["status"], issue["sprint_id"], issue["reviewer"]) == ("todo", None, None)


def test_a_cancelled_issue_makes_room_in_its_sprint(tracker: Episode) -> None:
    done(tracker, status("T-108", "cancelled"))
    done(tracker, move("T-118", "S-12"))
    assert [s["planned_points"] for s in done(tracker, ("list_sprints", {}))["sprints"]] == [8, 26, 19]


def test_conditions_of_a_search_add_up(tracker: Episode) -> None:
    search = {"text": "STATIONS", "status": "todo", "assignee": "none", "sprint_id": "backlog"}
    assert [issue["issue_id"] for issue in done(tracker, ("find_issues", search))["issues"]] == ["T-118"]
