"""The clinic that the scenarios share: its people, slots, appointments, referrals and waitlists on a Monday."""

from typing import Any

__all__ = ["BASE"]

DERMATOLOGY = "dermatology"
CARDIOLOGY = "cardiology"


def _clinician(clinician_id: str, name: str, specialty: str) -> dict[str, Any]:
    return {"clinician_id": clinician_id, "name": name, "specialty": specialty}


def _patient(patient_id: str, name: str, birth_date: str, missed: int = 0) -> dict[str, Any]:
    return {
        "patient_id": patient_id,
        "name": name,
        "birth_date": birth_date,
        "phone": f"555-0{patient_id[2:]}",
        "missed": missed,
    }


def _slot(slot_id: str, clinician_id: str, start: str, status: str = "booked") -> dict[str, Any]:
    return {"slot_id": slot_id, "clinician_id": clinician_id, "start": start, "status": status}


def _appointment(
    appointment_id: str,
    patient_id: str,
    slot_id: str,
    reason: str,
    referral_id: str | None = None,
    status: str = "booked",
) -> dict[str, Any]:
    return {
        "appointment_id": appointment_id,
        "patient_id": patient_id,
        "slot_id": slot_id,
        "reason": reason,
        "referral_id": referral_id,
        "moves": 0,
        "status": status,
    }


def _referral(
    referral_id: str,
    patient_id: str,
    specialty: str,
    issued_by: str,
    issued_on: str,
    valid_until: str,
    status: str = "open",
) -> dict[str, Any]:
    return {
        "referral_id": referral_id,
        "patient_id": patient_id,
        "specialty": specialty,
        "issued_by": issued_by,
        "issued_on": issued_on,
        "valid_until": valid_until,
        "extended": False,
        "status": status,
    }


def _entry(
    entry_id: str, patient_id: str, clinician_id: str, priority: str, reason: str, added_on: str
) -> dict[str, Any]:
    return {
        "entry_id": entry_id,
        "patient_id": patient_id,
        "clinician_id": clinician_id,
        "priority": priority,
        "reason": reason,
        "added_on": added_on,
        "status": "waiting",
    }


