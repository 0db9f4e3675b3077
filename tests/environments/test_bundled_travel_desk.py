"""The travel desk keeps its rules: who decides, what is refused and why, what changes and cancelling cost."""

from collections.abc import Iterator
from typing import Any

import pytest

from langchain_envscaler.environments.bundled._scenarios import merged
from langchain_envscaler.environments.bundled.travel_desk.base_state import BASE
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode

Call = tuple[str, dict[str, Any]]
CATALOG = Catalog.bundled()


@pytest.fixture(scope="module")
def shared_desk() -> Iterator[tuple[Episode, str]]:
    with CATALOG.start("travel_desk", init_config=BASE) as episode:
        yield episode, episode.snapshot()


@pytest.fixture
def desk(shared_desk: tuple[Episode, str]) -> Episode:
    """The desk on its Monday morning, 2 March."""
    episode, morning = shared_desk
    episode.restore(morning)
    return episode


def trip(employee_id: str, start: int, end: int, city: str = "London") -> Call:
    return "create_trip", {
        "employee_id": employee_id,
        "destination": city,
        "start_date": f"2026-03-{start:02d}",
        "end_date": f"2026-03-{end:02d}",
        "purpose": "Visit",
    }


def dates(trip_id: str, start: int, end: int) -> Call:
    days = {"start_date": f"2026-03-{start:02d}", "end_date": f"2026-03-{end:02d}"}
    return "change_trip_dates", {"trip_id": trip_id, **days}


def seat(trip_id: str, flight_id: str, cabin: str = "economy") -> Call:
    return "book_flight", {"trip_id": trip_id, "flight_id": flight_id, "cabin": cabin}


def room(trip_id: str, hotel_id: str, start: int, end: int) -> Call:
    days = {"check_in": f"2026-03-{start:02d}", "check_out": f"2026-03-{end:02d}"}
    return "book_hotel", {"trip_id": trip_id, "hotel_id": hotel_id, **days}


def stay(booking_id: str, start: int, end: int) -> Call:
    days = {"check_in": f"2026-03-{start:02d}", "check_out": f"2026-03-{end:02d}"}
    return "change_hotel_dates", {"booking_id": booking_id, **days}


def rebook(booking_id: str, flight_id: str) -> Call:
    return "change_flight", {"booking_id": booking_id, "flight_id": flight_id}


def approve(trip_id: str, approver_id: str) -> Call:
    return "approve_trip", {"trip_id": trip_id, "approver_id": approver_id}


def submit(trip_id: str) -> Call:
    return "submit_trip", {"trip_id": trip_id}


def move(amount: Any, director_id: str) -> Call:
    departments = {"from_department_id": "D-SAL", "to_department_id": "D-MKT"}
    return "transfer_budget", {**departments, "amount": amount, "director_id": director_id}


@pytest.mark.parametrize(
    ("before", "call", "reason"),
    [
        ([], trip("E-31", 19, 20), "on T-501 from 2026-03-17 to 2026-03-19"),
        ([], trip("E-31", 1, 3), "in the past"),
        ([], trip("E-31", 26, 25), "before its start"),
        ([], trip("E-31", 25, 26, "Oslo"), "Cities: Berlin, Lisbon, London"),
        ([], dates("T-501", 17, 18), "FB-702 would lie outside"),
        ([], dates("T-502", 16, 21), "T-502 is pending"),
        ([], seat("T-501", "NV101-0324"), "outside T-501"),
        ([], seat("T-501", "NV101-0317"), "has a seat on NV101-0317 already"),
        ([], seat("T-501", "NV101-0317", "first"), "economy or business"),
        ([trip("E-31", 10, 12)], seat("T-510", "NV101-0310"), "no economy seat left"),
        (
            [trip("E-31", 10, 12)],
            seat("T-510", "NV101-0310", "business"),
            "for directors and for flights of 6",
        ),
        ([], seat("T-503", "NV101-0317"), "for draft trips only"),
        ([], room("T-501", "H-21", 17, 19), "is in Paris"),
        ([], room("T-501", "H-13", 17, 19), "the limit in London is 180"),
        ([], room("T-501", "H-11", 16, 19), "outside T-501"),
        ([], room("T-508", "H-24", 11, 13), "no room on 2026-03-12"),
        ([room("T-501", "H-11", 17, 18)], room("T-501", "H-12", 17, 19), "HB-806 covers"),
        ([], rebook("FB-701", "NV102-0319"), "keep the route"),
        ([], submit("T-502"), "T-502 is pending"),
        ([trip("E-31", 25, 26)], submit("T-510"), "no booking yet"),
        ([], approve("T-502", "E-20"), "not Priya Nair's manager"),
        ([], approve("T-507", "E-20"), "on their own trip"),
        ([], approve("T-507", "E-21"), "above 3000 a director decides"),
        ([], approve("T-505", "E-22"), "D-MKT has 700 left"),
        ([], move(154, "E-20"), "only a director"),
        ([], move(9001, "E-10"), "has 9000 euros left"),
        ([], move("154", "E-10"), "whole number"),
    ],
)
def test_a_rule_refuses_a_call_and_leaves_the_desk_as_it_was(
    desk: Episode, before: list[Call], call: Call, reason: str
) -> None:
    for name, arguments in before:
        assert desk.call(name, arguments).data["success"] is True
    state = desk.state()
    answer = desk.call(*call).data
    assert answer["success"] is False
    assert reason in answer["error"]
    assert desk.state() == state


