"""The travel desk on a Monday morning: what every scenario starts from."""

from typing import Any

__all__ = ["BASE"]

STAFF = [
    ("E-10", "Helena Brandt", "director", "D-SAL", None),
    ("E-11", "Tomás Ferreira", "director", "D-ENG", None),
    ("E-12", "Aisha Rahman", "director", "D-FIN", None),
    ("E-20", "Jonas Weber", "manager", "D-SAL", "E-10"),
    ("E-21", "Mei Tanaka", "manager", "D-ENG", "E-11"),
    ("E-22", "Carla Rossi", "manager", "D-MKT", "E-10"),
    ("E-30", "Daniel Okafor", "staff", "D-SAL", "E-20"),
    ("E-31", "Sofia Lindqvist", "staff", "D-SAL", "E-20"),
    ("E-32", "Pavel Novak", "staff", "D-ENG", "E-21"),
    ("E-33", "Priya Nair", "staff", "D-ENG", "E-21"),
    ("E-34", "Lucas Moreau", "staff", "D-MKT", "E-22"),
    ("E-35", "Emma Clarke", "staff", "D-FIN", "E-12"),
    ("E-36", "Daniel Hofer", "staff", "D-ENG", "E-21"),
]

LINES = [
    ("NV101", "Berlin", "London", "07:10", "08:10", 2.0, 180, 540),
    ("NV105", "Berlin", "London", "16:30", "17:30", 2.0, 130, 460),
    ("NV102", "London", "Berlin", "18:40", "21:40", 2.0, 170, 520),
    ("NV106", "London", "Berlin", "08:05", "11:05", 2.0, 120, 430),
    ("SC210", "Berlin", "Paris", "06:50", "08:40", 1.8, 160, 490),
    ("SC211", "Paris", "Berlin", "19:15", "21:00", 1.8, 150, 470),
    ("LT330", "Berlin", "Lisbon", "09:20", "12:00", 3.7, 240, 690),
    ("LT331", "Lisbon", "Berlin", "13:10", "17:50", 3.7, 230, 680),
    ("AT900", "Berlin", "New York", "10:15", "13:00", 8.8, 720, 2600),
    ("AT901", "New York", "Berlin", "18:20", "08:10", 8.2, 690, 2450),
    ("SK440", "Berlin", "Stockholm", "08:00", "09:35", 1.6, 140, 420),
    ("SK441", "Stockholm", "Berlin", "18:10", "19:45", 1.6, 150, 430),
]

# For each line and day, the free seats in economy and in business.
SEATS_LEFT = {
    "NV101": {"2026-03-10": (0, 2), "2026-03-17": (6, 3), "2026-03-24": (9, 4)},
    "NV105": {"2026-03-10": (4, 1), "2026-03-24": (12, 4)},
    "NV102": {"2026-03-12": (3, 2), "2026-03-19": (5, 2), "2026-03-24": (7, 3)},
    "NV106": {"2026-03-12": (8, 4), "2026-03-13": (2, 4), "2026-03-24": (5, 4)},
    "SC210": {"2026-03-11": (5, 2), "2026-03-16": (4, 0), "2026-03-23": (11, 4)},
    "SC211": {"2026-03-13": (6, 2), "2026-03-18": (1, 1), "2026-03-25": (10, 4)},
    "LT330": {"2026-03-16": (2, 1), "2026-03-23": (8, 3)},
    "LT331": {"2026-03-20": (4, 2), "2026-03-26": (9, 3)},
    "AT900": {"2026-03-15": (14, 2), "2026-03-22": (20, 3)},
    "AT901": {"2026-03-20": (11, 4), "2026-03-27": (16, 5)},
    "SK440": {"2026-03-10": (3, 1), "2026-03-12": (5, 2)},
    "SK441": {"2026-03-10": (2, 1), "2026-03-12": (7, 2)},
}

HOTELS: list[tuple[str, str, str, int, list[str]]] = [
    ("H-11", "Harbour Lodge", "London", 165, ["2026-03-10"]),
    ("H-12", "Kingsway Rooms", "London", 178, []),
    ("H-13", "The Aldgate", "London", 240, []),
    ("H-21", "Hotel Verlaine", "Paris", 158, []),
    ("H-22", "Rive Claire", "Paris", 145, ["2026-03-16", "2026-03-23"]),
    ("H-23", "Grand Marais", "Paris", 260, []),
    ("H-24", "Canal Sud", "Paris", 120, ["2026-03-12"]),
    ("H-31", "Casa Alfama", "Lisbon", 118, []),
    ("H-32", "Miradouro", "Lisbon", 128, []),
    ("H-41", "Hudson Inn", "New York", 245, ["2026-03-16"]),
    ("H-42", "Bryant House", "New York", 258, []),
    ("H-43", "Mercer Tower", "New York", 410, []),
    ("H-44", "Lowline Hostel", "New York", 190, ["2026-03-25", "2026-03-26"]),
    ("H-51", "Norra Bro", "Stockholm", 135, []),
]

