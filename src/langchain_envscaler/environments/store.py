"""What is kept of episodes: every call with its result, and every state, in a database.

A call is committed by compare-and-set on the episode's newest revision: what a crashed or a slower process
did not commit has not happened. Revisions form a tree; a state is stored once, by the revision that made it.

    documents   an environment's or a scenario's record, by hash: an episode keeps the version it began with
    episodes    one row each: where its newest revision is, and what it was forked from
    calls       one row a revision but 0: parent, identity, arguments, result, the revision whose state it has
    states      one row a changed state: opaque bytes, read back by sandboxed processes only

A call's and a state's key is a number: the episode's in the upper, the revision in the lower 32 bits, so that
an episode's rows lie together in one tree. A fork copies nothing: it reads its origin's revisions up to where
it began. So a deleted episode's rows stay as long as a fork needs them.
"""

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from langchain_envscaler.errors import InfrastructureError, NotFoundError, UsageError

__all__ = ["SCHEMA", "SCHEMA_VERSION", "CallRow", "Cursor", "EpisodeRow", "Store", "advanced", "call_values"]

SCHEMA_VERSION = 1

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (hash TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS episodes (
    number {serial},
    episode_id TEXT NOT NULL UNIQUE,
    env_id TEXT NOT NULL,
    task_id TEXT,
    spec TEXT NOT NULL,
    scenario TEXT,
    seed TEXT,
    principal TEXT,
    head BIGINT NOT NULL,
    next_revision BIGINT NOT NULL,
    first_revision BIGINT NOT NULL,
    origin BIGINT,
    ancestors TEXT NOT NULL,
    created_at {real} NOT NULL,
    used_at {real} NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS episodes_by_origin ON episodes (origin);
CREATE TABLE IF NOT EXISTS calls (
    key {key},
    episode BIGINT NOT NULL,
    parent BIGINT NOT NULL,
    depth BIGINT NOT NULL,
    base BIGINT NOT NULL,
    chain_position BIGINT,
    call_id TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    result {bytes} NOT NULL,
    state_revision BIGINT NOT NULL,
    created_at {real} NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS calls_by_identity ON calls (episode, call_id, base);
CREATE TABLE IF NOT EXISTS states (key {key}, state {bytes} NOT NULL);
"""

T = TypeVar("T")

_REVISION_BITS = 32
_REVISION_MASK = (1 << _REVISION_BITS) - 1

_EPISODE_COLUMNS = (
    "number, episode_id, env_id, task_id, spec, scenario, seed, principal, head, next_revision, "
    "first_revision, origin, ancestors, created_at, used_at"
)
_CALL_COLUMNS = (
    "key, parent, depth, base, chain_position, call_id, name, arguments, result, state_revision, created_at"
)
_INSERT_EPISODE = (
    f"INSERT INTO episodes ({_EPISODE_COLUMNS.removeprefix('number, ')}) "
    "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) RETURNING number"
)
_SELECT_EPISODE = f"SELECT {_EPISODE_COLUMNS} FROM episodes WHERE episode_id = ? AND deleted = 0"
_ADVANCE = (
    "UPDATE episodes SET head = ?, next_revision = ?, used_at = ? "
    "WHERE number = ? AND head = ? AND next_revision = ? AND deleted = 0"
)
_INSERT_CALL = (
    "INSERT INTO calls (key, episode, parent, depth, base, chain_position, call_id, name, arguments, result, "
    "state_revision, created_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
)
_INSERT_DOCUMENT = "INSERT INTO documents (hash, body) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
_INSERT_STATE = "INSERT INTO states (key, state) VALUES (?, ?)"


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode as it is stored."""

    episode_id: str
    env_id: str
    task_id: str | None
    spec: str
    """Hash of the environment's record."""
    scenario: str | None
    """Hash of the scenario's record."""
    seed: int | None
    principal: str | None
    created_at: float
    """Seconds since 1970."""
    used_at: float
    head: int = 0
    next_revision: int = 1
    first_revision: int = 0
    """Revisions below it are its ancestors'."""
    ancestors: tuple[tuple[int, int], ...] = ()
    """What it was forked from, the nearest first: (number, first revision of its own)."""
    number: int = 0
    """The store's own number for it, in the order in which episodes were made; 0 before it is stored."""

    @property
    def lineage(self) -> tuple[tuple[int, int], ...]:
        """Whose rows its revisions are, itself first: (number, first revision of its own)."""
        return ((self.number, self.first_revision), *self.ancestors)

    def key(self, revision: int) -> int:
        """The key of a revision's rows, which may be an ancestor's."""
        owner = next(number for number, first in self.lineage if revision >= first)
        return _key(owner, revision)


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call as it is stored, one revision of an episode."""

    revision: int
    parent: int
    depth: int
    base: int
    """The revision that the call named; its parent, but for calls of one message that follow each other."""
    position: int | None
    call_id: str
    name: str
    arguments: str
    """JSON."""
    result: bytes
    """JSON: `text`, `data`, `is_error`."""
    state_revision: int
    """The revision whose state is also this one's."""
    created_at: float


class Cursor(Protocol):
    """The part of a database cursor that the store uses. Parameters are written as question marks."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Store(ABC):
    """Where episodes are kept. Safe for use by several threads.

    What a database that fails raises is an InfrastructureError, in every method.
    """

    @abstractmethod
    def _write(self, work: Callable[[Cursor], T]) -> T:
        """Do work in a transaction of its own, committed unless an error leaves it.

        Work may be done again where the answer to a commit was lost, so each piece is one that can be.
        """

    @abstractmethod
    def _read(self, work: Callable[[Cursor], T]) -> T:
        """Do work that changes nothing, with a cursor for one query."""

    @property
    @abstractmethod
    def _conflicts(self) -> tuple[type[Exception], ...]:
        """What the driver raises when a row of the same key is there, or a transaction lost a race."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        def select(cursor: Cursor) -> list[Any]:
            cursor.execute(statement, values)
            return cursor.fetchall()

        return self._read(select)

    # ------------------------------------------------------------------ records

    def put_document(self, record: dict[str, Any]) -> str:
        """Keep a record; gives its hash."""
        body = json.dumps(record, sort_keys=True)
        key = hashlib.sha256(body.encode()).hexdigest()[:32]
        self._write(lambda cursor: cursor.execute(_INSERT_DOCUMENT, (key, body)))
        return key

    def document(self, key: str) -> dict[str, Any]:
        """A record by its hash."""
        rows = self._rows("SELECT body FROM documents WHERE hash = ?", (key,))
        record: dict[str, Any] = json.loads(_one(rows, f"record {key}"))
        return record

    # ------------------------------------------------------------------ episodes

    def create(self, episode: EpisodeRow, state: bytes | None) -> EpisodeRow:
        """Begin an episode, with the state of its revision 0; a fork has none of its own.

        Raises:
            UsageError: There is, or was, an episode of this id.
        """

        def insert(cursor: Cursor) -> int:
            cursor.execute(_INSERT_EPISODE, _episode_values(episode))
            number: int = cursor.fetchone()[0]
            if state is not None:
                cursor.execute(_INSERT_STATE, (_key(number, 0), state))
            return number

        try:
            return replace(episode, number=self._write(insert))
        except self._conflicts:
            there = self._find(episode.episode_id)
            # Where the answer to a commit was lost, what is there is what was to be made.
            if there is not None and replace(there, number=0) == episode:
                return there
            raise UsageError(
                f"expected a new episode id, found {episode.episode_id!r} in use; choose another"
            ) from None

    def episode(self, episode_id: str) -> EpisodeRow:
        """An episode.

        Raises:
            NotFoundError: There is none, or it was deleted.
        """
        row = self._find(episode_id)
        if row is None:
            raise NotFoundError(
                f"expected the id of a kept episode, found {episode_id!r}; it never was, or was deleted"
            )
        return row

    def _find(self, episode_id: str) -> EpisodeRow | None:
        rows = self._rows(_SELECT_EPISODE, (episode_id,))
        return _episode(rows[0]) if rows else None

    def episodes(self, *, principal: str | None = None, after: int = 0, limit: int = 100) -> list[EpisodeRow]:
        """Episodes in the order in which they were made, from behind that number on."""
        condition, values = _of_principal(principal)
        statement = (
            f"SELECT {_EPISODE_COLUMNS} FROM episodes WHERE number > ? AND deleted = 0{condition} "
            "ORDER BY number LIMIT ?"
        )
        return [_episode(row) for row in self._rows(statement, (after, *values, limit))]

    def count(self, *, principal: str | None = None) -> int:
        """How many episodes there are."""
        condition, values = _of_principal(principal)
        return int(self._rows(f"SELECT COUNT(*) FROM episodes WHERE deleted = 0{condition}", values)[0][0])

    def delete(self, episode_id: str) -> None:
        """Delete an episode; its rows go when no fork needs them."""

        def remove(cursor: Cursor) -> None:
            cursor.execute(
                "UPDATE episodes SET deleted = 1 WHERE episode_id = ? RETURNING number", (episode_id,)
            )
            row = cursor.fetchone()
            number: int | None = row[0] if row is not None else None
            while number is not None:
                number = _collect(cursor, number)

        self._write(remove)

    def expired(self, used_before: float, limit: int = 100) -> list[str]:
        """The ids of episodes last used before a time (seconds since 1970)."""
        statement = (
            "SELECT episode_id FROM episodes WHERE used_at < ? AND deleted = 0 ORDER BY used_at LIMIT ?"
        )
        return [row[0] for row in self._rows(statement, (used_before, limit))]

    # ------------------------------------------------------------------ calls

    def commit(self, episode: EpisodeRow, call: CallRow, state: bytes | None) -> EpisodeRow | None:
        """Record a call and make it the newest revision, if the episode is still as it was read.

        Returns:
            The episode as it is then; None if it was not as read, and nothing was recorded.
        """
        key = _key(episode.number, call.revision)
        advance = (call.revision, call.revision + 1, call.created_at)

        def record(cursor: Cursor) -> bool:
            cursor.execute(_ADVANCE, (*advance, episode.number, episode.head, episode.next_revision))
            if cursor.rowcount != 1:
                return False
            cursor.execute(_INSERT_CALL, (key, episode.number, *call_values(call)))
            if state is not None:
                cursor.execute(_INSERT_STATE, (key, state))
            return True

        try:
            recorded = self._write(record)
        except self._conflicts:
            return None
        return advanced(episode, call) if recorded else None

    def move_head(self, episode: EpisodeRow, revision: int) -> EpisodeRow | None:
        """Make another revision the newest one, if the episode is still as it was read."""
        now = time.time()

        def move(cursor: Cursor) -> bool:
            advance = (revision, episode.next_revision, now)
            cursor.execute(_ADVANCE, (*advance, episode.number, episode.head, episode.next_revision))
            return cursor.rowcount == 1

        return replace(episode, head=revision, used_at=now) if self._write(move) else None

    def call(self, episode: EpisodeRow, revision: int) -> CallRow | None:
        """The call that made a revision."""
        rows = self._calls("key = ?", (episode.key(revision),))
        return rows[0] if rows else None

    def calls_with_id(self, episode: EpisodeRow, call_id: str) -> list[CallRow]:
        """The calls of an id, on every branch, in the order in which they were made."""
        rows = [
            row
            for number, first, below in _spans(episode, 0, episode.next_revision)
            for row in self._calls("episode = ? AND call_id = ?", (number, call_id))
            if first <= row.revision < below
        ]
        return sorted(rows, key=lambda row: row.revision)

    def calls_at_base(self, episode: EpisodeRow, base: int) -> list[CallRow]:
        """The calls that named a revision, in the order in which they were made."""
        return [
            row for row in self._calls_between(episode, base + 1, episode.next_revision) if row.base == base
        ]

    def path(self, episode: EpisodeRow, revision: int) -> list[CallRow]:
        """The calls from the start to a revision."""
        rows = {row.revision: row for row in self._calls_between(episode, 1, revision + 1)}
        path = []
        while revision > 0:
            path.append(rows[revision])
            revision = rows[revision].parent
        return path[::-1]

    def _calls_between(self, episode: EpisodeRow, start: int, stop: int) -> list[CallRow]:
        """The calls of revisions from `start` up to before `stop`, an episode's own and its ancestors'."""
        spans = [
            self._calls("key >= ? AND key < ?", (_key(number, first), _key(number, below)))
            for number, first, below in _spans(episode, start, stop)
        ]
        return [row for rows in reversed(spans) for row in rows]

    def _calls(self, condition: str, values: Sequence[Any]) -> list[CallRow]:
        rows = self._rows(f"SELECT {_CALL_COLUMNS} FROM calls WHERE {condition} ORDER BY key", values)
        return [_call(row) for row in rows]

    def state(self, episode: EpisodeRow, state_revision: int) -> bytes:
        """A stored state."""
        rows = self._rows("SELECT state FROM states WHERE key = ?", (episode.key(state_revision),))
        return bytes(_one(rows, f"state of episode {episode.episode_id!r}"))


def _of_principal(principal: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if principal is None else (" AND principal = ?", (principal,))


def _key(number: int, revision: int) -> int:
    return number << _REVISION_BITS | revision


def _spans(episode: EpisodeRow, start: int, stop: int) -> list[tuple[int, int, int]]:
    """Whose rows revisions are: (number, first revision, revision after the last), the newest first."""
    spans, below = [], stop
    for number, first in episode.lineage:
        lowest = max(first, start)
        if lowest < below:
            spans.append((number, lowest, below))
        below = min(below, first)
    return spans


def _collect(cursor: Cursor, number: int) -> int | None:
    """Remove a deleted episode's rows if no fork needs them; gives its origin, which may be free then too."""
    cursor.execute(
        "SELECT origin, (SELECT COUNT(*) FROM episodes AS fork WHERE fork.origin = episodes.number) "
        "FROM episodes WHERE number = ? AND deleted = 1",
        (number,),
    )
    row = cursor.fetchone()
    if row is None or row[1] > 0:
        return None
    keys = (_key(number, 0), _key(number, _REVISION_MASK))
    cursor.execute("DELETE FROM calls WHERE key >= ? AND key <= ?", keys)
    cursor.execute("DELETE FROM states WHERE key >= ? AND key <= ?", keys)
    cursor.execute("DELETE FROM episodes WHERE number = ?", (number,))
    origin: int | None = row[0]
    return origin


def _one(rows: list[Any], what: str) -> Any:
    if not rows:
        raise InfrastructureError(
            f"expected the {what} in the store, found none; it was deleted, or the store is damaged"
        )
    return rows[0][0]


def advanced(episode: EpisodeRow, call: CallRow) -> EpisodeRow:
    """An episode as it is after a call was recorded."""
    return replace(episode, head=call.revision, next_revision=call.revision + 1, used_at=call.created_at)


def _episode(row: Sequence[Any]) -> EpisodeRow:
    (number, episode_id, env_id, task_id, spec, scenario, seed, principal, head, next_revision) = row[:10]
    first_revision, _, ancestors, created_at, used_at = row[10:]
    return EpisodeRow(
        number=number,
        episode_id=episode_id,
        env_id=env_id,
        task_id=task_id,
        spec=spec,
        scenario=scenario,
        seed=None if seed is None else int(seed),
        principal=principal,
        head=head,
        next_revision=next_revision,
        first_revision=first_revision,
        ancestors=tuple((owner, first) for owner, first in json.loads(ancestors)),
        created_at=created_at,
        used_at=used_at,
    )


def _episode_values(episode: EpisodeRow) -> tuple[Any, ...]:
    return (
        episode.episode_id,
        episode.env_id,
        episode.task_id,
        episode.spec,
        episode.scenario,
        None if episode.seed is None else str(episode.seed),
        episode.principal,
        episode.head,
        episode.next_revision,
        episode.first_revision,
        episode.ancestors[0][0] if episode.ancestors else None,
        json.dumps(episode.ancestors),
        episode.created_at,
        episode.used_at,
    )


def _call(row: Sequence[Any]) -> CallRow:
    key, parent, depth, base, position, call_id, name, arguments, result, state_revision, created_at = row
    return CallRow(
        revision=key & _REVISION_MASK,
        parent=parent,
        depth=depth,
        base=base,
        position=position,
        call_id=call_id,
        name=name,
        arguments=arguments,
        result=bytes(result),
        state_revision=state_revision,
        created_at=created_at,
    )


def call_values(call: CallRow) -> tuple[Any, ...]:
    """A call's values in the order of the columns of `calls`, from `parent` on."""
    return (
        call.parent,
        call.depth,
        call.base,
        call.position,
        call.call_id,
        call.name,
        call.arguments,
        call.result,
        call.state_revision,
        call.created_at,
    )
