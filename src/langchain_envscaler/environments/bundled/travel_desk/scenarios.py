"""Tasks at a company's travel desk, from holding a room to sending two people to a customer."""

from functools import partial
from typing import Any

from langchain_envscaler.environments.bundled._scenarios import merged, scenario
from langchain_envscaler.environments.bundled.travel_desk.base_state import BASE
from langchain_envscaler.environments.metadata import Scenario

__all__ = ["SCENARIOS"]

_scenario = partial(scenario, "travel_desk", "TravelDesk")


def _records(table: str, values: dict[str, dict[str, Any]]) -> str:
    """The expression that these records of a table hold these values."""
    return (
        f"all(final_state[{table!r}][key][name] == value"
        f" for key, values in {values!r}.items() for name, value in values.items())"
    )


def _budgets(**left: int) -> str:
    """The expression that these departments, named without their prefix, have so much budget left."""
    return _records("departments", {f"D-{name}": {"travel_budget": amount} for name, amount in left.items()})


def _trips(employee_id: str, destination: str, start: str, end: str, status: str) -> str:
    """The expression for the ids of the trips like this."""
    wanted = {
        "employee_id": employee_id,
        "destination": destination,
        "start_date": start,
        "end_date": end,
        "status": status,
    }
    matches = f"all(trip[name] == value for name, value in {wanted!r}.items())"
    return f'[trip["trip_id"] for trip in final_state["trips"].values() if {matches}]'


def _flies(trips: str, *flights: tuple[str, str]) -> str:
    """The expression that trips have exactly these seats: flight and cabin each, cancelled ones aside."""
    return (
        '(lambda trips: sorted((seat["flight_id"], seat["cabin"])'
        ' for seat in final_state["flight_bookings"].values()'
        ' if seat["trip_id"] in trips and seat["status"] != "cancelled")'
        f" == {sorted(flights)!r})({trips})"
    )


def _stays(trips: str, *stays: tuple[str, str, str]) -> str:
    """The expression that trips have exactly these rooms: hotel, arrival and departure each, cancelled ones aside."""
    return (
        '(lambda trips: sorted((room["hotel_id"], room["check_in"], room["check_out"])'
        ' for room in final_state["hotel_bookings"].values()'
        ' if room["trip_id"] in trips and room["status"] != "cancelled")'
        f" == {sorted(stays)!r})({trips})"
    )


def _untouched(*besides: str, trips: int = 0, flights: int = 0, rooms: int = 0) -> str:
    """The expression that every record is as it was, these aside, with at most so many new ones that stand."""
    new = {"trips": trips, "flight_bookings": flights, "hotel_bookings": rooms}
    return f"""
all(
    final_state[table].get(key) == record
    for table in ("departments", *{new!r})
    for key, record in initial_state[table].items()
    if key not in {list(besides)!r}
)
and all(
    sum(
        record["status"] != "cancelled"
        for key, record in final_state[table].items()
        if key not in initial_state[table]
    )
    <= count
    for table, count in {new!r}.items()
)
"""


