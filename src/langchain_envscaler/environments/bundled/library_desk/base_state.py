"""The library that the scenarios share: its members, titles, copies, loans, holds and fines on a Monday."""

from typing import Any

__all__ = ["BASE", "loan"]


def _member(
    member_id: str, name: str, category: str, expires_on: str, status: str = "active"
) -> dict[str, Any]:
    return {
        "member_id": member_id,
        "name": name,
        "email": name.lower().replace(" ", ".") + "@example.org",
        "category": category,
        "status": status,
        "expires_on": expires_on,
    }


def _title(
    title_id: str,
    title: str,
    author: str,
    format: str,
    price_cents: int,
    audience: str = "all",
    reference_only: bool = False,
) -> dict[str, Any]:
    return {
        "title_id": title_id,
        "title": title,
        "author": author,
        "format": format,
        "audience": audience,
        "reference_only": reference_only,
        "price_cents": price_cents,
    }


def _copy(copy_id: str, title_id: str, status: str) -> dict[str, Any]:
    return {"copy_id": copy_id, "title_id": title_id, "status": status}


def loan(
    loan_id: str,
    copy_id: str,
    member_id: str,
    borrowed_on: str,
    due_on: str,
    renewals: int = 0,
    status: str = "open",
    closed_on: str | None = None,
) -> dict[str, Any]:
    return {
        "loan_id": loan_id,
        "copy_id": copy_id,
        "member_id": member_id,
        "borrowed_on": borrowed_on,
        "due_on": due_on,
        "renewals": renewals,
        "status": status,
        "closed_on": closed_on,
    }


def _hold(
    hold_id: str,
    title_id: str,
    member_id: str,
    placed_on: str,
    status: str = "waiting",
    copy_id: str | None = None,
    pickup_by: str | None = None,
) -> dict[str, Any]:
    return {
        "hold_id": hold_id,
        "title_id": title_id,
        "member_id": member_id,
        "placed_on": placed_on,
        "status": status,
        "copy_id": copy_id,
        "pickup_by": pickup_by,
    }


def _fine(
    fine_id: str, member_id: str, loan_id: str, kind: str, amount_cents: int, paid_cents: int, status: str
) -> dict[str, Any]:
    return {
        "fine_id": fine_id,
        "member_id": member_id,
        "loan_id": loan_id,
        "kind": kind,
        "amount_cents": amount_cents,
        "paid_cents": paid_cents,
        "status": status,
        "note": "",
    }