TRIPS = [
    ("T-501", "E-31", "London", "2026-03-17", "2026-03-19", "Customer workshop", "draft", None),
    ("T-502", "E-33", "Lisbon", "2026-03-16", "2026-03-20", "Conference on databases", "pending", None),
    ("T-503", "E-32", "Paris", "2026-03-16", "2026-03-18", "Supplier audit", "approved", "E-21"),
    ("T-504", "E-30", "London", "2026-03-10", "2026-03-12", "Contract talks", "approved", "E-20"),
    ("T-505", "E-34", "Lisbon", "2026-03-23", "2026-03-26", "Photo production", "pending", None),
    ("T-506", "E-35", "Stockholm", "2026-03-10", "2026-03-10", "Meeting with the auditors", "approved", None),
    ("T-507", "E-20", "New York", "2026-03-15", "2026-03-20", "Trade fair", "pending", None),
    ("T-508", "E-36", "Paris", "2026-03-11", "2026-03-13", "Training", "draft", None),
    ("T-509", "E-21", "Stockholm", "2026-03-12", "2026-03-13", "Team meeting", "cancelled", None),
]

FLIGHT_BOOKINGS = [
    ("FB-701", "T-501", "NV101-0317", "economy", "held", 180),
    ("FB-702", "T-501", "NV102-0319", "economy", "held", 170),
    ("FB-703", "T-502", "LT330-0316", "economy", "held", 240),
    ("FB-704", "T-502", "LT331-0320", "economy", "held", 230),
    ("FB-705", "T-503", "SC210-0316", "economy", "confirmed", 160),
    ("FB-706", "T-503", "SC211-0318", "economy", "confirmed", 150),
    ("FB-707", "T-504", "NV101-0310", "economy", "confirmed", 180),
    ("FB-708", "T-504", "NV102-0312", "economy", "confirmed", 170),
    ("FB-709", "T-505", "LT330-0323", "economy", "held", 240),
    ("FB-710", "T-505", "LT331-0326", "economy", "held", 230),
    ("FB-711", "T-506", "SK440-0310", "economy", "confirmed", 140),
    ("FB-712", "T-506", "SK441-0310", "economy", "confirmed", 150),
    ("FB-713", "T-507", "AT900-0315", "business", "held", 2600),
    ("FB-714", "T-507", "AT901-0320", "economy", "held", 690),
    ("FB-715", "T-508", "SC210-0311", "economy", "held", 160),
    ("FB-716", "T-508", "SC211-0313", "economy", "held", 150),
]

HOTEL_BOOKINGS = [
    ("HB-801", "T-502", "H-31", "2026-03-16", "2026-03-20", "held", 472),
    ("HB-802", "T-503", "H-21", "2026-03-16", "2026-03-18", "confirmed", 316),
    ("HB-803", "T-504", "H-12", "2026-03-10", "2026-03-12", "confirmed", 356),
    ("HB-804", "T-505", "H-32", "2026-03-23", "2026-03-26", "held", 384),
    ("HB-805", "T-507", "H-42", "2026-03-15", "2026-03-20", "held", 1290),
]


def _flights() -> dict[str, dict[str, Any]]:
    """Every line on each of its days, under the line's number and the day."""
    return {
        f"{line}-{day[5:7]}{day[8:]}": {
            "flight_id": f"{line}-{day[5:7]}{day[8:]}",
            "origin": origin,
            "destination": destination,
            "date": day,
            "departs": departs,
            "arrives": arrives,
            "hours": hours,
            "fares": {"economy": economy, "business": business},
            "seats": {"economy": economy_seats, "business": business_seats},
        }
        for line, origin, destination, departs, arrives, hours, economy, business in LINES
        for day, (economy_seats, business_seats) in SEATS_LEFT[line].items()
    }


def _table(columns: str, rows: list[tuple[Any, ...]], **constants: Any) -> dict[str, dict[str, Any]]:
    """Records from rows, under the value of their first column."""
    return {row[0]: dict(zip(columns.split(), row, strict=True)) | constants for row in rows}


BASE: dict[str, Any] = {
    "today": "2026-03-02",
    "employees": _table("employee_id name grade department_id manager_id", STAFF),
    "departments": _table(
        "department_id name travel_budget",
        [
            ("D-SAL", "Sales", 9000),
            ("D-ENG", "Engineering", 12000),
            ("D-MKT", "Marketing", 700),
            ("D-FIN", "Finance", 4000),
        ],
    ),
    "nightly_limits": {"London": 180, "Paris": 170, "Lisbon": 130, "New York": 260, "Stockholm": 160},
    "flights": _flights(),
    "hotels": _table("hotel_id name city nightly_rate full_nights", HOTELS),
    "trips": _table(
        "trip_id employee_id destination start_date end_date purpose status approved_by", TRIPS, note=""
    ),
    "flight_bookings": _table(
        "booking_id trip_id flight_id cabin status price", FLIGHT_BOOKINGS, fees=0, refunded=0
    ),
    "hotel_bookings": _table(
        "booking_id trip_id hotel_id check_in check_out status price", HOTEL_BOOKINGS, refunded=0
    ),
    "counters": {"T": 509, "FB": 716, "HB": 805},
}
