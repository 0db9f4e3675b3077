"""Scenarios at the clinic's appointment desk, from two calls to twelve."""

from functools import partial

from langchain_envscaler.environments.bundled._scenarios import only_changed, scenario
from langchain_envscaler.environments.bundled.clinic_appointments.base_state import BASE
from langchain_envscaler.environments.metadata import Scenario

__all__ = ["SCENARIOS"]

_scenario = partial(scenario, "clinic_appointments", "ClinicAppointments", state=BASE)


def _booked(patient_id: str, slot_id: str, reason: str) -> str:
    """The expression that a new appointment of a patient stands in a slot, with words of the reason given."""
    return f"""
        any(
            appointment["patient_id"] == "{patient_id}"
            and appointment["slot_id"] == "{slot_id}"
            and appointment["status"] == "booked"
            and "{reason}" in appointment["reason"].lower()
            and appointment_id not in initial_state["appointments"]
            for appointment_id, appointment in final_state["appointments"].items()
        )
    """


def _in_slot(appointment_id: str, slot_id: str) -> str:
    """The expression that an existing appointment is booked in a slot."""
    appointment = f'final_state["appointments"]["{appointment_id}"]'
    return f'{appointment}["status"] == "booked" and {appointment}["slot_id"] == "{slot_id}"'


def _appointment_is(appointment_id: str, status: str) -> str:
    return f'final_state["appointments"]["{appointment_id}"]["status"] == "{status}"'


def _slot_is(slot_id: str, status: str) -> str:
    return f'final_state["slots"]["{slot_id}"]["status"] == "{status}"'


def _referred(patient_id: str, specialty: str, issued_by: str) -> str:
    """The expression that a patient has a new referral."""
    return f"""
        any(
            referral["patient_id"] == "{patient_id}"
            and referral["specialty"] == "{specialty}"
            and referral["issued_by"] == "{issued_by}"
            and referral_id not in initial_state["referrals"]
            for referral_id, referral in final_state["referrals"].items()
        )
    """


