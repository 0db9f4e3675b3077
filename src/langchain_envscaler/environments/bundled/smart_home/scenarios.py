"""Tasks at the smart home's control panel, from a single command to getting the house ready for a holiday."""

from functools import partial

from langchain_envscaler.environments.bundled._scenarios import merged, same, same_except, scenario
from langchain_envscaler.environments.bundled.smart_home.base_state import BASE
from langchain_envscaler.environments.metadata import Scenario

__all__ = ["SCENARIOS"]

_scenario = partial(scenario, "smart_home", "SmartHome")

DEVICES_ALONE = same("scenes", "schedules", "mode")


def _devices(values: dict[str, int]) -> str:
    """The expression that these devices have these values."""
    return f'all(final_state["devices"][key]["value"] == value for key, value in {values!r}.items())'


def _scene(name: str, settings: dict[str, int]) -> str:
    """The expression that one scene of this name exists, with these settings and no others."""
    named = f'each for each in final_state["scenes"].values() if each["name"].lower() == {name.lower()!r}'
    return f'[each["settings"] for each in [{named}]] == [{settings!r}]'


def _schedules(*expected: tuple[str, str, str]) -> str:
    """The expression that exactly these schedules exist, each a scene's name, a time and days."""
    found = (
        '(final_state["scenes"][each["scene_id"]]["name"].lower(), each["time"], each["days"])'
        ' for each in final_state["schedules"].values()'
    )
    return f"sorted({found}) == {sorted((name.lower(), time, days) for name, time, days in expected)!r}"


