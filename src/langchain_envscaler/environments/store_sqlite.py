"""Episodes in an SQLite file, or in memory.

With `synchronous="NORMAL"` a commit survives the death of every process; with "FULL" it survives power loss
as well, for about four times the cost of a commit.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, cast

from langchain_envscaler.environments.store import SCHEMA, SCHEMA_VERSION, Cursor, SqlStore
from langchain_envscaler.errors import DataError, InfrastructureError

__all__ = ["SqliteStore"]

_BUSY_SECONDS = 30.0


class SqliteStore(SqlStore):
    """A store in one SQLite file, which several processes of one machine may use."""

    def __init__(
        self, path: str | Path = ":memory:", *, synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    ) -> None:
        self._path = str(path).removeprefix("sqlite:///")
        self._lock = threading.RLock()
        if self._path != ":memory:":
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(
                self._path,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            self._prepare(synchronous)
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"expected an episode store or a path for a new one, found {self._path!r}: {error}; name another file"
            ) from None

    def _prepare(self, synchronous: str) -> None:
        execute = self._connection.execute
        try:
            execute("PRAGMA journal_mode = WAL")
            execute(f"PRAGMA synchronous = {synchronous}")
            version = execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA_VERSION):
                raise DataError(
                    f"expected an episode store of version {SCHEMA_VERSION}, found version {version} in {self._path!r}; "
                    "use the release that wrote it, or name another file"
                )
            if version == 0:
                self._connection.executescript(SCHEMA.format(real="REAL", bytes="BLOB"))
                execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        except BaseException:
            self._connection.close()
            raise

    @property
    def _conflicts(self) -> tuple[type[Exception], ...]:
        return (sqlite3.IntegrityError,)

    @contextmanager
    def _transaction(self) -> Iterator[Cursor]:
        with self._lock:
            cursor = self._connection.cursor()
            try:
                cursor.execute("BEGIN IMMEDIATE")
                yield cast("Cursor", cursor)
                cursor.execute("COMMIT")
            except sqlite3.IntegrityError:
                cursor.execute("ROLLBACK")
                raise
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise InfrastructureError(
                    f"expected the episode store {self._path!r} to answer, found: {error}"
                ) from error
            except BaseException:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise
            finally:
                cursor.close()

    def close(self) -> None:
        with self._lock:
            self._connection.close()
