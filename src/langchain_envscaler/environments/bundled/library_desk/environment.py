"""The circulation desk of a public library: loans, holds, renewals and fines."""

from datetime import date, timedelta
from typing import Any, TypedDict

LOAN_LIMITS = {"adult": 5, "child": 3}
LOAN_DAYS = {"book": 21, "dvd": 7}
HOLD_LIMIT = 3
PICKUP_DAYS = 7
MAX_RENEWALS = 2
DEBT_LIMIT_CENTS = 500
WAIVER_LIMIT_CENTS = 500
FINE_PER_DAY_CENTS = 25
MAX_OVERDUE_FINE_CENTS = 1000
MEMBERSHIP_DAYS = 365


class Member(TypedDict):
    member_id: str
    name: str
    email: str
    category: str  # "adult" or "child"
    status: str  # "active" or "suspended"
    expires_on: str


class Title(TypedDict):
    title_id: str
    title: str
    author: str
    format: str  # "book" or "dvd"
    audience: str  # "all" or "adult"
    reference_only: bool
    price_cents: int


class Copy(TypedDict):
    copy_id: str
    title_id: str
    status: str  # "available", "on_loan", "held" or "lost"


class Loan(TypedDict):
    loan_id: str
    copy_id: str
    member_id: str
    borrowed_on: str
    due_on: str
    renewals: int
    status: str  # "open", "returned" or "lost"
    closed_on: str | None


class Hold(TypedDict):
    hold_id: str
    title_id: str
    member_id: str
    placed_on: str
    status: str  # "waiting", "ready", "collected" or "cancelled"
    copy_id: str | None
    pickup_by: str | None


class Fine(TypedDict):
    fine_id: str
    member_id: str
    loan_id: str
    kind: str  # "overdue" or "lost"
    amount_cents: int
    paid_cents: int
    status: str  # "unpaid", "paid" or "waived"
    note: str


