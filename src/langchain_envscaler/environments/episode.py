"""An episode: one environment's state over the tool calls of one rollout."""

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from pydantic import JsonValue

from langchain_envscaler.environments.metadata import EnvironmentSpec, Scenario
from langchain_envscaler.environments.sandbox.child import (
    Child,
    ChildEndedError,
    ChildError,
    ChildTimeoutError,
)
from langchain_envscaler.environments.sandbox.host import ZygoteGoneError
from langchain_envscaler.environments.store import CallRow, EpisodeRow, advanced
from langchain_envscaler.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from langchain_envscaler.environments.service import EpisodeService

__all__ = ["CallRecord", "CheckResult", "Episode", "Evaluation", "Observation"]

_ATTEMPTS = 4
_COMMIT_ATTEMPTS = 64
_CHAIN_POLL_SECONDS = 0.05

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool call gave."""

    text: str
    """Python's `str` of what the tool returned, or what was wrong with the call."""
    data: JsonValue
    """The JSON form of what the tool returned; of an error, the text."""
    is_error: bool
    call_id: str
    revision: int
    """The episode's revision after the call."""
    replayed: bool = False
    """Whether the call had been made before, and this is the result recorded then."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check of a scenario found."""

    item: str
    passed: bool
    reason: str | None = None
    """Why it did not pass, where it did anything but return False."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How far a scenario's goals were reached."""

    reward: float
    """The share of checks that returned exactly True, rounded to 4 places."""
    checks: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call in an episode's journal."""

    revision: int
    parent: int
    depth: int
    """Calls from the start to this one, itself included."""
    base: int
    position: int | None
    call_id: str
    name: str
    arguments: dict[str, JsonValue]
    text: str
    data: JsonValue
    is_error: bool
    created_at: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A revision: where it stands in the tree, and whose state it has."""

    revision: int
    depth: int
    state_revision: int


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What running a call gave, not yet committed."""

    result: bytes
    """JSON: `text`, `data`, `is_error`."""
    message: dict[str, Any]
    state: bytes | None
    """None where the call left the state as it was."""