def _by_id(*records: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The records keyed by their own id, which is their first field."""
    return {next(iter(record.values())): record for record in records}


BASE: dict[str, Any] = {
    "now": "2026-04-13 08:00",
    "clinicians": _by_id(
        _clinician("D-11", "Dr. Ewa Kowalczyk", "general practice"),
        _clinician("D-12", "Dr. Martin Oyelaran", "general practice"),
        _clinician("D-21", "Dr. Sofia Brandt", "pediatrics"),
        _clinician("D-31", "Dr. Rafael Quintero", DERMATOLOGY),
        _clinician("D-32", "Dr. Kenji Mori", DERMATOLOGY),
        _clinician("D-41", "Dr. Helen Marsh", CARDIOLOGY),
    ),
    "patients": _by_id(
        _patient("P-401", "Nadia Petrov", "1984-06-02"),
        _patient("P-402", "Colin Ashby", "1971-11-23"),
        _patient("P-403", "Maribel Santos", "1990-02-17", missed=1),
        _patient("P-404", "George Whitlock", "1958-09-30"),
        _patient("P-405", "Emil Novak", "2015-05-12"),
        _patient("P-406", "Teresa Novak", "1986-03-08"),
        _patient("P-407", "Abel Ferreira", "1995-12-01"),
        _patient("P-408", "Zoe Lindgren", "2012-10-19"),
        _patient("P-409", "Harriet Boyle", "1949-07-04"),
        _patient("P-410", "Yusuf Demir", "1979-01-25", missed=2),
        _patient("P-411", "Clara Jensen", "2001-08-14"),
        _patient("P-412", "Anton Weiss", "1966-04-29"),
        _patient("P-413", "Nadia Perez", "1993-03-15", missed=3),
    ),
    "slots": _by_id(
        _slot("S-490", "D-12", "2026-01-12 14:00"),
        _slot("S-491", "D-11", "2026-04-02 09:00"),
        _slot("S-492", "D-12", "2026-04-08 14:00"),
        _slot("S-493", "D-21", "2026-04-09 11:00"),
        _slot("S-494", "D-11", "2026-04-10 10:00"),
        _slot("S-495", "D-11", "2026-04-10 10:30"),
        _slot("S-501", "D-11", "2026-04-13 09:00"),
        _slot("S-502", "D-11", "2026-04-13 09:30", "free"),
        _slot("S-503", "D-11", "2026-04-14 09:00"),
        _slot("S-504", "D-11", "2026-04-14 09:30"),
        _slot("S-505", "D-11", "2026-04-15 10:00", "free"),
        _slot("S-506", "D-11", "2026-04-15 10:30", "free"),
        _slot("S-507", "D-11", "2026-04-16 09:00"),
        _slot("S-508", "D-11", "2026-04-20 09:00", "free"),
        _slot("S-511", "D-12", "2026-04-14 14:00", "free"),
        _slot("S-512", "D-12", "2026-04-14 14:30"),
        _slot("S-513", "D-12", "2026-04-16 14:00", "free"),
        _slot("S-514", "D-12", "2026-04-17 14:30", "free"),
        _slot("S-521", "D-21", "2026-04-14 11:00"),
        _slot("S-522", "D-21", "2026-04-15 11:00", "free"),
        _slot("S-523", "D-21", "2026-04-15 11:30", "free"),
        _slot("S-524", "D-21", "2026-04-17 11:00"),
        _slot("S-531", "D-31", "2026-04-15 15:00"),
        _slot("S-532", "D-31", "2026-04-22 15:00"),
        _slot("S-541", "D-32", "2026-04-17 08:30"),
        _slot("S-542", "D-32", "2026-04-30 08:30", "free"),
        _slot("S-551", "D-41", "2026-04-16 16:00", "free"),
        _slot("S-552", "D-41", "2026-04-21 16:00"),
        _slot("S-553", "D-41", "2026-04-23 16:30", "free"),
        _slot("S-554", "D-41", "2026-05-07 16:00", "free"),
    ),
    "appointments": _by_id(
        _appointment("A-590", "P-406", "S-490", "migraine", status="completed"),
        _appointment("A-591", "P-404", "S-491", "palpitations", status="completed"),
        _appointment("A-592", "P-403", "S-492", "itching rash", status="completed"),
        _appointment("A-593", "P-408", "S-493", "ear pain", status="completed"),
        _appointment("A-594", "P-412", "S-494", "blood pressure"),
        _appointment("A-595", "P-407", "S-495", "sore knee"),
        _appointment("A-601", "P-403", "S-501", "blood test"),
        _appointment("A-602", "P-401", "S-503", "tiredness"),
        _appointment("A-603", "P-406", "S-504", "migraine"),
        _appointment("A-604", "P-409", "S-507", "hearing"),
        _appointment("A-605", "P-404", "S-512", "medication review"),
        _appointment("A-606", "P-405", "S-521", "cough"),
        _appointment("A-607", "P-408", "S-524", "ear check"),
        _appointment("A-608", "P-402", "S-531", "mole check", "R-701"),
        _appointment("A-609", "P-410", "S-532", "eczema", "R-702"),
        _appointment("A-610", "P-401", "S-541", "acne", "R-707"),
        _appointment("A-611", "P-412", "S-552", "chest tightness", "R-705"),
    ),
    "referrals": _by_id(
        _referral("R-701", "P-402", DERMATOLOGY, "D-11", "2026-03-10", "2026-06-08", "used"),
        _referral("R-702", "P-410", DERMATOLOGY, "D-12", "2026-03-20", "2026-06-18", "used"),
        _referral("R-703", "P-407", DERMATOLOGY, "D-11", "2026-03-22", "2026-06-20"),
        _referral("R-704", "P-411", DERMATOLOGY, "D-12", "2026-03-01", "2026-05-30"),
        _referral("R-705", "P-412", CARDIOLOGY, "D-11", "2026-02-01", "2026-05-02", "used"),
        _referral("R-706", "P-409", CARDIOLOGY, "D-11", "2026-01-18", "2026-04-18"),
        _referral("R-707", "P-401", DERMATOLOGY, "D-11", "2026-03-05", "2026-06-03", "used"),
        _referral("R-708", "P-404", CARDIOLOGY, "D-11", "2026-04-02", "2026-07-01"),
    ),
    "waitlist": _by_id(
        _entry("W-801", "P-407", "D-31", "routine", "wart removal", "2026-04-07"),
        _entry("W-802", "P-411", "D-31", "urgent", "changing mole", "2026-04-09"),
    ),
    "next_numbers": {"patient": 414, "appointment": 612, "referral": 709, "entry": 803},
}
