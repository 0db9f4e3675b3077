"""Where threads are kept: LangGraph's checkpoints in an SQLite file or in PostgreSQL."""

import asyncio
import sqlite3
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeAlias, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_envscaler.errors import DataError, InfrastructureError, UsageError

__all__ = ["ThreadSaver", "open_checkpointer"]

Result = TypeVar("Result")
P = ParamSpec("P")

_POSTGRES = ("postgresql://", "postgres://")
_SETUP_LOCK = 0x656E7673
_SETUP_SECONDS = 60.0
_CONNECTIONS = 8
"""How many statements PostgreSQL works on at a time for one saver."""


def open_checkpointer(
    where: str | Path, *, allowed_types: Collection[type] = (), serde: SerializerProtocol | None = None
) -> "ThreadSaver":
    """A checkpointer, opened when it is first used.

    Args:
        where: A file's path, `sqlite:///PATH`, `:memory:` or `postgresql://...`.
        allowed_types: Types, beside messages and plain data, that a stored state may hold; values of others
            come back as plain data.
        serde: Another serializer, for example one that encrypts; then `allowed_types` is its own concern.

    Raises:
        UsageError: An address of another kind.
    """
    return ThreadSaver(where, allowed_types=allowed_types, serde=serde)


class ThreadSaver(BaseCheckpointSaver[str]):
    """A checkpointer over SQLite or PostgreSQL, for synchronous and asynchronous graphs and any event loop.

    What a checkpoint holds is read as data: no type but messages, plain values and those that were allowed is
    ever constructed from it.
    """

    def __init__(
        self,
        where: str | Path,
        *,
        allowed_types: Collection[type] = (),
        serde: SerializerProtocol | None = None,
    ) -> None:
        """As `open_checkpointer`."""
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=list(allowed_types)))
        self._open, workers = _opener(where)
        self._lock = threading.Lock()
        self._of_this_thread: Callable[[], BaseCheckpointSaver[str]] | None = None
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="checkpoints")
        self._opened = ExitStack()
        self._finalizer = weakref.finalize(self, _close, self._executor, self._opened)

    # Opening and closing

    def close(self) -> None:
        """Close the file or the connections, after what was begun. A closed saver cannot be used again."""
        self._executor.shutdown(wait=True)
        self._finalizer()

    def __enter__(self) -> Self:
        self._saver()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._in_thread(self._saver)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    # The saver's interface

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """Allow more types; LangGraph does that for a graph's own state where it is told to be strict."""
        self.serde = super().with_allowlist(extra_allowlist).serde
        return self

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._saver().get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        yield from self._saver().list(config, filter=filter, before=before, limit=limit)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._saver().put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._saver().put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        self._saver().delete_thread(thread_id)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._saver().get_delta_channel_history(config=config, channels=channels)

    def get_next_version(self, current: str | None, channel: None) -> str:
        return SqliteSaver.get_next_version(self, current, channel)  # type: ignore[arg-type]

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        def listed() -> tuple[CheckpointTuple, ...]:
            return tuple(self.list(config, filter=filter, before=before, limit=limit))

        for one in await self._in_thread(listed):
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._in_thread(self.delete_thread, thread_id)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._in_thread(self.get_delta_channel_history, config=config, channels=channels)

    # What stands behind it

    def _saver(self) -> BaseCheckpointSaver[str]:
        with self._lock:
            if not self._finalizer.alive:
                raise UsageError("expected an open checkpointer, found a closed one; open another")
            if self._of_this_thread is None:
                self._of_this_thread = self._opened.enter_context(self._open())
        saver = self._of_this_thread()
        saver.serde = self.serde
        return saver

    async def _in_thread(self, function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(function, *args, **kwargs))


def _close(executor: ThreadPoolExecutor, opened: ExitStack) -> None:
    # Nothing runs any more: whatever ran would refer to the saver.
    executor.shutdown(wait=False)
    opened.close()


_Opener: TypeAlias = Callable[[], AbstractContextManager[Callable[[], BaseCheckpointSaver[str]]]]
"""Opens what stands behind a saver, and gives what tells which of LangGraph's savers a thread is to use."""


