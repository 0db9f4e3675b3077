"""The smart home keeps its safety rules: what it refuses and why."""

from collections.abc import Iterator
from typing import Any

import pytest

from langchain_envscaler.environments.bundled.smart_home.base_state import BASE
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode

Call = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def shared_home() -> Iterator[tuple[Episode, str]]:
    with Catalog.bundled().start("smart_home", init_config=BASE) as episode:
        yield episode, episode.snapshot()


@pytest.fixture
def home(shared_home: tuple[Episode, str]) -> Episode:
    """The home on its ordinary evening."""
    episode, evening = shared_home
    episode.restore(evening)
    return episode


def put(device_id: str, value: Any) -> Call:
    return "set_device", {"device_id": device_id, "value": value}


def unlock(device_id: str, pin: str = "4821") -> Call:
    return "unlock_door", {"device_id": device_id, "pin": pin}


def mode(name: str, pin: str = "") -> Call:
    return "set_mode", {"mode": name, "pin": pin}


def add(scene_id: str, device_id: str, value: int) -> Call:
    return "add_to_scene", {"scene_id": scene_id, "device_id": device_id, "value": value}


def schedule(scene_id: str, time: str, days: str) -> Call:
    return "add_schedule", {"scene_id": scene_id, "time": time, "days": days}


LEAVE = [put("heater-1", 18), mode("away")]
LAUNDRY = [("create_scene", {"name": "Laundry"}), add("scene-3", "washer-1", 1)]


@pytest.mark.parametrize(
    ("before", "call", "reason"),
    [
        ([], put("light-9", 10), "no device 'light-9'"),
        ([], put("light-1", 101), "from 0 to 100"),
        ([], put("light-1", True), "whole number"),
        ([], put("heater-1", 26), "from 5 to 25"),
        ([], put("lock-1", 0), "unlock_door"),
        ([], unlock("lock-1", "1234"), "PIN is wrong"),
        ([], unlock("tv-1"), "not a lock"),
        ([mode("night")], unlock("lock-1"), "home mode only"),
        ([unlock("lock-1")], mode("night"), "lock-1 is unlocked"),
        ([], mode("away"), "heater-1 is at 21"),
        ([put("tv-1", 1)], mode("away"), "tv-1 is on"),
        (LEAVE, mode("home"), "PIN is wrong or missing"),
        (LEAVE, put("tv-1", 1), "in away mode"),
        (LEAVE, put("heater-2", 19), "18 at most"),
        ([put("oven-1", 1)], put("washer-1", 1), "would draw 4400 W, the limit is 4000 W"),
        ([], add("scene-1", "lock-1", 0), "may not unlock"),
        ([], ("create_scene", {"name": "breakfast"}), "already called"),
        ([("create_scene", {"name": "Empty"})], ("run_scene", {"scene_id": "scene-3"}), "is empty"),
        ([], schedule("scene-1", "7:15", "daily"), "HH:MM"),
        ([], schedule("scene-1", "07:15", "daily"), "schedule-1 already runs at 07:15"),
        ([*LAUNDRY], schedule("scene-3", "06:59", "daily"), "noisy"),
        ([], add("scene-1", "washer-1", 1), "noisy"),
    ],
)
def test_a_rule_refuses_a_call_and_leaves_the_home_as_it_was(
    home: Episode, before: list[Call], call: Call, reason: str
) -> None:
    for name, arguments in before:
        assert home.call(name, arguments).data["success"] is True
    state = home.state()
    answer = home.call(*call).data
    assert answer["success"] is False
    assert reason in answer["error"]
    assert home.state() == state


def test_schedules_at_one_time_on_different_days_are_fine(home: Episode) -> None:
    assert home.call(*schedule("scene-1", "07:15", "weekends")).data["success"] is True


def test_a_scene_that_breaks_a_rule_in_part_changes_nothing(home: Episode) -> None:
    for call in [
        ("create_scene", {"name": "Party"}),
        add("scene-3", "light-1", 90),
        add("scene-3", "oven-1", 1),
    ]:
        home.call(*call)
    home.call(*put("washer-1", 1))
    assert "would draw 4400 W" in home.call("run_scene", {"scene_id": "scene-3"}).data["error"]
    assert home.state()["devices"]["light-1"]["value"] == 0


def test_the_pin_is_never_shown(home: Episode) -> None:
    shown = [
        home.call("get_home"),
        home.call("list_devices", {"room": "all"}),
        home.call(*unlock("lock-1", "0")),
    ]
    assert not any("4821" in observation.text for observation in shown)