@pytest.mark.parametrize("call", [seat("T-510", "SC210-0311", "business"), room("T-510", "H-23", 9, 13)])
def test_directors_are_exempt_from_cabin_and_nightly_limit(desk: Episode, call: Call) -> None:
    desk.call(*trip("E-11", 9, 13, "Paris"))
    assert desk.call(*call).data["success"] is True


def test_a_trip_of_600_euros_is_approved_at_once_and_one_above_waits(desk: Episode) -> None:
    morning = desk.snapshot()
    desk.call(*room("T-508", "H-22", 11, 13))
    assert desk.call(*submit("T-508")).data["trip"]["status"] == "approved"
    assert desk.state()["departments"]["D-ENG"]["travel_budget"] == 11400
    desk.restore(morning)
    desk.call(*room("T-508", "H-21", 11, 13))
    assert desk.call(*submit("T-508")).data["trip"]["status"] == "pending"
    assert desk.state()["departments"]["D-ENG"]["travel_budget"] == 12000


@pytest.mark.parametrize(
    ("today", "flight_back", "room_back"),
    [
        ("2026-03-02", 160, 316),
        ("2026-03-03", 80, 316),
        ("2026-03-13", 80, 316),
        ("2026-03-14", 0, 316),
        ("2026-03-15", 0, 158),
        ("2026-03-16", 0, 158),
    ],
)
def test_what_a_cancellation_gives_back_depends_on_the_days_left(
    today: str, flight_back: int, room_back: int
) -> None:
    with CATALOG.start("travel_desk", init_config=merged(BASE, {"today": today})) as desk:
        assert desk.call("cancel_booking", {"booking_id": "FB-705"}).data["refunded"] == flight_back
        assert desk.call("cancel_booking", {"booking_id": "HB-802"}).data["refunded"] == room_back
        assert desk.state()["departments"]["D-ENG"]["travel_budget"] == 12000 + flight_back + room_back


def test_a_confirmed_flight_changes_for_the_fee_and_the_dearer_fare(desk: Episode) -> None:
    desk.call(*trip("E-31", 24, 24))
    for flight_id in ("NV105-0324", "NV106-0324"):
        desk.call(*seat("T-510", flight_id))
    desk.call(*submit("T-510"))
    dearer = desk.call(*rebook("FB-717", "NV101-0324")).data
    assert (dearer["charged"], dearer["booking"]["price"], dearer["booking"]["fees"]) == (110, 180, 60)
    cheaper = desk.call(*rebook("FB-717", "NV105-0324")).data
    assert (cheaper["charged"], cheaper["booking"]["price"], cheaper["booking"]["fees"]) == (60, 180, 120)
    assert desk.state()["flights"]["NV101-0324"]["seats"]["economy"] == 9


def test_a_draft_changes_free_of_charge(desk: Episode) -> None:
    desk.call(*trip("E-31", 24, 24))
    desk.call(*seat("T-510", "NV101-0324"))
    cheaper = desk.call(*rebook("FB-717", "NV105-0324")).data
    assert (cheaper["charged"], cheaper["booking"]["price"], cheaper["booking"]["fees"]) == (0, 130, 0)


def test_a_shortened_stay_is_paid_back_up_to_two_days_before() -> None:
    with CATALOG.start("travel_desk", init_config=merged(BASE, {"today": "2026-03-14"})) as desk:
        assert desk.call(*stay("HB-802", 16, 17)).data["charged"] == -158
    with CATALOG.start("travel_desk", init_config=merged(BASE, {"today": "2026-03-15"})) as desk:
        assert "less than 2 days ahead" in desk.call(*stay("HB-802", 16, 17)).data["error"]


def test_a_stay_extended_in_a_hotel_that_is_full_on_its_own_nights_keeps_them() -> None:
    full = merged(BASE, {"hotels": {"H-21": {"full_nights": ["2026-03-16"]}}})
    with CATALOG.start("travel_desk", init_config=full) as desk:
        assert desk.call(*stay("HB-802", 16, 17)).data["success"] is True


def test_a_trip_is_cancelled_with_all_its_bookings_before_its_first_day_only() -> None:
    with CATALOG.start("travel_desk", init_config=merged(BASE, {"today": "2026-03-10"})) as desk:
        assert "one by one" in desk.call("cancel_trip", {"trip_id": "T-504"}).data["error"]
        assert desk.call("cancel_trip", {"trip_id": "T-503"}).data["refunded"] == 80 + 75 + 316
        bookings = desk.call("get_trip", {"trip_id": "T-503"}).data
        assert {each["status"] for each in bookings["flights"] + bookings["hotels"]} == {"cancelled"}
