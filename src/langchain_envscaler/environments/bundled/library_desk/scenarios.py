"""Scenarios at the library's circulation desk, from two calls to twelve."""

from functools import partial

from langchain_envscaler.environments.bundled._scenarios import merged, only_changed, scenario
from langchain_envscaler.environments.bundled.library_desk.base_state import BASE, loan
from langchain_envscaler.environments.metadata import Scenario

__all__ = ["SCENARIOS"]

_scenario = partial(scenario, "library_desk", "LibraryDesk", state=BASE)


def _lent(member_id: str, title_id: str) -> str:
    """The expression that a member has a new open loan of a title."""
    return f"""
        any(
            loan["member_id"] == "{member_id}"
            and loan["status"] == "open"
            and loan_id not in initial_state["loans"]
            and final_state["copies"][loan["copy_id"]]["title_id"] == "{title_id}"
            for loan_id, loan in final_state["loans"].items()
        )
    """


def _returned(loan_id: str) -> str:
    return f'final_state["loans"]["{loan_id}"]["status"] == "returned"'


def _renewed(loan_id: str, due_on: str) -> str:
    """The expression that a loan not renewed before was renewed once, until then."""
    loan = f'final_state["loans"]["{loan_id}"]'
    return f'{loan}["due_on"] == "{due_on}" and {loan}["renewals"] == 1'


def _hold_is(hold_id: str, status: str) -> str:
    return f'final_state["holds"]["{hold_id}"]["status"] == "{status}"'


def _fine_is(fine_id: str, status: str) -> str:
    return f'final_state["fines"]["{fine_id}"]["status"] == "{status}"'


def _waits(member_id: str, title_id: str) -> str:
    """The expression that a member has a new hold on a title."""
    return f"""
        any(
            hold["member_id"] == "{member_id}"
            and hold["title_id"] == "{title_id}"
            and hold["status"] == "waiting"
            and hold_id not in initial_state["holds"]
            for hold_id, hold in final_state["holds"].items()
        )
    """


def _fine_of_loan(loan_id: str, kind: str, amount_cents: int, paid_cents: int, status: str) -> str:
    """The expression that a loan was fined, and how far that fine is settled."""
    return f"""
        any(
            fine["loan_id"] == "{loan_id}"
            and fine["kind"] == "{kind}"
            and fine["amount_cents"] == {amount_cents}
            and fine["paid_cents"] == {paid_cents}
            and fine["status"] == "{status}"
            for fine in final_state["fines"].values()
        )
    """


