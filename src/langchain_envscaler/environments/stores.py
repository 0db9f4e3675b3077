"""A store by its address."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_envscaler.environments.store import Store

__all__ = ["open_store"]


def open_store(address: str | None) -> "Store":
    """Open a store: a path or `sqlite:///PATH` (made if need be), ":memory:" or None, `postgresql://...`.

    Raises:
        DataError: A file that is not a store, or a store of another version.
        UsageError: PostgreSQL's driver is not installed.
        InfrastructureError: The database cannot be reached.
    """
    if address is not None and address.startswith(("postgresql://", "postgres://")):
        from langchain_envscaler.environments.store_postgres import PostgresStore

        return PostgresStore(address)
    from langchain_envscaler.environments.store_sqlite import SqliteStore

    return SqliteStore((address or ":memory:").removeprefix("sqlite:///"))
