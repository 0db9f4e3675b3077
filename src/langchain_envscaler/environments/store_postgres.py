"""Episodes in PostgreSQL, for several server processes.

Needs the extra `postgres` (psycopg). A commit survives what the database's `synchronous_commit` says: by
default power loss too. A database that restarts is waited for, for a bounded time.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_envscaler.environments.store import (
    SCHEMA,
    SCHEMA_VERSION,
    CallRow,
    Cursor,
    EpisodeRow,
    Store,
    advanced,
    call_values,
)
from langchain_envscaler.errors import DataError, InfrastructureError, UsageError

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresStore"]

T = TypeVar("T")

_TYPES = {
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "key": "BIGINT PRIMARY KEY",
    "real": "DOUBLE PRECISION",
    "bytes": "BYTEA",
}
_POOL_SIZE = 16
_CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 20.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 1.0
_SCHEMA_LOCK = 0x656E7673  # any number by which nothing else of the database locks

# One statement, so that a call costs one round trip.
_RECORD = """
WITH moved AS (
    UPDATE episodes SET head = %(revision)s, next_revision = %(revision)s + 1, used_at = %(created_at)s
    WHERE number = %(number)s AND head = %(head)s AND next_revision = %(next_revision)s AND deleted = 0
    RETURNING number
), recorded AS (
    INSERT INTO calls SELECT %(key)s, number, %(parent)s, %(depth)s, %(base)s, %(position)s, %(call_id)s,
        %(name)s, %(arguments)s, %(result)s, %(state_revision)s, %(created_at)s FROM moved
), kept AS (
    INSERT INTO states SELECT %(key)s, %(state)s FROM moved WHERE %(state)s IS NOT NULL
)
SELECT COUNT(*) FROM moved
"""
_RECORD_TYPES = {
    "revision": "bigint",
    "key": "bigint",
    "parent": "bigint",
    "depth": "bigint",
    "base": "bigint",
    "position": "bigint",
    "call_id": "text",
    "name": "text",
    "arguments": "text",
    "result": "bytea",
    "state_revision": "bigint",
    "created_at": "double precision",
    "state": "bytea",
}


class PostgresStore(Store):
    """A store in a PostgreSQL database, which any number of processes may use."""

    def __init__(self, address: str) -> None:
        """
        Args:
            address: A connection string, `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.

        Raises:
            UsageError: The driver is not installed.
            DataError: The database holds a store of another version.
            InfrastructureError: The database cannot be reached.
        """
        try:
            import psycopg
            import psycopg_pool
        except ImportError:
            raise UsageError(
                "expected psycopg for a PostgreSQL store, found it not installed; "
                "run: pip install 'langchain-envscaler[postgres]'"
            ) from None
        self._database = re.sub(r"//[^@/]*@", "//", address)  # messages show no password
        self._integrity_error = psycopg.IntegrityError
        self._error = psycopg.Error
        self._lost = (psycopg.OperationalError, psycopg.InterfaceError, psycopg_pool.PoolTimeout)
        self._pool = psycopg_pool.ConnectionPool(
            address,
            min_size=1,
            max_size=_POOL_SIZE,
            timeout=_CONNECT_SECONDS,
            kwargs={"autocommit": True, "connect_timeout": int(_CONNECT_SECONDS)},
            open=False,
        )
        self._record = _typed(_RECORD, _RECORD_TYPES)
        try:
            self._pool.open(wait=True, timeout=_CONNECT_SECONDS)
            self._write(self._prepare)
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            self._pool.close()
            raise self._failed(error) from None
        except BaseException:
            self._pool.close()
            raise

    def _prepare(self, cursor: Cursor) -> None:
        cursor.execute("SELECT pg_advisory_xact_lock(?)", (_SCHEMA_LOCK,))
        cursor.execute("SELECT to_regclass('envscaler_schema') IS NOT NULL")
        if not cursor.fetchone()[0]:
            for statement in SCHEMA.format_map(_TYPES).split(";"):
                if statement.strip():
                    cursor.execute(statement)
            cursor.execute("CREATE TABLE envscaler_schema (version INTEGER NOT NULL)")
            cursor.execute("INSERT INTO envscaler_schema (version) VALUES (?)", (SCHEMA_VERSION,))
            return
        cursor.execute("SELECT version FROM envscaler_schema")
        version = cursor.fetchone()[0]
        if version != SCHEMA_VERSION:
            raise DataError(
                f"expected an episode store of version {SCHEMA_VERSION} in {self._database}, "
                f"found version {version}; use the release that made it, or another database"
            )

    @property
    def _conflicts(self) -> tuple[type[Exception], ...]:
        return (self._integrity_error,)

    def commit(self, episode: EpisodeRow, call: CallRow, state: bytes | None) -> EpisodeRow | None:
        names = ("parent", "depth", "base", "position", "call_id", "name", "arguments", "result")
        values = dict(zip((*names, "state_revision", "created_at"), call_values(call), strict=True))
        values |= {
            "revision": call.revision,
            "number": episode.number,
            "head": episode.head,
            "next_revision": episode.next_revision,
            "key": episode.number << 32 | call.revision,
            "state": state,
        }

        def record(cursor: "psycopg.Cursor[Any]") -> bool:
            row = cursor.execute(self._record, values).fetchone()
            return row is not None and row[0] == 1

        try:
            recorded = self._attempted(lambda connection: record(connection.cursor()))
        except self._integrity_error:
            return None
        return advanced(episode, call) if recorded else None

    def _write(self, work: Callable[[Cursor], T]) -> T:
        def attempt(connection: "psycopg.Connection[Any]") -> T:
            with connection.transaction():
                return work(_QuestionMarks(connection.cursor()))

        return self._attempted(attempt)

    def _read(self, work: Callable[[Cursor], T]) -> T:
        return self._attempted(lambda connection: work(_QuestionMarks(connection.cursor())))

    def _attempted(self, attempt: "Callable[[psycopg.Connection[Any]], T]") -> T:
        """Try, and where the connection is lost, try again with another one until time is up."""
        deadline = time.monotonic() + _RETRY_SECONDS
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                with self._pool.connection() as connection:
                    return attempt(connection)
            except self._integrity_error:
                raise
            except self._lost as error:
                if time.monotonic() + pause > deadline:
                    raise self._failed(error) from error
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            except self._error as error:
                raise self._failed(error) from error

    def _failed(self, error: Exception) -> InfrastructureError:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return InfrastructureError(f"expected the episode store {self._database} to answer, found: {reason}")

    def close(self) -> None:
        """Close the connections. What was committed stays in the database."""
        self._pool.close()


class _QuestionMarks:
    """A cursor that takes parameters written as question marks."""

    def __init__(self, cursor: "psycopg.Cursor[Any]") -> None:
        self._cursor = cursor
        self.fetchone = cursor.fetchone
        self.fetchall = cursor.fetchall

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._cursor.execute(statement.replace("?", "%s").encode(), values)


def _typed(statement: str, types: dict[str, str]) -> bytes:
    """A statement whose parameters say of what type they are: a database cannot tell from a NULL."""
    for name, kind in types.items():
        statement = statement.replace(f"%({name})s", f"%({name})s::{kind}")
    return statement.encode()
