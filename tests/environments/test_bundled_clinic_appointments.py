"""The clinic's desk keeps its rules: what it refuses and why, and what a cancellation or a move leads to."""

from collections.abc import Iterator
from typing import Any

import pytest

from langchain_envscaler.environments.bundled._scenarios import merged
from langchain_envscaler.environments.bundled.clinic_appointments.base_state import BASE
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
    with service.start("clinic_appointments", init_config=BASE) as episode:
        yield episode, episode.snapshot()


@pytest.fixture
def desk(shared_desk: tuple[Episode, str]) -> Episode:
    """The desk on its Monday morning."""
    episode, morning = shared_desk
    episode.restore(morning)
    return episode


def book(patient_id: str, slot_id: str) -> Call:
    return "book_appointment", {"patient_id": patient_id, "slot_id": slot_id, "reason": "headache"}


def move(appointment_id: str, slot_id: str) -> Call:
    return "reschedule_appointment", {"appointment_id": appointment_id, "new_slot_id": slot_id}


def cancel(appointment_id: str) -> Call:
    return "cancel_appointment", {"appointment_id": appointment_id}


def record(appointment_id: str, outcome: str) -> Call:
    return "record_outcome", {"appointment_id": appointment_id, "outcome": outcome}


def refer(patient_id: str, specialty: str, issued_by: str) -> Call:
    return "issue_referral", {"patient_id": patient_id, "specialty": specialty, "issued_by": issued_by}


def wait(patient_id: str, clinician_id: str) -> Call:
    return "join_waitlist", {
        "patient_id": patient_id,
        "clinician_id": clinician_id,
        "priority": "routine",
        "reason": "headache",
    }


@pytest.mark.parametrize(
    ("before", "call", "reason"),
    [
        pytest.param([], book("P-412", "S-522"), "under 16", id="an adult in pediatrics"),
        pytest.param([], book("P-405", "S-505"), "go to pediatrics", id="a child in general practice"),
        pytest.param([], book("P-406", "S-551"), "no open referral", id="a specialist without a referral"),
        pytest.param([], book("P-409", "S-553"), "valid on 2026-04-23", id="a referral that ends too early"),
        pytest.param([], book("P-401", "S-505"), "already sees", id="a second appointment with a clinician"),
        pytest.param(
            [book("P-401", "S-513")], book("P-401", "S-551"), "3 upcoming", id="a fourth upcoming appointment"
        ),
        pytest.param([], book("P-413", "S-505"), "missed 3", id="a patient who missed three"),
        pytest.param([], book("P-407", "S-503"), "is booked", id="a slot that is taken"),
        pytest.param([], book("P-499", "S-505"), "find_patients", id="an unknown patient"),
        pytest.param([], book("P-407", "S-999"), "find_free_slots", id="an unknown slot"),
        pytest.param(
            [cancel("A-608")], book("P-407", "S-531"), "P-411 is next in line", id="a patient jumps the queue"
        ),
        pytest.param([], move("A-601", "S-505"), "less than 24 hours", id="a move at short notice"),
        pytest.param([], move("A-603", "S-551"), "book anew", id="a move to another specialty"),
        pytest.param([], move("A-611", "S-554"), "ends on 2026-05-02", id="a move beyond the referral"),
        pytest.param(
            [move("A-602", "S-505"), move("A-602", "S-506")],
            move("A-602", "S-508"),
            "moved 2 times",
            id="a third move",
        ),
        pytest.param([], cancel("A-594"), "record_outcome", id="a past appointment is cancelled"),
        pytest.param([], cancel("A-591"), "completed", id="a completed appointment is cancelled"),
        pytest.param([], record("A-602", "completed"), "starts only at", id="an outcome before the start"),
        pytest.param([], record("A-594", "late"), "'no_show'", id="an unknown outcome"),
        pytest.param([], refer("P-404", "dermatology", "D-41"), "cannot refer", id="a specialist refers"),
        pytest.param([], refer("P-406", "dermatology", "D-12"), "has not seen", id="a visit too long ago"),
        pytest.param([], refer("P-404", "cardiology", "D-11"), "R-708", id="a second open referral"),
        pytest.param(
            [("extend_referral", {"referral_id": "R-706"})],
            ("extend_referral", {"referral_id": "R-706"}),
            "extended before",
            id="a referral is extended twice",
        ),
        pytest.param([], wait("P-404", "D-41"), "S-551", id="waiting although a slot is free"),
        pytest.param([], wait("P-407", "D-31"), "already waits", id="waiting twice"),
        pytest.param([], wait("P-406", "D-32"), "no open referral", id="waiting without a referral"),
        pytest.param([], ("block_slot", {"slot_id": "S-503"}), "is booked", id="a booked slot is blocked"),
        pytest.param(
            [],
            ("register_patient", {"name": "clara jensen", "birth_date": "2001-08-14", "phone": "555-0000"}),
            "already P-411",
            id="a patient is registered twice",
        ),
        pytest.param(
            [],
            ("register_patient", {"name": "Ada Holm", "birth_date": "14.08.2001", "phone": "555-0000"}),
            "YYYY-MM-DD",
            id="a birth date in another form",
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


def test_a_late_cancellation_counts_as_missed_and_one_in_time_does_not(desk: Episode) -> None:
    assert desk.call(*cancel("A-601")).data["counts_as_missed"] is True
    assert desk.call(*cancel("A-604")).data["counts_as_missed"] is False
    patients = desk.state()["patients"]
    assert (patients["P-403"]["missed"], patients["P-409"]["missed"]) == (2, 0)


def test_cancelling_opens_the_referral_again(desk: Episode) -> None:
    desk.call(*cancel("A-611"))
    assert desk.state()["referrals"]["R-705"]["status"] == "open"
    assert desk.call(*book("P-412", "S-551")).data["appointment"]["referral_id"] == "R-705"


def test_a_patient_who_waits_for_an_earlier_time_is_moved_there_when_next_in_line(desk: Episode) -> None:
    entry_id = desk.call(*wait("P-410", "D-31")).data["entry"]["entry_id"]
    desk.call(*cancel("A-608"))
    assert "next in line" in desk.call(*move("A-609", "S-531")).data["error"]
    desk.call("leave_waitlist", {"entry_id": "W-801"})
    desk.call("leave_waitlist", {"entry_id": "W-802"})
    moved = desk.call(*move("A-609", "S-531")).data["appointment"]
    assert moved["start"] == "2026-04-15 15:00"
    state = desk.state()
    assert state["waitlist"][entry_id]["status"] == "booked"
    assert state["slots"]["S-532"]["status"] == "free"


def test_a_patient_cannot_be_in_two_places_at_once(service: EpisodeService) -> None:
    state = merged(BASE, {"slots": {"S-513": {"start": "2026-04-14 09:00"}}})
    with service.start("clinic_appointments", init_config=state) as desk:
        error = desk.call(*book("P-401", "S-513")).data["error"]
    assert "another appointment at 2026-04-14 09:00" in error


def test_a_slot_that_has_passed_cannot_be_booked(service: EpisodeService) -> None:
    with service.start("clinic_appointments", init_config=merged(BASE, {"now": "2026-04-16 08:00"})) as desk:
        assert "has passed" in desk.call(*book("P-407", "S-505")).data["error"]