def _opener(where: str | Path) -> tuple[_Opener, int]:
    """How what stands behind an address is opened, and how many threads may use it at a time."""
    if isinstance(where, str) and where.startswith(_POSTGRES):
        return partial(_postgres, where), _CONNECTIONS
    path = str(where).removeprefix("sqlite:///")
    if "://" in path:
        raise UsageError(
            "expected a file's path, sqlite:///PATH or postgresql://... as the place of checkpoints, "
            f"found {path.partition('://')[0]}://"
        )
    return partial(_sqlite, path), 1


@contextmanager
def _sqlite(path: str) -> Iterator[Callable[[], BaseCheckpointSaver[str]]]:
    try:
        connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
    except sqlite3.Error as error:
        raise DataError(f"expected a place for an SQLite file at {path}, found: {error}") from None
    with closing(connection):
        saver = SqliteSaver(connection)
        try:
            saver.setup()
            found = _columns(connection)
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"expected an SQLite file of LangGraph checkpoints at {path}, found: {error}; "
                "move the file away to begin anew"
            ) from None
        with closing(sqlite3.connect(":memory:")) as reference:
            SqliteSaver(reference).setup()
            expected = _columns(reference)
        if found != expected:
            raise DataError(
                f"expected the tables of this version of langgraph-checkpoint-sqlite in {path}, found those "
                "of another; install the version that wrote it, or move the file away to begin anew"
            )
        # What was committed outlives the process in any case, and in WAL mode the file stays whole if the
        # machine stops.
        connection.execute("PRAGMA synchronous=NORMAL")
        yield lambda: saver


def _columns(connection: sqlite3.Connection) -> list[list[str]]:
    return [
        sorted(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))
        for table in ("checkpoints", "writes")
    ]


@contextmanager
def _postgres(url: str) -> Iterator[Callable[[], BaseCheckpointSaver[str]]]:
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg import Connection
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool
    except ImportError:
        raise UsageError(
            "expected psycopg and langgraph-checkpoint-postgres for threads in PostgreSQL, found neither; "
            "install langchain-envscaler[postgres]"
        ) from None
    try:
        # A pool would try again for a long while where the address is just wrong.
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.OperationalError as error:
        reason = " ".join(str(error).split())
        raise InfrastructureError(f"expected PostgreSQL to answer at its address, found: {reason}") from None
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: ConnectionPool[Connection[dict[str, Any]]] = ConnectionPool(
        url, kwargs=options, min_size=1, max_size=_CONNECTIONS, timeout=30, open=False
    )
    with pool:
        saver = PostgresSaver(pool)
        with pool.connection() as connection, _alone(connection):
            saver.setup()
            row = connection.execute("SELECT max(v) AS version FROM checkpoint_migrations").fetchone()
        if row is not None and row["version"] >= len(saver.MIGRATIONS):
            raise DataError(
                f"expected checkpoint tables of version {len(saver.MIGRATIONS) - 1} or earlier, found "
                f"{row['version']}; install the langgraph-checkpoint-postgres that wrote them"
            )
        # One such saver works on one statement at a time, however many connections its pool has.
        local = threading.local()

        def of_this_thread() -> BaseCheckpointSaver[str]:
            if not hasattr(local, "saver"):
                local.saver = PostgresSaver(pool)
            found: BaseCheckpointSaver[str] = local.saver
            return found

        yield of_this_thread


@contextmanager
def _alone(connection: Any) -> Iterator[None]:
    """Keep other processes from making the tables at the same time.

    The lock is asked for again and again instead of waited for, since making an index waits for every
    statement that is being worked on.
    """
    deadline = time.monotonic() + _SETUP_SECONDS
    while not connection.execute("SELECT pg_try_advisory_lock(%s) AS got", (_SETUP_LOCK,)).fetchone()["got"]:
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"expected the checkpoint tables to be ready within {_SETUP_SECONDS:g} s, found another "
                "process still at work on them; try again"
            )
        time.sleep(0.05)
    try:
        yield
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", (_SETUP_LOCK,))