class LibraryDesk:
    """The circulation desk of a public library.

    The desk lends copies of books and DVDs to members, takes them back, keeps the queues of holds and settles
    fines. A title has one or more copies; loans are of copies, holds are for titles. Money is in cents, dates
    are YYYY-MM-DD, and today's date is part of the state.

    Rules:
    - A member who is suspended, whose membership has expired or who owes more than 500 cents cannot borrow, renew or place holds.
    - An adult may have 5 open loans, a child 3. A child cannot borrow or hold a title for adults.
    - Books are lent for 21 days, DVDs for 7. A reference-only title is never lent or held.
    - A held copy is lent only to the member whose hold is ready for it; lending it settles the hold.
    - A loan is renewed from today for its full period, at most twice, never when overdue or when another member waits for the title.
    - A hold is for a title with no available copy that the member neither has on loan nor holds already; a member may have 3 open holds.
    - A copy that comes back, or whose hold is cancelled, is held for the longest-waiting hold on its title for 7 days; with none waiting it becomes available.
    - A late return costs 25 cents a day, at most 1000 cents, charged when the copy is checked in.
    - A lost copy costs the price of its title instead of an overdue fine.
    - Only overdue fines with at most 500 cents still owed can be waived.
    - A membership is extended by 365 days, from today or from its end if that is later, once nothing is owed.
    """

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.today: str = init_config.get("today", "2026-01-01")
        self.members: dict[str, Member] = init_config.get("members", {})
        self.titles: dict[str, Title] = init_config.get("titles", {})
        self.copies: dict[str, Copy] = init_config.get("copies", {})
        self.loans: dict[str, Loan] = init_config.get("loans", {})
        self.holds: dict[str, Hold] = init_config.get("holds", {})
        self.fines: dict[str, Fine] = init_config.get("fines", {})
        self.next_numbers: dict[str, int] = init_config.get(
            "next_numbers", {"member": 1, "loan": 1, "hold": 1, "fine": 1}
        )

    def find_members(self, query: str) -> dict[str, Any]:
        """Find members by a part of their name or email.

        Args:
            query: The text to look for, in any case.

        Returns:
            The matching members.
        """
        wanted = query.strip().lower()
        found = [m for m in self.members.values() if wanted in f"{m['name']}\n{m['email']}".lower()]
        return {"success": True, "members": found}

    def get_member(self, member_id: str) -> dict[str, Any]:
        """Get a member with open loans, open holds and unpaid fines.

        Args:
            member_id: The member.

        Returns:
            The member, what is open, and the cents owed.
        """
        member = self.members.get(member_id)
        if member is None:
            return self._unknown("member", member_id, "find_members")
        return {
            "success": True,
            "member": member,
            "loans": [self._with_title(loan) for loan in self._open_loans(member_id)],
            "holds": [
                {**hold, "title": self.titles[hold["title_id"]]["title"]}
                for hold in self._open_holds(member_id)
            ],
            "unpaid_fines": self._unpaid_fines(member_id),
            "owed_cents": self._owed(member_id),
        }

    def register_member(self, name: str, email: str, category: str) -> dict[str, Any]:
        """Register a new member for 365 days.

        Args:
            name: First and last name.
            email: An address that no other member has.
            category: "adult" or "child".

        Returns:
            The new member.
        """
        if category not in LOAN_LIMITS:
            return self._error(f"category must be 'adult' or 'child', not {category!r}.")
        if not name.strip() or "@" not in email:
            return self._error("A member needs a name and an email address.")
        for member in self.members.values():
            if member["email"].lower() == email.lower():
                return self._error(f"{member['member_id']} already has the email {member['email']}.")
        new: Member = {
            "member_id": self._new_id("member", "M"),
            "name": name.strip(),
            "email": email,
            "category": category,
            "status": "active",
            "expires_on": self._in_days(MEMBERSHIP_DAYS),
        }
        self.members[new["member_id"]] = new
        return {"success": True, "member": new}

    def extend_membership(self, member_id: str) -> dict[str, Any]:
        """Extend a membership by 365 days.

        Args:
            member_id: The member.

        Returns:
            The member with the new end date.
        """
        member = self.members.get(member_id)
        if member is None:
            return self._unknown("member", member_id, "find_members")
        if member["status"] == "suspended":
            return self._error(f"{member_id} is suspended.")
        if self._owed(member_id):
            return self._error(f"{member_id} owes {self._owed(member_id)} cents; they must be paid first.")
        start = max(self.today, member["expires_on"])
        member["expires_on"] = (date.fromisoformat(start) + timedelta(days=MEMBERSHIP_DAYS)).isoformat()
        return {"success": True, "member": member}

    def search_titles(self, query: str) -> dict[str, Any]:
        """Search the catalogue by a part of a title or an author's name.

        Args:
            query: The text to look for, in any case.

        Returns:
            The matching titles, each with its number of available copies.
        """
        wanted = query.strip().lower()
        found = [
            {**title, "available_copies": len(self._available_copies(title["title_id"]))}
            for title in self.titles.values()
            if wanted in f"{title['title']}\n{title['author']}".lower()
        ]
        return {"success": True, "titles": found}

    def get_title(self, title_id: str) -> dict[str, Any]:
        """Get a title with its copies, its open loans and its queue of holds.

        Args:
            title_id: The title.

        Returns:
            The title, its copies and loans, and its open holds in order.
        """
        title = self.titles.get(title_id)
        if title is None:
            return self._unknown("title", title_id, "search_titles")
        copies = [copy for copy in self.copies.values() if copy["title_id"] == title_id]
        ids = {copy["copy_id"] for copy in copies}
        open_holds = [h for h in self.holds.values() if h["title_id"] == title_id and self._is_open(h)]
        return {
            "success": True,
            "title": title,
            "copies": copies,
            "loans": [x for x in self.loans.values() if x["copy_id"] in ids and x["status"] == "open"],
            "holds": sorted(open_holds, key=self._queue_place),
        }

    def check_out(self, member_id: str, copy_id: str) -> dict[str, Any]:
        """Lend a copy to a member.

        Args:
            member_id: The borrower.
            copy_id: An available copy, or the one held for this member.

        Returns:
            The new loan.
        """
        copy = self.copies.get(copy_id)
        if copy is None:
            return self._unknown("copy", copy_id, "get_title")
        title = self.titles[copy["title_id"]]
        refusal = self._refusal(member_id, title)
        if refusal:
            return refusal
        limit = LOAN_LIMITS[self.members[member_id]["category"]]
        if len(self._open_loans(member_id)) >= limit:
            return self._error(
                f"{member_id} already has {limit} open loans, the limit; one must come back first."
            )
        if copy["status"] in ("on_loan", "lost"):
            return self._error(f"Copy {copy_id} is {copy['status']}; see get_title for other copies.")
        if copy["status"] == "held":
            hold = next(h for h in self.holds.values() if h["copy_id"] == copy_id and h["status"] == "ready")
            if hold["member_id"] != member_id:
                return self._error(
                    f"Copy {copy_id} is held for {hold['member_id']} (hold {hold['hold_id']})."
                )
            hold["status"] = "collected"
        loan: Loan = {
            "loan_id": self._new_id("loan", "L"),
            "copy_id": copy_id,
            "member_id": member_id,
            "borrowed_on": self.today,
            "due_on": self._in_days(LOAN_DAYS[title["format"]]),
            "renewals": 0,
            "status": "open",
            "closed_on": None,
        }
        self.loans[loan["loan_id"]] = loan
        copy["status"] = "on_loan"
        return {"success": True, "loan": self._with_title(loan)}

    def check_in(self, copy_id: str) -> dict[str, Any]:
        """Take back a copy that was on loan.

        Args:
            copy_id: The returned copy.

        Returns:
            The closed loan, the overdue fine if any, and the hold that the copy is now kept for if any.
        """
        copy = self.copies.get(copy_id)
        if copy is None:
            return self._unknown("copy", copy_id, "get_member")
        loan = next(
            (x for x in self.loans.values() if x["copy_id"] == copy_id and x["status"] == "open"), None
        )
        if loan is None:
            return self._error(f"Copy {copy_id} is not on loan; it is {copy['status']}.")
        loan["status"], loan["closed_on"] = "returned", self.today
        amount = self._overdue_cents(loan)
        fine = self._charge(loan, "overdue", amount) if amount else None
        return {"success": True, "loan": self._with_title(loan), "fine": fine, "hold": self._pass_on(copy)}

    def renew_loan(self, loan_id: str) -> dict[str, Any]:
        """Renew an open loan from today for its full period.

        Args:
            loan_id: The loan.

        Returns:
            The loan with its new due date.
        """
        loan = self.loans.get(loan_id)
        if loan is None:
            return self._unknown("loan", loan_id, "get_member")
        if loan["status"] != "open":
            return self._error(f"Loan {loan_id} is {loan['status']}.")
        title = self.titles[self.copies[loan["copy_id"]]["title_id"]]
        refusal = self._refusal(loan["member_id"], title)
        if refusal:
            return refusal
        if loan["due_on"] < self.today:
            return self._error(f"Loan {loan_id} was due on {loan['due_on']}; the copy must come back.")
        if loan["renewals"] >= MAX_RENEWALS:
            return self._error(f"Loan {loan_id} has been renewed {MAX_RENEWALS} times, the limit.")
        if self._waiting_holds(title["title_id"]):
            return self._error(
                f"Another member waits for {title['title']!r}; loan {loan_id} cannot be renewed."
            )
        loan["due_on"] = self._in_days(LOAN_DAYS[title["format"]])
        loan["renewals"] += 1
        return {"success": True, "loan": self._with_title(loan)}

    def place_hold(self, member_id: str, title_id: str) -> dict[str, Any]:
        """Put a member at the end of a title's queue.

        Args:
            member_id: The member.
            title_id: A title with no available copy.

        Returns:
            The new hold.
        """
        title = self.titles.get(title_id)
        if title is None:
            return self._unknown("title", title_id, "search_titles")
        refusal = self._refusal(member_id, title)
        if refusal:
            return refusal
        available = self._available_copies(title_id)
        if available:
            return self._error(f"Copy {available[0]} of {title_id} is available; check it out instead.")
        if any(self.copies[loan["copy_id"]]["title_id"] == title_id for loan in self._open_loans(member_id)):
            return self._error(f"{member_id} has {title_id} on loan.")
        holds = self._open_holds(member_id)
        if any(hold["title_id"] == title_id for hold in holds):
            return self._error(f"{member_id} already has a hold on {title_id}.")
        if len(holds) >= HOLD_LIMIT:
            return self._error(f"{member_id} has {HOLD_LIMIT} open holds, the limit; cancel one first.")
        hold: Hold = {
            "hold_id": self._new_id("hold", "H"),
            "title_id": title_id,
            "member_id": member_id,
            "placed_on": self.today,
            "status": "waiting",
            "copy_id": None,
            "pickup_by": None,
        }
        self.holds[hold["hold_id"]] = hold
        return {"success": True, "hold": hold}

    def cancel_hold(self, hold_id: str) -> dict[str, Any]:
        """Cancel a waiting or ready hold; a copy kept for it passes on.

        Args:
            hold_id: The hold.

        Returns:
            The cancelled hold, and the next hold that the copy is now kept for if any.
        """
        hold = self.holds.get(hold_id)
        if hold is None:
            return self._unknown("hold", hold_id, "get_member")
        if not self._is_open(hold):
            return self._error(f"Hold {hold_id} is already {hold['status']}.")
        copy_id = hold["copy_id"]
        hold["status"] = "cancelled"
        next_hold = self._pass_on(self.copies[copy_id]) if copy_id else None
        return {"success": True, "hold": hold, "next_hold": next_hold}

    def pay_fine(self, fine_id: str, amount_cents: int) -> dict[str, Any]:
        """Take a payment towards a fine, in full or in part.

        Args:
            fine_id: The fine.
            amount_cents: What is paid, at most what is still owed.

        Returns:
            The fine.
        """
        fine = self.fines.get(fine_id)
        if fine is None:
            return self._unknown("fine", fine_id, "get_member")
        if fine["status"] != "unpaid":
            return self._error(f"Fine {fine_id} is already {fine['status']}.")
        owed = fine["amount_cents"] - fine["paid_cents"]
        if not isinstance(amount_cents, int) or not 0 < amount_cents <= owed:
            return self._error(f"amount_cents must be a whole number from 1 to {owed}, not {amount_cents!r}.")
        fine["paid_cents"] += amount_cents
        if amount_cents == owed:
            fine["status"] = "paid"
        return {"success": True, "fine": fine}

    def waive_fine(self, fine_id: str, reason: str) -> dict[str, Any]:
        """Waive what is still owed of an overdue fine.

        Args:
            fine_id: The fine.
            reason: Why, for the record.

        Returns:
            The fine.
        """
        fine = self.fines.get(fine_id)
        if fine is None:
            return self._unknown("fine", fine_id, "get_member")
        if fine["status"] != "unpaid":
            return self._error(f"Fine {fine_id} is already {fine['status']}.")
        if fine["kind"] != "overdue":
            return self._error(f"Fine {fine_id} is for a lost copy; only overdue fines can be waived.")
        owed = fine["amount_cents"] - fine["paid_cents"]
        if owed > WAIVER_LIMIT_CENTS:
            return self._error(f"Fine {fine_id} has {owed} cents owed, more than {WAIVER_LIMIT_CENTS}.")
        if not reason.strip():
            return self._error("A waiver needs a reason.")
        fine["status"], fine["note"] = "waived", reason
        return {"success": True, "fine": fine}

    def report_lost(self, loan_id: str) -> dict[str, Any]:
        """Close an open loan whose copy is lost and charge the price of the title.

        Args:
            loan_id: The loan.

        Returns:
            The closed loan and the fine.
        """
        loan = self.loans.get(loan_id)
        if loan is None:
            return self._unknown("loan", loan_id, "get_member")
        if loan["status"] != "open":
            return self._error(f"Loan {loan_id} is {loan['status']}.")
        copy = self.copies[loan["copy_id"]]
        loan["status"], loan["closed_on"], copy["status"] = "lost", self.today, "lost"
        fine = self._charge(loan, "lost", self.titles[copy["title_id"]]["price_cents"])
        return {"success": True, "loan": self._with_title(loan), "fine": fine}

    def list_overdue_loans(self) -> dict[str, Any]:
        """List the open loans that are past their due date.

        Returns:
            The loans, longest overdue first, each with the fine if it came back today.
        """
        late = [x for x in self.loans.values() if x["status"] == "open" and x["due_on"] < self.today]
        late.sort(key=lambda loan: (loan["due_on"], loan["loan_id"]))
        return {
            "success": True,
            "loans": [{**self._with_title(loan), "fine_cents": self._overdue_cents(loan)} for loan in late],
        }

    def list_uncollected_holds(self) -> dict[str, Any]:
        """List the ready holds whose pickup date has passed.

        Returns:
            The holds, oldest pickup date first.
        """
        late = [
            h for h in self.holds.values() if h["status"] == "ready" and (h["pickup_by"] or "") < self.today
        ]
        return {"success": True, "holds": sorted(late, key=lambda hold: (hold["pickup_by"], hold["hold_id"]))}

    def _refusal(self, member_id: str, title: Title) -> dict[str, Any] | None:
        """The error if this member may not borrow, renew or hold this title."""
        member = self.members.get(member_id)
        if member is None:
            return self._unknown("member", member_id, "find_members")
        if member["status"] == "suspended":
            return self._error(f"{member_id} is suspended.")
        if member["expires_on"] < self.today:
            return self._error(
                f"The membership of {member_id} ended on {member['expires_on']}; extend it first."
            )
        owed = self._owed(member_id)
        if owed > DEBT_LIMIT_CENTS:
            return self._error(
                f"{member_id} owes {owed} cents, more than {DEBT_LIMIT_CENTS}; see get_member."
            )
        if title["reference_only"]:
            return self._error(f"{title['title']!r} is for reference only.")
        if title["audience"] == "adult" and member["category"] == "child":
            return self._error(f"{title['title']!r} is for adults; {member_id} is a child.")
        return None

    def _pass_on(self, copy: Copy) -> Hold | None:
        """Keep a freed copy for the longest-waiting hold, which is returned, or put it on the shelf."""
        waiting = self._waiting_holds(copy["title_id"])
        if not waiting:
            copy["status"] = "available"
            return None
        copy["status"] = "held"
        hold = waiting[0]
        hold["status"], hold["copy_id"] = "ready", copy["copy_id"]
        hold["pickup_by"] = self._in_days(PICKUP_DAYS)
        return hold

    def _charge(self, loan: Loan, kind: str, amount_cents: int) -> Fine:
        fine: Fine = {
            "fine_id": self._new_id("fine", "F"),
            "member_id": loan["member_id"],
            "loan_id": loan["loan_id"],
            "kind": kind,
            "amount_cents": amount_cents,
            "paid_cents": 0,
            "status": "unpaid",
            "note": "",
        }
        self.fines[fine["fine_id"]] = fine
        return fine

    def _overdue_cents(self, loan: Loan) -> int:
        days = (date.fromisoformat(self.today) - date.fromisoformat(loan["due_on"])).days
        return min(max(days, 0) * FINE_PER_DAY_CENTS, MAX_OVERDUE_FINE_CENTS)

    def _open_loans(self, member_id: str) -> list[Loan]:
        return [x for x in self.loans.values() if x["member_id"] == member_id and x["status"] == "open"]

    def _open_holds(self, member_id: str) -> list[Hold]:
        return [h for h in self.holds.values() if h["member_id"] == member_id and self._is_open(h)]

    def _is_open(self, hold: Hold) -> bool:
        return hold["status"] in ("waiting", "ready")

    def _waiting_holds(self, title_id: str) -> list[Hold]:
        waiting = [h for h in self.holds.values() if h["title_id"] == title_id and h["status"] == "waiting"]
        return sorted(waiting, key=self._queue_place)

    def _queue_place(self, hold: Hold) -> tuple[str, str]:
        return hold["placed_on"], hold["hold_id"]

    def _available_copies(self, title_id: str) -> list[str]:
        return [
            copy["copy_id"]
            for copy in self.copies.values()
            if copy["title_id"] == title_id and copy["status"] == "available"
        ]

    def _unpaid_fines(self, member_id: str) -> list[Fine]:
        return [f for f in self.fines.values() if f["member_id"] == member_id and f["status"] == "unpaid"]

    def _owed(self, member_id: str) -> int:
        return sum(fine["amount_cents"] - fine["paid_cents"] for fine in self._unpaid_fines(member_id))

    def _with_title(self, loan: Loan) -> dict[str, Any]:
        return {**loan, "title": self.titles[self.copies[loan["copy_id"]]["title_id"]]["title"]}

    def _in_days(self, days: int) -> str:
        return (date.fromisoformat(self.today) + timedelta(days=days)).isoformat()

    def _new_id(self, kind: str, prefix: str) -> str:
        number = self.next_numbers[kind]
        self.next_numbers[kind] = number + 1
        return f"{prefix}-{number}"

    def _unknown(self, kind: str, record_id: str, tool: str) -> dict[str, Any]:
        return self._error(f"There is no {kind} {record_id!r}; {tool} shows the ids.")

    def _error(self, message: str) -> dict[str, Any]:
        return {"success": False, "error": message}
