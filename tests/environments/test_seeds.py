from collections.abc import Callable
from typing import Any

import pytest

from langchain_envscaler.environments.service import EpisodeService

CODE = """
import datetime, os, random, secrets, time, uuid

class Env:
    def __init__(self, config):
        self.seen = []

    def look(self):
        seen = [
            str(uuid.uuid4()), str(uuid.uuid1()), random.random(), random.Random().random(),
            secrets.token_hex(4), os.urandom(4).hex(), time.time(), datetime.datetime.now().isoformat(),
            datetime.date.today().isoformat(), time.strftime("%Y-%m-%d %H:%M"),
            random.SystemRandom().random(),
        ]
        self.seen.append(seen)
        return seen
"""


@pytest.fixture
def start(service: EpisodeService, make_spec: Callable[..., Any]) -> Callable[[int | None], Any]:
    service.catalog.environments["chance"] = make_spec("chance", CODE, look="")
    return lambda seed: service.start("chance", seed=seed)


def test_the_same_seed_gives_the_same_observations_and_states(start: Callable[[int | None], Any]) -> None:
    first, second = start(7), start(7)
    assert [first.call("look").data for _ in range(3)] == [second.call("look").data for _ in range(3)]
    assert first.state() == second.state()


def test_a_process_that_slept_or_was_killed_changes_nothing(start: Callable[[int | None], Any]) -> None:
    steady, restless = start(7), start(7)
    for _ in range(3):
        restless.sleep()
        assert restless.call("look").data == steady.call("look").data


def test_no_value_comes_twice_on_a_path_and_none_in_another_seed(start: Callable[[int | None], Any]) -> None:
    episode, other = start(7), start(8)
    values = [value for _ in range(4) for value in episode.call("look").data[:5]]
    values += [value for _ in range(4) for value in other.call("look").data[:5]]
    assert len(set(map(str, values))) == len(values)


def test_without_a_seed_nothing_repeats(start: Callable[[int | None], Any]) -> None:
    first, second = start(None), start(None)
    assert not set(map(str, first.call("look").data[:5])) & set(map(str, second.call("look").data[:5]))


def test_the_same_branch_gives_the_same_values(start: Callable[[int | None], Any]) -> None:
    episode = start(7)
    first = episode.call("look").data
    assert episode.call("look", revision=0).data == first
