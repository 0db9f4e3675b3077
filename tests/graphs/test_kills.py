"""A thread whose process is killed at any moment goes on: nothing is lost, nothing happens twice."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.graphs.checkpoints import open_checkpointer

PROGRAM = Path(__file__).parent / "programs" / "threads.py"
STEPS = 20
WAIT_SECONDS = 60.0


class Threads:
    """A process that forks a process for each run of a thread."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready"

    def run(self, order: dict[str, Any], kill_after: float | None = None) -> tuple[int, float]:
        """Run a thread, and kill its process after some seconds; gives how it ended and how long it took."""
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        child = int(self._line())
        begun = time.monotonic()
        ended = threading.Event()

        def kill() -> None:
            if not ended.wait(WAIT_SECONDS if kill_after is None else kill_after):
                os.kill(child, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        code = int(self._line())
        ended.set()
        killer.join()
        return code, time.monotonic() - begun

    def _line(self) -> str:
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(WAIT_SECONDS)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def threads() -> Iterator[Threads]:
    threads = Threads()
    yield threads
    threads.close()


@pytest.fixture(params=["sqlite", "postgres"])
def stores(request, tmp_path) -> dict[str, str]:
    """Where the checkpoints and the episodes are kept."""
    if request.param == "postgres":
        address = request.getfixturevalue("postgres")
        return {"checkpoints": address, "episodes": address}
    return {"checkpoints": str(tmp_path / "threads.sqlite"), "episodes": str(tmp_path / "episodes.sqlite")}


def messages_of(checkpoints: str, thread_id: str) -> list[BaseMessage]:
    with open_checkpointer(checkpoints) as saver:
        found = saver.get_tuple({"configurable": {"thread_id": thread_id}})
        return found.checkpoint["channel_values"]["messages"]


def spoken(messages: list[BaseMessage]) -> list[Any]:
    """The messages without their ids."""
    return [
        (
            one.type,
            one.content,
            [call["args"] for call in one.tool_calls] if isinstance(one, AIMessage) else None,
        )
        for one in messages
    ]


def kill_all_over(threads: Threads, order: dict[str, Any], kills: int, seed: int, verify: Any) -> int:
    """Run threads and kill each several times before it may end; gives the number of kills that hit.

    Most kills come at one of the moments around everything that is written or done, some at any time.
    """
    rng = random.Random(seed)
    whole = {**order, "kill_at": None}
    code, seconds = threads.run({**whole, "thread_id": "whole", **verify.begin("whole")})
    assert code == 0
    verify.end("whole")
    moments = int(Path(order["moments"]).read_text())
    hit, number = 0, 0
    while hit < kills:
        number += 1
        this = {**whole, "thread_id": f"t{number}", **verify.begin(f"t{number}")}
        code = -signal.SIGKILL
        for _ in range(min(5, kills - hit)):
            if rng.random() < 0.8:
                code, _ = threads.run({**this, "kill_at": rng.randrange(moments // 2)})
            else:
                code, _ = threads.run(this, kill_after=rng.uniform(0, seconds))
            assert code in (0, -signal.SIGKILL)
            if code == 0:
                break
            hit += 1
        if code != 0:
            code, _ = threads.run(this)
        assert code == 0
        verify.end(f"t{number}")
        assert number < 10 * kills, "the kills come too late"
    return hit


class SameWorld:
    """Each thread ends with the same messages and the same world, each effect once."""

    def __init__(self, service: EpisodeService, checkpoints: str) -> None:
        self.service = service
        self.checkpoints = checkpoints
        self.expected: list[Any] | None = None

    def begin(self, thread_id: str) -> dict[str, str]:
        return {"episode_id": self.service.start("words", episode_id=thread_id).episode_id}

    def end(self, thread_id: str) -> None:
        said = spoken(messages_of(self.checkpoints, thread_id))
        self.expected = self.expected or said
        assert said == self.expected
        self.service.get(thread_id).close()
        episode = self.service.get(thread_id)
        assert episode.state() == {"words": [f"w{number}" for number in range(STEPS)]}
        assert len(episode.history()) == STEPS


def check_same_world(threads, stores, words_folder, catalog, kills: int) -> None:
    order = {**stores, "folder": str(words_folder), "server": None, "steps": STEPS}
    order["moments"] = str(words_folder / "moments")
    with EpisodeService(catalog, store=stores["episodes"]) as service:
        hit = kill_all_over(threads, order, kills, seed=7, verify=SameWorld(service, stores["checkpoints"]))
    assert hit == kills


def test_a_killed_thread_ends_like_one_that_was_not(threads, stores, words_folder, catalog):
    check_same_world(threads, stores, words_folder, catalog, kills=15)


@pytest.mark.soak
def test_a_hundred_killed_threads_end_like_one_that_was_not(threads, stores, words_folder, catalog):
    check_same_world(threads, stores, words_folder, catalog, kills=100)


class NothingTwice:
    """On a server that cannot go back no call is made twice; one that may have been made is told of."""

    def __init__(self, journal: Any, checkpoints: str) -> None:
        self.journal = journal
        self.checkpoints = checkpoints

    def begin(self, thread_id: str) -> dict[str, str]:
        return {"episode_id": ""}

    def end(self, thread_id: str) -> None:
        made = Counter(call["meta"]["envscaler/call_id"] for call in self.journal.calls("add"))
        assert set(made.values()) <= {1}
        results = [one for one in messages_of(self.checkpoints, thread_id) if isinstance(one, ToolMessage)]
        assert len(results) == STEPS
        for result in results:
            if result.status == "error":
                assert "may have taken effect already" in result.content
            else:
                assert made[result.tool_call_id] == 1


def test_a_killed_thread_repeats_nothing_on_a_server_that_cannot_go_back(
    threads, tmp_path, http_workshop, journal
):
    _, url = http_workshop("--stateless")
    checkpoints = str(tmp_path / "threads.sqlite")
    order = {"checkpoints": checkpoints, "episodes": "", "folder": "", "server": url, "steps": STEPS}
    order["moments"] = str(tmp_path / "moments")
    assert kill_all_over(threads, order, 15, seed=11, verify=NothingTwice(journal, checkpoints)) == 15