SCENARIOS: list[Scenario] = [
    _scenario(
        "01-cancel-a-visit",
        task="""
            Harriet Boyle (P-409) rang: her hearing is fine again, so she does not need Thursday's appointment with
            Dr. Kowalczyk. Please cancel it.
        """,
        checks=[
            ("Is her appointment cancelled?", _appointment_is("A-604", "cancelled")),
            ("Is the slot free again?", _slot_is("S-507", "free")),
            ("Was nothing else changed?", only_changed("S-507", "A-604")),
        ],
        reference=[
            ("get_patient", {"patient_id": "P-409"}),
            ("cancel_appointment", {"appointment_id": "A-604"}),
        ],
    ),
    _scenario(
        "02-book-the-doctor",
        task="""
            Abel Ferreira (P-407) would like to see Dr. Kowalczyk on Wednesday, 15 April 2026, at 10:30, for a sore
            knee. Please book it.
        """,
        checks=[
            (
                "Does Abel Ferreira have that slot, for his sore knee?",
                _booked("P-407", "S-506", "sore knee"),
            ),
            ("Was nothing else changed?", only_changed("S-506", appointments=1)),
        ],
        reference=[
            ("list_clinicians", {"specialty": "general practice"}),
            (
                "find_free_slots",
                {"clinician_id": "D-11", "from_date": "2026-04-15", "to_date": "2026-04-15"},
            ),
            ("book_appointment", {"patient_id": "P-407", "slot_id": "S-506", "reason": "sore knee"}),
        ],
    ),
    _scenario(
        "03-refer-to-cardiology",
        task="""
            Dr. Oyelaran saw Maribel Santos last week and wants her to see a cardiologist. Please record his referral
            for her.
        """,
        checks=[
            (
                "Is Maribel Santos referred to cardiology by Dr. Oyelaran?",
                _referred("P-403", "cardiology", "D-12"),
            ),
            ("Was nothing else changed?", only_changed(referrals=1)),
        ],
        reference=[
            ("find_patients", {"query": "Maribel Santos"}),
            ("list_clinicians", {}),
            ("issue_referral", {"patient_id": "P-403", "specialty": "cardiology", "issued_by": "D-12"}),
        ],
    ),
    _scenario(
        "04-leave-the-waitlist",
        task="Abel Ferreira found a dermatologist elsewhere. Please take him off our waitlist.",
        checks=[
            (
                "Is his waitlist entry withdrawn?",
                'final_state["waitlist"]["W-801"]["status"] == "withdrawn"',
            ),
            ("Was nothing else changed?", only_changed("W-801")),
        ],
        reference=[
            ("find_patients", {"query": "Abel Ferreira"}),
            ("get_patient", {"patient_id": "P-407"}),
            ("leave_waitlist", {"entry_id": "W-801"}),
        ],
    ),
    _scenario(
        "05-who-came-on-friday",
        task="""
            The outcomes of Dr. Kowalczyk's last patients on Friday, 10 April 2026, are missing. Anton Weiss was here,
            Abel Ferreira never turned up. Please record both.
        """,
        checks=[
            ("Is Anton Weiss's appointment completed?", _appointment_is("A-594", "completed")),
            ("Is Abel Ferreira's appointment a no-show?", _appointment_is("A-595", "no_show")),
            (
                "Does it count as missed for Abel Ferreira?",
                'final_state["patients"]["P-407"]["missed"] == 1',
            ),
            ("Was nothing else changed?", only_changed("P-407", "A-594", "A-595")),
        ],
        reference=[
            ("list_clinicians", {"specialty": "general practice"}),
            ("get_schedule", {"clinician_id": "D-11", "day": "2026-04-10"}),
            ("record_outcome", {"appointment_id": "A-594", "outcome": "completed"}),
            ("record_outcome", {"appointment_id": "A-595", "outcome": "no_show"}),
        ],
    ),
    _scenario(
        "06-move-a-visit",
        task="""
            Nadia Petrov cannot come to Dr. Kowalczyk tomorrow. She would like the earliest time on Wednesday,
            15 April 2026, with the same doctor instead. Please move the appointment.
        """,
        checks=[
            ("Is her appointment now at 10:00 on 15 April?", _in_slot("A-602", "S-505")),
            ("Is her old slot free?", _slot_is("S-503", "free")),
            ("Was nothing else changed?", only_changed("S-503", "S-505", "A-602")),
        ],
        reference=[
            ("find_patients", {"query": "Nadia Petrov"}),
            ("get_patient", {"patient_id": "P-401"}),
            (
                "find_free_slots",
                {"clinician_id": "D-11", "from_date": "2026-04-15", "to_date": "2026-04-15"},
            ),
            ("reschedule_appointment", {"appointment_id": "A-602", "new_slot_id": "S-505"}),
        ],
    ),
    _scenario(
        "07-first-visit-to-cardiology",
        task="""
            George Whitlock has his referral to cardiology now. Please book him the earliest appointment there in
            April 2026; the reason is palpitations.
        """,
        checks=[
            (
                "Does he have the slot on 16 April at 16:00, for palpitations?",
                _booked("P-404", "S-551", "palpitations"),
            ),
            ("Is his referral used?", 'final_state["referrals"]["R-708"]["status"] == "used"'),
            ("Was nothing else changed?", only_changed("S-551", "R-708", appointments=1)),
        ],
        reference=[
            ("find_patients", {"query": "George Whitlock"}),
            ("list_clinicians", {"specialty": "cardiology"}),
            (
                "find_free_slots",
                {"clinician_id": "D-41", "from_date": "2026-04-13", "to_date": "2026-04-30"},
            ),
            ("book_appointment", {"patient_id": "P-404", "slot_id": "S-551", "reason": "palpitations"}),
        ],
    ),
    _scenario(
        "08-a-new-child",
        task="""
            Please register Milo Fischer, born on 2 November 2019, phone 555-0488, and book him with a pediatrician on
            Wednesday, 15 April 2026, as early as possible. He has a fever.
        """,
        checks=[
            (
                "Is Milo Fischer registered with his birth date and phone?",
                """
                any(
                    patient["name"] == "Milo Fischer"
                    and patient["birth_date"] == "2019-11-02"
                    and patient["phone"] == "555-0488"
                    for patient in final_state["patients"].values()
                )
                """,
            ),
            ("Is he booked at 11:00 on 15 April, for his fever?", _booked("P-414", "S-522", "fever")),
            ("Was nothing else changed?", only_changed("S-522", patients=1, appointments=1)),
        ],
        reference=[
            ("register_patient", {"name": "Milo Fischer", "birth_date": "2019-11-02", "phone": "555-0488"}),
            ("list_clinicians", {"specialty": "pediatrics"}),
            (
                "find_free_slots",
                {"clinician_id": "D-21", "from_date": "2026-04-15", "to_date": "2026-04-15"},
            ),
            ("book_appointment", {"patient_id": "P-414", "slot_id": "S-522", "reason": "fever"}),
        ],
    ),
    _scenario(
        "09-sooner-if-possible",
        task="""
            Anton Weiss asks whether his cardiology appointment can be earlier. Today is Monday, 13 April 2026: if
            Dr. Marsh has anything free before his appointment, please move him to the earliest such time; if not,
            leave it as it is.
        """,
        checks=[
            ("Is his appointment now on 16 April at 16:00?", _in_slot("A-611", "S-551")),
            ("Is his old slot free?", _slot_is("S-552", "free")),
            ("Was nothing else changed?", only_changed("S-551", "S-552", "A-611")),
        ],
        reference=[
            ("find_patients", {"query": "Anton Weiss"}),
            ("get_patient", {"patient_id": "P-412"}),
            (
                "find_free_slots",
                {"clinician_id": "D-41", "from_date": "2026-04-13", "to_date": "2026-04-21"},
            ),
            ("reschedule_appointment", {"appointment_id": "A-611", "new_slot_id": "S-551"}),
        ],
    ),
    _scenario(
        "10-nothing-free",
        task="""
            Dr. Oyelaran refers Maribel Santos to dermatology for her itching rash. She would like to see Dr. Mori, who
            has nothing free in the next two weeks, so please put her on his waitlist as urgent, with the reason
            "itching rash".
        """,
        checks=[
            (
                "Is Maribel Santos referred to dermatology by Dr. Oyelaran?",
                _referred("P-403", "dermatology", "D-12"),
            ),
            (
                "Does she wait for Dr. Mori, urgently, for her itching rash?",
                """
                any(
                    entry["patient_id"] == "P-403"
                    and entry["clinician_id"] == "D-32"
                    and entry["priority"] == "urgent"
                    and entry["status"] == "waiting"
                    and "itching rash" in entry["reason"].lower()
                    for entry in final_state["waitlist"].values()
                )
                """,
            ),
            ("Was nothing else changed?", only_changed(referrals=1, waitlist=1)),
        ],
        reference=[
            ("find_patients", {"query": "Maribel Santos"}),
            ("list_clinicians", {}),
            ("issue_referral", {"patient_id": "P-403", "specialty": "dermatology", "issued_by": "D-12"}),
            (
                "join_waitlist",
                {
                    "patient_id": "P-403",
                    "clinician_id": "D-32",
                    "priority": "urgent",
                    "reason": "itching rash",
                },
            ),
        ],
    ),
    _scenario(
        "11-next-in-line",
        task="""
            Colin Ashby cannot come to Dr. Quintero on Wednesday. Please cancel his appointment and give the freed time
            to whoever is next on Dr. Quintero's waitlist, with the reason that is noted there.
        """,
        checks=[
            ("Is Colin Ashby's appointment cancelled?", _appointment_is("A-608", "cancelled")),
            (
                "Does Clara Jensen, who is urgent, have the slot, for her changing mole?",
                _booked("P-411", "S-531", "changing mole"),
            ),
            ("Is her waitlist entry settled?", 'final_state["waitlist"]["W-802"]["status"] == "booked"'),
            ("Was nothing else changed?", only_changed("A-608", "R-701", "R-704", "W-802", appointments=1)),
        ],
        reference=[
            ("find_patients", {"query": "Colin Ashby"}),
            ("get_patient", {"patient_id": "P-402"}),
            ("cancel_appointment", {"appointment_id": "A-608"}),
            ("get_waitlist", {"clinician_id": "D-31"}),
            ("book_appointment", {"patient_id": "P-411", "slot_id": "S-531", "reason": "changing mole"}),
        ],
    ),
    _scenario(
        "12-before-it-expires",
        task="""
            Harriet Boyle needs an appointment with Dr. Marsh for shortness of breath, but she is away until 20 April
            2026. Please book the earliest time after that in April. If her referral ends before then, extend it first.
        """,
        checks=[
            (
                "Does she have the slot on 23 April at 16:30, for shortness of breath?",
                _booked("P-409", "S-553", "shortness of breath"),
            ),
            (
                "Is her referral extended to 17 June 2026 and used?",
                """
                final_state["referrals"]["R-706"]["valid_until"] == "2026-06-17"
                and final_state["referrals"]["R-706"]["status"] == "used"
                """,
            ),
            ("Was nothing else changed?", only_changed("S-553", "R-706", appointments=1)),
        ],
        reference=[
            ("find_patients", {"query": "Harriet Boyle"}),
            ("get_patient", {"patient_id": "P-409"}),
            ("list_clinicians", {"specialty": "cardiology"}),
            (
                "find_free_slots",
                {"clinician_id": "D-41", "from_date": "2026-04-21", "to_date": "2026-04-30"},
            ),
            ("extend_referral", {"referral_id": "R-706"}),
            (
                "book_appointment",
                {"patient_id": "P-409", "slot_id": "S-553", "reason": "shortness of breath"},
            ),
        ],
    ),
    _scenario(
        "13-mother-and-son",
        task="""
            Teresa Novak rang about tomorrow's appointments, her own and her son Emil's. Both would rather come on
            Wednesday, 15 April 2026: she at 10:30 with her doctor, Emil at 11:30 with his. Please move both.
        """,
        checks=[
            ("Is Teresa's appointment on 15 April at 10:30?", _in_slot("A-603", "S-506")),
            ("Is Emil's appointment on 15 April at 11:30?", _in_slot("A-606", "S-523")),
            ("Are their old slots free?", _slot_is("S-504", "free") + " and " + _slot_is("S-521", "free")),
            ("Was nothing else changed?", only_changed("S-504", "S-506", "S-521", "S-523", "A-603", "A-606")),
        ],
        reference=[
            ("find_patients", {"query": "Novak"}),
            ("get_patient", {"patient_id": "P-406"}),
            (
                "find_free_slots",
                {"clinician_id": "D-11", "from_date": "2026-04-15", "to_date": "2026-04-15"},
            ),
            ("reschedule_appointment", {"appointment_id": "A-603", "new_slot_id": "S-506"}),
            ("get_patient", {"patient_id": "P-405"}),
            (
                "find_free_slots",
                {"clinician_id": "D-21", "from_date": "2026-04-15", "to_date": "2026-04-15"},
            ),
            ("reschedule_appointment", {"appointment_id": "A-606", "new_slot_id": "S-523"}),
        ],
    ),
    _scenario(
        "14-the-doctor-is-ill",
        task="""
            Dr. Kowalczyk will be away on Tuesday, 14 April 2026. Please clear that day.

            - Nadia Petrov wants to stay with Dr. Kowalczyk and takes Wednesday at 10:00.
            - Teresa Novak would rather come on Tuesday all the same, at 14:00 with Dr. Oyelaran.
            - Block Dr. Kowalczyk's slots on Tuesday, so that nobody is booked into them.
        """,
        checks=[
            (
                "Does Nadia Petrov see Dr. Kowalczyk on Wednesday at 10:00?",
                _in_slot("A-602", "S-505"),
            ),
            ("Does Teresa Novak see Dr. Oyelaran on Tuesday at 14:00?", _in_slot("A-603", "S-511")),
            ("Is the slot on Tuesday at 9:00 blocked?", _slot_is("S-503", "blocked")),
            ("Is the slot on Tuesday at 9:30 blocked?", _slot_is("S-504", "blocked")),
            ("Was nothing else changed?", only_changed("S-503", "S-504", "S-505", "S-511", "A-602", "A-603")),
        ],
        reference=[
            ("list_clinicians", {"specialty": "general practice"}),
            ("get_schedule", {"clinician_id": "D-11", "day": "2026-04-14"}),
            (
                "find_free_slots",
                {"clinician_id": "D-11", "from_date": "2026-04-15", "to_date": "2026-04-15"},
            ),
            ("reschedule_appointment", {"appointment_id": "A-602", "new_slot_id": "S-505"}),
            (
                "find_free_slots",
                {"clinician_id": "D-12", "from_date": "2026-04-14", "to_date": "2026-04-14"},
            ),
            ("reschedule_appointment", {"appointment_id": "A-603", "new_slot_id": "S-511"}),
            ("block_slot", {"slot_id": "S-503"}),
            ("block_slot", {"slot_id": "S-504"}),
        ],
    ),
    _scenario(
        "15-the-morning-list",
        task="""
            Please work through this morning's list.

            - Yusuf Demir cannot come to Dr. Quintero on 22 April 2026: cancel, and give the time to whoever is next on
            the waitlist, with the reason noted there.
            - George Whitlock: the earliest cardiology appointment in April 2026, for palpitations.
            - Dr. Oyelaran refers Maribel Santos to dermatology.
        """,
        checks=[
            ("Is Yusuf Demir's appointment cancelled?", _appointment_is("A-609", "cancelled")),
            (
                "Does Clara Jensen have his slot, for her changing mole?",
                _booked("P-411", "S-532", "changing mole"),
            ),
            (
                "Does George Whitlock see Dr. Marsh on 16 April, for palpitations?",
                _booked("P-404", "S-551", "palpitations"),
            ),
            (
                "Is Maribel Santos referred to dermatology by Dr. Oyelaran?",
                _referred("P-403", "dermatology", "D-12"),
            ),
            (
                "Was nothing else changed?",
                only_changed(
                    "S-551", "A-609", "R-702", "R-704", "R-708", "W-802", appointments=2, referrals=1
                ),
            ),
        ],
        reference=[
            ("find_patients", {"query": "Yusuf Demir"}),
            ("get_patient", {"patient_id": "P-410"}),
            ("cancel_appointment", {"appointment_id": "A-609"}),
            ("get_waitlist", {"clinician_id": "D-31"}),
            ("book_appointment", {"patient_id": "P-411", "slot_id": "S-532", "reason": "changing mole"}),
            ("find_patients", {"query": "George Whitlock"}),
            ("list_clinicians", {"specialty": "cardiology"}),
            (
                "find_free_slots",
                {"clinician_id": "D-41", "from_date": "2026-04-13", "to_date": "2026-04-30"},
            ),
            ("book_appointment", {"patient_id": "P-404", "slot_id": "S-551", "reason": "palpitations"}),
            ("find_patients", {"query": "Maribel Santos"}),
            ("list_clinicians", {"specialty": "general practice"}),
            ("issue_referral", {"patient_id": "P-403", "specialty": "dermatology", "issued_by": "D-12"}),
        ],
    ),
]
