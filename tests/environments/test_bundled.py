"""Every bundled scenario is proven: its solution solves it, nothing less does, and an agent could find it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode, Evaluation, Observation
from langchain_envscaler.environments.metadata import ReferenceCall, Scenario
from langchain_envscaler.environments.service import EpisodeService

CATALOG = Catalog.bundled()
CALENDAR_OR_CLOCK = re.compile(r"[\d:\-T ]+")


@dataclass
class Walk:
    """An episode led through its scenario's recorded solution, with what was seen on the way."""

    scenario: Scenario
    episode: Episode
    idle: Evaluation
    observations: list[Observation]
    snapshots: list[str]
    """Before the first call, and after each."""
    states: list[dict[str, Any]]
    solved: Evaluation

    def score_without(self, index: int) -> float:
        """The reward when one call of the solution is left out."""
        self.episode.restore(self.snapshots[index])
        for call in self.scenario.reference[index + 1 :]:
            self.episode.call(call.name, call.arguments)
        return self.episode.evaluate().reward

    def is_stray(self, call: ReferenceCall) -> bool:
        """Whether a call, made on top of the solution, changes a record that the solution leaves alone."""
        self.episode.restore(self.snapshots[-1])
        self.episode.call(call.name, call.arguments)
        touched = _changed_records(self.states[0], self.states[-1])
        return bool(_changed_records(self.states[-1], self.episode.state()) - touched)

    def changing_calls(self) -> list[int]:
        return [i for i in range(len(self.observations)) if self.states[i] != self.states[i + 1]]


@pytest.fixture(scope="module")
def service() -> Iterator[EpisodeService]:
    with EpisodeService(CATALOG) as service:
        yield service


@pytest.fixture(scope="module", params=CATALOG.scenarios, ids=lambda scenario: scenario.task_id)
def walk(request: pytest.FixtureRequest, service: EpisodeService) -> Iterator[Walk]:
    scenario: Scenario = request.param
    with service.start(scenario.env_id, scenario.task_id) as episode:
        idle = episode.evaluate()
        observations, snapshots, states = [], [episode.snapshot()], [episode.state()]
        for call in scenario.reference:
            observations.append(episode.call(call.name, call.arguments))
            snapshots.append(episode.snapshot())
            states.append(episode.state())
        yield Walk(scenario, episode, idle, observations, snapshots, states, episode.evaluate())


def test_every_call_of_the_recorded_solution_succeeds(walk: Walk) -> None:
    failed = [o.text for o in walk.observations if o.is_error or o.data["success"] is not True]
    assert failed == []


def test_the_recorded_solution_scores_full_marks(walk: Walk) -> None:
    assert [(check.item, check.reason) for check in walk.solved.checks if not check.passed] == []
    assert walk.solved.reward == 1.0


def test_doing_nothing_scores_at_most_half(walk: Walk) -> None:
    assert walk.idle.reward <= 0.5


def test_leaving_out_any_call_that_changes_the_state_loses_marks(walk: Walk) -> None:
    changing = walk.changing_calls()
    assert changing
    unneeded = [walk.scenario.reference[i] for i in changing if walk.score_without(i) == 1.0]
    assert unneeded == []


def test_changing_anything_beyond_the_solution_loses_marks(walk: Walk) -> None:
    others = (
        scenario for scenario in CATALOG.scenarios_of(walk.scenario.env_id) if scenario != walk.scenario
    )
    strays = (scenario.reference[-1] for scenario in others)
    stray = next((call for call in strays if walk.is_stray(call)), None)
    assert stray is not None
    assert walk.episode.evaluate().reward < 1.0, stray


def test_every_argument_is_found_in_the_task_the_schemas_or_an_earlier_result(walk: Walk) -> None:
    spec = walk.episode.spec
    seen = _plain(
        walk.scenario.task,
        spec.environment_introduction,
        *spec.constraints_rules,
        json.dumps(walk.episode.tools),
    )
    out_of_nowhere = []
    for call, observation in zip(walk.scenario.reference, walk.observations, strict=True):
        out_of_nowhere += [text for text in _texts(call.arguments) if _plain(text) not in seen]
        seen += _plain(observation.text)
    assert out_of_nowhere == []


def test_a_solution_takes_two_to_twelve_calls() -> None:
    lengths = {scenario.task_id: len(scenario.reference) for scenario in CATALOG.scenarios}
    assert {task_id: length for task_id, length in lengths.items() if not 2 <= length <= 12} == {}


def test_six_environments_are_bundled_and_all_their_entries_load() -> None:
    assert sorted(CATALOG.environments) == [
        "clinic_appointments",
        "library_desk",
        "project_tracker",
        "shop_orders",
        "smart_home",
        "travel_desk",
    ]
    assert CATALOG.problems == []


@pytest.mark.parametrize("env_id", sorted(CATALOG.environments))
def test_an_environment_has_ten_to_twenty_tools_and_scenarios_from_easy_to_hard(env_id: str) -> None:
    scenarios = CATALOG.scenarios_of(env_id)
    lengths = [len(scenario.reference) for scenario in scenarios]
    assert 10 <= len(CATALOG.environments[env_id].tools) <= 20
    assert len({scenario.task_id for scenario in scenarios}) == len(scenarios) >= 10
    assert min(lengths) <= 3
    assert max(lengths) >= 9


@pytest.mark.parametrize("env_id", sorted(CATALOG.environments))
def test_every_tool_is_part_of_some_solution(env_id: str) -> None:
    tools = {tool["function"]["name"] for tool in CATALOG.environments[env_id].tools}
    used = {call.name for scenario in CATALOG.scenarios_of(env_id) for call in scenario.reference}
    assert tools - used == set()


def _changed_records(before: dict[str, Any], after: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (table, key)
        for table, records in after.items()
        if isinstance(records, dict)
        for key, record in records.items()
        if isinstance(record, dict) and before[table].get(key) != record
    }


def _plain(*texts: str) -> str:
    """Texts in one line and one case, with the escapes of JSON and of Python's quotes undone."""
    return " ".join(" ".join(texts).replace("\\", "").split()).casefold()


def _texts(value: Any) -> Iterator[str]:
    """Every text in an argument, except dates and times, which a task may give in words."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str) and not CALENDAR_OR_CLOCK.fullmatch(value):
        yield value
