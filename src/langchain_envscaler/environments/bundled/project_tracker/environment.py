"""A software team's project tracker."""

from datetime import date
from typing import Any, Literal, TypedDict

__all__ = ["ProjectTracker"]

Role = Literal["lead", "developer", "tester", "guest"]
Kind = Literal["bug", "feature", "chore"]
Priority = Literal["low", "medium", "high", "urgent"]
Status = Literal["todo", "in_progress", "in_review", "done", "cancelled"]

KINDS = ("bug", "feature", "chore")
PRIORITIES = ("low", "medium", "high", "urgent")
POINTS = (1, 2, 3, 5, 8)
NEXT_STATUSES = {
    "todo": ("in_progress", "cancelled"),
    "in_progress": ("todo", "cancelled"),
    "in_review": ("in_progress", "done"),
    "done": ("todo",),
    "cancelled": ("todo",),
}
FINISHED = ("done", "cancelled")
MAX_IN_PROGRESS = 2
BACKLOG = "backlog"


class Member(TypedDict):
    """A person of the team; `away_until` is the last day of an absence."""

    member_id: str
    name: str
    role: Role
    away_until: str | None


class Issue(TypedDict):
    """A piece of work; it cannot start before the issues in `blocked_by` are done."""

    issue_id: str
    title: str
    kind: Kind
    priority: Priority
    status: Status
    points: int | None
    assignee: str | None
    reviewer: str | None
    sprint_id: str | None
    blocked_by: list[str]


class Sprint(TypedDict):
    """A stretch of time with the number of points that the team can take on in it."""

    sprint_id: str
    name: str
    status: Literal["planned", "active", "closed"]
    starts_on: str
    ends_on: str
    capacity: int


