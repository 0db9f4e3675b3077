"""A company's travel desk."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import wraps
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar, final

__all__ = ["TravelDesk"]

Grade = Literal["staff", "manager", "director"]
Cabin = Literal["economy", "business"]
TripStatus = Literal["draft", "pending", "approved", "cancelled"]
BookingStatus = Literal["held", "confirmed", "cancelled"]

CABINS = ("economy", "business")
TRIP_STATUSES = ("draft", "pending", "approved", "cancelled")

SELF_APPROVED_UP_TO = 600
MANAGER_APPROVES_UP_TO = 3000
LONG_FLIGHT_HOURS = 6
CHANGE_FEE = 60
FULL_REFUND_DAYS = 14
HALF_REFUND_DAYS = 3
FREE_HOTEL_DAYS = 2


class Employee(TypedDict):
    """A person of the company; directors report to nobody here."""

    employee_id: str
    name: str
    grade: Grade
    department_id: str
    manager_id: str | None


class Department(TypedDict):
    """Who pays; `travel_budget` is what is left of it, in euros."""

    department_id: str
    name: str
    travel_budget: int


class Flight(TypedDict):
    """A flight on one day; fares in euros and free seats are given per cabin."""

    flight_id: str
    origin: str
    destination: str
    date: str
    departs: str
    arrives: str
    hours: float
    fares: dict[Cabin, int]
    seats: dict[Cabin, int]


class Hotel(TypedDict):
    """A hotel; `full_nights` are the nights on which it has no room left."""

    hotel_id: str
    name: str
    city: str
    nightly_rate: int
    full_nights: list[str]


class Trip(TypedDict):
    """A business trip of one employee; `note` is what an approver wrote when returning it."""

    trip_id: str
    employee_id: str
    destination: str
    start_date: str
    end_date: str
    purpose: str
    status: TripStatus
    approved_by: str | None
    note: str


@final
class FlightBooking(TypedDict):
    """A seat. It costs its trip `price + fees - refunded` euros."""

    booking_id: str
    trip_id: str
    flight_id: str
    cabin: Cabin
    status: BookingStatus
    price: int
    fees: int
    refunded: int


@final
class HotelBooking(TypedDict):
    """A room from the night of `check_in` to the morning of `check_out`. It costs `price - refunded` euros."""

    booking_id: str
    trip_id: str
    hotel_id: str
    check_in: str
    check_out: str
    status: BookingStatus
    price: int
    refunded: int


class _Refused(Exception):
    """A rule forbids what was asked; the message says which and what to do."""


P = ParamSpec("P")
Record = TypeVar("Record")
Booking = TypeVar("Booking", FlightBooking, HotelBooking)


def _tool(method: Callable[P, dict[str, Any]]) -> Callable[P, dict[str, Any]]:
    """Turns a refusal inside a tool into the tool's answer."""

    @wraps(method)
    def answered(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        try:
            return method(*args, **kwargs)
        except _Refused as refusal:
            return {"success": False, "error": str(refusal)}

    return answered


class TravelDesk:
    """A company's travel desk, where an agent plans, books, changes and cancels business trips for employees.

    A trip starts as a draft, in which flights and rooms are held. It is submitted, approved (which confirms its
    bookings and charges the department's travel budget) or returned to draft with a note. Amounts are whole euros,
    dates are YYYY-MM-DD, and the current date is `today`.

    Rules:
    - An employee's trips, cancelled ones aside, may not share a day.
    - A trip's flights and hotel nights lie within its dates, its hotels in its destination, and its hotel stays do not overlap.
    - Business class is for directors and for flights of 6 hours or more.
    - A room may not cost more than its city's nightly limit, except for directors.
    - Bookings are added to draft trips only; a pending trip cannot be changed, only approved, returned or cancelled.
    - A submitted trip has at least one booking; up to 600 euros it is approved at once.
    - Above 600 euros a trip is approved or returned by the traveller's own manager or by a director, above 3000 by a director; nobody decides on their own trip.
    - An approval is refused when the department's travel budget does not cover the trip.
    - Drafts are changed and cancelled free of charge.
    - A flight is changed to another one on the same route, in the same cabin; once confirmed, that costs 60 euros and the difference in fare, and a cheaper fare is not refunded.
    - A confirmed hotel stay is changed up to 2 days before check-in; the department pays or gets back the difference.
    - A confirmed flight cancelled 14 days or more before departure is refunded in full, 3 days or more by half, later not at all; fees are never refunded.
    - A confirmed hotel stay cancelled 2 days or more before check-in is refunded in full, later without the first night.
    - A trip is cancelled before its first day, with all its bookings.
    - Only a director may move travel budget between departments.
    """

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.today: str = init_config.get("today", "2026-01-01")
        self.employees: dict[str, Employee] = init_config.get("employees", {})
        self.departments: dict[str, Department] = init_config.get("departments", {})
        self.nightly_limits: dict[str, int] = init_config.get("nightly_limits", {})
        self.flights: dict[str, Flight] = init_config.get("flights", {})
        self.hotels: dict[str, Hotel] = init_config.get("hotels", {})
        self.trips: dict[str, Trip] = init_config.get("trips", {})
        self.flight_bookings: dict[str, FlightBooking] = init_config.get("flight_bookings", {})
        self.hotel_bookings: dict[str, HotelBooking] = init_config.get("hotel_bookings", {})
        self.counters: dict[str, int] = init_config.get("counters", {"T": 0, "FB": 0, "HB": 0})

    @_tool
    def find_employee(self, query: str) -> dict[str, Any]:
        """Find employees by id or part of the name.

        Args:
            query (str): Employee id or part of a name.

        Returns:
            dict: success and employees, or an error.
        """
        wanted = str(query).strip().lower()
        found = [
            employee
            for employee in self.employees.values()
            if wanted and (wanted == employee["employee_id"].lower() or wanted in employee["name"].lower())
        ]
        if not found:
            raise _Refused(f"No employee matches {query!r}: try the surname alone.")
        return {"success": True, "employees": found}

    @_tool
    def get_department(self, department_id: str) -> dict[str, Any]:
        """Show a department and what is left of its travel budget.

        Args:
            department_id (str): The department's id.

        Returns:
            dict: success and department, or an error.
        """
        return {"success": True, "department": self._department(department_id)}

    @_tool
    def list_trips(self, employee_id: str = "", status: str = "") -> dict[str, Any]:
        """List trips with their cost, by employee, by status, or both.

        Args:
            employee_id (str): Only this traveller's trips.
            status (str): Only draft, pending, approved or cancelled trips.

        Returns:
            dict: success and trips, or an error.
        """
        if employee_id:
            self._employee(employee_id)
        if status and status not in TRIP_STATUSES:
            raise _Refused(f"The status is one of {', '.join(TRIP_STATUSES)}, not {status!r}.")
        found = [
            {**trip, "cost": self._cost(trip)}
            for trip in self.trips.values()
            if employee_id in ("", trip["employee_id"]) and status in ("", trip["status"])
        ]
        return {"success": True, "trips": found}

    @_tool
    def get_trip(self, trip_id: str) -> dict[str, Any]:
        """Show a trip, its bookings and its cost.

        Args:
            trip_id (str): The trip's id.

        Returns:
            dict: success, trip, flights, hotels and cost, or an error.
        """
        trip = self._trip(trip_id)
        return {
            "success": True,
            "trip": trip,
            "flights": [
                {**booking, "flight": _itinerary(self.flights[booking["flight_id"]])}
                for booking in self._flights_of(trip)
            ],
            "hotels": [
                {**booking, "hotel": self.hotels[booking["hotel_id"]]["name"]}
                for booking in self._hotels_of(trip)
            ],
            "cost": self._cost(trip),
        }

    @_tool
    def search_flights(self, origin: str, destination: str, date: str) -> dict[str, Any]:
        """List the flights of a route on a day.

        Args:
            origin (str): City of departure.
            destination (str): City of arrival.
            date (str): Day of departure, YYYY-MM-DD.

        Returns:
            dict: success and flights, or an error.
        """
        day = _day(date).isoformat()
        route = self._city(origin), self._city(destination)
        served = [each for each in self.flights.values() if (each["origin"], each["destination"]) == route]
        found = [flight for flight in served if flight["date"] == day]
        if not found:
            days = ", ".join(sorted({flight["date"] for flight in served})) or "no day"
            raise _Refused(
                f"No flight from {origin} to {destination} on {day}; the route is served on {days}."
            )
        return {"success": True, "flights": found}

    @_tool
    def search_hotels(self, city: str, check_in: str, check_out: str) -> dict[str, Any]:
        """List a city's hotels with a free room, and the city's nightly limit.

        Args:
            city (str): The city.
            check_in (str): Day of arrival, YYYY-MM-DD.
            check_out (str): Day of departure, YYYY-MM-DD.

        Returns:
            dict: success, nightly_limit and hotels, or an error.
        """
        nights = _nights(check_in, check_out)
        city = self._city(city)
        found = [
            {
                "hotel_id": hotel["hotel_id"],
                "name": hotel["name"],
                "nightly_rate": hotel["nightly_rate"],
                "price": hotel["nightly_rate"] * len(nights),
            }
            for hotel in self.hotels.values()
            if hotel["city"] == city and not _full(hotel, nights)
        ]
        if not found:
            raise _Refused(f"No hotel in {city} has a room on all nights from {check_in} to {check_out}.")
        return {"success": True, "nightly_limit": self.nightly_limits.get(city), "hotels": found}

    @_tool
    def create_trip(
        self, employee_id: str, destination: str, start_date: str, end_date: str, purpose: str
    ) -> dict[str, Any]:
        """Create a draft trip.

        Args:
            employee_id (str): The traveller's id.
            destination (str): City of destination.
            start_date (str): First day, YYYY-MM-DD.
            end_date (str): Last day, YYYY-MM-DD; may be the first.
            purpose (str): What the trip is for.

        Returns:
            dict: success and trip, or an error.
        """
        employee = self._employee(employee_id)
        city = self._city(destination)
        start, end = self._trip_days(start_date, end_date)
        self._require_free(employee, start, end)
        trip_id = self._new_id("T")
        self.trips[trip_id] = {
            "trip_id": trip_id,
            "employee_id": employee_id,
            "destination": city,
            "start_date": start.isoformat(),
            "end_date": end.isoformat(),
            "purpose": str(purpose),
            "status": "draft",
            "approved_by": None,
            "note": "",
        }
        return {"success": True, "trip": self.trips[trip_id]}

    @_tool
    def change_trip_dates(self, trip_id: str, start_date: str, end_date: str) -> dict[str, Any]:
        """Change the dates of a draft or approved trip; its bookings must lie within them.

        Args:
            trip_id (str): The trip's id.
            start_date (str): New first day, YYYY-MM-DD.
            end_date (str): New last day, YYYY-MM-DD.

        Returns:
            dict: success and trip, or an error.
        """
        trip = self._changeable_trip(trip_id)
        start, end = self._trip_days(start_date, end_date, trip)
        self._require_free(self.employees[trip["employee_id"]], start, end, besides=trip)
        first, last = start.isoformat(), end.isoformat()
        outside = [
            booking["booking_id"]
            for booking in self._active_bookings(trip)
            if not first <= self._start_of(booking) <= self._end_of(booking) <= last
        ]
        if outside:
            raise _Refused(
                f"{', '.join(outside)} would lie outside {first} to {last}: choose dates that include the old and the"
                " new bookings, move the bookings, then narrow the dates."
            )
        trip["start_date"], trip["end_date"] = first, last
        return {"success": True, "trip": trip}

    @_tool
    def book_flight(self, trip_id: str, flight_id: str, cabin: Cabin) -> dict[str, Any]:
        """Hold a seat for a draft trip.

        Args:
            trip_id (str): The trip's id.
            flight_id (str): The flight's id.
            cabin (str): economy or business.

        Returns:
            dict: success and booking, or an error.
        """
        trip = self._draft_trip(trip_id)
        flight = self._flight(flight_id)
        if cabin not in CABINS:
            raise _Refused(f"The cabin is economy or business, not {cabin!r}.")
        self._require_seat(trip, flight, cabin)
        if cabin == "business" and not self._is_director(trip) and flight["hours"] < LONG_FLIGHT_HOURS:
            raise _Refused(
                f"{flight_id} takes {flight['hours']} hours: business class is for directors and for flights of"
                f" {LONG_FLIGHT_HOURS} hours or more. Book economy."
            )
        booking_id = self._new_id("FB")
        self.flight_bookings[booking_id] = {
            "booking_id": booking_id,
            "trip_id": trip_id,
            "flight_id": flight_id,
            "cabin": cabin,
            "status": "held",
            "price": flight["fares"][cabin],
            "fees": 0,
            "refunded": 0,
        }
        flight["seats"][cabin] -= 1
        return {"success": True, "booking": self.flight_bookings[booking_id]}

    @_tool
    def book_hotel(self, trip_id: str, hotel_id: str, check_in: str, check_out: str) -> dict[str, Any]:
        """Hold a room for a draft trip.

        Args:
            trip_id (str): The trip's id.
            hotel_id (str): The hotel's id.
            check_in (str): Day of arrival, YYYY-MM-DD.
            check_out (str): Day of departure, YYYY-MM-DD.

        Returns:
            dict: success and booking, or an error.
        """
        trip = self._draft_trip(trip_id)
        hotel = self._hotel(hotel_id)
        if hotel["city"] != trip["destination"]:
            raise _Refused(f"{hotel_id} is in {hotel['city']}, the trip goes to {trip['destination']}.")
        limit = self.nightly_limits.get(hotel["city"])
        if limit is not None and hotel["nightly_rate"] > limit and not self._is_director(trip):
            raise _Refused(
                f"{hotel_id} costs {hotel['nightly_rate']} a night, the limit in {hotel['city']} is {limit}:"
                " choose a cheaper hotel."
            )
        nights = _nights(check_in, check_out)
        self._require_room(trip, hotel, nights)
        booking_id = self._new_id("HB")
        self.hotel_bookings[booking_id] = {
            "booking_id": booking_id,
            "trip_id": trip_id,
            "hotel_id": hotel_id,
            "check_in": nights[0],
            "check_out": _after(nights[-1]),
            "status": "held",
            "price": hotel["nightly_rate"] * len(nights),
            "refunded": 0,
        }
        return {"success": True, "booking": self.hotel_bookings[booking_id]}

    @_tool
    def change_flight(self, booking_id: str, flight_id: str) -> dict[str, Any]:
        """Move a flight booking to another flight on the same route.

        Args:
            booking_id (str): The flight booking's id.
            flight_id (str): The new flight's id.

        Returns:
            dict: success, booking and charged, or an error.
        """
        booking = _active(self.flight_bookings, booking_id)
        trip = self._changeable_trip(booking["trip_id"])
        old, new = self.flights[booking["flight_id"]], self._flight(flight_id)
        if old["date"] < self.today:
            raise _Refused(f"{booking_id} has departed on {old['date']} and cannot be changed.")
        if (old["origin"], old["destination"]) != (new["origin"], new["destination"]):
            raise _Refused(
                f"{booking_id} flies from {old['origin']} to {old['destination']}: keep the route."
            )
        cabin = booking["cabin"]
        self._require_seat(trip, new, cabin)
        charge = 0
        price = new["fares"][cabin]
        if booking["status"] == "confirmed":
            price = max(booking["price"], price)
            charge = CHANGE_FEE + price - booking["price"]
            self._pay(trip, charge)
            booking["fees"] += CHANGE_FEE
        booking["price"], booking["flight_id"] = price, flight_id
        old["seats"][cabin] += 1
        new["seats"][cabin] -= 1
        return {"success": True, "booking": booking, "charged": charge}

    @_tool
    def change_hotel_dates(self, booking_id: str, check_in: str, check_out: str) -> dict[str, Any]:
        """Move, extend or shorten a hotel stay in the same hotel.

        Args:
            booking_id (str): The hotel booking's id.
            check_in (str): New day of arrival, YYYY-MM-DD.
            check_out (str): New day of departure, YYYY-MM-DD.

        Returns:
            dict: success, booking and charged (negative when paid back), or an error.
        """
        booking = _active(self.hotel_bookings, booking_id)
        trip = self._changeable_trip(booking["trip_id"])
        hotel = self.hotels[booking["hotel_id"]]
        nights = _nights(check_in, check_out)
        confirmed = booking["status"] == "confirmed"
        if confirmed and self._days_until(booking["check_in"]) < FREE_HOTEL_DAYS:
            raise _Refused(
                f"{booking_id} starts on {booking['check_in']}: less than {FREE_HOTEL_DAYS} days ahead."
            )
        self._require_room(trip, hotel, nights, besides=booking)
        price = hotel["nightly_rate"] * len(nights)
        charge = price - booking["price"] if confirmed else 0
        self._pay(trip, charge)
        booking["check_in"], booking["check_out"], booking["price"] = nights[0], _after(nights[-1]), price
        return {"success": True, "booking": booking, "charged": charge}

    @_tool
    def cancel_booking(self, booking_id: str) -> dict[str, Any]:
        """Cancel one flight or hotel booking of a draft or approved trip.

        Args:
            booking_id (str): The booking's id.

        Returns:
            dict: success, booking and refunded, or an error.
        """
        booking: FlightBooking | HotelBooking
        if str(booking_id).startswith("FB-"):
            booking = _active(self.flight_bookings, booking_id)
        else:
            booking = _active(self.hotel_bookings, booking_id)
        trip = self._changeable_trip(booking["trip_id"])
        start = self._start_of(booking)
        if start < self.today:
            raise _Refused(f"{booking_id} began on {start} and cannot be cancelled.")
        refund = self._cancel(booking)
        self._pay(trip, -refund)
        return {"success": True, "booking": booking, "refunded": refund}

    @_tool
    def submit_trip(self, trip_id: str) -> dict[str, Any]:
        """Submit a draft trip: it is approved at once or waits for an approver.

        Args:
            trip_id (str): The trip's id.

        Returns:
            dict: success, trip and cost, or an error.
        """
        trip = self._draft_trip(trip_id)
        if not self._active_bookings(trip):
            raise _Refused(f"{trip_id} has no booking yet: book a flight or a hotel first.")
        cost = self._cost(trip)
        if cost <= SELF_APPROVED_UP_TO:
            self._approve(trip, None)
        else:
            trip["status"] = "pending"
        return {"success": True, "trip": trip, "cost": cost}

    @_tool
    def approve_trip(self, trip_id: str, approver_id: str) -> dict[str, Any]:
        """Record that a pending trip is approved.

        Args:
            trip_id (str): The trip's id.
            approver_id (str): Employee id of who approves it.

        Returns:
            dict: success, trip and cost, or an error.
        """
        trip = self._pending_trip(trip_id)
        self._require_may_decide(trip, approver_id)
        self._approve(trip, approver_id)
        return {"success": True, "trip": trip, "cost": self._cost(trip)}

    @_tool
    def return_trip(self, trip_id: str, approver_id: str, note: str) -> dict[str, Any]:
        """Return a pending trip to draft with a note.

        Args:
            trip_id (str): The trip's id.
            approver_id (str): Employee id of who returns it.
            note (str): What the traveller should change.

        Returns:
            dict: success and trip, or an error.
        """
        trip = self._pending_trip(trip_id)
        self._require_may_decide(trip, approver_id)
        if not str(note).strip():
            raise _Refused("A returned trip needs a note that says what to change.")
        trip["status"], trip["note"] = "draft", str(note).strip()
        return {"success": True, "trip": trip}

    @_tool
    def cancel_trip(self, trip_id: str) -> dict[str, Any]:
        """Cancel a trip and all its bookings.

        Args:
            trip_id (str): The trip's id.

        Returns:
            dict: success, trip and refunded, or an error.
        """
        trip = self._trip(trip_id)
        if trip["status"] == "cancelled":
            raise _Refused(f"{trip_id} is cancelled already.")
        if trip["start_date"] <= self.today:
            raise _Refused(
                f"{trip_id} began on {trip['start_date']}: cancel its remaining bookings one by one."
            )
        refund = sum(self._cancel(booking) for booking in self._active_bookings(trip))
        self._pay(trip, -refund)
        trip["status"] = "cancelled"
        return {"success": True, "trip": trip, "refunded": refund}

    @_tool
    def transfer_budget(
        self, from_department_id: str, to_department_id: str, amount: int, director_id: str
    ) -> dict[str, Any]:
        """Move travel budget between departments.

        Args:
            from_department_id (str): The department that gives.
            to_department_id (str): The department that receives.
            amount (int): Whole euros.
            director_id (str): Employee id of the director who ordered it.

        Returns:
            dict: success and departments, or an error.
        """
        giver, receiver = self._department(from_department_id), self._department(to_department_id)
        director = self._employee(director_id)
        if director["grade"] != "director":
            raise _Refused(f"{director_id} is a {director['grade']}: only a director may move travel budget.")
        if giver is receiver:
            raise _Refused("The two departments must differ.")
        if isinstance(amount, bool) or not isinstance(amount, int) or amount <= 0:
            raise _Refused(f"The amount is a whole number of euros above 0, not {amount!r}.")
        if amount > giver["travel_budget"]:
            raise _Refused(
                f"{from_department_id} has {giver['travel_budget']} euros left, less than {amount}."
            )
        giver["travel_budget"] -= amount
        receiver["travel_budget"] += amount
        return {"success": True, "departments": [giver, receiver]}

    def _require_free(self, employee: Employee, start: date, end: date, besides: Trip | None = None) -> None:
        first, last = start.isoformat(), end.isoformat()
        for trip in self.trips.values():
            if (
                trip is besides
                or trip["employee_id"] != employee["employee_id"]
                or trip["status"] == "cancelled"
            ):
                continue
            if trip["start_date"] <= last and first <= trip["end_date"]:
                raise _Refused(
                    f"{employee['name']} is on {trip['trip_id']} from {trip['start_date']} to {trip['end_date']}:"
                    " trips may not share a day."
                )

    def _require_seat(self, trip: Trip, flight: Flight, cabin: Cabin) -> None:
        if flight["date"] < self.today:
            raise _Refused(f"{flight['flight_id']} has departed on {flight['date']}.")
        if not trip["start_date"] <= flight["date"] <= trip["end_date"]:
            raise _Refused(
                f"{flight['flight_id']} is on {flight['date']}, outside {trip['trip_id']}"
                f" ({trip['start_date']} to {trip['end_date']})."
            )
        if any(
            booking["flight_id"] == flight["flight_id"] and booking["status"] != "cancelled"
            for booking in self._flights_of(trip)
        ):
            raise _Refused(f"{trip['trip_id']} has a seat on {flight['flight_id']} already.")
        if flight["seats"][cabin] < 1:
            raise _Refused(f"{flight['flight_id']} has no {cabin} seat left: search for another flight.")

    def _require_room(
        self, trip: Trip, hotel: Hotel, nights: list[str], besides: HotelBooking | None = None
    ) -> None:
        if nights[0] < self.today:
            raise _Refused(f"{nights[0]} is in the past: today is {self.today}.")
        if nights[0] < trip["start_date"] or _after(nights[-1]) > trip["end_date"]:
            raise _Refused(
                f"A stay from {nights[0]} to {_after(nights[-1])} lies outside {trip['trip_id']}"
                f" ({trip['start_date']} to {trip['end_date']})."
            )
        for booking in self._hotels_of(trip):
            if booking is besides or booking["status"] == "cancelled":
                continue
            if booking["check_in"] <= nights[-1] and nights[0] < booking["check_out"]:
                raise _Refused(
                    f"{booking['booking_id']} covers some of these nights: change or cancel it first."
                )
        kept = _nights(besides["check_in"], besides["check_out"]) if besides else []
        if full := _full(hotel, [night for night in nights if night not in kept]):
            raise _Refused(f"{hotel['hotel_id']} has no room on {', '.join(full)}: search for another hotel.")

    def _require_may_decide(self, trip: Trip, approver_id: str) -> None:
        approver = self._employee(approver_id)
        traveller = self.employees[trip["employee_id"]]
        cost = self._cost(trip)
        if approver is traveller:
            raise _Refused("Nobody decides on their own trip.")
        if approver["grade"] == "director":
            return
        if cost > MANAGER_APPROVES_UP_TO:
            raise _Refused(
                f"{trip['trip_id']} costs {cost} euros: above {MANAGER_APPROVES_UP_TO} a director decides."
            )
        if approver_id != traveller["manager_id"]:
            raise _Refused(
                f"{approver_id} is not {traveller['name']}'s manager: {traveller['manager_id'] or 'a director'} or a"
                " director decides."
            )

    def _approve(self, trip: Trip, approver_id: str | None) -> None:
        self._pay(trip, self._cost(trip), charging=True)
        for booking in self._active_bookings(trip):
            booking["status"] = "confirmed"
        trip["status"], trip["approved_by"], trip["note"] = "approved", approver_id, ""

    def _pay(self, trip: Trip, amount: int, charging: bool = False) -> None:
        """Takes an amount from the traveller's department, if the trip is approved or is being charged now."""
        if not charging and trip["status"] != "approved":
            return
        department = self.departments[self.employees[trip["employee_id"]]["department_id"]]
        if amount > department["travel_budget"]:
            raise _Refused(
                f"This costs {amount} euros, {department['department_id']} has {department['travel_budget']} left in"
                " its travel budget: a director can move budget to it."
            )
        department["travel_budget"] -= amount

    def _cancel(self, booking: FlightBooking | HotelBooking) -> int:
        """Cancels an active booking and tells its refund."""
        refund = booking["price"]
        days = self._days_until(self._start_of(booking))
        if "flight_id" in booking:
            flight = self.flights[booking["flight_id"]]
            flight["seats"][booking["cabin"]] += 1
            if booking["status"] == "confirmed" and days < FULL_REFUND_DAYS:
                refund = booking["price"] // 2 if days >= HALF_REFUND_DAYS else 0
        elif booking["status"] == "confirmed" and days < FREE_HOTEL_DAYS:
            refund -= self.hotels[booking["hotel_id"]]["nightly_rate"]
        booking["status"], booking["refunded"] = "cancelled", refund
        return refund

    def _cost(self, trip: Trip) -> int:
        flights = sum(each["price"] + each["fees"] - each["refunded"] for each in self._flights_of(trip))
        return flights + sum(each["price"] - each["refunded"] for each in self._hotels_of(trip))

    def _active_bookings(self, trip: Trip) -> list[FlightBooking | HotelBooking]:
        bookings: list[FlightBooking | HotelBooking] = [*self._flights_of(trip), *self._hotels_of(trip)]
        return [booking for booking in bookings if booking["status"] != "cancelled"]

    def _start_of(self, booking: FlightBooking | HotelBooking) -> str:
        return self.flights[booking["flight_id"]]["date"] if "flight_id" in booking else booking["check_in"]

    def _end_of(self, booking: FlightBooking | HotelBooking) -> str:
        return self.flights[booking["flight_id"]]["date"] if "flight_id" in booking else booking["check_out"]

    def _flights_of(self, trip: Trip) -> list[FlightBooking]:
        return [each for each in self.flight_bookings.values() if each["trip_id"] == trip["trip_id"]]

    def _hotels_of(self, trip: Trip) -> list[HotelBooking]:
        return [each for each in self.hotel_bookings.values() if each["trip_id"] == trip["trip_id"]]

    def _is_director(self, trip: Trip) -> bool:
        return self.employees[trip["employee_id"]]["grade"] == "director"

    def _days_until(self, day: str) -> int:
        return (date.fromisoformat(day) - date.fromisoformat(self.today)).days

    def _trip_days(self, start_date: str, end_date: str, trip: Trip | None = None) -> tuple[date, date]:
        start, end = _day(start_date), _day(end_date)
        if end < start:
            raise _Refused(f"The trip would end on {end_date}, before its start on {start_date}.")
        begun_as_planned = trip is not None and start_date == trip["start_date"]
        if start < _day(self.today) and not begun_as_planned:
            raise _Refused(f"{start_date} is in the past: today is {self.today}.")
        return start, end

    def _draft_trip(self, trip_id: str) -> Trip:
        trip = self._trip(trip_id)
        if trip["status"] != "draft":
            raise _Refused(f"{trip_id} is {trip['status']}: this is possible for draft trips only.")
        return trip

    def _pending_trip(self, trip_id: str) -> Trip:
        trip = self._trip(trip_id)
        if trip["status"] != "pending":
            raise _Refused(f"{trip_id} is {trip['status']}: only a pending trip is approved or returned.")
        return trip

    def _changeable_trip(self, trip_id: str) -> Trip:
        trip = self._trip(trip_id)
        if trip["status"] not in ("draft", "approved"):
            raise _Refused(f"{trip_id} is {trip['status']}: only draft and approved trips can be changed.")
        return trip

    def _trip(self, trip_id: str) -> Trip:
        return _known(self.trips, trip_id, "trip", "list_trips shows trips")

    def _employee(self, employee_id: str) -> Employee:
        return _known(self.employees, employee_id, "employee", "find_employee finds people by name")

    def _department(self, department_id: str) -> Department:
        return _known(self.departments, department_id, "department", f"known: {', '.join(self.departments)}")

    def _flight(self, flight_id: str) -> Flight:
        return _known(self.flights, flight_id, "flight", "search_flights shows flights")

    def _hotel(self, hotel_id: str) -> Hotel:
        return _known(self.hotels, hotel_id, "hotel", "search_hotels shows hotels")

    def _city(self, name: str) -> str:
        """The name of a known city as the records write it."""
        known = {flight[end] for flight in self.flights.values() for end in ("origin", "destination")}
        known |= {hotel["city"] for hotel in self.hotels.values()}
        for city in known:
            if city.lower() == str(name).strip().lower():
                return city
        raise _Refused(f"No flight or hotel is known for {name!r}. Cities: {', '.join(sorted(known))}.")

    def _new_id(self, prefix: str) -> str:
        self.counters[prefix] += 1
        return f"{prefix}-{self.counters[prefix]}"


def _known(table: Mapping[str, Record], key: str, what: str, hint: str) -> Record:
    if key not in table:
        raise _Refused(f"There is no {what} {key!r}: {hint}.")
    return table[key]


def _active(table: Mapping[str, Booking], booking_id: str) -> Booking:
    booking = _known(table, booking_id, "booking of this kind", "get_trip shows a trip's bookings")
    if booking["status"] == "cancelled":
        raise _Refused(f"{booking_id} is cancelled already.")
    return booking


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except (TypeError, ValueError):
        raise _Refused(f"A date is written YYYY-MM-DD, not {text!r}.") from None


def _after(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def _nights(check_in: str, check_out: str) -> list[str]:
    """The nights of a stay, each named by the day on which it begins."""
    first, last = _day(check_in), _day(check_out)
    if last <= first:
        raise _Refused(
            f"A stay has at least one night: check-out {check_out} must be after check-in {check_in}."
        )
    return [(first + timedelta(days=night)).isoformat() for night in range((last - first).days)]


def _full(hotel: Hotel, nights: list[str]) -> list[str]:
    return [night for night in nights if night in hotel["full_nights"]]


def _itinerary(flight: Flight) -> str:
    return f"{flight['origin']} {flight['departs']} - {flight['destination']} {flight['arrives']}, {flight['date']}"