class Episode:
    """An episode of an environment. Made by a service or a catalog; safe for use by several threads."""

    def __init__(
        self, service: "EpisodeService", row: EpisodeRow, spec: EnvironmentSpec, scenario: Scenario | None
    ) -> None:
        self.spec = spec
        self.scenario = scenario
        self._service = service
        self._row = row
        self._lock = threading.RLock()
        self._progress = threading.Condition(self._lock)
        self._head = self._node(row.head)
        self._child: Child | None = None
        self._child_revision = -1
        self._closed = False
        self.used_at = time.monotonic()

    # ------------------------------------------------------------------ what it is

    @property
    def episode_id(self) -> str:
        return self._row.episode_id

    @property
    def principal(self) -> str | None:
        """Whom it belongs to."""
        return self._row.principal

    @property
    def seed(self) -> int | None:
        return self._row.seed

    @property
    def created_at(self) -> float:
        """When it was started, in seconds since 1970."""
        return self._row.created_at

    @property
    def revision(self) -> int:
        """The newest revision, its head."""
        return self._row.head

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The environment's tools, as OpenAI function schemas."""
        return self.spec.tools

    @property
    def is_asleep(self) -> bool:
        """Whether no process holds its state; the next call wakes it."""
        return self._child is None

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

        Raises:
            UsageError: There is no such revision; the identity was used for another call; arguments that are
                not JSON.
            InfrastructureError: The store or the sandbox failed. Nothing was recorded.
        """
        arguments = {} if arguments is None else arguments
        arguments_text = _arguments_text(arguments)
        with self._lock:
            self._use()
            if position:
                self._wait_for_positions_below(position, call_id, revision)
            for _ in range(_COMMIT_ATTEMPTS):
                base = self._row.head if revision is None else self._known(revision)
                if call_id is not None:
                    recorded = self._recorded(call_id, base if revision is not None else None)
                    if recorded is not None:
                        return _replayed(recorded, name, arguments_text)
                parent = self._parent(base, position, call_id)
                outcome = self._run(name, arguments, parent)
                if (
                    row := self._commit(outcome, parent, base, position, call_id, name, arguments_text)
                ) is not None:
                    message = outcome.message
                    return Observation(
                        message["text"], message["data"], message["is_error"], row.call_id, row.revision
                    )
        raise InfrastructureError(
            f"expected to record a call of episode {self.episode_id!r}, found other processes faster "
            f"{_COMMIT_ATTEMPTS} times; try again"
        )

    def _known(self, revision: int) -> int:
        if type(revision) is int and not 0 <= revision < self._row.next_revision:
            self._refresh()
        if type(revision) is not int or not 0 <= revision < self._row.next_revision:
            raise UsageError(
                f"expected a revision from 0 to {self._row.next_revision - 1} of episode {self.episode_id!r}, "
                f"found {revision!r}"
            )
        return revision

    def _recorded(self, call_id: str, base: int | None) -> CallRow | None:
        """The recorded call of an identity; without a base, the newest of that id on the way to the head."""
        rows = self._service.store.calls_with_id(self._row, call_id)
        if base is not None:
            return next((row for row in rows if row.base == base), None)
        if not rows:
            return None
        ancestors = {row.revision for row in self._service.store.path(self._row, self._row.head)}
        return next((row for row in reversed(rows) if row.revision in ancestors), None)

    # ------------------------------------------------------------------ chains

    def _chain(self, base: int) -> list[CallRow]:
        """The newest chain of calls at a base: those since the last one that began a chain there."""
        chain: list[CallRow] = []
        for row in self._service.store.calls_at_base(self._row, base):
            if not row.position:
                chain = []
            chain.append(row)
        return chain

    def _parent(self, base: int, position: int | None, call_id: str | None) -> _Node:
        if not position:
            return self._node(base)
        chain = self._chain(base)
        if any(row.position == position for row in chain):
            chain = []  # another message's chain: this one's begins at the base
        return self._node(chain[-1].revision if chain else base)

    def _wait_for_positions_below(self, position: int, call_id: str | None, revision: int | None) -> None:
        deadline = time.monotonic() + self._service.limits.chain_seconds
        while True:
            base = self._row.head if revision is None else self._known(revision)
            if call_id is not None and self._recorded(call_id, base) is not None:
                return
            there = {row.position or 0 for row in self._chain(base)}
            if position not in there and there.issuperset(range(position)):
                return
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._progress.wait(min(left, _CHAIN_POLL_SECONDS))
            self._refresh()

    # ------------------------------------------------------------------ running

    def _run(self, name: str, arguments: dict[str, Any], parent: _Node) -> _Outcome:
        problem = self._service.problem_with(self.spec, name, arguments)
        if problem is not None:
            return _error_outcome(problem)
        message = {
            "do": "call",
            "name": name,
            "arguments": arguments,
            "max_chars": self._service.limits.max_observation_chars,
            "clock": self._clock(parent.depth + 1),
        }
        for _ in range(_ATTEMPTS):
            try:
                reply = self._awake(parent).request(message, seconds=self._service.limits.call_seconds)
            except ZygoteGoneError:
                self._discard_child()
                continue
            except ChildEndedError as error:
                self._discard_child()
                if error.was_killed:
                    continue  # nothing was recorded, so the call has not happened
                return _error_outcome(f"The call of {name} failed: {error}. Nothing that it did was kept.")
            except ChildTimeoutError:
                self._discard_child()
                seconds = self._service.limits.call_seconds
                return _error_outcome(
                    f"The call of {name} was stopped after {seconds:g} s without an answer. "
                    "Nothing that it did was kept."
                )
            except ChildError as error:
                self._discard_child()
                return _error_outcome(f"The call of {name} failed: {error}. Nothing that it did was kept.")
            return self._outcome(name, reply.message, reply.text, reply.blob)
        raise InfrastructureError(
            f"expected the call of {name} to run, found its process killed {_ATTEMPTS} times; "
            "is the machine out of memory?"
        )

    def _outcome(self, name: str, message: dict[str, Any], text: bytes, state: bytes) -> _Outcome:
        if not message["ok"]:
            self._discard_child()
            return _error_outcome(
                f"The call of {name} left a state that cannot be kept: {message.get('error')}. "
                "Nothing that it did was kept."
            )
        if (
            type(message.get("text")) is not str
            or type(message.get("is_error")) is not bool
            or "data" not in message
        ):
            self._discard_child()
            return _error_outcome(
                f"The call of {name} gave no readable result. Nothing that it did was kept."
            )
        self._service.log_output(self, name, message.get("log"))
        return _Outcome(text, message, state or None)

    def _awake(self, node: _Node) -> Child:
        """A child that holds the state of a revision."""
        child = self._child
        if child is not None and (self._child_revision != node.revision or not child.is_idle):
            self._discard_child()
            child = None
        if child is None:
            state = self._service.store.state(self._row, node.state_revision)
            child = self._service.runtime.resume(self.spec, state)
            self._hold(child, node.revision)
        return child

    def _hold(self, child: Child, revision: int) -> None:
        self._child, self._child_revision = child, revision
        self._service.note_awake(self)

    def _discard_child(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
            self._service.note_asleep(self)

    def _clock(self, depth: int) -> list[str | int] | None:
        return None if self._row.seed is None else [str(self._row.seed), depth]

    # ------------------------------------------------------------------ committing

    def _commit(
        self,
        outcome: _Outcome,
        parent: _Node,
        base: int,
        position: int | None,
        call_id: str | None,
        name: str,
        arguments_text: str,
    ) -> CallRow | None:
        """Record a call; None if another process recorded one meanwhile."""
        revision = self._row.next_revision
        row = CallRow(
            episode_id=self.episode_id,
            revision=revision,
            parent=parent.revision,
            depth=parent.depth + 1,
            base=base,
            position=position,
            call_id=call_id if call_id is not None else secrets.token_hex(12),
            name=name,
            arguments=arguments_text,
            result=outcome.result,
            state_revision=parent.state_revision if outcome.state is None else revision,
            created_at=time.time(),
        )
        try:
            committed = self._service.store.commit(self._row, row, outcome.state)
        except BaseException:
            self._discard_child()
            raise
        if not committed:
            self._discard_child()
            self._refresh()
            return None
        self._row = advanced(self._row, row)
        self._head = _Node(row.revision, row.depth, row.state_revision)
        if self._child is not None and self._child_revision == parent.revision:
            self._child_revision = row.revision
        self._progress.notify_all()
        return row

    def _node(self, revision: int) -> _Node:
        head = getattr(self, "_head", None)
        if head is not None and head.revision == revision:
            return head
        if revision == 0:
            return _Node(0, 0, 0)
        call = self._service.store.call(self._row, revision)
        if call is None:
            raise UsageError(f"expected a revision of episode {self.episode_id!r}, found {revision}")
        return _Node(call.revision, call.depth, call.state_revision)

    def _refresh(self) -> None:
        row = self._service.store.episode(self.episode_id)
        if row.head != self._row.head:
            self._row = row
            self._head = self._node(row.head)
        self._row = row

    # ------------------------------------------------------------------ looking

    def state(self, revision: int | None = None) -> dict[str, Any]:
        """The JSON form of the state at a revision (the newest if None); see `sandbox.json_form` for its rules.

        Raises:
            UsageError: There is no such revision.
            DataError: A part of the state has no JSON form; the message names its path.
        """
        with self._lock:
            self._use()
            node = self._head if revision is None else self._node(self._known(revision))
            return self._service.state_form(self.spec, self._state_bytes(node))

    def evaluate(self, revision: int | None = None) -> Evaluation:
        """Run the scenario's checks on the state at a revision (the newest if None).

        Raises:
            UsageError: The episode has no scenario, or its scenario has no checks.
            InfrastructureError: A check could not be run; that is never a score of 0.
        """
        with self._lock:
            self._use()
            if self.scenario is None or not self.scenario.checklist_with_func:
                what = (
                    "an episode without one"
                    if self.scenario is None
                    else f"{self.scenario.task_id!r}, which has none"
                )
                raise UsageError(
                    f"expected a scenario with checks, found {what}; start a scenario that has checks"
                )
            node = self._head if revision is None else self._node(self._known(revision))
            final, initial = self._state_bytes(node), self._state_bytes(_Node(0, 0, 0))
            checks = self.scenario.checklist_with_func
        results = []
        for check in checks:
            passed, reason = self._service.runtime.check(self.spec, check, final, initial)
            results.append(CheckResult(check.check_item, passed, reason))
        reward = round(sum(result.passed for result in results) / len(results), 4)
        return Evaluation(reward, tuple(results))

    def history(self, revision: int | None = None) -> list[CallRecord]:
        """The journal from the start to a revision (the newest if None)."""
        with self._lock:
            self._use()
            at = self._row.head if revision is None else self._known(revision)
            return [_record(row) for row in self._service.store.path(self._row, at)]

    def _state_bytes(self, node: _Node) -> bytes:
        return self._service.store.state(self._row, node.state_revision)

    # ------------------------------------------------------------------ going back and forking

    def snapshot(self) -> str:
        """A name for where the episode is now, for `restore`. Costs nothing."""
        return f"{self.episode_id}@{self.revision}"

    def restore(self, snapshot: str) -> None:
        """Go back (or forth) to where a snapshot of this episode, or of the one it was forked from, was taken.

        Raises:
            UsageError: A snapshot of another episode.
        """
        with self._lock:
            self._use()
            owner, _, revision = snapshot.rpartition("@")
            if not revision.isdecimal() or not self._saw(owner, int(revision)):
                raise UsageError(
                    f"expected a snapshot of episode {self.episode_id!r}, found {snapshot!r}; "
                    "take one with Episode.snapshot()"
                )
            self._move_head(int(revision))

    def reset(self) -> None:
        """Go back to the start."""
        with self._lock:
            self._use()
            self._move_head(0)

    def _saw(self, owner: str, revision: int) -> bool:
        if owner == self.episode_id:
            return 0 <= revision < self._row.next_revision
        return any(owner == other for other, _ in self._row.lineage) and revision < self._row.lineage[0][1]

    def _move_head(self, revision: int) -> None:
        for _ in range(_COMMIT_ATTEMPTS):
            if self._service.store.move_head(self._row, revision):
                self._row = replace(self._row, head=revision)
                self._head = self._node(revision)
                self._progress.notify_all()
                return
            self._refresh()
        raise InfrastructureError(
            f"expected to move episode {self.episode_id!r}, found other processes faster"
        )

    def fork(self) -> "Episode":
        """A new episode that goes on from here. Costs nothing: no state and no call is copied."""
        with self._lock:
            self._use()
            return self._service.forked(self._row)

    # ------------------------------------------------------------------ memory

    def sleep(self) -> bool:
        """Give up the process; the next call starts another one from the stored state.

        Returns:
            False if a call is under way: then nothing was done.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._discard_child()
            return True
        finally:
            self._lock.release()

    def close(self) -> None:
        """Leave memory. The store keeps the episode: `EpisodeService.get` brings it back."""
        with self._lock:
            self._discard_child()
            self._closed = True
        self._service.forget(self)

    def _use(self) -> None:
        if self._closed:
            raise UsageError(
                f"expected an open episode, found {self.episode_id!r} closed; get it from its service again"
            )
        self.used_at = time.monotonic()

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
        return await self._in_thread(
            self.call, name, arguments, call_id=call_id, revision=revision, position=position
        )

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
        """`snapshot`."""
        return self.snapshot()

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
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._service.executor, partial(function, *args, **kwargs))


