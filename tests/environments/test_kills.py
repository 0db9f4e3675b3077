"""An episode whose server process is killed again and again ends as one that was left alone."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService

CALLS = 30
KILLS = 15

# Goes through the calls from the first one, as a client does that does not know what was done.
SERVER = f"""
import sys
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService

with EpisodeService(Catalog(), store=sys.argv[1]) as service:
    episode = service.get("e")
    for number in range({CALLS}):
        name, arguments = ("make_id", {{}}) if number % 3 else ("add", {{"amount": number}})
        episode.call(name, arguments, call_id=f"c{{number}}")
        print(number, flush=True)
"""


def _outcome(service: EpisodeService) -> tuple[Any, ...]:
    episode = service.get("e")
    records = [(r.revision, r.parent, r.call_id, r.name, r.text) for r in episode.history()]
    return episode.state(), records, episode.evaluate().reward


def _run(path: str, kill_after: int | None) -> int:
    """Runs the server, and kills it when it has answered so many calls; the number of calls answered."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    answered = 0
    for _ in process.stdout:
        answered += 1
        if answered == kill_after:
            process.kill()
            break
    process.stdout.close()
    assert process.wait(60) == (0 if answered == CALLS and kill_after is None else -9)
    return answered


@pytest.mark.timeout(240)
def test_kills_of_the_server_lose_nothing_and_double_nothing(catalog: Catalog, tmp_path: Path) -> None:
    outcomes = []
    for name, kills in (("calm", 0), ("killed", KILLS)):
        path = str(tmp_path / name)
        with EpisodeService(catalog, store=path) as service:
            service.start("counter", "three", episode_id="e", seed=3)
        chance = random.Random(5)
        for _ in range(kills):
            _run(path, chance.randint(1, CALLS - 1))
        assert _run(path, None) == CALLS
        with EpisodeService(catalog, store=path) as service:
            outcomes.append(_outcome(service))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][1]) == CALLS
