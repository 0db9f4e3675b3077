"""The control panel of a smart home."""

import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Literal, ParamSpec, TypedDict

__all__ = ["SmartHome"]

Kind = Literal["light", "blind", "heater", "lock", "appliance"]
Mode = Literal["home", "night", "away"]

RANGES: dict[Kind, tuple[int, int]] = {
    "light": (0, 100),
    "blind": (0, 100),
    "heater": (5, 25),
    "lock": (0, 1),
    "appliance": (0, 1),
}
MODES = ("home", "night", "away")
WEEKDAYS, WEEKENDS = frozenset(range(5)), frozenset((5, 6))
DAYS = {"daily": WEEKDAYS | WEEKENDS, "weekdays": WEEKDAYS, "weekends": WEEKENDS}
QUIET_FROM, QUIET_UNTIL = "22:00", "07:00"
AWAY_MAX_HEAT = 18


class Device(TypedDict):
    """A thing to control. What `value` means depends on the kind, see the rules."""

    device_id: str
    room: str
    kind: Kind
    value: int
    watts: int
    noisy: bool


class Scene(TypedDict):
    """Values for several devices, set together; `settings` maps device ids to values."""

    scene_id: str
    name: str
    settings: dict[str, int]


class Schedule(TypedDict):
    """A scene that runs by itself at a time on certain days."""

    schedule_id: str
    scene_id: str
    time: str
    days: str


class _Refused(Exception):
    """A rule forbids what was asked; the message says which and what to do."""


P = ParamSpec("P")