def _arguments_text(arguments: Any) -> str:
    if not isinstance(arguments, dict):
        raise UsageError(f"expected arguments as a dict, found {type(arguments).__name__}")
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"expected arguments of JSON values, found: {error}") from None


def _error_outcome(text: str) -> _Outcome:
    message = {"text": text, "data": text, "is_error": True}
    return _Outcome(json.dumps(message).encode(), message, None)


def _replayed(row: CallRow, name: str, arguments_text: str) -> Observation:
    if row.name != name or json.loads(row.arguments) != json.loads(arguments_text):
        raise UsageError(
            f"expected the call {row.call_id!r} to be of {row.name} with the arguments recorded at revision "
            f"{row.revision}, found another name or other arguments; give a new call an id of its own"
        )
    record = _record(row)
    return Observation(record.text, record.data, record.is_error, row.call_id, row.revision, replayed=True)


def _record(row: CallRow) -> CallRecord:
    result = json.loads(row.result.decode("utf-8", "surrogatepass"))
    return CallRecord(
        revision=row.revision,
        parent=row.parent,
        depth=row.depth,
        base=row.base,
        position=row.position,
        call_id=row.call_id,
        name=row.name,
        arguments=json.loads(row.arguments),
        text=result["text"],
        data=result["data"],
        is_error=result["is_error"],
        created_at=row.created_at,
    )
