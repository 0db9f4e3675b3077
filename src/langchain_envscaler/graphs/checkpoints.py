"""Where threads are kept: LangGraph's checkpoints in an SQLite file, looked at before it is used."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langchain_envscaler.errors import DataError

__all__ = ["open_checkpointer"]


@asynccontextmanager
async def open_checkpointer(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    """A checkpointer over a file, which is made where there is none.

    Raises:
        DataError: The file is no SQLite file, or its tables are those of another version.
    """
    async with aiosqlite.connect(path) as connection:
        saver = AsyncSqliteSaver(connection)
        try:
            await saver.setup()
            found = await _columns(connection)
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"expected an SQLite file of LangGraph checkpoints at {path}, found: {error}; "
                "move the file away to begin anew"
            ) from None
        async with aiosqlite.connect(":memory:") as reference:
            await AsyncSqliteSaver(reference).setup()
            expected = await _columns(reference)
        if found != expected:
            raise DataError(
                f"expected the tables of this version of langgraph-checkpoint-sqlite in {path}, found those "
                "of another; install the version that wrote it, or move the file away to begin anew"
            )
        yield saver


async def _columns(connection: aiosqlite.Connection) -> list[tuple[str, ...]]:
    columns: list[tuple[str, ...]] = []
    for table in ("checkpoints", "writes"):
        async with connection.execute(f"SELECT name FROM pragma_table_info('{table}')") as rows:
            columns.append(tuple(sorted([row[0] async for row in rows])))
    return columns
