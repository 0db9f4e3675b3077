"""The appointment desk of a clinic: bookings, moves, waitlists and referrals."""

from datetime import date, datetime, timedelta
from typing import Any, TypedDict

REFERRAL_SPECIALTIES = ("dermatology", "cardiology")
PRIORITIES = ("urgent", "routine")
OUTCOMES = ("completed", "no_show")
ADULT_AGE = 16
MAX_UPCOMING = 3
MAX_MISSED = 3
MAX_MOVES = 2
NOTICE_HOURS = 24
WAITLIST_DAYS = 14
REFERRAL_DAYS = 90
EXTENSION_DAYS = 60
RECENT_VISIT_DAYS = 60


class Clinician(TypedDict):
    clinician_id: str
    name: str
    specialty: str


class Patient(TypedDict):
    patient_id: str
    name: str
    birth_date: str
    phone: str
    missed: int


class Slot(TypedDict):
    slot_id: str
    clinician_id: str
    start: str
    status: str  # "free", "booked" or "blocked"


class Appointment(TypedDict):
    appointment_id: str
    patient_id: str
    slot_id: str
    reason: str
    referral_id: str | None
    moves: int
    status: str  # "booked", "completed", "no_show" or "cancelled"


class Referral(TypedDict):
    referral_id: str
    patient_id: str
    specialty: str
    issued_by: str
    issued_on: str
    valid_until: str
    extended: bool
    status: str  # "open" or "used"


class WaitlistEntry(TypedDict):
    entry_id: str
    patient_id: str
    clinician_id: str
    priority: str  # "urgent" or "routine"
    reason: str
    added_on: str
    status: str  # "waiting", "booked" or "withdrawn"