SCENARIOS: list[Scenario] = [
    _scenario(
        "01-lock-the-back-door",
        task="The back door in the kitchen is still open. Please lock it.",
        state=merged(BASE, {"devices": {"lock-2": {"value": 0}}}),
        checks=[
            ("Is the kitchen door locked?", _devices({"lock-2": 1})),
            ("Was nothing else changed?", same_except("devices", "lock-2") + " and " + DEVICES_ALONE),
        ],
        reference=[
            ("list_devices", {"room": "kitchen"}),
            ("set_device", {"device_id": "lock-2", "value": 1}),
        ],
    ),
    _scenario(
        "02-let-the-plumber-in",
        task="The plumber is standing at the front door in the hall. Please unlock it for him, the PIN is 4821.",
        state=BASE,
        checks=[
            ("Is the front door unlocked?", _devices({"lock-1": 0})),
            ("Was nothing else changed?", same_except("devices", "lock-1") + " and " + DEVICES_ALONE),
        ],
        reference=[
            ("list_devices", {"room": "hall"}),
            ("unlock_door", {"device_id": "lock-1", "pin": "4821"}),
        ],
    ),
    _scenario(
        "03-warm-the-nursery",
        task="""
        The baby goes to bed soon. Heat the nursery to 21 degrees and close the blind there completely. The light
        can stay as it is.
        """,
        state=BASE,
        checks=[
            ("Is the nursery's heater set to 21?", _devices({"heater-3": 21})),
            ("Is the nursery's blind closed?", _devices({"blind-3": 0})),
            (
                "Was nothing else changed?",
                same_except("devices", "heater-3", "blind-3") + " and " + DEVICES_ALONE,
            ),
        ],
        reference=[
            ("list_devices", {"room": "nursery"}),
            ("set_device", {"device_id": "heater-3", "value": 21}),
            ("set_device", {"device_id": "blind-3", "value": 0}),
        ],
    ),
    _scenario(
        "04-breakfast-later",
        task="""
        From now on we get up half an hour later: on weekdays the Breakfast scene should run at 07:45 instead of
        07:15. Leave the other schedule alone.
        """,
        state=BASE,
        checks=[
            (
                "Does Breakfast run at 07:45 on weekdays, and Good night as before?",
                _schedules(("Breakfast", "07:45", "weekdays"), ("Good night", "22:45", "daily")),
            ),
            ("Was nothing else changed?", same("devices", "scenes", "mode")),
        ],
        reference=[
            ("get_home", {}),
            ("remove_schedule", {"schedule_id": "schedule-1"}),
            ("add_schedule", {"scene_id": "scene-2", "time": "07:45", "days": "weekdays"}),
        ],
    ),
    _scenario(
        "05-coming-home",
        task="""
        We are back from the trip and stand in front of the house. Set the home to home mode, unlock the front door
        in the hall and turn the hall light to 60. Our PIN is 4821.
        """,
        state=merged(BASE, {"mode": "away", "devices": {"heater-1": {"value": 16}, "light-5": {"value": 0}}}),
        checks=[
            ("Is the home in home mode?", 'final_state["mode"] == "home"'),
            ("Is the front door unlocked?", _devices({"lock-1": 0})),
            ("Is the hall light at 60?", _devices({"light-1": 60})),
            (
                "Was nothing else changed?",
                same_except("devices", "lock-1", "light-1") + " and " + same("scenes", "schedules"),
            ),
        ],
        reference=[
            ("list_devices", {"room": "hall"}),
            ("set_mode", {"mode": "home", "pin": "4821"}),
            ("unlock_door", {"device_id": "lock-1", "pin": "4821"}),
            ("set_device", {"device_id": "light-1", "value": 60}),
        ],
    ),
    _scenario(
        "06-room-for-the-dryer",
        task="""
        Please switch on the dryer in the utility room. If that is too much power, stop charging the car in the
        garage for it; the washer has to keep running.
        """,
        state=merged(
            BASE, {"power_limit": 4300, "devices": {"washer-1": {"value": 1}, "charger-1": {"value": 1}}}
        ),
        checks=[
            ("Is the dryer on?", _devices({"dryer-1": 1})),
            ("Was the charger switched off?", _devices({"charger-1": 0})),
            (
                "Was nothing else changed, the washer's cycle included?",
                same_except("devices", "dryer-1", "charger-1") + " and " + DEVICES_ALONE,
            ),
        ],
        reference=[
            ("get_home", {}),
            ("list_devices", {"room": "all"}),
            ("set_device", {"device_id": "charger-1", "value": 0}),
            ("set_device", {"device_id": "dryer-1", "value": 1}),
        ],
    ),
    _scenario(
        "07-laundry-after-quiet-hours",
        task="""
        It is too late for the washer in the utility room now. Make a scene called "Laundry" that switches it on,
        and have it run daily at the earliest time at which the house rules let it.
        """,
        state=merged(BASE, {"time": "22:40", "devices": {"light-2": {"value": 0}, "light-5": {"value": 0}}}),
        checks=[
            (
                "Does the scene Laundry switch on the washer and nothing else?",
                _scene("Laundry", {"washer-1": 1}),
            ),
            (
                "Does it run daily at 07:00, and everything else as before?",
                _schedules(
                    ("Laundry", "07:00", "daily"),
                    ("Breakfast", "07:15", "weekdays"),
                    ("Good night", "22:45", "daily"),
                ),
            ),
            ("Was no device touched now?", same("devices", "mode")),
        ],
        reference=[
            ("list_devices", {"room": "utility room"}),
            ("create_scene", {"name": "Laundry"}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "washer-1", "value": 1}),
            ("add_schedule", {"scene_id": "scene-3", "time": "07:00", "days": "daily"}),
        ],
    ),
    _scenario(
        "08-lock-up-for-the-night",
        task="""
        We are going to bed. Run the Good night scene, lock whatever door is still open and put the home into night
        mode.
        """,
        state=merged(BASE, {"time": "22:10", "devices": {"lock-1": {"value": 0}, "lock-3": {"value": 0}}}),
        checks=[
            ("Did the Good night scene run?", _devices({"light-2": 0, "light-3": 0, "blind-2": 0})),
            ("Is every door locked?", _devices({"lock-1": 1, "lock-2": 1, "lock-3": 1})),
            ("Is the home in night mode?", 'final_state["mode"] == "night"'),
            (
                "Was nothing else changed?",
                same_except("devices", "light-2", "light-3", "blind-2", "lock-1", "lock-3")
                + " and "
                + same("scenes", "schedules"),
            ),
        ],
        reference=[
            ("get_home", {}),
            ("run_scene", {"scene_id": "scene-1"}),
            ("list_devices", {"room": "all"}),
            ("set_device", {"device_id": "lock-1", "value": 1}),
            ("set_device", {"device_id": "lock-3", "value": 1}),
            ("set_mode", {"mode": "night"}),
        ],
    ),
    _scenario(
        "09-movie-night",
        task="""
        Create a scene "Movie night" for the living room: light at 15, blind closed, TV on. It should hold nothing
        else. Then start it.
        """,
        state=BASE,
        checks=[
            (
                "Does the scene Movie night hold the three settings?",
                _scene("Movie night", {"light-3": 15, "blind-1": 0, "tv-1": 1}),
            ),
            ("Is the living room set for the movie?", _devices({"light-3": 15, "blind-1": 0, "tv-1": 1})),
            (
                "Was nothing else changed?",
                same_except("devices", "light-3", "blind-1", "tv-1")
                + " and "
                + same("schedules", "mode")
                + " and "
                + same_except("scenes", "scene-3"),
            ),
        ],
        reference=[
            ("list_devices", {"room": "living room"}),
            ("create_scene", {"name": "Movie night"}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "light-3", "value": 15}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "blind-1", "value": 0}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "tv-1", "value": 1}),
            ("run_scene", {"scene_id": "scene-3"}),
        ],
    ),
    _scenario(
        "10-leaving-for-work",
        task="""
        We are leaving for work and the house is not ready. Switch off every appliance that is still on, lock every
        open door, turn each heater that is above 18 degrees down to 16 (leave the other heaters alone), and then
        set away mode.
        """,
        state=merged(
            BASE,
            {
                "time": "08:05",
                "devices": {
                    "tv-1": {"value": 1},
                    "oven-1": {"value": 1},
                    "lock-2": {"value": 0},
                    "heater-4": {"value": 20},
                },
            },
        ),
        checks=[
            ("Is every appliance off?", _devices({"tv-1": 0, "oven-1": 0})),
            ("Is the kitchen door locked?", _devices({"lock-2": 1})),
            (
                "Are the heaters of the living room and the office at 16?",
                _devices({"heater-1": 16, "heater-4": 16}),
            ),
            ("Is the home in away mode?", 'final_state["mode"] == "away"'),
            (
                "Was nothing else changed?",
                same_except("devices", "tv-1", "oven-1", "lock-2", "heater-1", "heater-4")
                + " and "
                + same("scenes", "schedules"),
            ),
        ],
        reference=[
            ("list_devices", {"room": "all"}),
            ("set_device", {"device_id": "oven-1", "value": 0}),
            ("set_device", {"device_id": "tv-1", "value": 0}),
            ("set_device", {"device_id": "lock-2", "value": 1}),
            ("set_device", {"device_id": "heater-1", "value": 16}),
            ("set_device", {"device_id": "heater-4", "value": 16}),
            ("set_mode", {"mode": "away"}),
        ],
    ),
    _scenario(
        "11-blinds-at-dusk",
        task="""
        I want a scene "Dusk" that closes all blinds in the house, running daily at 19:30. Should another schedule
        stand in its way at that time, remove that schedule, but keep its scene.
        """,
        state=merged(
            BASE,
            {
                "scenes": {
                    "scene-3": {"scene_id": "scene-3", "name": "Reading corner", "settings": {"light-3": 90}}
                },
                "schedules": {
                    "schedule-3": {
                        "schedule_id": "schedule-3",
                        "scene_id": "scene-3",
                        "time": "19:30",
                        "days": "weekends",
                    }
                },
                "counters": {"scene": 3, "schedule": 3},
            },
        ),
        checks=[
            (
                "Does the scene Dusk close all three blinds and nothing else?",
                _scene("Dusk", {"blind-1": 0, "blind-2": 0, "blind-3": 0}),
            ),
            (
                "Does Dusk run daily at 19:30 in the place of Reading corner, the rest as before?",
                _schedules(
                    ("Dusk", "19:30", "daily"),
                    ("Breakfast", "07:15", "weekdays"),
                    ("Good night", "22:45", "daily"),
                ),
            ),
            ("Is the scene Reading corner still there?", _scene("Reading corner", {"light-3": 90})),
            ("Was no device touched now?", same("devices", "mode")),
        ],
        reference=[
            ("get_home", {}),
            ("list_devices", {"room": "all"}),
            ("create_scene", {"name": "Dusk"}),
            ("add_to_scene", {"scene_id": "scene-4", "device_id": "blind-1", "value": 0}),
            ("add_to_scene", {"scene_id": "scene-4", "device_id": "blind-2", "value": 0}),
            ("add_to_scene", {"scene_id": "scene-4", "device_id": "blind-3", "value": 0}),
            ("remove_schedule", {"schedule_id": "schedule-3"}),
            ("add_schedule", {"scene_id": "scene-4", "time": "19:30", "days": "daily"}),
        ],
    ),
    _scenario(
        "12-slow-weekend-mornings",
        task="""
        Breakfast should no longer run at weekends, only on weekdays as now. Instead make a scene "Slow morning":
        bedroom blind at 40, nursery blind at 30, kitchen light at 50 and the living room heated to 22. Let it run at
        weekends at 09:00.
        """,
        state=merged(
            BASE,
            {
                "schedules": {
                    "schedule-3": {
                        "schedule_id": "schedule-3",
                        "scene_id": "scene-2",
                        "time": "08:30",
                        "days": "weekends",
                    }
                },
                "counters": {"schedule": 3},
            },
        ),
        checks=[
            (
                "Does the scene Slow morning hold the four settings?",
                _scene("Slow morning", {"blind-2": 40, "blind-3": 30, "light-2": 50, "heater-1": 22}),
            ),
            (
                "Does it run at weekends at 09:00, Breakfast on weekdays only, Good night as before?",
                _schedules(
                    ("Slow morning", "09:00", "weekends"),
                    ("Breakfast", "07:15", "weekdays"),
                    ("Good night", "22:45", "daily"),
                ),
            ),
            ("Was no device touched now?", same("devices", "mode")),
        ],
        reference=[
            ("get_home", {}),
            ("list_devices", {"room": "all"}),
            ("remove_schedule", {"schedule_id": "schedule-3"}),
            ("create_scene", {"name": "Slow morning"}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "blind-2", "value": 40}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "blind-3", "value": 30}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "light-2", "value": 50}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "heater-1", "value": 22}),
            ("add_schedule", {"scene_id": "scene-3", "time": "09:00", "days": "weekends"}),
        ],
    ),
    _scenario(
        "13-off-on-holiday",
        task="""
        We are off for two weeks, please prepare the house:

        - Remove every schedule that there is.
        - Create a scene "Someone is home" with the kitchen light at 40 and the living room light at 70, and let it
        run daily at 20:15.
        - Stop the car charger, lock all doors, and turn down to 12 degrees every heater that away mode would not
        accept.
        - Then set away mode.
        """,
        state=merged(BASE, {"devices": {"charger-1": {"value": 1}, "lock-1": {"value": 0}}}),
        checks=[
            (
                "Does the scene hold the two lights?",
                _scene("Someone is home", {"light-2": 40, "light-3": 70}),
            ),
            (
                "Is it the only one that runs, daily at 20:15?",
                _schedules(("Someone is home", "20:15", "daily")),
            ),
            (
                "Is the charger off, and is every door locked?",
                _devices({"charger-1": 0, "lock-1": 1, "lock-2": 1}),
            ),
            ("Is the living room's heater at 12?", _devices({"heater-1": 12})),
            ("Is the home in away mode?", 'final_state["mode"] == "away"'),
            (
                "Was nothing else changed?",
                same_except("devices", "charger-1", "lock-1", "heater-1")
                + " and "
                + same_except("scenes", "scene-3"),
            ),
        ],
        reference=[
            ("get_home", {}),
            ("list_devices", {"room": "all"}),
            ("remove_schedule", {"schedule_id": "schedule-1"}),
            ("remove_schedule", {"schedule_id": "schedule-2"}),
            ("create_scene", {"name": "Someone is home"}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "light-2", "value": 40}),
            ("add_to_scene", {"scene_id": "scene-3", "device_id": "light-3", "value": 70}),
            ("add_schedule", {"scene_id": "scene-3", "time": "20:15", "days": "daily"}),
            ("set_device", {"device_id": "charger-1", "value": 0}),
            ("set_device", {"device_id": "lock-1", "value": 1}),
            ("set_device", {"device_id": "heater-1", "value": 12}),
            ("set_mode", {"mode": "away"}),
        ],
    ),
]
