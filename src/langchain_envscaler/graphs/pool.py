"""The connections of a toolset and the loop they live on, held by the toolset and by each of its tools."""

import asyncio
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from langchain_envscaler.errors import NotFoundError, UsageError
from langchain_envscaler.graphs.connection import Connection
from langchain_envscaler.graphs.elicitation import QuestionHandler
from langchain_envscaler.graphs.loop import BackgroundLoop
from langchain_envscaler.graphs.targets import ConnectMode, Target

__all__ = ["ConnectionPool"]

Result = TypeVar("Result")

_CLOSE_SECONDS = 15.0


class ConnectionPool:
    """Named connections on one background loop. With the last reference to it they are closed."""

    def __init__(
        self,
        targets: Sequence[Target],
        *,
        connect_timeout: float,
        mode: ConnectMode = "auto",
        question_handler: QuestionHandler | None = None,
        loop: BackgroundLoop | None = None,
    ) -> None:
        """Make a pool; nothing is connected or started yet.

        Args:
            loop: A loop that several pools share and that outlasts them; one of its own if not given.
        """
        self.connections: Mapping[str, Connection] = {
            target.name: Connection(
                target, connect_timeout=connect_timeout, mode=mode, question_handler=question_handler
            )
            for target in targets
        }
        self._loop = loop or BackgroundLoop()
        # Neither the loop nor a connection refers to the pool, so that it can be collected.
        self._finalizer = weakref.finalize(
            self, _close, self._loop, loop is None, tuple(self.connections.values())
        )

    def __getitem__(self, server: str) -> Connection:
        try:
            return self.connections[server]
        except KeyError:
            raise NotFoundError(
                f"expected an MCP server among {', '.join(self.connections)}, found {server!r}"
            ) from None

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something on the loop and wait for it.

        Raises:
            UsageError: The pool is closed.
        """
        return self._loop.run(self._usable(work))

    async def arun(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something on the loop and await it.

        Raises:
            UsageError: The pool is closed.
        """
        return await self._loop.arun(self._usable(work))

    def close(self) -> None:
        """Close all connections and end the server processes."""
        self._finalizer()

    async def aclose(self) -> None:
        """As `close`."""
        await asyncio.to_thread(self._finalizer)

    def _usable(self, work: Coroutine[Any, Any, Result]) -> Coroutine[Any, Any, Result]:
        if self.closed:
            work.close()
            raise UsageError("expected an open toolset, found a closed one; make another")
        return work


def _close(loop: BackgroundLoop, owned: bool, connections: Sequence[Connection]) -> None:
    async def close() -> None:
        await asyncio.gather(*(connection.close() for connection in connections), return_exceptions=True)

    try:
        if loop.started:
            # What has not ended by then ends with the loop.
            with suppress(TimeoutError, UsageError):
                loop.run(close(), _CLOSE_SECONDS)
    finally:
        if owned:
            loop.close()