class ClinicAppointments:
    """The appointment desk of a clinic.

    The desk books patients into the clinicians' free slots, moves and cancels appointments, keeps a waitlist per
    clinician and records referrals. Dates are YYYY-MM-DD, times YYYY-MM-DD HH:MM; the current time is part of
    the state.

    Rules:
    - General practice sees patients from 16 years on, pediatrics those under 16.
    - Dermatology and cardiology need an open referral to that specialty that is valid on the day of the visit; booking uses it, cancelling opens it again.
    - A patient has at most 3 upcoming appointments, one per clinician, and never two at the same time.
    - While patients wait for a clinician, only the next in line is booked or moved into that clinician's free slots: urgent before routine, then by date.
    - A patient joins a clinician's waitlist once, with the referral that a booking needs, and only when others wait or no slot is free in the next 14 days. A patient already booked in that specialty may wait for an earlier time.
    - An appointment is moved at most twice, at least 24 hours before it starts, and within its specialty.
    - Cancelling less than 24 hours ahead counts as missed, and so does a no-show; after 3 missed a patient cannot be booked or moved.
    - A referral comes from a general practitioner or pediatrician who saw the patient in the last 60 days. It is valid for 90 days and can be extended once, by 60 days.
    - An outcome is recorded after the appointment's start. Only a free slot can be blocked.
    """

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.now: str = init_config.get("now", "2026-01-01 08:00")
        self.clinicians: dict[str, Clinician] = init_config.get("clinicians", {})
        self.patients: dict[str, Patient] = init_config.get("patients", {})
        self.slots: dict[str, Slot] = init_config.get("slots", {})
        self.appointments: dict[str, Appointment] = init_config.get("appointments", {})
        self.referrals: dict[str, Referral] = init_config.get("referrals", {})
        self.waitlist: dict[str, WaitlistEntry] = init_config.get("waitlist", {})
        self.next_numbers: dict[str, int] = init_config.get(
            "next_numbers", {"patient": 1, "appointment": 1, "referral": 1, "entry": 1}
        )

    def find_patients(self, query: str) -> dict[str, Any]:
        """Find patients by a part of their name or phone number.

        Args:
            query: The text to look for, in any case.

        Returns:
            The matching patients.
        """
        wanted = query.strip().lower()
        found = [p for p in self.patients.values() if wanted in f"{p['name']}\n{p['phone']}".lower()]
        return {"success": True, "patients": found}

    def get_patient(self, patient_id: str) -> dict[str, Any]:
        """Get a patient with booked appointments, open referrals and waitlist entries.

        Args:
            patient_id: The patient.

        Returns:
            The patient and what is open.
        """
        patient = self.patients.get(patient_id)
        if patient is None:
            return self._unknown("patient", patient_id, "find_patients")
        waiting = [
            w for w in self.waitlist.values() if w["patient_id"] == patient_id and w["status"] == "waiting"
        ]
        referrals = [
            r for r in self.referrals.values() if r["patient_id"] == patient_id and r["status"] == "open"
        ]
        return {
            "success": True,
            "patient": patient,
            "appointments": [self._view(a) for a in self._booked(patient_id)],
            "referrals": referrals,
            "waitlist": waiting,
        }

    def register_patient(self, name: str, birth_date: str, phone: str) -> dict[str, Any]:
        """Register a new patient.

        Args:
            name: First and last name.
            birth_date: YYYY-MM-DD.
            phone: The phone number.

        Returns:
            The new patient.
        """
        if not self._is_date(birth_date) or birth_date > self.now[:10]:
            return self._error(f"birth_date must be a past date as YYYY-MM-DD, not {birth_date!r}.")
        if not name.strip() or not phone.strip():
            return self._error("A patient needs a name and a phone number.")
        for known in self.patients.values():
            if (known["name"].lower(), known["birth_date"]) == (name.strip().lower(), birth_date):
                return self._error(f"{known['name']}, born {birth_date}, is already {known['patient_id']}.")
        patient: Patient = {
            "patient_id": self._new_id("patient", "P"),
            "name": name.strip(),
            "birth_date": birth_date,
            "phone": phone.strip(),
            "missed": 0,
        }
        self.patients[patient["patient_id"]] = patient
        return {"success": True, "patient": patient}

    def list_clinicians(self, specialty: str = "") -> dict[str, Any]:
        """List the clinicians.

        Args:
            specialty: Only this specialty, for example "general practice".

        Returns:
            The clinicians.
        """
        wanted = specialty.strip().lower()
        known = {c["specialty"] for c in self.clinicians.values()}
        if wanted and wanted not in known:
            return self._error(f"specialty must be one of {sorted(known)}, not {specialty!r}.")
        return {
            "success": True,
            "clinicians": [c for c in self.clinicians.values() if wanted in ("", c["specialty"])],
        }

    def find_free_slots(self, clinician_id: str, from_date: str, to_date: str) -> dict[str, Any]:
        """Find a clinician's free slots from one date to another, both included.

        Args:
            clinician_id: The clinician.
            from_date: YYYY-MM-DD.
            to_date: YYYY-MM-DD.

        Returns:
            The free slots, earliest first.
        """
        if clinician_id not in self.clinicians:
            return self._unknown("clinician", clinician_id, "list_clinicians")
        if not self._is_date(from_date) or not self._is_date(to_date):
            return self._error("from_date and to_date must be dates as YYYY-MM-DD.")
        return {"success": True, "slots": self._free_slots(clinician_id, from_date, to_date)}

    def get_schedule(self, clinician_id: str, day: str) -> dict[str, Any]:
        """Get all slots of a clinician on one day, with the patients booked into them.

        Args:
            clinician_id: The clinician.
            day: YYYY-MM-DD.

        Returns:
            The slots, earliest first, each with its appointment or None.
        """
        if clinician_id not in self.clinicians:
            return self._unknown("clinician", clinician_id, "list_clinicians")
        if not self._is_date(day):
            return self._error(f"day must be a date as YYYY-MM-DD, not {day!r}.")
        slots = [
            s for s in self.slots.values() if s["clinician_id"] == clinician_id and s["start"][:10] == day
        ]
        slots.sort(key=lambda slot: slot["start"])
        held = {a["slot_id"]: a for a in self.appointments.values() if a["status"] != "cancelled"}
        schedule = []
        for slot in slots:
            appointment = held.get(slot["slot_id"])
            patient = self.patients[appointment["patient_id"]]["name"] if appointment else None
            schedule.append({**slot, "appointment": appointment, "patient": patient})
        return {"success": True, "slots": schedule}

    def book_appointment(self, patient_id: str, slot_id: str, reason: str) -> dict[str, Any]:
        """Book a patient into a free slot.

        Args:
            patient_id: The patient.
            slot_id: The free slot.
            reason: Why the patient comes.

        Returns:
            The new appointment.
        """
        refusal = self._refusal(patient_id, slot_id)
        if refusal:
            return refusal
        slot = self.slots[slot_id]
        specialty = self.clinicians[slot["clinician_id"]]["specialty"]
        referral = self._valid_referral(patient_id, specialty, slot["start"])
        if specialty in REFERRAL_SPECIALTIES and referral is None:
            return self._no_referral(patient_id, specialty, slot["start"])
        if not reason.strip():
            return self._error("An appointment needs a reason.")
        appointment: Appointment = {
            "appointment_id": self._new_id("appointment", "A"),
            "patient_id": patient_id,
            "slot_id": slot_id,
            "reason": reason.strip(),
            "referral_id": referral["referral_id"] if referral else None,
            "moves": 0,
            "status": "booked",
        }
        if referral:
            referral["status"] = "used"
        self.appointments[appointment["appointment_id"]] = appointment
        self._take(slot, patient_id)
        return {"success": True, "appointment": self._view(appointment)}

    def reschedule_appointment(self, appointment_id: str, new_slot_id: str) -> dict[str, Any]:
        """Move a booked appointment to another free slot of the same specialty.

        Args:
            appointment_id: The appointment.
            new_slot_id: The free slot.

        Returns:
            The moved appointment.
        """
        appointment = self.appointments.get(appointment_id)
        if appointment is None:
            return self._unknown("appointment", appointment_id, "get_patient")
        if appointment["status"] != "booked":
            return self._error(f"Appointment {appointment_id} is {appointment['status']}.")
        if appointment["moves"] >= MAX_MOVES:
            return self._error(f"Appointment {appointment_id} has been moved {MAX_MOVES} times, the limit.")
        old_slot = self.slots[appointment["slot_id"]]
        if self._is_short_notice(old_slot):
            return self._error(f"Appointment {appointment_id} starts in less than {NOTICE_HOURS} hours.")
        refusal = self._refusal(appointment["patient_id"], new_slot_id, moving=appointment_id)
        if refusal:
            return refusal
        new_slot = self.slots[new_slot_id]
        specialty = self.clinicians[old_slot["clinician_id"]]["specialty"]
        if self.clinicians[new_slot["clinician_id"]]["specialty"] != specialty:
            return self._error(f"Slot {new_slot_id} is not in {specialty}; cancel and book anew instead.")
        referral_id = appointment["referral_id"]
        if referral_id and self.referrals[referral_id]["valid_until"] < new_slot["start"][:10]:
            return self._error(
                f"Referral {referral_id} ends on {self.referrals[referral_id]['valid_until']}."
            )
        old_slot["status"] = "free"
        appointment["slot_id"] = new_slot_id
        appointment["moves"] += 1
        self._take(new_slot, appointment["patient_id"])
        return {"success": True, "appointment": self._view(appointment)}

    def cancel_appointment(self, appointment_id: str) -> dict[str, Any]:
        """Cancel a booked appointment and free its slot.

        Args:
            appointment_id: The appointment.

        Returns:
            The cancelled appointment, and whether it counts as missed.
        """
        appointment = self.appointments.get(appointment_id)
        if appointment is None:
            return self._unknown("appointment", appointment_id, "get_patient")
        slot = self.slots[appointment["slot_id"]]
        if appointment["status"] != "booked":
            return self._error(f"Appointment {appointment_id} is {appointment['status']}.")
        if slot["start"] <= self.now:
            return self._error(f"Appointment {appointment_id} has started; use record_outcome.")
        late = self._is_short_notice(slot)
        if late:
            self.patients[appointment["patient_id"]]["missed"] += 1
        if appointment["referral_id"]:
            self.referrals[appointment["referral_id"]]["status"] = "open"
        appointment["status"], slot["status"] = "cancelled", "free"
        return {"success": True, "appointment": self._view(appointment), "counts_as_missed": late}

    def record_outcome(self, appointment_id: str, outcome: str) -> dict[str, Any]:
        """Record whether a patient came to an appointment that has started.

        Args:
            appointment_id: The appointment.
            outcome: "completed" or "no_show".

        Returns:
            The appointment.
        """
        appointment = self.appointments.get(appointment_id)
        if appointment is None:
            return self._unknown("appointment", appointment_id, "get_schedule")
        if outcome not in OUTCOMES:
            return self._error(f"outcome must be 'completed' or 'no_show', not {outcome!r}.")
        if appointment["status"] != "booked":
            return self._error(f"Appointment {appointment_id} is already {appointment['status']}.")
        start = self.slots[appointment["slot_id"]]["start"]
        if start > self.now:
            return self._error(f"Appointment {appointment_id} starts only at {start}.")
        appointment["status"] = outcome
        if outcome == "no_show":
            self.patients[appointment["patient_id"]]["missed"] += 1
        return {"success": True, "appointment": self._view(appointment)}

    def issue_referral(self, patient_id: str, specialty: str, issued_by: str) -> dict[str, Any]:
        """Record a referral to a specialty.

        Args:
            patient_id: The patient.
            specialty: "dermatology" or "cardiology".
            issued_by: The id of the clinician who refers.

        Returns:
            The new referral.
        """
        if patient_id not in self.patients:
            return self._unknown("patient", patient_id, "find_patients")
        if specialty not in REFERRAL_SPECIALTIES:
            return self._error(f"specialty must be one of {list(REFERRAL_SPECIALTIES)}, not {specialty!r}.")
        clinician = self.clinicians.get(issued_by)
        if clinician is None:
            return self._unknown("clinician", issued_by, "list_clinicians")
        if clinician["specialty"] in REFERRAL_SPECIALTIES:
            return self._error(f"{clinician['name']} is in {clinician['specialty']} and cannot refer.")
        if not self._seen_recently(patient_id, issued_by):
            return self._error(f"{clinician['name']} has not seen {patient_id} in {RECENT_VISIT_DAYS} days.")
        for known in self.referrals.values():
            if (known["patient_id"], known["specialty"], known["status"]) == (patient_id, specialty, "open"):
                return self._error(f"{patient_id} has the open referral {known['referral_id']}; extend that.")
        referral: Referral = {
            "referral_id": self._new_id("referral", "R"),
            "patient_id": patient_id,
            "specialty": specialty,
            "issued_by": issued_by,
            "issued_on": self.now[:10],
            "valid_until": self._day_after(self.now, REFERRAL_DAYS),
            "extended": False,
            "status": "open",
        }
        self.referrals[referral["referral_id"]] = referral
        return {"success": True, "referral": referral}

    def extend_referral(self, referral_id: str) -> dict[str, Any]:
        """Extend a referral by 60 days.

        Args:
            referral_id: The referral.

        Returns:
            The referral with its new end.
        """
        referral = self.referrals.get(referral_id)
        if referral is None:
            return self._unknown("referral", referral_id, "get_patient")
        if referral["extended"]:
            return self._error(f"Referral {referral_id} has been extended before.")
        referral["valid_until"] = self._day_after(referral["valid_until"], EXTENSION_DAYS)
        referral["extended"] = True
        return {"success": True, "referral": referral}

    def get_waitlist(self, clinician_id: str) -> dict[str, Any]:
        """Get the patients who wait for a clinician.

        Args:
            clinician_id: The clinician.

        Returns:
            The waiting entries, next in line first.
        """
        if clinician_id not in self.clinicians:
            return self._unknown("clinician", clinician_id, "list_clinicians")
        return {"success": True, "waitlist": self._queue(clinician_id)}

    def join_waitlist(self, patient_id: str, clinician_id: str, priority: str, reason: str) -> dict[str, Any]:
        """Put a patient on the waitlist of a clinician without free slots.

        Args:
            patient_id: The patient.
            clinician_id: The clinician.
            priority: "urgent" or "routine".
            reason: Why the patient comes.

        Returns:
            The new entry.
        """
        if patient_id not in self.patients:
            return self._unknown("patient", patient_id, "find_patients")
        clinician = self.clinicians.get(clinician_id)
        if clinician is None:
            return self._unknown("clinician", clinician_id, "list_clinicians")
        if priority not in PRIORITIES:
            return self._error(f"priority must be 'urgent' or 'routine', not {priority!r}.")
        if not reason.strip():
            return self._error("A waitlist entry needs a reason.")
        if any(entry["patient_id"] == patient_id for entry in self._queue(clinician_id)):
            return self._error(f"{patient_id} already waits for {clinician['name']}.")
        refusal = self._wrong_age(patient_id, clinician)
        if refusal:
            return refusal
        specialty = clinician["specialty"]
        comes_anyway = any(self._view(a)["specialty"] == specialty for a in self._booked(patient_id))
        if specialty in REFERRAL_SPECIALTIES and not (
            comes_anyway or self._valid_referral(patient_id, specialty, self.now)
        ):
            return self._no_referral(patient_id, specialty, self.now)
        free = self._free_slots(clinician_id, self.now[:10], self._day_after(self.now, WAITLIST_DAYS))
        if free and not self._queue(clinician_id):
            return self._error(
                f"{clinician['name']} has a free slot, {free[0]['slot_id']}; book that instead."
            )
        entry: WaitlistEntry = {
            "entry_id": self._new_id("entry", "W"),
            "patient_id": patient_id,
            "clinician_id": clinician_id,
            "priority": priority,
            "reason": reason.strip(),
            "added_on": self.now[:10],
            "status": "waiting",
        }
        self.waitlist[entry["entry_id"]] = entry
        return {"success": True, "entry": entry}

    def leave_waitlist(self, entry_id: str) -> dict[str, Any]:
        """Take a patient off a waitlist.

        Args:
            entry_id: The waitlist entry.

        Returns:
            The withdrawn entry.
        """
        entry = self.waitlist.get(entry_id)
        if entry is None:
            return self._unknown("waitlist entry", entry_id, "get_waitlist")
        if entry["status"] != "waiting":
            return self._error(f"Entry {entry_id} is already {entry['status']}.")
        entry["status"] = "withdrawn"
        return {"success": True, "entry": entry}

    def block_slot(self, slot_id: str) -> dict[str, Any]:
        """Block a free slot, so that nobody can be booked into it.

        Args:
            slot_id: The free slot.

        Returns:
            The blocked slot.
        """
        slot = self.slots.get(slot_id)
        if slot is None:
            return self._unknown("slot", slot_id, "get_schedule")
        if slot["status"] != "free":
            return self._error(f"Slot {slot_id} is {slot['status']}; only a free slot can be blocked.")
        slot["status"] = "blocked"
        return {"success": True, "slot": slot}

    def _refusal(self, patient_id: str, slot_id: str, moving: str = "") -> dict[str, Any] | None:
        """The error if this patient may not have this slot; `moving` is the appointment that would leave its own."""
        patient = self.patients.get(patient_id)
        if patient is None:
            return self._unknown("patient", patient_id, "find_patients")
        slot = self.slots.get(slot_id)
        if slot is None:
            return self._unknown("slot", slot_id, "find_free_slots")
        clinician = self.clinicians[slot["clinician_id"]]
        if slot["status"] != "free":
            return self._error(f"Slot {slot_id} is {slot['status']}; find_free_slots shows free ones.")
        if slot["start"] <= self.now:
            return self._error(f"Slot {slot_id} has passed; it is {self.now}.")
        if patient["missed"] >= MAX_MISSED:
            return self._error(
                f"{patient_id} has missed {patient['missed']} appointments and cannot be booked."
            )
        refusal = self._wrong_age(patient_id, clinician)
        if refusal:
            return refusal
        others = [a for a in self._booked(patient_id) if a["appointment_id"] != moving]
        upcoming = [self.slots[a["slot_id"]] for a in others if self.slots[a["slot_id"]]["start"] > self.now]
        if len(upcoming) >= MAX_UPCOMING:
            return self._error(f"{patient_id} has {MAX_UPCOMING} upcoming appointments, the limit.")
        for other in upcoming:
            if other["clinician_id"] == slot["clinician_id"]:
                return self._error(
                    f"{patient_id} already sees {clinician['name']} at {other['start']}; move that."
                )
            if other["start"] == slot["start"]:
                return self._error(f"{patient_id} has another appointment at {slot['start']}.")
        queue = self._queue(slot["clinician_id"])
        if queue and queue[0]["patient_id"] != patient_id:
            return self._error(
                f"{queue[0]['patient_id']} is next in line for {clinician['name']}; see get_waitlist."
            )
        return None

    def _wrong_age(self, patient_id: str, clinician: Clinician) -> dict[str, Any] | None:
        """The error if the clinician does not see patients of this age."""
        born, today = self.patients[patient_id]["birth_date"], self.now[:10]
        age = int(today[:4]) - int(born[:4]) - (today[5:] < born[5:])
        if clinician["specialty"] == "general practice" and age < ADULT_AGE:
            return self._error(f"{patient_id} is {age}; patients under {ADULT_AGE} go to pediatrics.")
        if clinician["specialty"] == "pediatrics" and age >= ADULT_AGE:
            return self._error(f"{patient_id} is {age}; pediatrics sees patients under {ADULT_AGE}.")
        return None

    def _take(self, slot: Slot, patient_id: str) -> None:
        """Mark a slot as booked; a patient who waited for its clinician waits no longer."""
        slot["status"] = "booked"
        for entry in self._queue(slot["clinician_id"]):
            if entry["patient_id"] == patient_id:
                entry["status"] = "booked"

    def _queue(self, clinician_id: str) -> list[WaitlistEntry]:
        waiting = [
            w
            for w in self.waitlist.values()
            if w["clinician_id"] == clinician_id and w["status"] == "waiting"
        ]
        return sorted(waiting, key=lambda w: (PRIORITIES.index(w["priority"]), w["added_on"], w["entry_id"]))

    def _free_slots(self, clinician_id: str, from_date: str, to_date: str) -> list[Slot]:
        free = [
            slot
            for slot in self.slots.values()
            if slot["clinician_id"] == clinician_id
            and slot["status"] == "free"
            and slot["start"] > self.now
            and from_date <= slot["start"][:10] <= to_date
        ]
        return sorted(free, key=lambda slot: slot["start"])

    def _booked(self, patient_id: str) -> list[Appointment]:
        return [
            a for a in self.appointments.values() if a["patient_id"] == patient_id and a["status"] == "booked"
        ]

    def _valid_referral(self, patient_id: str, specialty: str, day: str) -> Referral | None:
        for referral in self.referrals.values():
            mine = referral["patient_id"] == patient_id and referral["specialty"] == specialty
            if mine and referral["status"] == "open" and referral["valid_until"] >= day[:10]:
                return referral
        return None

    def _no_referral(self, patient_id: str, specialty: str, day: str) -> dict[str, Any]:
        return self._error(f"{patient_id} has no open referral to {specialty} that is valid on {day[:10]}.")

    def _seen_recently(self, patient_id: str, clinician_id: str) -> bool:
        since = self._day_after(self.now, -RECENT_VISIT_DAYS)
        return any(
            appointment["patient_id"] == patient_id
            and appointment["status"] == "completed"
            and self.slots[appointment["slot_id"]]["clinician_id"] == clinician_id
            and self.slots[appointment["slot_id"]]["start"][:10] >= since
            for appointment in self.appointments.values()
        )

    def _view(self, appointment: Appointment) -> dict[str, Any]:
        slot = self.slots[appointment["slot_id"]]
        clinician = self.clinicians[slot["clinician_id"]]
        return {
            **appointment,
            "start": slot["start"],
            "clinician_id": clinician["clinician_id"],
            "clinician": clinician["name"],
            "specialty": clinician["specialty"],
        }

    def _is_short_notice(self, slot: Slot) -> bool:
        ahead = datetime.fromisoformat(slot["start"]) - datetime.fromisoformat(self.now)
        return ahead < timedelta(hours=NOTICE_HOURS)

    def _is_date(self, text: str) -> bool:
        try:
            return date.fromisoformat(text).isoformat() == text
        except ValueError:
            return False

    def _day_after(self, day: str, days: int) -> str:
        return (date.fromisoformat(day[:10]) + timedelta(days=days)).isoformat()

    def _new_id(self, kind: str, prefix: str) -> str:
        number = self.next_numbers[kind]
        self.next_numbers[kind] = number + 1
        return f"{prefix}-{number}"

    def _unknown(self, kind: str, record_id: str, tool: str) -> dict[str, Any]:
        return self._error(f"There is no {kind} {record_id!r}; {tool} shows the ids.")

    def _error(self, message: str) -> dict[str, Any]:
        return {"success": False, "error": message}
