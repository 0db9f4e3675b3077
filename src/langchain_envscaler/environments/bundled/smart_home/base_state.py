"""The home on an ordinary evening: what every scenario starts from."""

from typing import Any

__all__ = ["BASE"]


def _device(
    device_id: str, room: str, kind: str, value: int, watts: int = 0, noisy: bool = False
) -> tuple[str, dict[str, Any]]:
    record = {
        "device_id": device_id,
        "room": room,
        "kind": kind,
        "value": value,
        "watts": watts,
        "noisy": noisy,
    }
    return device_id, record


BASE: dict[str, Any] = {
    "time": "18:30",
    "mode": "home",
    "pin": "4821",
    "power_limit": 4000,
    "rooms": ["hall", "kitchen", "living room", "bedroom", "nursery", "office", "utility room", "garage"],
    "devices": dict(
        [
            _device("lock-1", "hall", "lock", 1),
            _device("light-1", "hall", "light", 0),
            _device("lock-2", "kitchen", "lock", 1),
            _device("light-2", "kitchen", "light", 80),
            _device("oven-1", "kitchen", "appliance", 0, 2400),
            _device("light-3", "living room", "light", 60),
            _device("blind-1", "living room", "blind", 100),
            _device("heater-1", "living room", "heater", 21),
            _device("tv-1", "living room", "appliance", 0, 150),
            _device("light-4", "bedroom", "light", 0),
            _device("blind-2", "bedroom", "blind", 100),
            _device("heater-2", "bedroom", "heater", 17),
            _device("light-5", "nursery", "light", 30),
            _device("blind-3", "nursery", "blind", 100),
            _device("heater-3", "nursery", "heater", 18),
            _device("heater-4", "office", "heater", 16),
            _device("washer-1", "utility room", "appliance", 0, 2000, True),
            _device("dryer-1", "utility room", "appliance", 0, 2200, True),
            _device("lock-3", "garage", "lock", 1),
            _device("charger-1", "garage", "appliance", 0, 1900),
        ]
    ),
    "scenes": {
        "scene-1": {
            "scene_id": "scene-1",
            "name": "Good night",
            "settings": {"light-2": 0, "light-3": 0, "blind-2": 0},
        },
        "scene-2": {
            "scene_id": "scene-2",
            "name": "Breakfast",
            "settings": {"light-2": 80, "blind-1": 100},
        },
    },
    "schedules": {
        "schedule-1": {
            "schedule_id": "schedule-1",
            "scene_id": "scene-2",
            "time": "07:15",
            "days": "weekdays",
        },
        "schedule-2": {
            "schedule_id": "schedule-2",
            "scene_id": "scene-1",
            "time": "22:45",
            "days": "daily",
        },
    },
    "counters": {"scene": 2, "schedule": 2},
}
