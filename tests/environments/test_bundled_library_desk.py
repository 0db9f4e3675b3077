"""The library desk keeps its rules: what it refuses and why, and what its fines and due dates come to."""

from collections.abc import Iterator
from typing import Any

import pytest

from langchain_envscaler.environments.bundled._scenarios import merged
from langchain_envscaler.environments.bundled.library_desk.base_state import BASE
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode
from langchain_envscaler.environments.service import EpisodeService

Call = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def service() -> Iterator[EpisodeService]:
    with EpisodeService(Catalog.bundled()) as service:
        yield service


@pytest.fixture(scope="module")
def shared_desk(service: EpisodeService) -> Iterator[tuple[Episode, str]]:
    with service.start("library_desk", init_config=BASE) as episode:
        yield episode, episode.snapshot()


@pytest.fixture
def desk(shared_desk: tuple[Episode, str]) -> Episode:
    """The desk on its Monday morning."""
    episode, morning = shared_desk
    episode.restore(morning)
    return episode


def lend(member_id: str, copy_id: str) -> Call:
    return "check_out", {"member_id": member_id, "copy_id": copy_id}


def hold(member_id: str, title_id: str) -> Call:
    return "place_hold", {"member_id": member_id, "title_id": title_id}


@pytest.mark.parametrize(
    ("before", "call", "reason"),
    [
        pytest.param([], lend("M-106", "C-307"), "suspended", id="a suspended member borrows"),
        pytest.param([], lend("M-103", "C-318"), "extend it first", id="an expired member borrows"),
        pytest.param([], lend("M-109", "C-307"), "owes 600 cents", id="a member in debt borrows"),
        pytest.param(
            [lend("M-105", "C-310"), lend("M-105", "C-316"), lend("M-105", "C-302")],
            lend("M-105", "C-303"),
            "3 open loans, the limit",
            id="a child borrows a fourth thing",
        ),
        pytest.param([], lend("M-105", "C-312"), "for adults", id="a child borrows a title for adults"),
        pytest.param([], lend("M-101", "C-309"), "reference only", id="a reference title is lent"),
        pytest.param([], lend("M-102", "C-306"), "held for M-110", id="another member's held copy is lent"),
        pytest.param([], lend("M-102", "C-304"), "on_loan", id="a copy on loan is lent"),
        pytest.param([], lend("M-102", "C-999"), "get_title", id="an unknown copy is lent"),
        pytest.param([], lend("M-999", "C-307"), "find_members", id="an unknown member borrows"),
        pytest.param(
            [], ("check_in", {"copy_id": "C-302"}), "not on loan", id="a copy on the shelf comes back"
        ),
        pytest.param(
            [], ("renew_loan", {"loan_id": "L-505"}), "must come back", id="an overdue loan is renewed"
        ),
        pytest.param([], ("renew_loan", {"loan_id": "L-506"}), "renewed 2 times", id="a third renewal"),
        pytest.param(
            [], ("renew_loan", {"loan_id": "L-504"}), "waits for", id="a loan others wait for is renewed"
        ),
        pytest.param([], ("renew_loan", {"loan_id": "L-499"}), "returned", id="a closed loan is renewed"),
        pytest.param([], hold("M-102", "T-212"), "check it out", id="an available title is held"),
        pytest.param([], hold("M-107", "T-210"), "on loan", id="a member holds what is at home"),
        pytest.param([], hold("M-107", "T-211"), "already has a hold", id="a member holds a title twice"),
        pytest.param(
            [hold("M-107", "T-203"), hold("M-107", "T-206")],
            hold("M-107", "T-204"),
            "3 open holds, the limit",
            id="a fourth hold",
        ),
        pytest.param(
            [("cancel_hold", {"hold_id": "H-603"})],
            ("cancel_hold", {"hold_id": "H-603"}),
            "already cancelled",
            id="a hold is cancelled twice",
        ),
        pytest.param(
            [],
            ("pay_fine", {"fine_id": "F-701", "amount_cents": 300}),
            "from 1 to 250",
            id="more than the fine is paid",
        ),
        pytest.param(
            [],
            ("waive_fine", {"fine_id": "F-703", "reason": "kind"}),
            "only overdue",
            id="a fine for a lost copy is waived",
        ),
        pytest.param(
            [],
            ("waive_fine", {"fine_id": "F-704", "reason": "kind"}),
            "600 cents",
            id="a high fine is waived",
        ),
        pytest.param(
            [],
            ("extend_membership", {"member_id": "M-103"}),
            "paid first",
            id="the membership of a debtor is extended",
        ),
        pytest.param(
            [],
            ("register_member", {"name": "H. Sato", "email": "Hana.Sato@example.org", "category": "adult"}),
            "M-107 already has",
            id="an email is registered twice",
        ),
    ],
)
def test_a_call_against_the_rules_is_refused_with_its_reason_and_changes_nothing(
    desk: Episode, before: list[Call], call: Call, reason: str
) -> None:
    for name, arguments in before:
        assert desk.call(name, arguments).data["success"] is True
    state = desk.state()
    observation = desk.call(*call)
    assert observation.data["success"] is False
    assert reason in observation.data["error"]
    assert desk.state() == state


def test_a_part_payment_below_the_debt_limit_lets_a_member_borrow_again(desk: Episode) -> None:
    fine = desk.call("pay_fine", {"fine_id": "F-704", "amount_cents": 100}).data["fine"]
    assert (fine["paid_cents"], fine["status"]) == (100, "unpaid")
    assert desk.call(*lend("M-109", "C-307")).data["success"] is True


def test_a_film_is_due_in_a_week_and_a_book_in_three(desk: Episode) -> None:
    assert desk.call(*lend("M-107", "C-303")).data["loan"]["due_on"] == "2026-03-23"
    assert desk.call(*lend("M-107", "C-307")).data["loan"]["due_on"] == "2026-04-06"


def test_a_membership_that_has_not_ended_is_extended_from_its_end(desk: Episode) -> None:
    extended = desk.call("extend_membership", {"member_id": "M-108"}).data["member"]
    assert extended["expires_on"] == "2027-06-18"


def test_holds_are_served_in_the_order_in_which_they_were_placed(desk: Episode) -> None:
    assert desk.call("check_in", {"copy_id": "C-304"}).data["hold"]["hold_id"] == "H-603"
    assert desk.call("cancel_hold", {"hold_id": "H-603"}).data["next_hold"]["hold_id"] == "H-604"
    assert desk.call("cancel_hold", {"hold_id": "H-604"}).data["next_hold"] is None
    assert desk.state()["copies"]["C-304"]["status"] == "available"


def test_an_overdue_fine_never_exceeds_its_maximum(service: EpisodeService) -> None:
    with service.start("library_desk", init_config=merged(BASE, {"today": "2026-12-01"})) as desk:
        assert desk.call("check_in", {"copy_id": "C-304"}).data["fine"]["amount_cents"] == 1000