class ProjectTracker:
    """A software team's project tracker, where an agent manages issues and sprints for a member of the team.

    Issues wait in the backlog until they are planned into a sprint, and then move from todo through
    in_progress and in_review to done. Sprints are planned, active or closed. Members are leads, developers,
    testers or guests; the agent acts with the rights of the member `acting_as`. The current date is `today`.

    Rules:
    - An issue moves one step at a time: todo, in_progress, in_review, done; in_progress can go back to todo and in_review back to in_progress.
    - An issue in todo or in_progress can be cancelled; a done or cancelled issue can be reopened to todo, and goes to the backlog if its sprint is closed.
    - Work starts only on an issue that is assigned, and that is in the active sprint.
    - Work starts only when every issue that blocks it is done.
    - A member has at most 2 issues in progress.
    - A review needs a reviewer who is not the assignee, not a guest and not away.
    - Guests cannot be assigned to issues, and neither can members who are away today; nor can an away member's issue be started.
    - Issues are estimated with 1, 2, 3, 5 or 8 points, and only while they are in todo.
    - An issue needs an estimate before it can be planned into a sprint.
    - The points of a sprint's issues, cancelled ones left out, never exceed its capacity.
    - Only issues in todo can be moved between sprints and the backlog, and no issue can be moved into a closed sprint.
    - Only bugs can be urgent.
    - Two open issues cannot have the same title.
    - Dependencies never form a circle, and finished issues get no new ones.
    - An issue that blocks an unfinished issue cannot be cancelled before that dependency is removed.
    - Only leads can set or take away urgent priority, cancel or reopen issues, and create, start or close sprints.
    - Sprints do not overlap, and only one is active at a time.
    - A sprint starts with at least one issue in it.
    - A sprint can be closed when all its issues are done or cancelled; move the others out of it first.
    """

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.today: str = init_config.get("today", "2026-01-01")
        self.acting_as: str = init_config.get("acting_as", "")
        self.members: dict[str, Member] = init_config.get("members", {})
        self.issues: dict[str, Issue] = init_config.get("issues", {})
        self.sprints: dict[str, Sprint] = init_config.get("sprints", {})
        self.counters: dict[str, int] = init_config.get("counters", {"issue": 0, "sprint": 0})

    def list_members(self) -> dict[str, Any]:
        """List the team's members, today's date, and the member that you act for.

        Returns:
            dict: success, today, acting_as and members.
        """
        return {
            "success": True,
            "today": self.today,
            "acting_as": self.acting_as,
            "members": list(self.members.values()),
        }

    def list_sprints(self) -> dict[str, Any]:
        """List all sprints with their capacity and the points planned in them.

        Returns:
            dict: success and sprints.
        """
        sprints = [
            {**sprint, "planned_points": self._planned(sprint_id)}
            for sprint_id, sprint in self.sprints.items()
        ]
        return {"success": True, "sprints": sprints}

    def find_issues(
        self, text: str = "", status: str = "", assignee: str = "", sprint_id: str = ""
    ) -> dict[str, Any]:
        """Find issues that meet all given conditions.

        Args:
            text (str): Part of the title.
            status (str): todo, in_progress, in_review, done or cancelled.
            assignee (str): A member's id, or "none".
            sprint_id (str): A sprint's id, or "backlog".

        Returns:
            dict: success and issues.
        """
        found = [
            issue
            for issue in self.issues.values()
            if str(text).strip().lower() in issue["title"].lower()
            and status in ("", issue["status"])
            and assignee in ("", issue["assignee"] or "none")
            and sprint_id in ("", issue["sprint_id"] or BACKLOG)
        ]
        return {"success": True, "issues": found}

    def get_issue(self, issue_id: str) -> dict[str, Any]:
        """Show an issue and the issues that it blocks.

        Args:
            issue_id (str): The issue's id.

        Returns:
            dict: success, issue and blocks, or an error.
        """
        issue = self.issues.get(issue_id)
        if issue is None:
            return _unknown_issue(issue_id)
        return {"success": True, "issue": issue, "blocks": self._blocked_issues(issue_id)}

    def create_issue(self, title: str, kind: Kind, priority: Priority) -> dict[str, Any]:
        """Create an issue in the backlog.

        Args:
            title (str): The title.
            kind (str): bug, feature or chore.
            priority (str): low, medium, high or urgent.

        Returns:
            dict: success and issue, or an error.
        """
        title = str(title).strip()
        if not title:
            return _refused("The title must not be empty.")
        if kind not in KINDS:
            return _refused(f"Unknown kind {kind!r}: use one of {list(KINDS)}.")
        namesake = self._open_issue_titled(title)
        if namesake:
            return _refused(f"Open issue {namesake} already has this title: use it, or choose another title.")
        problem = self._priority_problem(kind, "low", priority)
        if problem:
            return _refused(problem)
        issue: Issue = {
            "issue_id": self._new_id("issue", "T"),
            "title": title,
            "kind": kind,
            "priority": priority,
            "status": "todo",
            "points": None,
            "assignee": None,
            "reviewer": None,
            "sprint_id": None,
            "blocked_by": [],
        }
        self.issues[issue["issue_id"]] = issue
        return {"success": True, "issue": issue}

    def set_priority(self, issue_id: str, priority: Priority) -> dict[str, Any]:
        """Change an issue's priority.

        Args:
            issue_id (str): The issue's id.
            priority (str): low, medium, high or urgent.

        Returns:
            dict: success and issue, or an error.
        """
        issue = self.issues.get(issue_id)
        if issue is None:
            return _unknown_issue(issue_id)
        if issue["status"] in FINISHED:
            return _finished(issue)
        problem = self._priority_problem(issue["kind"], issue["priority"], priority)
        if problem:
            return _refused(problem)
        issue["priority"] = priority
        return {"success": True, "issue": issue}

    def estimate_issue(self, issue_id: str, points: int) -> dict[str, Any]:
        """Estimate an issue.

        Args:
            issue_id (str): The issue's id.
            points (int): 1, 2, 3, 5 or 8.

        Returns:
            dict: success and issue, or an error.
        """
        issue = self.issues.get(issue_id)
        if issue is None:
            return _unknown_issue(issue_id)
        if issue["status"] != "todo":
            return _refused(f"Issue {issue_id} is {issue['status']}: only issues in todo can be estimated.")
        if not _is_whole(points) or points not in POINTS:
            return _refused(f"points must be one of {list(POINTS)}, not {points!r}.")
        if issue["sprint_id"]:
            problem = self._capacity_problem(issue["sprint_id"], points - (issue["points"] or 0))
            if problem:
                return _refused(problem)
        issue["points"] = points
        return {"success": True, "issue": issue}

    def assign_issue(self, issue_id: str, member_id: str) -> dict[str, Any]:
        """Assign an unfinished issue to a member.

        Args:
            issue_id (str): The issue's id.
            member_id (str): The member's id.

        Returns:
            dict: success and issue, or an error.
        """
        issue = self.issues.get(issue_id)
        if issue is None:
            return _unknown_issue(issue_id)
        if issue["status"] in FINISHED:
            return _finished(issue)
        problem = self._unavailable(member_id)
        if problem:
            return _refused(problem)
        if issue["reviewer"] == member_id:
            return _refused(f"{member_id} reviews {issue_id}: choose an assignee who is not the reviewer.")
        if issue["status"] == "in_progress" and issue["assignee"] != member_id and self._is_busy(member_id):
            return _busy(member_id)
        issue["assignee"] = member_id
        return {"success": True, "issue": issue}

    def move_to_sprint(self, issue_id: str, sprint_id: str) -> dict[str, Any]:
        """Plan an issue into a sprint, or take it out of its sprint.

        Args:
            issue_id (str): The issue's id.
            sprint_id (str): The sprint's id, or "backlog".

        Returns:
            dict: success and issue, or an error.
        """
        issue = self.issues.get(issue_id)
        if issue is None:
            return _unknown_issue(issue_id)
        if issue["status"] != "todo":
            return _refused(f"Issue {issue_id} is {issue['status']}: only issues in todo can be moved.")
        if (issue["sprint_id"] or BACKLOG) == sprint_id:
            return _refused(f"Issue {issue_id} is already in {sprint_id}.")
        if sprint_id == BACKLOG:
            issue["sprint_id"] = None
            return {"success": True, "issue": issue}
        sprint = self.sprints.get(sprint_id)
        if sprint is None:
            return _unknown_sprint(sprint_id)
        if sprint["status"] == "closed":
            return _refused(f"Sprint {sprint_id} is closed: choose a planned or active sprint.")
        if issue["points"] is None:
            return _refused(f"Issue {issue_id} has no estimate: use estimate_issue first.")
        problem = self._capacity_problem(sprint_id, issue["points"])
        if problem:
            return _refused(problem)
        issue["sprint_id"] = sprint_id
        return {"success": True, "issue": issue}

    def add_dependency(self, issue_id: str, blocked_by: str) -> dict[str, Any]:
        """Record that an issue cannot start before another is done.

        Args:
            issue_id (str): The issue that has to wait.
            blocked_by (str): The issue that has to be done first.

        Returns:
            dict: success and issue, or an error.
        """
        issue, blocker = self.issues.get(issue_id), self.issues.get(blocked_by)
        if issue is None or blocker is None:
            return _unknown_issue(issue_id if issue is None else blocked_by)
        for either in (issue, blocker):
            if either["status"] in FINISHED:
                return _finished(either)
        if blocked_by in issue["blocked_by"]:
            return _refused(f"Issue {issue_id} is already blocked by {blocked_by}.")
        if issue_id in self._all_blockers(blocked_by):
            return _refused(
                f"{issue_id} blocked by {blocked_by} would form a circle: {blocked_by} waits for {issue_id}."
            )
        issue["blocked_by"].append(blocked_by)
        return {"success": True, "issue": issue}

    def remove_dependency(self, issue_id: str, blocked_by: str) -> dict[str, Any]:
        """Remove a dependency between two issues.

        Args:
            issue_id (str): The issue that waits.
            blocked_by (str): The issue that it waits for.

        Returns:
            dict: success and issue, or an error.
        """
        issue = self.issues.get(issue_id)
        if issue is None:
            return _unknown_issue(issue_id)
        if blocked_by not in issue["blocked_by"]:
            return _refused(
                f"Issue {issue_id} is not blocked by {blocked_by!r}, only by {issue['blocked_by']}."
            )
        issue["blocked_by"].remove(blocked_by)
        return {"success": True, "issue": issue}

    def set_status(self, issue_id: str, status: Status) -> dict[str, Any]:
        """Move an issue to its next status, back, or to cancelled; for in_review use request_review.

        Args:
            issue_id (str): The issue's id.
            status (str): todo, in_progress, done or cancelled.

        Returns:
            dict: success and issue, or an error.
        """
        issue = self.issues.get(issue_id)
        if issue is None:
            return _unknown_issue(issue_id)
        if status == "in_review":
            return _refused("A review needs a reviewer: use request_review.")
        allowed = NEXT_STATUSES[issue["status"]]
        if status not in allowed:
            return _refused(
                f"Issue {issue_id} is {issue['status']}: set_status can make it {' or '.join(allowed)}."
            )
        problem = self._transition_problem(issue, status)
        if problem:
            return _refused(problem)
        if status in ("todo", "in_progress"):
            issue["reviewer"] = None
        if issue["sprint_id"] and self.sprints[issue["sprint_id"]]["status"] == "closed":
            issue["sprint_id"] = None
        issue["status"] = status
        return {"success": True, "issue": issue}

    def request_review(self, issue_id: str, reviewer: str) -> dict[str, Any]:
        """Move an issue from in_progress to in_review.

        Args:
            issue_id (str): The issue's id.
            reviewer (str): Id of the member who reviews it.

        Returns:
            dict: success and issue, or an error.
        """
        issue = self.issues.get(issue_id)
        if issue is None:
            return _unknown_issue(issue_id)
        if issue["status"] != "in_progress":
            return _refused(
                f"Issue {issue_id} is {issue['status']}: only issues in progress can be reviewed."
            )
        problem = self._unavailable(reviewer)
        if problem:
            return _refused(problem)
        if reviewer == issue["assignee"]:
            return _refused(f"{reviewer} is assigned to {issue_id}: choose another reviewer.")
        issue["reviewer"] = reviewer
        issue["status"] = "in_review"
        return {"success": True, "issue": issue}

    def create_sprint(self, name: str, starts_on: str, ends_on: str, capacity: int) -> dict[str, Any]:
        """Create a planned sprint.

        Args:
            name (str): The sprint's name.
            starts_on (str): First day, YYYY-MM-DD.
            ends_on (str): Last day, YYYY-MM-DD.
            capacity (int): Points that the team can take on.

        Returns:
            dict: success and sprint, or an error.
        """
        problem = self._not_lead("create sprints") or _dates_problem(starts_on, ends_on)
        if problem:
            return _refused(problem)
        if not _is_whole(capacity) or capacity < 1:
            return _refused(f"capacity must be a whole number of at least 1, not {capacity!r}.")
        for other in self.sprints.values():
            if starts_on <= other["ends_on"] and other["starts_on"] <= ends_on:
                return _refused(
                    f"These days overlap with {other['sprint_id']}, {other['starts_on']} to {other['ends_on']}: "
                    "choose other days."
                )
        sprint: Sprint = {
            "sprint_id": self._new_id("sprint", "S"),
            "name": str(name).strip(),
            "status": "planned",
            "starts_on": starts_on,
            "ends_on": ends_on,
            "capacity": capacity,
        }
        self.sprints[sprint["sprint_id"]] = sprint
        return {"success": True, "sprint": sprint}

    def start_sprint(self, sprint_id: str) -> dict[str, Any]:
        """Start a planned sprint.

        Args:
            sprint_id (str): The sprint's id.

        Returns:
            dict: success and sprint, or an error.
        """
        sprint = self.sprints.get(sprint_id)
        if sprint is None:
            return _unknown_sprint(sprint_id)
        problem = self._not_lead("start sprints")
        if problem:
            return _refused(problem)
        if sprint["status"] != "planned":
            return _refused(f"Sprint {sprint_id} is {sprint['status']}: only planned sprints can be started.")
        active = [other["sprint_id"] for other in self.sprints.values() if other["status"] == "active"]
        if active:
            return _refused(f"Sprint {active[0]} is active: close it first.")
        if not any(issue["sprint_id"] == sprint_id for issue in self.issues.values()):
            return _refused(f"Sprint {sprint_id} has no issue: use move_to_sprint first.")
        sprint["status"] = "active"
        return {"success": True, "sprint": sprint}

    def close_sprint(self, sprint_id: str) -> dict[str, Any]:
        """Close the active sprint, once all its issues are done or cancelled.

        Args:
            sprint_id (str): The sprint's id.

        Returns:
            dict: success and sprint, or an error.
        """
        sprint = self.sprints.get(sprint_id)
        if sprint is None:
            return _unknown_sprint(sprint_id)
        problem = self._not_lead("close sprints")
        if problem:
            return _refused(problem)
        if sprint["status"] != "active":
            return _refused(
                f"Sprint {sprint_id} is {sprint['status']}: only the active sprint can be closed."
            )
        unfinished = [
            issue["issue_id"]
            for issue in self.issues.values()
            if issue["sprint_id"] == sprint_id and issue["status"] not in FINISHED
        ]
        if unfinished:
            return _refused(
                f"Unfinished issues in {sprint_id}: {unfinished}. Finish, cancel or move them first."
            )
        sprint["status"] = "closed"
        return {"success": True, "sprint": sprint}

    def _new_id(self, kind: str, prefix: str) -> str:
        self.counters[kind] += 1
        return f"{prefix}-{self.counters[kind]}"

    def _planned(self, sprint_id: str) -> int:
        return sum(
            issue["points"] or 0
            for issue in self.issues.values()
            if issue["sprint_id"] == sprint_id and issue["status"] != "cancelled"
        )

    def _open_issue_titled(self, title: str) -> str | None:
        for issue in self.issues.values():
            if issue["title"].lower() == title.lower() and issue["status"] not in FINISHED:
                return issue["issue_id"]
        return None

    def _blocked_issues(self, issue_id: str) -> list[str]:
        """The unfinished issues that wait for this one."""
        return [
            issue["issue_id"]
            for issue in self.issues.values()
            if issue_id in issue["blocked_by"] and issue["status"] not in FINISHED
        ]

    def _all_blockers(self, issue_id: str) -> set[str]:
        """The issue itself and everything it waits for, directly or not."""
        found: set[str] = set()
        waiting = [issue_id]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting.extend(self.issues[current]["blocked_by"])
        return found

    def _is_busy(self, member_id: str) -> bool:
        in_progress = [
            issue
            for issue in self.issues.values()
            if issue["assignee"] == member_id and issue["status"] == "in_progress"
        ]
        return len(in_progress) >= MAX_IN_PROGRESS

    def _not_lead(self, action: str) -> str | None:
        member = self.members.get(self.acting_as)
        if member is not None and member["role"] == "lead":
            return None
        leads = [lead["member_id"] for lead in self.members.values() if lead["role"] == "lead"]
        return f"You act for {self.acting_as}, and only leads ({', '.join(leads)}) can {action}."

    def _unavailable(self, member_id: str) -> str | None:
        """Why a member can take no work, or None if they can."""
        member = self.members.get(member_id)
        if member is None:
            return f"No member {member_id!r}: use list_members to find the id."
        if member["role"] == "guest":
            return f"{member['name']} is a guest: choose a lead, developer or tester."
        if member["away_until"] and member["away_until"] >= self.today:
            return f"{member['name']} is away until {member['away_until']}: choose someone else."
        return None

    def _priority_problem(self, kind: str, old: str, new: str) -> str | None:
        if new not in PRIORITIES:
            return f"Unknown priority {new!r}: use one of {list(PRIORITIES)}."
        if new == "urgent" and kind != "bug":
            return f"Only bugs can be urgent, and this is a {kind}: use high."
        if old != new and "urgent" in (old, new):
            return self._not_lead("set or take away urgent priority")
        return None

    def _capacity_problem(self, sprint_id: str, added: int) -> str | None:
        capacity, planned = self.sprints[sprint_id]["capacity"], self._planned(sprint_id)
        if planned + added > capacity:
            return f"Sprint {sprint_id} has {planned} of {capacity} points planned: {added} more do not fit."
        return None

    def _transition_problem(self, issue: Issue, status: Status) -> str | None:
        """Why an issue cannot take the step to a status that its workflow allows, or None if it can."""
        if status == "in_progress":
            return self._start_problem(issue)
        if status == "cancelled":
            waiting = self._blocked_issues(issue["issue_id"])
            if waiting:
                return f"Issue {issue['issue_id']} blocks {waiting}: use remove_dependency first."
            return self._not_lead("cancel issues")
        if issue["status"] in FINISHED:
            return self._reopen_problem(issue)
        return None

    def _start_problem(self, issue: Issue) -> str | None:
        issue_id, assignee, sprint_id = issue["issue_id"], issue["assignee"], issue["sprint_id"]
        if assignee is None:
            return f"Issue {issue_id} has no assignee: use assign_issue first."
        absence = self._unavailable(assignee)
        if absence:
            return absence
        if sprint_id is None or self.sprints[sprint_id]["status"] != "active":
            return f"Issue {issue_id} is in {sprint_id or BACKLOG}: move it to the active sprint first."
        open_blockers = [
            blocker for blocker in issue["blocked_by"] if self.issues[blocker]["status"] != "done"
        ]
        if open_blockers:
            return f"Issue {issue_id} is blocked by {open_blockers}: they must be done first."
        if self._is_busy(assignee):
            return f"{assignee} already has {MAX_IN_PROGRESS} issues in progress: finish one or assign someone else."
        return None

    def _reopen_problem(self, issue: Issue) -> str | None:
        namesake = self._open_issue_titled(issue["title"])
        if namesake:
            return f"Open issue {namesake} has the same title: work on that one."
        problem = self._not_lead("reopen issues")
        sprint_id = issue["sprint_id"]
        if (
            problem is None
            and issue["status"] == "cancelled"
            and sprint_id
            and self.sprints[sprint_id]["status"] != "closed"
        ):
            problem = self._capacity_problem(sprint_id, issue["points"] or 0)
        return problem


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except (TypeError, ValueError):
        return False


def _dates_problem(starts_on: str, ends_on: str) -> str | None:
    for day in (starts_on, ends_on):
        if not _is_day(day):
            return f"{day!r} is not a day in the form YYYY-MM-DD."
    if starts_on > ends_on:
        return f"A sprint cannot end on {ends_on}, before it starts on {starts_on}."
    return None


def _refused(error: str) -> dict[str, Any]:
    return {"success": False, "error": error}


def _unknown_issue(issue_id: str) -> dict[str, Any]:
    return _refused(f"No issue {issue_id!r}: use find_issues to find the id.")


def _unknown_sprint(sprint_id: str) -> dict[str, Any]:
    return _refused(f"No sprint {sprint_id!r}: use list_sprints to find the id.")


def _finished(issue: Issue) -> dict[str, Any]:
    return _refused(f"Issue {issue['issue_id']} is {issue['status']}: reopen it with set_status todo first.")


def _busy(member_id: str) -> dict[str, Any]:
    return _refused(f"{member_id} already has {MAX_IN_PROGRESS} issues in progress: choose someone else.")