SCENARIOS: list[Scenario] = [
    _scenario(
        "01-a-room-in-london",
        task="""
            Sofia Lindqvist's draft trip T-501 to London has flights but no hotel yet. Please hold a room for it at
            the Harbour Lodge, from 17 to 19 March 2026.
        """,
        state=BASE,
        checks=[
            (
                "Does trip T-501 have a room at the Harbour Lodge from 17 to 19 March, and no other?",
                _stays("['T-501']", ("H-11", "2026-03-17", "2026-03-19")),
            ),
            (
                "Was nothing else changed?",
                _untouched(rooms=1),
            ),
        ],
        reference=[
            ("search_hotels", {"city": "London", "check_in": "2026-03-17", "check_out": "2026-03-19"}),
            (
                "book_hotel",
                {
                    "trip_id": "T-501",
                    "hotel_id": "H-11",
                    "check_in": "2026-03-17",
                    "check_out": "2026-03-19",
                },
            ),
        ],
    ),
    _scenario(
        "02-record-an-approval",
        task="Mei Tanaka has just told me that she approves Priya Nair's trip to Lisbon. Please record it.",
        state=BASE,
        checks=[
            (
                "Is Priya Nair's trip approved by Mei Tanaka?",
                _records("trips", {"T-502": {"status": "approved", "approved_by": "E-21"}}),
            ),
            ("Has Engineering paid the 942 euros?", _budgets(ENG=11058)),
            ("Was nothing else changed?", _untouched("T-502", "FB-703", "FB-704", "HB-801", "D-ENG")),
        ],
        reference=[
            ("find_employee", {"query": "Priya Nair"}),
            ("find_employee", {"query": "Mei Tanaka"}),
            ("list_trips", {"employee_id": "E-33", "status": "pending"}),
            ("approve_trip", {"trip_id": "T-502", "approver_id": "E-21"}),
        ],
    ),
    _scenario(
        "03-staying-with-friends",
        task="""
            Pavel Novak will stay with friends in Paris this month and no longer needs the hotel of that trip. Please
            cancel the room; the flights stay as they are.
        """,
        state=BASE,
        checks=[
            ("Is the room cancelled?", _records("hotel_bookings", {"HB-802": {"status": "cancelled"}})),
            ("Did Engineering get its 316 euros back?", _budgets(ENG=12316)),
            (
                "Was nothing else changed?",
                _untouched("HB-802", "D-ENG"),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Pavel Novak"}),
            ("list_trips", {"employee_id": "E-32"}),
            ("get_trip", {"trip_id": "T-503"}),
            ("cancel_booking", {"booking_id": "HB-802"}),
        ],
    ),
    _scenario(
        "04-too-expensive",
        task="""
            Helena Brandt has looked at Jonas Weber's trip to New York and does not agree yet. Return it in her name
            with the note "Please fly economy both ways."
        """,
        state=BASE,
        checks=[
            ("Is the trip a draft again?", _records("trips", {"T-507": {"status": "draft"}})),
            (
                "Does it carry Helena Brandt's note?",
                "final_state['trips']['T-507']['note'].strip('\"') == 'Please fly economy both ways.'",
            ),
            (
                "Was nothing else changed?",
                _untouched("T-507"),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Jonas Weber"}),
            ("find_employee", {"query": "Helena Brandt"}),
            ("list_trips", {"employee_id": "E-20", "status": "pending"}),
            (
                "return_trip",
                {"trip_id": "T-507", "approver_id": "E-10", "note": "Please fly economy both ways."},
            ),
        ],
    ),
    _scenario(
        "05-aisha-decides",
        task="""
            Aisha Rahman has gone through all trips that wait for approval today. She approves each one that costs
            less than 1000 euros and returns every other one with the note "Above 1000 euros, please reduce." Please
            record her decisions.
        """,
        state=merged(BASE, {"departments": {"D-MKT": {"travel_budget": 2000}}}),
        checks=[
            (
                "Is Priya Nair's trip approved by Aisha Rahman?",
                _records("trips", {"T-502": {"status": "approved", "approved_by": "E-12"}}),
            ),
            (
                "Is Lucas Moreau's trip approved by Aisha Rahman?",
                _records("trips", {"T-505": {"status": "approved", "approved_by": "E-12"}}),
            ),
            (
                "Is Jonas Weber's trip returned with the note?",
                _records("trips", {"T-507": {"status": "draft", "note": "Above 1000 euros, please reduce."}}),
            ),
            (
                "Was nothing else changed?",
                _untouched(
                    *("T-502", "FB-703", "FB-704", "HB-801", "D-ENG"),
                    *("T-505", "FB-709", "FB-710", "HB-804", "D-MKT"),
                    "T-507",
                ),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Aisha Rahman"}),
            ("list_trips", {"status": "pending"}),
            ("approve_trip", {"trip_id": "T-502", "approver_id": "E-12"}),
            ("approve_trip", {"trip_id": "T-505", "approver_id": "E-12"}),
            (
                "return_trip",
                {"trip_id": "T-507", "approver_id": "E-12", "note": "Above 1000 euros, please reduce."},
            ),
        ],
    ),
    _scenario(
        "06-the-cheapest-room",
        task="""
            Daniel Hofer's training in Paris is still a draft without a hotel. Book him the cheapest hotel that has a
            room for all nights from 11 to 13 March 2026, and submit the trip.
        """,
        state=BASE,
        checks=[
            (
                "Does he have a room at the Rive Claire from 11 to 13 March, and no other?",
                _stays("['T-508']", ("H-22", "2026-03-11", "2026-03-13")),
            ),
            ("Is the trip approved?", _records("trips", {"T-508": {"status": "approved"}})),
            (
                "Was nothing else changed?",
                _untouched("T-508", "FB-715", "FB-716", "D-ENG", rooms=1),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Daniel Hofer"}),
            ("list_trips", {"employee_id": "E-36", "status": "draft"}),
            ("search_hotels", {"city": "Paris", "check_in": "2026-03-11", "check_out": "2026-03-13"}),
            (
                "book_hotel",
                {
                    "trip_id": "T-508",
                    "hotel_id": "H-22",
                    "check_in": "2026-03-11",
                    "check_out": "2026-03-13",
                },
            ),
            ("submit_trip", {"trip_id": "T-508"}),
        ],
    ),
    _scenario(
        "07-a-day-in-stockholm",
        task="""
            Sofia Lindqvist visits a customer in Stockholm on 12 March 2026: out from Berlin in the morning, back on
            the same evening, both flights in economy. Please plan the trip, purpose "Customer visit", and submit it.
        """,
        state=BASE,
        checks=[
            (
                "Is there one approved trip of hers to Stockholm on 12 March?",
                f"len({_trips('E-31', 'Stockholm', '2026-03-12', '2026-03-12', 'approved')}) == 1",
            ),
            (
                "Does she fly there and back in economy?",
                _flies(
                    _trips("E-31", "Stockholm", "2026-03-12", "2026-03-12", "approved"),
                    ("SK440-0312", "economy"),
                    ("SK441-0312", "economy"),
                ),
            ),
            ("Has Sales paid the 290 euros?", _budgets(SAL=8710)),
            (
                "Was nothing else changed?",
                _untouched("D-SAL", trips=1, flights=2),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Lindqvist"}),
            ("search_flights", {"origin": "Berlin", "destination": "Stockholm", "date": "2026-03-12"}),
            ("search_flights", {"origin": "Stockholm", "destination": "Berlin", "date": "2026-03-12"}),
            (
                "create_trip",
                {
                    "employee_id": "E-31",
                    "destination": "Stockholm",
                    "start_date": "2026-03-12",
                    "end_date": "2026-03-12",
                    "purpose": "Customer visit",
                },
            ),
            ("book_flight", {"trip_id": "T-510", "flight_id": "SK440-0312", "cabin": "economy"}),
            ("book_flight", {"trip_id": "T-510", "flight_id": "SK441-0312", "cabin": "economy"}),
            ("submit_trip", {"trip_id": "T-510"}),
        ],
    ),
    _scenario(
        "08-one-day-longer",
        task="""
            Daniel Okafor's contract talks in London take one day longer. Extend his trip to 13 March 2026, move his
            return flight to the morning of that day and keep his hotel room for the additional night.
        """,
        state=BASE,
        checks=[
            (
                "Does the trip last from 10 to 13 March?",
                _records("trips", {"T-504": {"start_date": "2026-03-10", "end_date": "2026-03-13"}}),
            ),
            (
                "Does he fly back on the morning of 13 March?",
                _flies("['T-504']", ("NV101-0310", "economy"), ("NV106-0313", "economy")),
            ),
            (
                "Does he keep his room at Kingsway Rooms until 13 March?",
                _stays("['T-504']", ("H-12", "2026-03-10", "2026-03-13")),
            ),
            ("Has Sales paid 238 euros for the changes?", _budgets(SAL=8762)),
            (
                "Was nothing else changed?",
                _untouched("T-504", "FB-708", "HB-803", "D-SAL"),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Okafor"}),
            ("list_trips", {"employee_id": "E-30"}),
            ("get_trip", {"trip_id": "T-504"}),
            ("search_flights", {"origin": "London", "destination": "Berlin", "date": "2026-03-13"}),
            (
                "change_trip_dates",
                {"trip_id": "T-504", "start_date": "2026-03-10", "end_date": "2026-03-13"},
            ),
            ("change_flight", {"booking_id": "FB-708", "flight_id": "NV106-0313"}),
            (
                "change_hotel_dates",
                {"booking_id": "HB-803", "check_in": "2026-03-10", "check_out": "2026-03-13"},
            ),
        ],
    ),
    _scenario(
        "09-what-marketing-lacks",
        task="""
            Carla Rossi approves Lucas Moreau's photo production in Lisbon, but Marketing's travel budget does not
            cover it. Helena Brandt gives Marketing exactly what is missing from the budget of her own department.
            Please move the money and record the approval.
        """,
        state=BASE,
        checks=[
            (
                "Is the trip approved by Carla Rossi?",
                _records("trips", {"T-505": {"status": "approved", "approved_by": "E-22"}}),
            ),
            ("Did Sales give 154 euros?", _budgets(SAL=8846)),
            ("Is Marketing's travel budget used up?", _budgets(MKT=0)),
            (
                "Was nothing else changed?",
                _untouched("T-505", "FB-709", "FB-710", "HB-804", "D-SAL", "D-MKT"),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Lucas Moreau"}),
            ("find_employee", {"query": "Carla Rossi"}),
            ("find_employee", {"query": "Helena Brandt"}),
            ("list_trips", {"employee_id": "E-34", "status": "pending"}),
            ("get_department", {"department_id": "D-MKT"}),
            (
                "transfer_budget",
                {
                    "from_department_id": "D-SAL",
                    "to_department_id": "D-MKT",
                    "amount": 154,
                    "director_id": "E-10",
                },
            ),
            ("approve_trip", {"trip_id": "T-505", "approver_id": "E-22"}),
        ],
    ),
    _scenario(
        "10-economy-after-all",
        task="""
            Jonas Weber's trip to New York was returned to him. Please do what the note on it asks: same flights, same
            hotel, and submit it again. Helena Brandt has said that she approves it then; record that too.
        """,
        state=merged(
            BASE, {"trips": {"T-507": {"status": "draft", "note": "Please fly economy both ways."}}}
        ),
        checks=[
            (
                "Does he fly both ways in economy?",
                _flies("['T-507']", ("AT900-0315", "economy"), ("AT901-0320", "economy")),
            ),
            (
                "Is the trip approved by Helena Brandt?",
                _records("trips", {"T-507": {"status": "approved", "approved_by": "E-10"}}),
            ),
            ("Has Sales paid the 2700 euros?", _budgets(SAL=6300)),
            (
                "Was nothing else changed, the room included?",
                _untouched("T-507", "FB-713", "FB-714", "HB-805", "D-SAL", flights=1)
                + " and "
                + _stays("['T-507']", ("H-42", "2026-03-15", "2026-03-20")),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Jonas Weber"}),
            ("list_trips", {"employee_id": "E-20", "status": "draft"}),
            ("get_trip", {"trip_id": "T-507"}),
            ("cancel_booking", {"booking_id": "FB-713"}),
            ("book_flight", {"trip_id": "T-507", "flight_id": "AT900-0315", "cabin": "economy"}),
            ("submit_trip", {"trip_id": "T-507"}),
            ("find_employee", {"query": "Helena Brandt"}),
            ("approve_trip", {"trip_id": "T-507", "approver_id": "E-10"}),
        ],
    ),
    _scenario(
        "11-a-week-later",
        task="""
            The supplier in Paris has asked Pavel Novak to come a week later. Please move his trip by exactly seven
            days: same connections, same hotel. Change the trip and its bookings instead of cancelling them; it should
            then last from 23 to 25 March 2026.
        """,
        state=BASE,
        checks=[
            (
                "Does the trip last from 23 to 25 March, still approved?",
                _records(
                    "trips",
                    {"T-503": {"start_date": "2026-03-23", "end_date": "2026-03-25", "status": "approved"}},
                ),
            ),
            (
                "Were both flights moved?",
                _flies("['T-503']", ("SC210-0323", "economy"), ("SC211-0325", "economy")),
            ),
            (
                "Was the room at the Hotel Verlaine moved?",
                _stays("['T-503']", ("H-21", "2026-03-23", "2026-03-25")),
            ),
            ("Has Engineering paid two change fees and nothing else?", _budgets(ENG=11880)),
            (
                "Was nothing else changed?",
                _untouched("T-503", "FB-705", "FB-706", "HB-802", "D-ENG"),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Novak"}),
            ("list_trips", {"employee_id": "E-32"}),
            ("get_trip", {"trip_id": "T-503"}),
            ("search_flights", {"origin": "Berlin", "destination": "Paris", "date": "2026-03-23"}),
            ("search_flights", {"origin": "Paris", "destination": "Berlin", "date": "2026-03-25"}),
            (
                "change_trip_dates",
                {"trip_id": "T-503", "start_date": "2026-03-16", "end_date": "2026-03-25"},
            ),
            ("change_flight", {"booking_id": "FB-705", "flight_id": "SC210-0323"}),
            ("change_flight", {"booking_id": "FB-706", "flight_id": "SC211-0325"}),
            (
                "change_hotel_dates",
                {"booking_id": "HB-802", "check_in": "2026-03-23", "check_out": "2026-03-25"},
            ),
            (
                "change_trip_dates",
                {"trip_id": "T-503", "start_date": "2026-03-23", "end_date": "2026-03-25"},
            ),
        ],
    ),
    _scenario(
        "12-mei-in-new-york",
        task="""
            Mei Tanaka goes to New York for a partner summit, from 22 to 27 March 2026. She flies from Berlin on the
            first day in business class and back on the last day in economy, and takes the cheapest hotel that has a
            room for all the nights. Plan it, purpose "Partner summit", submit it, and record that Tomás Ferreira
            approves it.
        """,
        state=BASE,
        checks=[
            (
                "Is there one approved trip of hers to New York from 22 to 27 March?",
                f"len({_trips('E-21', 'New York', '2026-03-22', '2026-03-27', 'approved')}) == 1",
            ),
            (
                "Does she fly out in business and back in economy?",
                _flies(
                    _trips("E-21", "New York", "2026-03-22", "2026-03-27", "approved"),
                    ("AT900-0322", "business"),
                    ("AT901-0327", "economy"),
                ),
            ),
            (
                "Does she stay at the Hudson Inn, the cheapest with a room?",
                _stays(
                    _trips("E-21", "New York", "2026-03-22", "2026-03-27", "approved"),
                    ("H-41", "2026-03-22", "2026-03-27"),
                ),
            ),
            ("Has Engineering paid the 4515 euros?", _budgets(ENG=7485)),
            (
                "Was nothing else changed?",
                _untouched("D-ENG", trips=1, flights=2, rooms=1),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Mei Tanaka"}),
            ("search_flights", {"origin": "Berlin", "destination": "New York", "date": "2026-03-22"}),
            ("search_flights", {"origin": "New York", "destination": "Berlin", "date": "2026-03-27"}),
            ("search_hotels", {"city": "New York", "check_in": "2026-03-22", "check_out": "2026-03-27"}),
            (
                "create_trip",
                {
                    "employee_id": "E-21",
                    "destination": "New York",
                    "start_date": "2026-03-22",
                    "end_date": "2026-03-27",
                    "purpose": "Partner summit",
                },
            ),
            ("book_flight", {"trip_id": "T-510", "flight_id": "AT900-0322", "cabin": "business"}),
            ("book_flight", {"trip_id": "T-510", "flight_id": "AT901-0327", "cabin": "economy"}),
            (
                "book_hotel",
                {
                    "trip_id": "T-510",
                    "hotel_id": "H-41",
                    "check_in": "2026-03-22",
                    "check_out": "2026-03-27",
                },
            ),
            ("submit_trip", {"trip_id": "T-510"}),
            ("find_employee", {"query": "Tomás Ferreira"}),
            ("approve_trip", {"trip_id": "T-510", "approver_id": "E-11"}),
        ],
    ),
    _scenario(
        "13-sofia-steps-in",
        task="""
            Daniel Okafor has fallen ill. Cancel his London trip of 10 to 12 March 2026; Sofia Lindqvist takes the
            contract talks over. Plan a trip for her on the same days, on the same flights in economy and at the same
            hotel (his seats are free again once his trip is cancelled), and submit it. Jonas Weber has agreed to
            approve it, so record his approval.
        """,
        state=BASE,
        checks=[
            ("Is Daniel Okafor's trip cancelled?", _records("trips", {"T-504": {"status": "cancelled"}})),
            (
                "Is there one trip of Sofia Lindqvist's on these days, approved by Jonas Weber?",
                '[final_state["trips"][trip]["approved_by"] for trip in '
                + _trips("E-31", "London", "2026-03-10", "2026-03-12", "approved")
                + '] == ["E-20"]',
            ),
            (
                "Does she fly on the same flights?",
                _flies(
                    _trips("E-31", "London", "2026-03-10", "2026-03-12", "approved"),
                    ("NV101-0310", "economy"),
                    ("NV102-0312", "economy"),
                ),
            ),
            (
                "Does she stay at Kingsway Rooms?",
                _stays(
                    _trips("E-31", "London", "2026-03-10", "2026-03-12", "approved"),
                    ("H-12", "2026-03-10", "2026-03-12"),
                ),
            ),
            ("Does Sales have 8825 euros left, after refund and new cost?", _budgets(SAL=8825)),
            (
                "Was nothing else changed?",
                _untouched("T-504", "FB-707", "FB-708", "HB-803", "D-SAL", trips=1, flights=2, rooms=1),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Daniel Okafor"}),
            ("find_employee", {"query": "Sofia Lindqvist"}),
            ("list_trips", {"employee_id": "E-30"}),
            ("get_trip", {"trip_id": "T-504"}),
            ("cancel_trip", {"trip_id": "T-504"}),
            (
                "create_trip",
                {
                    "employee_id": "E-31",
                    "destination": "London",
                    "start_date": "2026-03-10",
                    "end_date": "2026-03-12",
                    "purpose": "Contract talks",
                },
            ),
            ("book_flight", {"trip_id": "T-510", "flight_id": "NV101-0310", "cabin": "economy"}),
            ("book_flight", {"trip_id": "T-510", "flight_id": "NV102-0312", "cabin": "economy"}),
            (
                "book_hotel",
                {
                    "trip_id": "T-510",
                    "hotel_id": "H-12",
                    "check_in": "2026-03-10",
                    "check_out": "2026-03-12",
                },
            ),
            ("submit_trip", {"trip_id": "T-510"}),
            ("find_employee", {"query": "Jonas Weber"}),
            ("approve_trip", {"trip_id": "T-510", "approver_id": "E-20"}),
        ],
    ),
    _scenario(
        "14-two-to-london",
        task="""
            Sofia Lindqvist and Priya Nair go to London together for the day on 24 March 2026. Both fly in economy,
            from Berlin in the morning and back in the evening on the same day, on the same flights. Plan a trip for
            each of them, purpose "Product demo", and submit both.
        """,
        state=BASE,
        checks=[
            (
                "Does Sofia Lindqvist have one approved trip to London on that day?",
                f"len({_trips('E-31', 'London', '2026-03-24', '2026-03-24', 'approved')}) == 1",
            ),
            (
                "Does Priya Nair have one approved trip to London on that day?",
                f"len({_trips('E-33', 'London', '2026-03-24', '2026-03-24', 'approved')}) == 1",
            ),
            (
                "Does Sofia Lindqvist fly there in the morning and back in the evening?",
                _flies(
                    _trips("E-31", "London", "2026-03-24", "2026-03-24", "approved"),
                    ("NV101-0324", "economy"),
                    ("NV102-0324", "economy"),
                ),
            ),
            (
                "Does Priya Nair fly there in the morning and back in the evening?",
                _flies(
                    _trips("E-33", "London", "2026-03-24", "2026-03-24", "approved"),
                    ("NV101-0324", "economy"),
                    ("NV102-0324", "economy"),
                ),
            ),
            ("Has each department paid 350 euros?", _budgets(SAL=8650, ENG=11650)),
            (
                "Was nothing else changed?",
                _untouched("D-SAL", "D-ENG", trips=2, flights=4),
            ),
        ],
        reference=[
            ("find_employee", {"query": "Sofia Lindqvist"}),
            ("find_employee", {"query": "Priya Nair"}),
            ("search_flights", {"origin": "Berlin", "destination": "London", "date": "2026-03-24"}),
            ("search_flights", {"origin": "London", "destination": "Berlin", "date": "2026-03-24"}),
            (
                "create_trip",
                {
                    "employee_id": "E-31",
                    "destination": "London",
                    "start_date": "2026-03-24",
                    "end_date": "2026-03-24",
                    "purpose": "Product demo",
                },
            ),
            ("book_flight", {"trip_id": "T-510", "flight_id": "NV101-0324", "cabin": "economy"}),
            ("book_flight", {"trip_id": "T-510", "flight_id": "NV102-0324", "cabin": "economy"}),
            ("submit_trip", {"trip_id": "T-510"}),
            (
                "create_trip",
                {
                    "employee_id": "E-33",
                    "destination": "London",
                    "start_date": "2026-03-24",
                    "end_date": "2026-03-24",
                    "purpose": "Product demo",
                },
            ),
            ("book_flight", {"trip_id": "T-511", "flight_id": "NV101-0324", "cabin": "economy"}),
            ("book_flight", {"trip_id": "T-511", "flight_id": "NV102-0324", "cabin": "economy"}),
            ("submit_trip", {"trip_id": "T-511"}),
        ],
    ),
]
