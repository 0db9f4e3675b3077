"""How fast episodes are, as ratios to an environment that is stepped in process, side by side in one run.

    python benchmarks/environments.py ENVSCALER_FOLDER [--synchronous FULL]

The folder holds EnvScaler's `env_metadata.json` and a scenario file; without one the bundled environments are
used. The peer keeps state in memory as EnvScaler's own step does: the bare method call, a deep copy of the
state before and after, a recursive difference, and the new state copied again into a growing trajectory. It
runs the environment's code in this process: use it on code that you trust.
"""

import argparse
import copy
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.metadata import EnvironmentSpec, Scenario
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.environments.store_sqlite import SqliteStore

CALLS, ROUNDS, STARTS = 100, 15, 30


class InProcess:
    """An environment in this process, stepped with all the copies that a trajectory takes."""

    def __init__(self, spec: EnvironmentSpec, init_config: dict[str, Any]) -> None:
        namespace: dict[str, Any] = {}
        exec(spec.env_class_code, namespace)  # noqa: S102 - the point of the comparison
        config = copy.deepcopy(init_config)
        self._instance = namespace[spec.env_class_name](config)
        for name, value in config.items():
            setattr(self._instance, name, value)
        self._trajectory: list[Any] = []

    def step(self, name: str, arguments: dict[str, Any]) -> str:
        """One call."""
        before = copy.deepcopy(vars(self._instance))
        try:
            text = str(getattr(self._instance, name)(**arguments))
        except Exception as error:
            text = str(error)
        after = copy.deepcopy(vars(self._instance))
        self._trajectory.append((text, difference(before, after), copy.deepcopy(after)))
        return text


def difference(before: Any, after: Any) -> Any:
    """What differs, recursively; None if nothing does."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = before.keys() | after.keys()
        found = {key: difference(before.get(key), after.get(key)) for key in keys}
        return {key: value for key, value in found.items() if value is not None} or None
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [difference(old, new) for old, new in zip(before, after, strict=True)]
        return pairs if any(pair is not None for pair in pairs) else None
    return None if before == after else (before, after)


def calls_of(spec: EnvironmentSpec, scenario: Scenario) -> list[tuple[str, dict[str, Any]]]:
    """Calls of every tool, with ids that occur in the state where an argument is a text."""
    ids = [key for value in scenario.init_config.values() if isinstance(value, dict) for key in value] or [
        "x"
    ]
    made: list[tuple[str, dict[str, Any]]] = []
    for number, tool in enumerate(spec.tools):
        parameters = tool["function"]["parameters"]
        names = parameters.get("required", [])
        kinds = {name: parameters["properties"][name].get("type") for name in names}
        simple = {"number": 1.5, "integer": 1, "boolean": True, "array": [], "object": {}}
        arguments = {
            name: simple.get(kinds[name], ids[(number + place) % len(ids)])
            for place, name in enumerate(names)
        }
        made.append((tool["function"]["name"], arguments))
    return [made[number % len(made)] for number in range(CALLS)]


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(service: EpisodeService, spec: EnvironmentSpec, scenario: Scenario) -> dict[str, float]:
    """Calls a second and milliseconds to start, here and in process, in alternating rounds.

    Rates are of the least disturbed round of each; starts are medians.
    """
    calls = calls_of(spec, scenario)
    ours, theirs, starts, resets = [], [], [], []
    for _ in range(ROUNDS):
        episode = service.start(spec.env_id, scenario.task_id)
        peer = InProcess(spec, scenario.init_config)
        ours.append(seconds(lambda e=episode: [e.call(name, args) for name, args in calls]))  # type: ignore[misc]
        theirs.append(seconds(lambda p=peer: [p.step(name, args) for name, args in calls]))  # type: ignore[misc]
        episode.close()
    for _ in range(STARTS):
        starts.append(seconds(lambda: service.start(spec.env_id, scenario.task_id).call(*calls[0])))
        resets.append(seconds(lambda: InProcess(spec, scenario.init_config).step(*calls[0])))
    ours_rate, peer_rate = CALLS / min(ours), CALLS / min(theirs)
    return {
        "state_bytes": len(json.dumps(scenario.init_config)),
        "calls_per_second": round(ours_rate),
        "peer_calls_per_second": round(peer_rate),
        "ratio": round(ours_rate / peer_rate, 2),
        "start_and_call_ms": round(statistics.median(starts) * 1e3, 2),
        "peer_start_and_call_ms": round(statistics.median(resets) * 1e3, 2),
    }


def main() -> None:
    """Measure the environment with the largest start state, and the one with the median one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--synchronous", choices=["NORMAL", "FULL"], default="NORMAL")
    options = parser.parse_args()
    catalog = Catalog.load(options.folder) if options.folder else Catalog.bundled()
    by_size = sorted(catalog.scenarios, key=lambda scenario: len(json.dumps(scenario.init_config)))
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "episodes.sqlite", synchronous=options.synchronous)
        with EpisodeService(catalog, store=store, sleep_seconds=None) as service:
            first = catalog.scenarios[0]
            cold = seconds(lambda: service.start(first.env_id, first.task_id))
            result: dict[str, Any] = {"cold_start_ms": round(cold * 1e3, 1)}
            for name, scenario in (("largest", by_size[-1]), ("median", by_size[len(by_size) // 2])):
                result[name] = measure(service, catalog.environment(scenario.env_id), scenario)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