def _by_id(*records: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The records keyed by their own id, which is their first field."""
    return {next(iter(record.values())): record for record in records}


BASE: dict[str, Any] = {
    "today": "2026-03-16",
    "members": _by_id(
        _member("M-101", "Amara Okafor", "adult", "2026-11-30"),
        _member("M-102", "Jonas Lindqvist", "adult", "2026-08-14"),
        _member("M-103", "Priya Raman", "adult", "2026-03-02"),
        _member("M-104", "Tomas Herrera", "adult", "2027-01-09"),
        _member("M-105", "Lucy Okafor", "child", "2026-11-30"),
        _member("M-106", "Wendell Pryce", "adult", "2026-09-21", status="suspended"),
        _member("M-107", "Hana Sato", "adult", "2026-12-05"),
        _member("M-108", "Ben Castellan", "child", "2026-06-18"),
        _member("M-109", "Greta Vogel", "adult", "2026-10-02"),
        _member("M-110", "Samuel Adeyemi", "adult", "2026-07-27"),
        _member("M-111", "Jonas Bergman", "adult", "2026-05-11"),
        _member("M-112", "Ines Duarte", "adult", "2027-02-20"),
    ),
    "titles": _by_id(
        _title("T-201", "The Salt Road", "Nora Quill", "book", 1800),
        _title("T-202", "The Salt Road", "Ada Brandt", "dvd", 1500),
        _title("T-203", "A Field Guide to Mosses", "Edwin Tarr", "book", 2400),
        _title("T-204", "Bread Without Hurry", "Marta Oliveira", "book", 2100),
        _title("T-205", "Night Trains of Europe", "Piers Holloway", "book", 1900),
        _title("T-206", "The Lantern Makers", "Nora Quill", "book", 1700),
        _title("T-207", "An Atlas of Small Islands", "Ruth Ekman", "book", 8500, reference_only=True),
        _title("T-208", "Captain Biscuit and the Moon", "Lena Moss", "book", 1200),
        _title("T-209", "Dust on the Harbour", "Carlo Venn", "dvd", 1600, audience="adult"),
        _title("T-210", "Learning to Weld", "Joan Pickard", "book", 2600),
        _title("T-211", "Clockwork Garden", "Mina Ferro", "dvd", 1400),
        _title("T-212", "Winter Arithmetic", "Oskar Lund", "book", 1600),
    ),
    "copies": _by_id(
        _copy("C-301", "T-201", "on_loan"),
        _copy("C-302", "T-201", "available"),
        _copy("C-303", "T-202", "available"),
        _copy("C-304", "T-203", "on_loan"),
        _copy("C-305", "T-204", "on_loan"),
        _copy("C-306", "T-204", "held"),
        _copy("C-307", "T-205", "available"),
        _copy("C-308", "T-206", "on_loan"),
        _copy("C-309", "T-207", "available"),
        _copy("C-310", "T-208", "available"),
        _copy("C-311", "T-208", "on_loan"),
        _copy("C-312", "T-209", "available"),
        _copy("C-313", "T-210", "on_loan"),
        _copy("C-314", "T-210", "on_loan"),
        _copy("C-315", "T-211", "held"),
        _copy("C-316", "T-212", "available"),
        _copy("C-317", "T-212", "lost"),
        _copy("C-318", "T-205", "held"),
    ),
    "loans": _by_id(
        loan("L-497", "C-317", "M-103", "2026-01-05", "2026-01-26", status="lost", closed_on="2026-02-02"),
        loan(
            "L-498", "C-303", "M-112", "2026-02-10", "2026-02-17", status="returned", closed_on="2026-02-24"
        ),
        loan(
            "L-499", "C-316", "M-110", "2026-02-06", "2026-02-27", status="returned", closed_on="2026-03-09"
        ),
        loan(
            "L-500", "C-307", "M-109", "2026-01-13", "2026-02-03", status="returned", closed_on="2026-02-27"
        ),
        loan("L-501", "C-301", "M-102", "2026-03-02", "2026-03-23"),
        loan("L-502", "C-304", "M-104", "2026-02-09", "2026-03-02"),
        loan("L-503", "C-305", "M-109", "2026-03-05", "2026-03-26", renewals=1),
        loan("L-504", "C-308", "M-101", "2026-02-27", "2026-03-20"),
        loan("L-505", "C-311", "M-108", "2026-02-20", "2026-03-13"),
        loan("L-506", "C-313", "M-112", "2026-03-10", "2026-03-31", renewals=2),
        loan("L-507", "C-314", "M-107", "2026-03-01", "2026-03-22"),
    ),
    "holds": _by_id(
        _hold("H-601", "T-204", "M-110", "2026-03-03", "ready", "C-306", "2026-03-20"),
        _hold("H-602", "T-211", "M-111", "2026-02-28", "ready", "C-315", "2026-03-12"),
        _hold("H-603", "T-203", "M-101", "2026-03-08"),
        _hold("H-604", "T-203", "M-112", "2026-03-11"),
        _hold("H-605", "T-205", "M-103", "2026-02-25", "ready", "C-318", "2026-03-13"),
        _hold("H-606", "T-211", "M-107", "2026-03-10"),
        _hold("H-607", "T-206", "M-102", "2026-03-14"),
    ),
    "fines": _by_id(
        _fine("F-701", "M-110", "L-499", "overdue", 250, 0, "unpaid"),
        _fine("F-702", "M-112", "L-498", "overdue", 175, 175, "paid"),
        _fine("F-703", "M-103", "L-497", "lost", 1600, 600, "unpaid"),
        _fine("F-704", "M-109", "L-500", "overdue", 600, 0, "unpaid"),
    ),
    "next_numbers": {"member": 113, "loan": 508, "hold": 608, "fine": 705},
}