def _tool(method: Callable[P, dict[str, Any]]) -> Callable[P, dict[str, Any]]:
    """Turns a refusal inside a tool into the tool's answer."""

    @wraps(method)
    def answered(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        try:
            return method(*args, **kwargs)
        except _Refused as refusal:
            return {"success": False, "error": str(refusal)}

    return answered


class SmartHome:
    """The control panel of a smart home: devices in rooms, scenes of several devices, and schedules that run scenes.

    Every device has a whole number as its value. The home has a mode, a clock time, a PIN that its residents know,
    and a power limit for its appliances.

    Rules:
    - Lights and blinds go from 0 to 100, heaters from 5 to 25 degrees; a lock is 1 when locked, an appliance 1 when on.
    - The appliances that are on may not draw more watts together than the power limit.
    - Noisy appliances may not be switched on, nor scheduled, from 22:00 to 07:00.
    - A door is unlocked with the PIN, in home mode only, and never by a scene.
    - Night mode needs all doors locked; away mode needs all doors locked, all appliances off and heaters at 18 at most.
    - In away mode no appliance may be switched on and no heater set above 18.
    - Leaving away mode needs the PIN.
    - Only a scene with settings can be run or scheduled; scene names are unique.
    - Two schedules may not run at the same time on the same day.
    """

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.time: str = init_config.get("time", "12:00")
        self.mode: Mode = init_config.get("mode", "home")
        self.pin: str = init_config.get("pin", "0000")
        self.power_limit: int = init_config.get("power_limit", 3500)
        self.rooms: list[str] = init_config.get("rooms", [])
        self.devices: dict[str, Device] = init_config.get("devices", {})
        self.scenes: dict[str, Scene] = init_config.get("scenes", {})
        self.schedules: dict[str, Schedule] = init_config.get("schedules", {})
        self.counters: dict[str, int] = init_config.get("counters", {"scene": 0, "schedule": 0})

    @_tool
    def get_home(self) -> dict[str, Any]:
        """Show time, mode, rooms, scenes and schedules."""
        return {
            "success": True,
            "time": self.time,
            "mode": self.mode,
            "power_limit": self.power_limit,
            "rooms": self.rooms,
            "scenes": list(self.scenes.values()),
            "schedules": list(self.schedules.values()),
        }

    @_tool
    def list_devices(self, room: str) -> dict[str, Any]:
        """List the devices of a room.

        Args:
            room (str): A room or "all".
        """
        if room != "all" and room not in self.rooms:
            raise _Refused(f"There is no room {room!r}. Rooms: {', '.join(self.rooms)}, or all.")
        found = [device for device in self.devices.values() if room in ("all", device["room"])]
        return {"success": True, "devices": found}

    @_tool
    def set_device(self, device_id: str, value: int) -> dict[str, Any]:
        """Set a device's value.

        Args:
            device_id (str): The device.
            value (int): Its new value; for a lock only 1.
        """
        device = self._device(device_id)
        self._apply({device_id: value})
        return {"success": True, "device": device}

    @_tool
    def unlock_door(self, device_id: str, pin: str) -> dict[str, Any]:
        """Unlock a door.

        Args:
            device_id (str): The lock.
            pin (str): The PIN.
        """
        lock = self._device(device_id)
        if lock["kind"] != "lock":
            raise _Refused(f"{device_id} is a {lock['kind']}, not a lock.")
        if self.mode != "home":
            raise _Refused(
                f"Doors are unlocked in home mode only, and the mode is {self.mode}: set the mode first."
            )
        self._require_pin(pin)
        lock["value"] = 0
        return {"success": True, "device": lock}

    @_tool
    def create_scene(self, name: str) -> dict[str, Any]:
        """Create an empty scene.

        Args:
            name (str): A new name.
        """
        name = str(name).strip()
        if not name:
            raise _Refused("A scene needs a name.")
        if any(scene["name"].lower() == name.lower() for scene in self.scenes.values()):
            raise _Refused(f"A scene is already called {name!r}: choose another name.")
        scene_id = self._new_id("scene")
        self.scenes[scene_id] = {"scene_id": scene_id, "name": name, "settings": {}}
        return {"success": True, "scene": self.scenes[scene_id]}

    @_tool
    def add_to_scene(self, scene_id: str, device_id: str, value: int) -> dict[str, Any]:
        """Put a device's value into a scene.

        Args:
            scene_id (str): The scene.
            device_id (str): The device.
            value (int): Its value in the scene.
        """
        scene = self._scene(scene_id)
        device = self._device(device_id)
        _require_in_range(device, value)
        if device["kind"] == "lock" and value == 0:
            raise _Refused("A scene may not unlock a door.")
        settings = {**scene["settings"], device_id: value}
        for schedule in self.schedules.values():
            if schedule["scene_id"] == scene_id:
                self._require_not_noisy(settings, schedule["time"])
        scene["settings"] = settings
        return {"success": True, "scene": scene}

    @_tool
    def run_scene(self, scene_id: str) -> dict[str, Any]:
        """Run a scene now.

        Args:
            scene_id (str): The scene.
        """
        scene = self._filled_scene(scene_id)
        self._apply(scene["settings"])
        return {"success": True, "devices": [self.devices[device_id] for device_id in scene["settings"]]}

    @_tool
    def add_schedule(self, scene_id: str, time: str, days: str) -> dict[str, Any]:
        """Have a scene run by itself.

        Args:
            scene_id (str): The scene.
            time (str): HH:MM.
            days (str): daily, weekdays or weekends.
        """
        scene = self._filled_scene(scene_id)
        if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", str(time)):
            raise _Refused(f"The time is written HH:MM, for example 07:30, not {time!r}.")
        if days not in DAYS:
            raise _Refused(f"The days are {', '.join(DAYS)}, not {days!r}.")
        self._require_not_noisy(scene["settings"], time)
        for other in self.schedules.values():
            if other["time"] == time and DAYS[other["days"]] & DAYS[days]:
                raise _Refused(
                    f"{other['schedule_id']} already runs at {time} ({other['days']}): choose another time or remove it."
                )
        schedule_id = self._new_id("schedule")
        self.schedules[schedule_id] = {
            "schedule_id": schedule_id,
            "scene_id": scene_id,
            "time": time,
            "days": days,
        }
        return {"success": True, "schedule": self.schedules[schedule_id]}

    @_tool
    def remove_schedule(self, schedule_id: str) -> dict[str, Any]:
        """Remove a schedule.

        Args:
            schedule_id (str): The schedule.
        """
        if schedule_id not in self.schedules:
            raise _Refused(f"There is no schedule {schedule_id!r}: get_home shows all.")
        return {"success": True, "removed": self.schedules.pop(schedule_id)}

    @_tool
    def set_mode(self, mode: Mode, pin: str = "") -> dict[str, Any]:
        """Set the home's mode.

        Args:
            mode (str): home, night or away.
            pin (str): The PIN, to leave away mode.
        """
        if mode not in MODES:
            raise _Refused(f"The modes are {', '.join(MODES)}, not {mode!r}.")
        if self.mode == "away" and mode != "away":
            self._require_pin(pin)
        problems = [problem for device in self.devices.values() if (problem := _obstacle(device, mode))]
        if problems:
            raise _Refused(f"Not ready for {mode} mode: {', '.join(problems)}.")
        self.mode = mode
        return {"success": True, "mode": mode}

    def _apply(self, settings: Mapping[str, int]) -> None:
        """Sets devices together, if the result keeps to every rule; else changes nothing."""
        for device_id, value in settings.items():
            self._require_allowed(self.devices[device_id], value)
        watts = sum(
            device["watts"]
            for device_id, device in self.devices.items()
            if device["kind"] == "appliance" and settings.get(device_id, device["value"])
        )
        switched_on = [
            key for key, value in settings.items() if value and self.devices[key]["kind"] == "appliance"
        ]
        if switched_on and watts > self.power_limit:
            raise _Refused(
                f"The appliances would draw {watts} W, the limit is {self.power_limit} W: switch another off first."
            )
        for device_id, value in settings.items():
            self.devices[device_id]["value"] = value

    def _require_allowed(self, device: Device, value: int) -> None:
        _require_in_range(device, value)
        device_id, kind = device["device_id"], device["kind"]
        if value == device["value"]:
            return
        if kind == "lock" and value == 0:
            raise _Refused(f"{device_id} is unlocked by unlock_door with the PIN.")
        if kind == "appliance" and value == 1:
            if self.mode == "away":
                raise _Refused(f"{device_id} may not be switched on in away mode.")
            self._require_not_noisy({device_id: 1}, self.time)
        if kind == "heater" and self.mode == "away" and value > AWAY_MAX_HEAT:
            raise _Refused(f"{device_id} may be set to {AWAY_MAX_HEAT} at most in away mode.")

    def _require_not_noisy(self, settings: Mapping[str, int], time: str) -> None:
        if QUIET_UNTIL <= time < QUIET_FROM:
            return
        for device_id, value in settings.items():
            if value and self.devices[device_id]["noisy"]:
                raise _Refused(
                    f"{device_id} is noisy and may not be switched on from {QUIET_FROM} to {QUIET_UNTIL};"
                    f" that would be at {time}."
                )

    def _require_pin(self, pin: str) -> None:
        if str(pin) != self.pin:
            raise _Refused("The PIN is wrong or missing: ask a resident for it.")

    def _device(self, device_id: str) -> Device:
        if device_id not in self.devices:
            raise _Refused(f"There is no device {device_id!r}: list_devices shows all.")
        return self.devices[device_id]

    def _scene(self, scene_id: str) -> Scene:
        if scene_id not in self.scenes:
            raise _Refused(f"There is no scene {scene_id!r}: get_home shows all.")
        return self.scenes[scene_id]

    def _filled_scene(self, scene_id: str) -> Scene:
        scene = self._scene(scene_id)
        if not scene["settings"]:
            raise _Refused(f"{scene_id} is empty: add devices to it first.")
        return scene

    def _new_id(self, kind: str) -> str:
        self.counters[kind] += 1
        return f"{kind}-{self.counters[kind]}"


def _require_in_range(device: Device, value: int) -> None:
    low, high = RANGES[device["kind"]]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _Refused(f"{device['device_id']} takes a whole number from {low} to {high}, not {value!r}.")


def _obstacle(device: Device, mode: Mode) -> str | None:
    """What keeps a device from being left alone in a mode, if anything."""
    device_id, kind, value = device["device_id"], device["kind"], device["value"]
    if kind == "lock" and value == 0 and mode in ("night", "away"):
        return f"{device_id} is unlocked"
    if kind == "appliance" and value == 1 and mode == "away":
        return f"{device_id} is on"
    if kind == "heater" and value > AWAY_MAX_HEAT and mode == "away":
        return f"{device_id} is at {value}"
    return None
