"""A team in the middle of a sprint: what every scenario starts from."""

from typing import Any

__all__ = ["BASE"]


def _member(member_id: str, name: str, role: str, away_until: str | None = None) -> dict[str, Any]:
    return {"member_id": member_id, "name": name, "role": role, "away_until": away_until}


def _issue(
    issue_id: str,
    title: str,
    kind: str,
    priority: str,
    status: str,
    points: int | None,
    *,
    assignee: str | None = None,
    reviewer: str | None = None,
    sprint_id: str | None = None,
    blocked_by: tuple[str, ...] = (),
) -> dict[str, Any]:
    return {
        "issue_id": issue_id,
        "title": title,
        "kind": kind,
        "priority": priority,
        "status": status,
        "points": points,
        "assignee": assignee,
        "reviewer": reviewer,
        "sprint_id": sprint_id,
        "blocked_by": list(blocked_by),
    }


def _sprint(
    sprint_id: str, name: str, status: str, starts_on: str, ends_on: str, capacity: int
) -> dict[str, Any]:
    return {
        "sprint_id": sprint_id,
        "name": name,
        "status": status,
        "starts_on": starts_on,
        "ends_on": ends_on,
        "capacity": capacity,
    }


def _by_id(key: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    return {record[key]: record for record in records}


BASE: dict[str, Any] = {
    "today": "2026-05-13",
    "acting_as": "U-1",
    "members": _by_id(
        "member_id",
        [
            _member("U-1", "Noor Haddad", "lead"),
            _member("U-2", "Jonas Weber", "developer"),
            _member("U-3", "Amara Osei", "developer"),
            _member("U-4", "Lucia Prieto", "developer", away_until="2026-05-15"),
            _member("U-5", "Petra Novak", "tester"),
            _member("U-6", "Sam Whitfield", "guest"),
            _member("U-7", "Kenji Mori", "developer"),
        ],
    ),
    "issues": _by_id(
        "issue_id",
        [
            _issue(
                "T-101",
                "Login by email link",
                "feature",
                "high",
                "done",
                5,
                assignee="U-2",
                reviewer="U-5",
                sprint_id="S-11",
            ),
            _issue(
                "T-102",
                "Crash when the camera is denied",
                "bug",
                "high",
                "done",
                3,
                assignee="U-3",
                reviewer="U-7",
                sprint_id="S-11",
            ),
            _issue(
                "T-103",
                "Map shows stations twice",
                "bug",
                "high",
                "in_progress",
                3,
                assignee="U-2",
                sprint_id="S-12",
            ),
            _issue(
                "T-104",
                "Pay with a saved card",
                "feature",
                "high",
                "in_review",
                5,
                assignee="U-3",
                reviewer="U-7",
                sprint_id="S-12",
            ),
            _issue(
                "T-105",
                "Refund cancelled rides",
                "feature",
                "medium",
                "todo",
                5,
                assignee="U-3",
                sprint_id="S-12",
                blocked_by=("T-104",),
            ),
            _issue(
                "T-106",
                "Update the map library",
                "chore",
                "medium",
                "in_progress",
                2,
                assignee="U-2",
                sprint_id="S-12",
            ),
            _issue(
                "T-107",
                "Show battery level of e-bikes",
                "feature",
                "medium",
                "todo",
                3,
                assignee="U-7",
                sprint_id="S-12",
            ),
            _issue("T-108", "Export of the ride history", "feature", "low", "todo", 5, sprint_id="S-12"),
            _issue("T-109", "Wrong price after midnight", "bug", "high", "todo", None),
            _issue("T-110", "Dark mode", "feature", "low", "todo", 8),
            _issue(
                "T-111", "Push notice before a booking ends", "feature", "medium", "todo", 3, sprint_id="S-13"
            ),
            _issue(
                "T-112",
                "Group bookings",
                "feature",
                "high",
                "todo",
                8,
                assignee="U-4",
                sprint_id="S-13",
                blocked_by=("T-113",),
            ),
            _issue(
                "T-113",
                "Rewrite of the booking service",
                "chore",
                "high",
                "todo",
                8,
                assignee="U-7",
                sprint_id="S-13",
            ),
            _issue("T-114", "Typos on the help page", "chore", "low", "todo", 1),
            _issue(
                "T-115",
                "Scanner fails in low light",
                "bug",
                "medium",
                "in_progress",
                3,
                assignee="U-4",
                sprint_id="S-12",
            ),
            _issue("T-116", "Unlock fails on old phones", "bug", "medium", "todo", None),
            _issue("T-117", "Invite a friend", "feature", "low", "cancelled", 5),
            _issue("T-118", "Photos of stations", "feature", "low", "todo", 3),
            _issue(
                "T-119",
                "Slow search for stations",
                "bug",
                "medium",
                "done",
                2,
                assignee="U-7",
                reviewer="U-3",
                sprint_id="S-12",
            ),
            _issue("T-120", "Night tariff", "feature", "medium", "todo", 5, blocked_by=("T-109",)),
        ],
    ),
    "sprints": _by_id(
        "sprint_id",
        [
            _sprint("S-11", "Sprint 11", "closed", "2026-04-20", "2026-05-01", 24),
            _sprint("S-12", "Sprint 12", "active", "2026-05-04", "2026-05-15", 30),
            _sprint("S-13", "Sprint 13", "planned", "2026-05-18", "2026-05-29", 24),
        ],
    ),
    "counters": {"issue": 120, "sprint": 13},
}
