"""What is kept of episodes: every call with its result, and every state, in a database.

A call is committed by compare-and-set on the episode's newest revision: what a crashed or a slower process did
not commit has not happened. Revisions form a tree; a state is stored once, by the revision that made it.

    documents   an environment's or a scenario's record, by hash: an episode keeps the version it began with
    episodes    one row each: where its newest revision is, and what it was forked from
    calls       one row a revision but 0: parent, identity, arguments, result, the revision whose state it has
    states      one row a changed state: opaque bytes, read back by sandboxed processes only

A fork copies nothing: it reads its origin's revisions up to where it began. So a deleted episode's rows stay as
long as a fork needs them.
"""

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from langchain_envscaler.errors import NotFoundError, UsageError

__all__ = ["CallRow", "EpisodeRow", "SqlStore", "Store", "open_store"]

SCHEMA_VERSION = 1

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (hash TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS episodes (
    episode_id TEXT PRIMARY KEY,
    env_id TEXT NOT NULL,
    task_id TEXT,
    spec TEXT NOT NULL,
    scenario TEXT,
    seed TEXT,
    principal TEXT,
    head INTEGER NOT NULL,
    next_revision INTEGER NOT NULL,
    origin TEXT,
    lineage TEXT NOT NULL,
    created_at {real} NOT NULL,
    used_at {real} NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS episodes_by_origin ON episodes (origin);
CREATE INDEX IF NOT EXISTS episodes_by_time ON episodes (created_at, episode_id);
CREATE TABLE IF NOT EXISTS calls (
    episode_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    base INTEGER NOT NULL,
    chain_position INTEGER,
    call_id TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    result {bytes} NOT NULL,
    state_revision INTEGER NOT NULL,
    created_at {real} NOT NULL,
    PRIMARY KEY (episode_id, revision)
);
CREATE UNIQUE INDEX IF NOT EXISTS calls_by_identity ON calls (episode_id, call_id, base);
CREATE INDEX IF NOT EXISTS calls_by_base ON calls (episode_id, base);
CREATE TABLE IF NOT EXISTS states (
    episode_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    state {bytes} NOT NULL,
    PRIMARY KEY (episode_id, revision)
);
"""

_EPISODE_COLUMNS = (
    "episode_id, env_id, task_id, spec, scenario, seed, principal, head, next_revision, origin, lineage, "
    "created_at, used_at"
)
_CALL_COLUMNS = (
    "episode_id, revision, parent, depth, base, chain_position, call_id, name, arguments, result, "
    "state_revision, created_at"
)


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
    head: int
    next_revision: int
    origin: str | None
    """The episode it was forked from."""
    lineage: tuple[tuple[str, int], ...]
    """Whose rows its revisions are, newest first: (episode, that episode's first own revision)."""
    created_at: float
    used_at: float

    def owner(self, revision: int) -> str:
        """The episode under whose id a revision's rows are stored."""
        return next(owner for owner, first in self.lineage if revision >= first)


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call as it is stored, one revision of an episode."""

    episode_id: str
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


class Store(ABC):
    """Where episodes are kept. Safe for use by several threads."""

    @abstractmethod
    def put_document(self, record: dict[str, Any]) -> str:
        """Keep a record; gives its hash."""

    @abstractmethod
    def document(self, key: str) -> dict[str, Any]:
        """A record by its hash."""

    @abstractmethod
    def create(self, episode: EpisodeRow, state: bytes | None) -> None:
        """Begin an episode, with the state of its revision 0; a fork has none of its own.

        Raises:
            UsageError: There is, or was, an episode of this id.
        """

    @abstractmethod
    def episode(self, episode_id: str) -> EpisodeRow:
        """An episode.

        Raises:
            NotFoundError: There is none, or it was deleted.
        """

    @abstractmethod
    def episodes(
        self, *, principal: str | None = None, after: tuple[float, str] | None = None, limit: int = 100
    ) -> list[EpisodeRow]:
        """Episodes, the oldest first, from behind (`created_at`, `episode_id`) on."""

    @abstractmethod
    def commit(self, episode: EpisodeRow, call: CallRow, state: bytes | None) -> bool:
        """Record a call and make it the newest revision, if the episode is still as it was read.

        Returns:
            False if it is not: then nothing was recorded.
        """

    @abstractmethod
    def move_head(self, episode: EpisodeRow, revision: int) -> bool:
        """Make another revision the newest one, if the episode is still as it was read."""

    @abstractmethod
    def call(self, episode: EpisodeRow, revision: int) -> CallRow | None:
        """The call that made a revision."""

    @abstractmethod
    def calls_with_id(self, episode: EpisodeRow, call_id: str) -> list[CallRow]:
        """The calls of an id, on every branch."""

    @abstractmethod
    def calls_at_base(self, episode: EpisodeRow, base: int) -> list[CallRow]:
        """The calls that named a revision, in the order in which they were made."""

    @abstractmethod
    def path(self, episode: EpisodeRow, revision: int) -> list[CallRow]:
        """The calls from the start to a revision."""

    @abstractmethod
    def state(self, episode: EpisodeRow, state_revision: int) -> bytes:
        """A stored state."""

    @abstractmethod
    def delete(self, episode_id: str) -> None:
        """Delete an episode; its rows go when no fork needs them."""

    @abstractmethod
    def expired(self, used_before: float, limit: int = 100) -> list[str]:
        """The ids of episodes last used before a time (seconds since 1970)."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""


class SqlStore(Store):
    """The store in SQL that SQLite and PostgreSQL share."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager["Cursor"]:
        """A cursor in a transaction of its own, committed unless an error leaves it."""

    @property
    @abstractmethod
    def _conflicts(self) -> tuple[type[Exception], ...]:
        """What the driver raises when a row of the same key is there, or a transaction lost a race."""

    def put_document(self, record: dict[str, Any]) -> str:
        body = json.dumps(record, sort_keys=True)
        key = hashlib.sha256(body.encode()).hexdigest()[:32]
        with self._transaction() as cursor:
            cursor.execute(
                "INSERT INTO documents (hash, body) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING", (key, body)
            )
        return key

    def document(self, key: str) -> dict[str, Any]:
        with self._transaction() as cursor:
            cursor.execute("SELECT body FROM documents WHERE hash = ?", (key,))
            record: dict[str, Any] = json.loads(cursor.fetchone()[0])
            return record

    def create(self, episode: EpisodeRow, state: bytes | None) -> None:
        try:
            with self._transaction() as cursor:
                cursor.execute(
                    f"INSERT INTO episodes ({_EPISODE_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    _episode_values(episode),
                )
                if state is not None:
                    cursor.execute(_INSERT_STATE, (episode.episode_id, 0, state))
        except self._conflicts:
            raise UsageError(
                f"expected a new episode id, found {episode.episode_id!r} in the store already; choose another"
            ) from None

    def episode(self, episode_id: str) -> EpisodeRow:
        with self._transaction() as cursor:
            cursor.execute(
                f"SELECT {_EPISODE_COLUMNS} FROM episodes WHERE episode_id = ? AND deleted = 0", (episode_id,)
            )
            row = cursor.fetchone()
        if row is None:
            raise NotFoundError(
                f"expected the id of a kept episode, found {episode_id!r}; it was deleted, has expired or never was"
            )
        return _episode(row)

    def episodes(
        self, *, principal: str | None = None, after: tuple[float, str] | None = None, limit: int = 100
    ) -> list[EpisodeRow]:
        conditions, values = ["deleted = 0"], list[Any]()
        if principal is not None:
            conditions.append("principal = ?")
            values.append(principal)
        if after is not None:
            conditions.append("(created_at, episode_id) > (?, ?)")
            values += after
        with self._transaction() as cursor:
            cursor.execute(
                f"SELECT {_EPISODE_COLUMNS} FROM episodes WHERE {' AND '.join(conditions)} "
                "ORDER BY created_at, episode_id LIMIT ?",
                (*values, limit),
            )
            return [_episode(row) for row in cursor.fetchall()]

    def commit(self, episode: EpisodeRow, call: CallRow, state: bytes | None) -> bool:
        try:
            with self._transaction() as cursor:
                cursor.execute(
                    "UPDATE episodes SET head = ?, next_revision = ?, used_at = ? "
                    "WHERE episode_id = ? AND head = ? AND next_revision = ? AND deleted = 0",
                    (call.revision, call.revision + 1, call.created_at)
                    + (episode.episode_id, episode.head, episode.next_revision),
                )
                if cursor.rowcount != 1:
                    return False
                cursor.execute(_INSERT_CALL, _call_values(call))
                if state is not None:
                    cursor.execute(_INSERT_STATE, (call.episode_id, call.revision, state))
        except self._conflicts:
            return False
        return True

    def move_head(self, episode: EpisodeRow, revision: int) -> bool:
        with self._transaction() as cursor:
            cursor.execute(
                "UPDATE episodes SET head = ?, used_at = ? "
                "WHERE episode_id = ? AND head = ? AND next_revision = ? AND deleted = 0",
                (revision, time.time(), episode.episode_id, episode.head, episode.next_revision),
            )
            return cursor.rowcount == 1

    def call(self, episode: EpisodeRow, revision: int) -> CallRow | None:
        rows = self._calls("episode_id = ? AND revision = ?", (episode.owner(revision), revision))
        return rows[0] if rows else None

    def calls_with_id(self, episode: EpisodeRow, call_id: str) -> list[CallRow]:
        return self._calls_of_lineage(episode, "call_id = ?", call_id)

    def calls_at_base(self, episode: EpisodeRow, base: int) -> list[CallRow]:
        return self._calls_of_lineage(episode, "base = ?", base)

    def path(self, episode: EpisodeRow, revision: int) -> list[CallRow]:
        rows = {row.revision: row for row in self._calls_of_lineage(episode, "revision <= ?", revision)}
        path = []
        while revision > 0:
            path.append(rows[revision])
            revision = rows[revision].parent
        return path[::-1]

    def _calls_of_lineage(self, episode: EpisodeRow, condition: str, value: Any) -> list[CallRow]:
        """The calls that an episode sees: its own, and its origins' up to where it was forked."""
        rows, below = list[CallRow](), episode.next_revision
        for owner, first in episode.lineage:
            rows += self._calls(
                f"episode_id = ? AND {condition} AND revision >= ? AND revision < ?",
                (owner, value, first, below),
            )
            below = first
        return sorted(rows, key=lambda row: row.revision)

    def _calls(self, condition: str, values: Sequence[Any]) -> list[CallRow]:
        with self._transaction() as cursor:
            cursor.execute(f"SELECT {_CALL_COLUMNS} FROM calls WHERE {condition} ORDER BY revision", values)
            return [CallRow(*row[:9], bytes(row[9]), *row[10:]) for row in cursor.fetchall()]

    def state(self, episode: EpisodeRow, state_revision: int) -> bytes:
        with self._transaction() as cursor:
            cursor.execute(
                "SELECT state FROM states WHERE episode_id = ? AND revision = ?",
                (episode.owner(state_revision), state_revision),
            )
            return bytes(cursor.fetchone()[0])

    def delete(self, episode_id: str) -> None:
        with self._transaction() as cursor:
            cursor.execute("UPDATE episodes SET deleted = 1 WHERE episode_id = ?", (episode_id,))
            gone: str | None = episode_id
            while gone is not None:
                gone = _collect(cursor, gone)

    def expired(self, used_before: float, limit: int = 100) -> list[str]:
        with self._transaction() as cursor:
            cursor.execute(
                "SELECT episode_id FROM episodes WHERE used_at < ? AND deleted = 0 ORDER BY used_at LIMIT ?",
                (used_before, limit),
            )
            return [row[0] for row in cursor.fetchall()]


class Cursor(ABC):
    """The part of a database cursor that the store uses. Parameters are written as question marks."""

    rowcount: int

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any: ...

    @abstractmethod
    def fetchone(self) -> Any: ...

    @abstractmethod
    def fetchall(self) -> Iterable[Any]: ...


_INSERT_STATE = "INSERT INTO states (episode_id, revision, state) VALUES (?, ?, ?)"
_INSERT_CALL = f"INSERT INTO calls ({_CALL_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"


def _collect(cursor: Cursor, episode_id: str) -> str | None:
    """Remove a deleted episode's rows if no fork needs them; gives its origin, which may be free then too."""
    cursor.execute(
        "SELECT origin, (SELECT COUNT(*) FROM episodes AS fork WHERE fork.origin = episodes.episode_id) "
        "FROM episodes WHERE episode_id = ? AND deleted = 1",
        (episode_id,),
    )
    row = cursor.fetchone()
    if row is None or row[1] > 0:
        return None
    for table in ("calls", "states", "episodes"):
        cursor.execute(f"DELETE FROM {table} WHERE episode_id = ?", (episode_id,))
    origin: str | None = row[0]
    return origin


def _episode(row: Sequence[Any]) -> EpisodeRow:
    values = list(row)
    values[5] = None if values[5] is None else int(values[5])
    values[10] = tuple((owner, first) for owner, first in json.loads(values[10]))
    return EpisodeRow(*values)


def _episode_values(episode: EpisodeRow) -> tuple[Any, ...]:
    seed = None if episode.seed is None else str(episode.seed)
    return (
        episode.episode_id,
        episode.env_id,
        episode.task_id,
        episode.spec,
        episode.scenario,
        seed,
        episode.principal,
        episode.head,
        episode.next_revision,
        episode.origin,
        json.dumps(episode.lineage),
        episode.created_at,
        episode.used_at,
    )


def _call_values(call: CallRow) -> tuple[Any, ...]:
    return (
        call.episode_id,
        call.revision,
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


def advanced(episode: EpisodeRow, call: CallRow) -> EpisodeRow:
    """An episode's row as it is after a call was committed."""
    return replace(episode, head=call.revision, next_revision=call.revision + 1, used_at=call.created_at)


def open_store(target: str | None) -> Store:
    """A store by its address: a path or `sqlite:///PATH` (created if need be), ":memory:", `postgresql://...`.

    Raises:
        DataError: A file that is not a store, or one of another version.
        UsageError: The address's kind is not known, or its driver is not installed.
    """
    if target is not None and target.startswith(("postgresql://", "postgres://")):
        from langchain_envscaler.environments.store_postgres import PostgresStore

        return PostgresStore(target)
    from langchain_envscaler.environments.store_sqlite import SqliteStore

    return SqliteStore(target or ":memory:")
