"""Scenarios in the project tracker, from two calls to twelve."""

from functools import partial

from langchain_envscaler.environments.bundled._scenarios import merged, only_changed, scenario
from langchain_envscaler.environments.bundled.project_tracker.base_state import BASE
from langchain_envscaler.environments.metadata import Scenario

__all__ = ["SCENARIOS"]

_scenario = partial(scenario, "project_tracker", "ProjectTracker")

SCENARIOS: list[Scenario] = [
    _scenario(
        "01-assign-the-export",
        task="Please assign T-108, the export of the ride history, to Kenji Mori.",
        state=BASE,
        checks=[
            ("Is T-108 assigned to Kenji Mori?", 'final_state["issues"]["T-108"]["assignee"] == "U-7"'),
            ("Was nothing else changed?", only_changed("T-108")),
        ],
        reference=[
            ("list_members", {}),
            ("assign_issue", {"issue_id": "T-108", "member_id": "U-7"}),
        ],
    ),
    _scenario(
        "02-report-a-bug",
        task="""
            Customers tell us that receipts show the wrong tax rate. Please file that as a bug called "Receipt shows
            the wrong tax rate", with high priority and an estimate of 2 points. It can wait in the backlog.
        """,
        state=BASE,
        checks=[
            (
                "Is the bug filed with high priority?",
                """[
                    (issue["kind"], issue["priority"], issue["status"])
                    for issue in final_state["issues"].values() if issue["title"] == "Receipt shows the wrong tax rate"
                ] == [("bug", "high", "todo")]""",
            ),
            (
                "Is it estimated at 2 points, and in the backlog?",
                """[
                    (issue["points"], issue["sprint_id"])
                    for issue in final_state["issues"].values() if issue["title"] == "Receipt shows the wrong tax rate"
                ] == [(2, None)]""",
            ),
            ("Was nothing else changed?", only_changed(issues=1)),
        ],
        reference=[
            (
                "create_issue",
                {"title": "Receipt shows the wrong tax rate", "kind": "bug", "priority": "high"},
            ),
            ("estimate_issue", {"issue_id": "T-121", "points": 2}),
        ],
    ),
    _scenario(
        "03-ready-for-review",
        task="""
            Jonas Weber has fixed the bug that the map shows stations twice. Please put it into review; Petra Novak
            will look at it.
        """,
        state=BASE,
        checks=[
            ("Is T-103 in review?", 'final_state["issues"]["T-103"]["status"] == "in_review"'),
            ("Does Petra Novak review it?", 'final_state["issues"]["T-103"]["reviewer"] == "U-5"'),
            ("Was nothing else changed?", only_changed("T-103")),
        ],
        reference=[
            ("find_issues", {"text": "stations twice"}),
            ("list_members", {}),
            ("request_review", {"issue_id": "T-103", "reviewer": "U-5"}),
        ],
    ),
    _scenario(
        "04-cover-for-lucia",
        task="Lucia Prieto is away this week. Please hand what she has in progress to Amara Osei.",
        state=BASE,
        checks=[
            ("Is T-115 assigned to Amara Osei?", 'final_state["issues"]["T-115"]["assignee"] == "U-3"'),
            (
                "Is T-115 still in progress, and nothing else changed?",
                'final_state["issues"]["T-115"]["status"] == "in_progress" and ' + only_changed("T-115"),
            ),
        ],
        reference=[
            ("list_members", {}),
            ("find_issues", {"assignee": "U-4", "status": "in_progress"}),
            ("assign_issue", {"issue_id": "T-115", "member_id": "U-3"}),
        ],
    ),
    _scenario(
        "05-approved",
        task="""
            Kenji Mori has approved "Pay with a saved card", so it is done. Amara Osei now starts on the issue that was
            waiting for it; please show that in the tracker too.
        """,
        state=BASE,
        checks=[
            ("Is T-104 done?", 'final_state["issues"]["T-104"]["status"] == "done"'),
            ("Is T-105 in progress?", 'final_state["issues"]["T-105"]["status"] == "in_progress"'),
            ("Was nothing else changed?", only_changed("T-104", "T-105")),
        ],
        reference=[
            ("find_issues", {"text": "saved card"}),
            ("get_issue", {"issue_id": "T-104"}),
            ("set_status", {"issue_id": "T-104", "status": "done"}),
            ("set_status", {"issue_id": "T-105", "status": "in_progress"}),
        ],
    ),
    _scenario(
        "06-another-blocker",
        task="""
            "Night tariff" does not have to wait for the bug about the wrong price after all. What it does have to wait
            for is the rewrite of the booking service. Please correct its dependencies.
        """,
        state=BASE,
        checks=[
            (
                "Does T-120 no longer wait for T-109?",
                '"T-109" not in final_state["issues"]["T-120"]["blocked_by"]',
            ),
            ("Does T-120 wait for T-113?", '"T-113" in final_state["issues"]["T-120"]["blocked_by"]'),
            ("Was nothing else changed?", only_changed("T-120")),
        ],
        reference=[
            ("find_issues", {"text": "night tariff"}),
            ("find_issues", {"text": "booking service"}),
            ("remove_dependency", {"issue_id": "T-120", "blocked_by": "T-109"}),
            ("add_dependency", {"issue_id": "T-120", "blocked_by": "T-113"}),
        ],
    ),
    _scenario(
        "07-the-rewrite-is-called-off",
        task="""
            The rewrite of the booking service is called off. Cancel that issue. Group bookings, which waited for it,
            goes back to the backlog, where it should not wait for anything.
        """,
        state=BASE,
        checks=[
            ("Is T-113 cancelled?", 'final_state["issues"]["T-113"]["status"] == "cancelled"'),
            ("Is T-112 in the backlog?", 'final_state["issues"]["T-112"]["sprint_id"] is None'),
            ("Does T-112 wait for nothing?", 'final_state["issues"]["T-112"]["blocked_by"] == []'),
            ("Was nothing else changed?", only_changed("T-112", "T-113")),
        ],
        reference=[
            ("find_issues", {"text": "booking service"}),
            ("get_issue", {"issue_id": "T-113"}),
            ("remove_dependency", {"issue_id": "T-112", "blocked_by": "T-113"}),
            ("set_status", {"issue_id": "T-113", "status": "cancelled"}),
            ("move_to_sprint", {"issue_id": "T-112", "sprint_id": "backlog"}),
        ],
    ),
    _scenario(
        "08-not-allowed",
        task="""
            I am Amara Osei. The bug that unlocking fails on old phones is worse than we thought: please estimate it at
            5 points and make it urgent. If I am not allowed to do that, make it high and assign it to our lead.
        """,
        state=merged(BASE, {"acting_as": "U-3"}),
        checks=[
            ("Is T-116 estimated at 5 points?", 'final_state["issues"]["T-116"]["points"] == 5'),
            ("Has T-116 high priority?", 'final_state["issues"]["T-116"]["priority"] == "high"'),
            ("Is T-116 assigned to the lead?", 'final_state["issues"]["T-116"]["assignee"] == "U-1"'),
            ("Was nothing else changed?", only_changed("T-116")),
        ],
        reference=[
            ("list_members", {}),
            ("find_issues", {"text": "unlock"}),
            ("estimate_issue", {"issue_id": "T-116", "points": 5}),
            ("set_priority", {"issue_id": "T-116", "priority": "high"}),
            ("assign_issue", {"issue_id": "T-116", "member_id": "U-1"}),
        ],
    ),
    _scenario(
        "09-a-duplicate",
        task="""
            T-121 reports the same bug as "Map shows stations twice". Please cancel T-121, and let whatever waits for it
            wait for the original instead.
        """,
        state=merged(
            BASE,
            {
                "issues": {
                    "T-121": {
                        "issue_id": "T-121",
                        "title": "Every station appears double",
                        "kind": "bug",
                        "priority": "medium",
                        "status": "todo",
                        "points": None,
                        "assignee": None,
                        "reviewer": None,
                        "sprint_id": None,
                        "blocked_by": [],
                    },
                    "T-118": {"blocked_by": ["T-121"]},
                },
                "counters": {"issue": 121},
            },
        ),
        checks=[
            ("Is T-121 cancelled?", 'final_state["issues"]["T-121"]["status"] == "cancelled"'),
            ("Does T-118 wait for T-103 only?", 'final_state["issues"]["T-118"]["blocked_by"] == ["T-103"]'),
            (
                "Is the original still in progress, and nothing else changed?",
                only_changed("T-118", "T-121"),
            ),
        ],
        reference=[
            ("get_issue", {"issue_id": "T-121"}),
            ("find_issues", {"text": "map shows stations twice"}),
            ("remove_dependency", {"issue_id": "T-118", "blocked_by": "T-121"}),
            ("add_dependency", {"issue_id": "T-118", "blocked_by": "T-103"}),
            ("set_status", {"issue_id": "T-121", "status": "cancelled"}),
        ],
    ),
    _scenario(
        "10-back-from-review",
        task="""
            Petra Novak still sees stations twice on the map, so that issue has to go back to work. If Jonas Weber
            already has as much in progress as our rules allow, give it to Amara Osei instead.
        """,
        state=merged(
            BASE,
            {
                "issues": {
                    "T-103": {"status": "in_review", "reviewer": "U-5"},
                    "T-107": {"status": "in_progress", "assignee": "U-2"},
                }
            },
        ),
        checks=[
            ("Is T-103 in progress again?", 'final_state["issues"]["T-103"]["status"] == "in_progress"'),
            ("Is T-103 assigned to Amara Osei?", 'final_state["issues"]["T-103"]["assignee"] == "U-3"'),
            ("Was nothing else changed?", only_changed("T-103")),
        ],
        reference=[
            ("find_issues", {"text": "stations twice"}),
            ("list_members", {}),
            ("find_issues", {"assignee": "U-2", "status": "in_progress"}),
            ("assign_issue", {"issue_id": "T-103", "member_id": "U-3"}),
            ("set_status", {"issue_id": "T-103", "status": "in_progress"}),
        ],
    ),
    _scenario(
        "11-a-sprint-in-june",
        task="""
            Let us plan ahead. Create a sprint called "Sprint 14" from 1 to 12 June 2026 with a capacity of 20 points.
            Put every open feature of the backlog into it, and also the bug that unlocking fails on old phones, which
            we estimate at 3 points.
        """,
        state=BASE,
        checks=[
            (
                "Is Sprint 14 planned for 1 to 12 June with 20 points?",
                """[
                    (sprint["name"], sprint["status"], sprint["starts_on"], sprint["ends_on"], sprint["capacity"])
                    for key, sprint in final_state["sprints"].items() if key not in initial_state["sprints"]
                ] == [("Sprint 14", "planned", "2026-06-01", "2026-06-12", 20)]""",
            ),
            (
                "Are the three open features in it?",
                'all(final_state["issues"][key]["sprint_id"] == "S-14" for key in ("T-110", "T-118", "T-120"))',
            ),
            (
                "Is the bug about unlocking in it, at 3 points?",
                'final_state["issues"]["T-116"]["sprint_id"] == "S-14" and final_state["issues"]["T-116"]["points"] == 3',
            ),
            (
                "Was nothing else changed?",
                only_changed("T-110", "T-116", "T-118", "T-120", sprints=1),
            ),
        ],
        reference=[
            (
                "create_sprint",
                {"name": "Sprint 14", "starts_on": "2026-06-01", "ends_on": "2026-06-12", "capacity": 20},
            ),
            ("find_issues", {"status": "todo", "sprint_id": "backlog"}),
            ("estimate_issue", {"issue_id": "T-116", "points": 3}),
            ("move_to_sprint", {"issue_id": "T-110", "sprint_id": "S-14"}),
            ("move_to_sprint", {"issue_id": "T-116", "sprint_id": "S-14"}),
            ("move_to_sprint", {"issue_id": "T-118", "sprint_id": "S-14"}),
            ("move_to_sprint", {"issue_id": "T-120", "sprint_id": "S-14"}),
        ],
    ),
    _scenario(
        "12-urgent-in-a-full-sprint",
        task="""
            The wrong price after midnight costs us money every night. Make that bug urgent, estimate it at 3 points,
            put it into the running sprint, assign it to Kenji Mori and start it. If there is no room for it, move the
            issue of the running sprint that nobody is assigned to into the next sprint.
        """,
        state=BASE,
        checks=[
            (
                "Is T-109 urgent and estimated at 3 points?",
                'final_state["issues"]["T-109"]["priority"] == "urgent" and final_state["issues"]["T-109"]["points"] == 3',
            ),
            ("Is T-109 in Sprint 12?", 'final_state["issues"]["T-109"]["sprint_id"] == "S-12"'),
            (
                "Is T-109 in progress with Kenji Mori?",
                'final_state["issues"]["T-109"]["status"] == "in_progress" and final_state["issues"]["T-109"]["assignee"] == "U-7"',
            ),
            (
                "Did T-108 move to Sprint 13, unassigned as it was?",
                'final_state["issues"]["T-108"] == {**initial_state["issues"]["T-108"], "sprint_id": "S-13"}',
            ),
            ("Was nothing else changed?", only_changed("T-108", "T-109")),
        ],
        reference=[
            ("find_issues", {"text": "price after midnight"}),
            ("list_members", {}),
            ("list_sprints", {}),
            ("set_priority", {"issue_id": "T-109", "priority": "urgent"}),
            ("estimate_issue", {"issue_id": "T-109", "points": 3}),
            ("find_issues", {"assignee": "none", "sprint_id": "S-12"}),
            ("move_to_sprint", {"issue_id": "T-108", "sprint_id": "S-13"}),
            ("move_to_sprint", {"issue_id": "T-109", "sprint_id": "S-12"}),
            ("assign_issue", {"issue_id": "T-109", "member_id": "U-7"}),
            ("set_status", {"issue_id": "T-109", "status": "in_progress"}),
        ],
    ),
    _scenario(
        "13-from-sprint-to-sprint",
        task="""
            Sprint 12 ends today, please wrap it up:

            - "Pay with a saved card" was approved and is done.
            - "Refund cancelled rides" goes on in Sprint 13, with Jonas Weber instead of Amara Osei.
            - What else is unfinished goes back to the backlog.

            Then close Sprint 12, start Sprint 13, and mark the rewrite of the booking service as started.
        """,
        state=merged(
            BASE,
            {
                "today": "2026-05-15",
                "issues": {
                    "T-103": {"status": "done", "reviewer": "U-5"},
                    "T-106": {"status": "done", "reviewer": "U-3"},
                    "T-115": {"status": "done", "assignee": "U-3", "reviewer": "U-5"},
                },
            },
        ),
        checks=[
            (
                "Is T-104 done, in Sprint 12?",
                'final_state["issues"]["T-104"] == {**initial_state["issues"]["T-104"], "status": "done"}',
            ),
            (
                "Is T-105 in Sprint 13 with Jonas Weber?",
                'final_state["issues"]["T-105"]["sprint_id"] == "S-13" and final_state["issues"]["T-105"]["assignee"] == "U-2"',
            ),
            (
                "Are T-107 and T-108 in the backlog?",
                """[
                    final_state["issues"][key] == {**initial_state["issues"][key], "sprint_id": None}
                    for key in ("T-107", "T-108")
                ] == [True, True]""",
            ),
            (
                "Is Sprint 12 closed and Sprint 13 active?",
                'final_state["sprints"]["S-12"]["status"] == "closed" and final_state["sprints"]["S-13"]["status"] == "active"',
            ),
            ("Is T-113 in progress?", 'final_state["issues"]["T-113"]["status"] == "in_progress"'),
            (
                "Was nothing else changed?",
                only_changed("T-104", "T-105", "T-107", "T-108", "T-113", "S-12", "S-13"),
            ),
        ],
        reference=[
            ("list_sprints", {}),
            ("find_issues", {"sprint_id": "S-12"}),
            ("list_members", {}),
            ("set_status", {"issue_id": "T-104", "status": "done"}),
            ("move_to_sprint", {"issue_id": "T-105", "sprint_id": "S-13"}),
            ("assign_issue", {"issue_id": "T-105", "member_id": "U-2"}),
            ("move_to_sprint", {"issue_id": "T-107", "sprint_id": "backlog"}),
            ("move_to_sprint", {"issue_id": "T-108", "sprint_id": "backlog"}),
            ("close_sprint", {"sprint_id": "S-12"}),
            ("start_sprint", {"sprint_id": "S-13"}),
            ("find_issues", {"text": "booking service"}),
            ("set_status", {"issue_id": "T-113", "status": "in_progress"}),
        ],
    ),
]