SCENARIOS: list[Scenario] = [
    _scenario(
        "01-return-a-book",
        task="Member M-102 has just handed in The Salt Road. Please check it in.",
        checks=[
            ("Is Jonas Lindqvist's loan of The Salt Road returned?", _returned("L-501")),
            ("Is copy C-301 available again?", 'final_state["copies"]["C-301"]["status"] == "available"'),
            ("Was nothing else changed?", only_changed("C-301", "L-501")),
        ],
        reference=[
            ("get_member", {"member_id": "M-102"}),
            ("check_in", {"copy_id": "C-301"}),
        ],
    ),
    _scenario(
        "02-renew-a-loan",
        task="""
            Jonas Lindqvist is on the phone. He needs more time for the book he has at home; please renew it for him.
        """,
        checks=[
            ("Is his loan renewed once, until 6 April 2026?", _renewed("L-501", "2026-04-06")),
            ("Was nothing else changed?", only_changed("L-501")),
        ],
        reference=[
            ("find_members", {"query": "Jonas Lindqvist"}),
            ("get_member", {"member_id": "M-102"}),
            ("renew_loan", {"loan_id": "L-501"}),
        ],
    ),
    _scenario(
        "03-lend-a-film",
        task="""
            Hana Sato (M-107) would like to take The Salt Road home tonight: the film on DVD, not the novel. Please
            lend it to her.
        """,
        checks=[
            ("Does Hana Sato have the DVD of The Salt Road on loan?", _lent("M-107", "T-202")),
            ("Was nothing else changed?", only_changed("C-303", loans=1)),
        ],
        reference=[
            ("search_titles", {"query": "The Salt Road"}),
            ("get_title", {"title_id": "T-202"}),
            ("check_out", {"member_id": "M-107", "copy_id": "C-303"}),
        ],
    ),
    _scenario(
        "04-join-the-queue",
        task="""
            Tomas Herrera asked for Learning to Weld, but all the copies are out. Please put him in the queue for it.
        """,
        checks=[
            ("Does Tomas Herrera wait for Learning to Weld?", _waits("M-104", "T-210")),
            ("Was nothing else changed?", only_changed(holds=1)),
        ],
        reference=[
            ("find_members", {"query": "Herrera"}),
            ("search_titles", {"query": "Learning to Weld"}),
            ("place_hold", {"member_id": "M-104", "title_id": "T-210"}),
        ],
    ),
    _scenario(
        "05-clear-the-hold-shelf",
        task="""
            Please clear the hold shelf: cancel every hold that nobody collected in time. One exception: Priya Raman
            (M-103) rang, she comes for hers tomorrow, so leave it.
        """,
        checks=[
            ("Is Jonas Bergman's uncollected hold cancelled?", _hold_is("H-602", "cancelled")),
            (
                "Is the copy of Clockwork Garden now kept for Hana Sato?",
                _hold_is("H-606", "ready") + ' and final_state["holds"]["H-606"]["copy_id"] == "C-315"',
            ),
            ("Was nothing else changed?", only_changed("H-602", "H-606")),
        ],
        reference=[
            ("list_uncollected_holds", {}),
            ("cancel_hold", {"hold_id": "H-602"}),
        ],
    ),
    _scenario(
        "06-a-late-return",
        task="""
            Tomas Herrera is at the desk with A Field Guide to Mosses. Please take it back. He pays whatever fine comes
            of it in full.
        """,
        checks=[
            ("Is his loan returned?", _returned("L-502")),
            (
                "Was he fined 350 cents, and is that paid?",
                _fine_of_loan("L-502", "overdue", 350, 350, "paid"),
            ),
            ("Is the copy kept for Amara Okafor, who waited longest?", _hold_is("H-603", "ready")),
            ("Was nothing else changed?", only_changed("C-304", "L-502", "H-603", fines=1)),
        ],
        reference=[
            ("find_members", {"query": "Tomas Herrera"}),
            ("get_member", {"member_id": "M-104"}),
            ("check_in", {"copy_id": "C-304"}),
            ("pay_fine", {"fine_id": "F-705", "amount_cents": 350}),
        ],
    ),
    _scenario(
        "07-a-new-reader",
        task="""
            A new reader: please register Noor Haddad, a child, with the email noor.haddad@example.org, and lend her
            Captain Biscuit and the Moon.
        """,
        checks=[
            (
                "Is Noor Haddad registered as a child with that email?",
                """
                any(
                    member["name"] == "Noor Haddad"
                    and member["category"] == "child"
                    and member["email"] == "noor.haddad@example.org"
                    for member in final_state["members"].values()
                )
                """,
            ),
            ("Does she have Captain Biscuit and the Moon on loan?", _lent("M-113", "T-208")),
            ("Was nothing else changed?", only_changed("C-310", members=1, loans=1)),
        ],
        reference=[
            (
                "register_member",
                {"name": "Noor Haddad", "email": "noor.haddad@example.org", "category": "child"},
            ),
            ("search_titles", {"query": "Captain Biscuit"}),
            ("get_title", {"title_id": "T-208"}),
            ("check_out", {"member_id": "M-113", "copy_id": "C-310"}),
        ],
    ),
    _scenario(
        "08-collect-a-hold",
        task="""
            Samuel Adeyemi has come to collect the book that is on hold for him. He also asks about his fine: the book
            drop was jammed that week, so please waive it with the reason "book drop was jammed".
        """,
        checks=[
            ("Does he have Bread Without Hurry on loan?", _lent("M-110", "T-204")),
            ("Is his hold settled?", _hold_is("H-601", "collected")),
            ("Is his fine waived?", _fine_is("F-701", "waived")),
            (
                "Is the reason on record?",
                '"book drop was jammed" in final_state["fines"]["F-701"]["note"].lower()',
            ),
            ("Was nothing else changed?", only_changed("C-306", "H-601", "F-701", loans=1)),
        ],
        reference=[
            ("find_members", {"query": "Samuel Adeyemi"}),
            ("get_member", {"member_id": "M-110"}),
            ("waive_fine", {"fine_id": "F-701", "reason": "book drop was jammed"}),
            ("check_out", {"member_id": "M-110", "copy_id": "C-306"}),
        ],
    ),
    _scenario(
        "09-a-lapsed-membership",
        task="""
            Priya Raman wants to use the library again. She pays everything she owes; then please extend her
            membership and lend her the book that is being kept for her.
        """,
        checks=[
            ("Is her fine paid?", _fine_is("F-703", "paid")),
            (
                "Does her membership run until 16 March 2027?",
                'final_state["members"]["M-103"]["expires_on"] == "2027-03-16"',
            ),
            ("Does she have Night Trains of Europe on loan?", _lent("M-103", "T-205")),
            ("Was it her own hold that was settled?", _hold_is("H-605", "collected")),
            ("Was nothing else changed?", only_changed("M-103", "C-318", "H-605", "F-703", loans=1)),
        ],
        reference=[
            ("find_members", {"query": "Priya Raman"}),
            ("get_member", {"member_id": "M-103"}),
            ("pay_fine", {"fine_id": "F-703", "amount_cents": 1000}),
            ("extend_membership", {"member_id": "M-103"}),
            ("check_out", {"member_id": "M-103", "copy_id": "C-318"}),
        ],
    ),
    _scenario(
        "10-a-lost-book",
        task="""
            Ines Duarte cannot find Learning to Weld anywhere and wants to own up: please report it lost. She pays
            10.00 of the price today and the rest next month. She also no longer wants to wait for A Field Guide to
            Mosses, so cancel that hold.
        """,
        checks=[
            ("Is her loan closed as lost?", 'final_state["loans"]["L-506"]["status"] == "lost"'),
            ("Is the copy marked lost?", 'final_state["copies"]["C-313"]["status"] == "lost"'),
            (
                "Was she charged 2600 cents, of which 1000 are paid?",
                _fine_of_loan("L-506", "lost", 2600, 1000, "unpaid"),
            ),
            ("Is her hold cancelled?", _hold_is("H-604", "cancelled")),
            ("Was nothing else changed?", only_changed("C-313", "L-506", "H-604", fines=1)),
        ],
        reference=[
            ("find_members", {"query": "Ines Duarte"}),
            ("get_member", {"member_id": "M-112"}),
            ("report_lost", {"loan_id": "L-506"}),
            ("pay_fine", {"fine_id": "F-705", "amount_cents": 1000}),
            ("cancel_hold", {"hold_id": "H-604"}),
        ],
    ),
    _scenario(
        "11-one-in-one-out",
        task="""
            Ben Castellan, who has as many things on loan as a child may, brings back Captain Biscuit and the Moon. He
            pays the fine for it from his pocket money and would like to take Winter Arithmetic instead.
        """,
        state=merged(
            BASE,
            {
                "copies": {"C-302": {"status": "on_loan"}, "C-303": {"status": "on_loan"}},
                "loans": {
                    "L-495": loan("L-495", "C-302", "M-108", "2026-03-13", "2026-04-03"),
                    "L-496": loan("L-496", "C-303", "M-108", "2026-03-13", "2026-03-20"),
                },
            },
        ),
        checks=[
            ("Is Captain Biscuit and the Moon returned?", _returned("L-505")),
            ("Is the fine of 75 cents paid?", _fine_of_loan("L-505", "overdue", 75, 75, "paid")),
            ("Does he have Winter Arithmetic on loan?", _lent("M-108", "T-212")),
            ("Was nothing else changed?", only_changed("C-311", "C-316", "L-505", loans=1, fines=1)),
        ],
        reference=[
            ("find_members", {"query": "Ben Castellan"}),
            ("get_member", {"member_id": "M-108"}),
            ("check_in", {"copy_id": "C-311"}),
            ("pay_fine", {"fine_id": "F-705", "amount_cents": 75}),
            ("search_titles", {"query": "Winter Arithmetic"}),
            ("get_title", {"title_id": "T-212"}),
            ("check_out", {"member_id": "M-108", "copy_id": "C-316"}),
        ],
    ),
    _scenario(
        "12-overdue-round",
        task="""
            Please go through the overdue loans. What Ben Castellan had was found in the jammed book drop: check it in
            and waive the fine with the reason "found in the book drop". Tomas Herrera says that his is gone for good:
            report it lost and take 10.00 from him towards the price.
        """,
        checks=[
            ("Is Ben Castellan's loan returned?", _returned("L-505")),
            ("Is his fine waived?", _fine_of_loan("L-505", "overdue", 75, 0, "waived")),
            ("Is Tomas Herrera's loan closed as lost?", 'final_state["loans"]["L-502"]["status"] == "lost"'),
            (
                "Was he charged 2400 cents, of which 1000 are paid?",
                _fine_of_loan("L-502", "lost", 2400, 1000, "unpaid"),
            ),
            ("Was nothing else changed?", only_changed("C-304", "C-311", "L-502", "L-505", fines=2)),
        ],
        reference=[
            ("list_overdue_loans", {}),
            ("find_members", {"query": "Ben Castellan"}),
            ("find_members", {"query": "Tomas Herrera"}),
            ("check_in", {"copy_id": "C-311"}),
            ("waive_fine", {"fine_id": "F-705", "reason": "found in the book drop"}),
            ("report_lost", {"loan_id": "L-502"}),
            ("pay_fine", {"fine_id": "F-706", "amount_cents": 1000}),
        ],
    ),
    _scenario(
        "13-renew-or-return",
        task="""
            Amara Okafor and Hana Sato each have one book with them and ask to renew it. Please renew where that is
            allowed. Whoever cannot renew because another reader waits for the book hands it in right away: check it
            in.
        """,
        checks=[
            ("Is Hana Sato's loan renewed once, until 6 April 2026?", _renewed("L-507", "2026-04-06")),
            ("Is Amara Okafor's loan returned?", _returned("L-504")),
            ("Is The Lantern Makers kept for Jonas Lindqvist?", _hold_is("H-607", "ready")),
            ("Was nothing else changed?", only_changed("C-308", "L-504", "L-507", "H-607")),
        ],
        reference=[
            ("find_members", {"query": "Amara Okafor"}),
            ("get_member", {"member_id": "M-101"}),
            ("search_titles", {"query": "The Lantern Makers"}),
            ("get_title", {"title_id": "T-206"}),
            ("check_in", {"copy_id": "C-308"}),
            ("find_members", {"query": "Hana Sato"}),
            ("get_member", {"member_id": "M-107"}),
            ("renew_loan", {"loan_id": "L-507"}),
        ],
    ),
    _scenario(
        "14-the-okafors",
        task="""
            Amara Okafor and her daughter Lucy are at the desk.

            - Amara returns The Lantern Makers.
            - She no longer wants to wait for A Field Guide to Mosses.
            - She would like to wait for Learning to Weld instead.
            - Lucy takes home Captain Biscuit and the Moon, on her own card.
        """,
        checks=[
            ("Is The Lantern Makers returned?", _returned("L-504")),
            ("Is it kept for Jonas Lindqvist?", _hold_is("H-607", "ready")),
            ("Is Amara's hold on A Field Guide to Mosses cancelled?", _hold_is("H-603", "cancelled")),
            ("Does Amara wait for Learning to Weld?", _waits("M-101", "T-210")),
            ("Does Lucy have Captain Biscuit and the Moon on loan?", _lent("M-105", "T-208")),
            (
                "Was nothing else changed?",
                only_changed("C-308", "C-310", "L-504", "H-603", "H-607", loans=1, holds=1),
            ),
        ],
        reference=[
            ("find_members", {"query": "Okafor"}),
            ("get_member", {"member_id": "M-101"}),
            ("check_in", {"copy_id": "C-308"}),
            ("cancel_hold", {"hold_id": "H-603"}),
            ("search_titles", {"query": "Learning to Weld"}),
            ("place_hold", {"member_id": "M-101", "title_id": "T-210"}),
            ("search_titles", {"query": "Captain Biscuit"}),
            ("get_title", {"title_id": "T-208"}),
            ("check_out", {"member_id": "M-105", "copy_id": "C-310"}),
        ],
    ),
    _scenario(
        "15-monday-morning",
        task="""
            Three readers wait at the desk.

            - Greta Vogel pays her fine in full and then borrows Night Trains of Europe.
            - Samuel Adeyemi collects the book that is on hold for him; his fine can wait.
            - Jonas Lindqvist wants to keep The Salt Road longer; please renew it.
        """,
        checks=[
            ("Is Greta Vogel's fine paid?", _fine_is("F-704", "paid")),
            ("Does Greta Vogel have Night Trains of Europe on loan?", _lent("M-109", "T-205")),
            ("Does Samuel Adeyemi have Bread Without Hurry on loan?", _lent("M-110", "T-204")),
            ("Is Jonas Lindqvist's loan renewed once, until 6 April 2026?", _renewed("L-501", "2026-04-06")),
            ("Was nothing else changed?", only_changed("C-306", "C-307", "L-501", "H-601", "F-704", loans=2)),
        ],
        reference=[
            ("find_members", {"query": "Greta Vogel"}),
            ("get_member", {"member_id": "M-109"}),
            ("pay_fine", {"fine_id": "F-704", "amount_cents": 600}),
            ("search_titles", {"query": "Night Trains of Europe"}),
            ("get_title", {"title_id": "T-205"}),
            ("check_out", {"member_id": "M-109", "copy_id": "C-307"}),
            ("find_members", {"query": "Samuel Adeyemi"}),
            ("get_member", {"member_id": "M-110"}),
            ("check_out", {"member_id": "M-110", "copy_id": "C-306"}),
            ("find_members", {"query": "Jonas Lindqvist"}),
            ("get_member", {"member_id": "M-102"}),
            ("renew_loan", {"loan_id": "L-501"}),
        ],
    ),
]
