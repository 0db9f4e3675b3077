import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService


def _digest(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True, default=repr).encode()).hexdigest()


@pytest.mark.timeout(300)
def test_every_recorded_trace_gives_the_same_observations_states_and_rewards(shared: Path) -> None:
    lines = (shared / "golden" / "envscaler_traces.jsonl").read_text().splitlines()
    different = []
    with EpisodeService(Catalog.load(shared / "envscaler")) as service:
        for number, line in enumerate(lines):
            trace = json.loads(line)
            with service.start(trace["env_id"], trace["task_id"]) as episode:
                for step in trace["steps"]:
                    observation = episode.call(step["name"], step["arguments"])
                    if (
                        observation.text != step["observation"]
                        or _digest(episode.state()) != step["state_sha256"]
                    ):
                        different.append((number, step["name"], observation.text))
                evaluation = episode.evaluate()
            if (
                evaluation.reward != trace["reward"]
                or [c.passed for c in evaluation.checks] != trace["checks"]
            ):
                different.append((number, "reward", str(evaluation.reward)))
    assert len(lines) == 132
    assert different == []
