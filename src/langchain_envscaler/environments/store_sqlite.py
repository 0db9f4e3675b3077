"""Episodes in an SQLite file, or in memory.

With `synchronous="NORMAL"` a commit survives the death of every process of this package; with "FULL" it
survives a loss of power as well, for several times the cost of a commit.
"""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from langchain_envscaler.environments.store import SCHEMA, SCHEMA_VERSION, Cursor, Store
from langchain_envscaler.errors import DataError, InfrastructureError

__all__ = ["SqliteStore"]

T = TypeVar("T")

_TYPES = {
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "key": "INTEGER PRIMARY KEY",
    "real": "REAL",
    "bytes": "BLOB",
}

_BUSY_SECONDS = 30.0
# A larger log than SQLite's default: the pages that an episode changes again and again are then copied into
# the database less often.
_CHECKPOINT_PAGES = 8_000


class SqliteStore(Store):
    """A store in one SQLite file, which several processes of one machine may use."""

    def __init__(
        self, path: str | Path = ":memory:", *, synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    ) -> None:
        """
        Raises:
            DataError: The file is not a store, or one of another version, or cannot be made.
        """
        self._path = str(path)
        self._lock = threading.RLock()
        try:
            if self._path != ":memory:":
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from None
        try:
            self._prepare(synchronous)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise self._unusable(error) from None
        except BaseException:
            self._connection.close()
            raise

    def _unusable(self, error: Exception) -> DataError:
        return DataError(
            f"expected an episode store or a path for a new one, found {self._path!r}: {error}; "
            "name another file"
        )

    def _prepare(self, synchronous: str) -> None:
        execute = self._connection.execute
        execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")
        execute("BEGIN IMMEDIATE")  # two processes may open a new file at once
        version = execute("PRAGMA user_version").fetchone()[0]
        tables = execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if version != (SCHEMA_VERSION if tables else 0):
            raise DataError(
                f"expected an episode store of version {SCHEMA_VERSION} or a path for a new one, found "
                f"a database of version {version} in {self._path!r}; name another file, "
                "or use the release that wrote it"
            )
        if not tables:
            schema = SCHEMA.format(
                serial="INTEGER PRIMARY KEY AUTOINCREMENT",
                key="INTEGER PRIMARY KEY",
                real="REAL",
                bytes="BLOB",
            )
            for statement in schema.split(";"):
                execute(statement)
            execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        execute("COMMIT")
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {synchronous}")
        execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")

    @property
    def _conflicts(self) -> tuple[type[Exception], ...]:
        return (sqlite3.IntegrityError,)

    def _write(self, work: Callable[[Cursor], T]) -> T:
        with self._lock:
            execute = self._connection.execute
            try:
                execute("BEGIN IMMEDIATE")
                result = work(self._connection.cursor())
                execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    execute("ROLLBACK")
                if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
                    raise self._failed(error) from error
                raise
            return result

    def _read(self, work: Callable[[Cursor], T]) -> T:
        with self._lock:
            try:
                return work(self._connection.cursor())
            except sqlite3.Error as error:
                raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> InfrastructureError:
        return InfrastructureError(f"expected the episode store {self._path!r} to answer, found: {error}")

    def close(self) -> None:
        """Close the file. What was committed stays in it."""
        with self._lock:
            self._connection.close()
