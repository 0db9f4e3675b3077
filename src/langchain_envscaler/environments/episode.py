"""An episode: an environment's state over the tool calls of one rollout."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

from langchain_envscaler.environments.arguments import problem_with_call
from langchain_envscaler.environments.journal import Journal, Node, PlannedCall
from langchain_envscaler.environments.metadata import EnvironmentSpec, Scenario
from langchain_envscaler.environments.observation import CallRecord, CheckResult, Evaluation, Observation
from langchain_envscaler.environments.process import EpisodeProcess, Outcome, refused, state_form
from langchain_envscaler.environments.sandbox.child import Child
from langchain_envscaler.environments.store import EpisodeRow
from langchain_envscaler.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from langchain_envscaler.environments.service import EpisodeService

__all__ = ["CallRecord", "CheckResult", "Episode", "Evaluation", "Observation"]

_RUN_ATTEMPTS = 4
_COMMIT_ATTEMPTS = 64
# Other processes' calls are seen by looking.
_CHAIN_POLL_SECONDS = 0.02

T = TypeVar("T")
P = ParamSpec("P")


class Episode:
    """An episode of an environment. Made by a service or a catalog; safe for use by several threads.

    Attributes:
        spec: The environment, as it was when the episode began.
        scenario: The task, if it has one.
    """

    def __init__(
        self, service: "EpisodeService", row: EpisodeRow, spec: EnvironmentSpec, scenario: Scenario | None
    ) -> None:
        self.spec = spec
        self.scenario = scenario
        self._service = service
        self._journal = Journal(service.store, row)
        self._process = EpisodeProcess(service.runtime, spec, is_seeded=row.seed is not None)
        self._lock = threading.RLock()
        self._progress = threading.Condition(self._lock)
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._is_closed = False
        self._used = time.monotonic()

    # ------------------------------------------------------------------ what it is

    @property
    def episode_id(self) -> str:
        """Its id, unique in its store."""
        return self._journal.row.episode_id

    @property
    def number(self) -> int:
        """Its number in the store, in the order in which episodes were made."""
        return self._journal.row.number

    @property
    def principal(self) -> str | None:
        """Whom it belongs to."""
        return self._journal.row.principal

    @property
    def seed(self) -> int | None:
        """What its ids, randomness and clock are derived from, if from anything."""
        return self._journal.row.seed

    @property
    def created_at(self) -> float:
        """When it was started, in seconds since 1970."""
        return self._journal.row.created_at

    @property
    def revision(self) -> int:
        """Its newest revision, the head, as far as this process knows: see `refresh`."""
        return self._journal.row.head

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The environment's tools, as OpenAI function schemas."""
        return self.spec.tools

    @property
    def is_awake(self) -> bool:
        """Whether a process holds its state. If none does, the next call starts one."""
        return self._process.is_awake

    @property
    def idle_seconds(self) -> float:
        """How long it has not been used here."""
        return time.monotonic() - self._used

    # ------------------------------------------------------------------ calls

    def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        call_id: str | None = None,
        revision: int | None = None,
        position: int | None = None,
    ) -> Observation:
        """Call a tool.

        Args:
            name: The tool's name.
            arguments: Its arguments, JSON values.
            call_id: The call's identity; the same one again gives the recorded result. Made up if None.
            revision: The revision to call at (the base); the newest if None. At an older one the episode
                forks, and the new branch is the newest.
            position: The place among the calls of one message, which share their base: the call runs on top
                of those with lower positions, and waits for them for a bounded time.

        Returns:
            What the tool gave. An unknown tool, a missing or unknown argument, a tool that raises, does not
            end or ends its process: these are observations too, with `is_error`.

        Raises:
            UsageError: There is no such revision; the identity was used for another call; arguments that are
                not JSON.
            InfrastructureError: The store or the sandbox failed. Made again with the same `call_id`, the call
                happens once.
        """
        arguments = {} if arguments is None else arguments
        arguments_text = _json_arguments(arguments)
        _check_position(position)
        with self._lock:
            self._use()
            if position:
                self._wait_for_positions_below(position, call_id, revision)
            return self._called(name, arguments, arguments_text, call_id, revision, position)

    def _called(
        self,
        name: str,
        arguments: dict[str, Any],
        arguments_text: str,
        call_id: str | None,
        revision: int | None,
        position: int | None,
    ) -> Observation:
        for _ in range(_COMMIT_ATTEMPTS):
            plan = self._journal.plan(name, arguments_text, call_id, revision, position)
            if isinstance(plan, Observation):
                return plan
            outcome = self._run(plan, arguments)
            recorded = self._record(plan, outcome)
            if recorded is not None:
                return Observation(outcome.text, outcome.data, outcome.is_error, plan.call_id, recorded)
            call_id = plan.call_id  # whatever became of the commit, it is found by its id
        raise InfrastructureError(
            f"expected to record a call of episode {self.episode_id!r}, found other processes faster "
            f"{_COMMIT_ATTEMPTS} times; try again"
        )

    def _run(self, plan: PlannedCall, arguments: dict[str, Any]) -> Outcome:
        problem = problem_with_call(self.spec, plan.name, arguments)
        if problem is not None:
            return refused(problem)
        clock = self._clock(plan.parent.depth + 1)
        for _ in range(_RUN_ATTEMPTS):
            if not self._process.holds(plan.parent.revision):
                self._process.wake(plan.parent.revision, self._journal.state(plan.parent))
                self._service.note_awake(self)
            outcome = self._process.call(plan.name, arguments, clock)
            if outcome is not None:
                self._service.log_output(self, plan.name, outcome.log)
                return outcome
        raise InfrastructureError(
            f"expected the call of {plan.name} to run, found its process killed {_RUN_ATTEMPTS} times; "
            "is the machine out of memory?"
        )

    def _record(self, plan: PlannedCall, outcome: Outcome) -> int | None:
        try:
            revision = self._journal.commit(plan, outcome.result, outcome.state)
        except BaseException:
            self._process.discard()
            raise
        if revision is None:
            self._process.discard()
            return None
        if self._process.is_awake and self._process.revision == plan.parent.revision:
            self._process.moved_on(revision)
        self._progress.notify_all()
        return revision

    def _clock(self, depth: int) -> list[Any] | None:
        return None if self.seed is None else [str(self.seed), depth]

    def _wait_for_positions_below(self, position: int, call_id: str | None, revision: int | None) -> None:
        deadline = time.monotonic() + self._service.limits.chain_seconds
        while self._journal.misses_positions_below(position, call_id, revision):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._progress.wait(min(left, _CHAIN_POLL_SECONDS))  # gives up the lock meanwhile
            self._journal.refresh()

    # ------------------------------------------------------------------ looking

    def refresh(self) -> None:
        """See what other processes did with the episode. Costs one query.

        Calls, and looking at what is newest, do so by themselves; the attribute `revision` does not.

        Raises:
            NotFoundError: It was deleted.
        """
        with self._lock:
            self._use()
            self._journal.refresh()

    def _see(self, row: EpisodeRow) -> None:
        """Take a row that was just read, unless the episode is in use. An older one does no harm."""
        if self._lock.acquire(blocking=False):
            try:
                self._journal.row = row
            finally:
                self._lock.release()

    def _node(self, revision: int | None) -> Node:
        """A revision, the newest in the store if None."""
        if revision is None:
            self._journal.refresh()
        return self._journal.node(revision)

    def state(self, revision: int | None = None) -> dict[str, Any]:
        """The JSON form of the state at a revision (the newest if None).

        `langchain_envscaler.environments.sandbox.json_form` documents the form.

        Raises:
            UsageError: There is no such revision.
            DataError: A part of the state has no JSON form; the message names its path.
        """
        with self._lock:
            self._use()
            node = self._node(revision)
            if self._process.holds(node.revision):
                return self._process.state_form()
            state = self._journal.state(node)
        child = self._service.runtime.resume(self.spec, state)
        try:
            return state_form(child, self._service.limits.start_seconds)
        finally:
            child.close()

    def evaluate(self, revision: int | None = None) -> Evaluation:
        """Run the scenario's checks on the state at a revision (the newest if None).

        Raises:
            UsageError: There is no such revision; the episode has no scenario, or its scenario has no checks.
            InfrastructureError: A check could not be run; that is never a score of 0.
        """
        with self._lock:
            self._use()
            checks = [] if self.scenario is None else self.scenario.checklist_with_func
            if not checks:
                found = "no scenario" if self.scenario is None else f"{self.scenario.task_id!r} without any"
                raise UsageError(f"expected a scenario with checks, found {found}; start one that has checks")
            final = self._journal.state(self._node(revision))
            initial = self._journal.initial_state()
        verdicts = self._service.runtime.check(self.spec, checks, final, initial)
        results = [
            CheckResult(check.check_item, passed, reason)
            for check, (passed, reason) in zip(checks, verdicts, strict=True)
        ]
        reward = round(sum(result.passed for result in results) / len(results), 4)
        return Evaluation(reward, tuple(results))

    def history(self, revision: int | None = None) -> list[CallRecord]:
        """The journal from the start to a revision (the newest if None).

        Raises:
            UsageError: There is no such revision.
        """
        with self._lock:
            self._use()
            return self._journal.history(self._node(revision))

    # ------------------------------------------------------------------ going back and forking

    def snapshot(self) -> str:
        """A name for where the episode is now, for `restore`. Costs one query."""
        with self._lock:
            self.refresh()
            return f"{self.number}@{self.revision}"

    def restore(self, snapshot: str) -> None:
        """Go back (or forth) to where a snapshot of this episode, or of one it was forked from, was taken.

        Nothing is lost: what came after stays in the journal, on a branch of its own. Costs the same at any
        length of the episode.

        Raises:
            UsageError: A snapshot of another episode.
        """
        with self._lock:
            self._use()
            number, _, revision = snapshot.partition("@")
            if not (number.isdecimal() and revision.isdecimal()):
                raise UsageError(f"expected a snapshot that Episode.snapshot() gave, found {snapshot!r}")
            self._journal.refresh()
            if not self._journal.saw(int(number), int(revision)):
                raise UsageError(f"expected a snapshot of episode {self.episode_id!r}, found one of another")
            self._move(int(revision))

    def reset(self) -> None:
        """Go back to the start, as `restore` does."""
        with self._lock:
            self._use()
            self._move(0)

    def _move(self, revision: int) -> None:
        self._journal.move_head(revision)
        self._progress.notify_all()

    def fork(self) -> "Episode":
        """A new episode that goes on from here. No state and no call is copied.

        Raises:
            LimitError: As many episodes are open as may be.
        """
        with self._lock:
            self._use()
            self._journal.refresh()
            row = self._journal.row
        return self._service.fork(row)

    # ------------------------------------------------------------------ memory

    def sleep(self) -> bool:
        """Give up the process; the next call starts another one from the stored state.

        Returns:
            False if the episode is in use just now: then nothing was done.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._process.discard()
        finally:
            self._lock.release()
        self._service.note_asleep(self)
        return True

    def close(self) -> None:
        """Leave memory. The store keeps the episode: `EpisodeService.get` brings it back."""
        with self._lock:
            self._process.discard()
            self._is_closed = True
        self._service.forget(self)

    def _hold(self, child: Child) -> None:
        """Take over the process in which the episode was constructed."""
        self._process.hold(child, 0)
        self._service.note_awake(self)

    def _use(self) -> None:
        if self._is_closed:
            raise UsageError(
                f"expected an open episode, found {self.episode_id!r} closed; get it from its service again"
            )
        self._used = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # ------------------------------------------------------------------ for asyncio

    async def acall(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        call_id: str | None = None,
        revision: int | None = None,
        position: int | None = None,
    ) -> Observation:
        """`call`, without blocking the event loop."""
        arguments = {} if arguments is None else arguments
        arguments_text = _json_arguments(arguments)
        _check_position(position)
        self._use()
        if position:
            await self._await_positions_below(position, call_id, revision)
        return await self._in_thread(
            self._called, name, arguments, arguments_text, call_id, revision, position
        )

    async def _await_positions_below(self, position: int, call_id: str | None, revision: int | None) -> None:
        deadline = time.monotonic() + self._service.limits.chain_seconds
        while await self._in_thread(self._misses_positions_below, position, call_id, revision):
            if time.monotonic() >= deadline:
                return
            await asyncio.sleep(_CHAIN_POLL_SECONDS)

    def _misses_positions_below(self, position: int, call_id: str | None, revision: int | None) -> bool:
        self._journal.refresh()
        return self._journal.misses_positions_below(position, call_id, revision)

    async def arefresh(self) -> None:
        """`refresh`, without blocking the event loop."""
        await self._in_thread(self.refresh)

    async def astate(self, revision: int | None = None) -> dict[str, Any]:
        """`state`, without blocking the event loop."""
        return await self._in_thread(self.state, revision)

    async def aevaluate(self, revision: int | None = None) -> Evaluation:
        """`evaluate`, without blocking the event loop."""
        return await self._in_thread(self.evaluate, revision)

    async def ahistory(self, revision: int | None = None) -> list[CallRecord]:
        """`history`, without blocking the event loop."""
        return await self._in_thread(self.history, revision)

    async def asnapshot(self) -> str:
        """`snapshot`, without blocking the event loop."""
        return await self._in_thread(self.snapshot)

    async def arestore(self, snapshot: str) -> None:
        """`restore`, without blocking the event loop."""
        await self._in_thread(self.restore, snapshot)

    async def areset(self) -> None:
        """`reset`, without blocking the event loop."""
        await self._in_thread(self.reset)

    async def afork(self) -> "Episode":
        """`fork`, without blocking the event loop."""
        return await self._in_thread(self.fork)

    async def aclose(self) -> None:
        """`close`, without blocking the event loop."""
        await self._in_thread(self.close)

    async def _in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in one of the service's threads; an episode takes up one at a time, however many ask."""
        loop = asyncio.get_running_loop()
        turn = self._turns.setdefault(loop, asyncio.Lock())
        async with turn:
            return await loop.run_in_executor(
                self._service.executor, self._locked, partial(function, *args, **kwargs)
            )

    def _locked(self, function: Callable[[], T]) -> T:
        with self._lock:
            return function()


def _json_arguments(arguments: Any) -> str:
    if not isinstance(arguments, dict):
        raise UsageError(f"expected arguments as a dict, found {type(arguments).__name__}")
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"expected arguments of JSON values, found: {error}") from None


def _check_position(position: int | None) -> None:
    if position is not None and (type(position) is not int or position < 0):
        raise UsageError(f"expected a position of 0 or more, or None, found {position!r}")
