"""One life of a connection: a client that one task opens, holds and closes."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import httpx2
from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED, UNSUPPORTED_PROTOCOL_VERSION

from langchain_envscaler.graphs.targets import Hooks, Target

__all__ = ["Link", "reason"]

_NO_CONNECTION = (httpx2.ConnectError, httpx2.ConnectTimeout)


@dataclass(slots=True)
class Link:
    """One life of a connection: a client that one task opens, holds and closes."""

    target: Target
    hooks: Hooks
    failure: BaseException | None = None
    in_flight: int = 0
    most_in_flight: int = 0
    _client: Client | None = None
    _task: "asyncio.Task[None] | None" = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    @property
    def alive(self) -> bool:
        return self._client is not None and not self._over.is_set()

    @property
    def never_sent(self) -> bool:
        """Whether the link broke because no connection could be made for the one request that it carried."""
        return (
            self.most_in_flight == 1
            and self.failure is not None
            and all(isinstance(one, _NO_CONNECTION) for one in leaves(self.failure))
        )

    async def open(self, timeout: float) -> None:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(opened))
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(opened)
        except BaseException:
            await self.close()
            # Retrieved, in case that nobody awaits it any more.
            if opened.done() and not opened.cancelled():
                opened.exception()
            raise

    @contextmanager
    def counted(self) -> Iterator[None]:
        self.most_in_flight = max(self.most_in_flight if self.in_flight else 0, self.in_flight + 1)
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        """End the client; bounded by the transport's own limits."""
        self._over.set()
        if self._task is None:
            return
        if self._client is None:
            # Still connecting, which nothing but a cancellation ends.
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _hold(self, opened: "asyncio.Future[None]") -> None:
        """The owner task: whatever is opened here is closed here."""
        try:
            async with self.target.open(replace(self.hooks, on_end=self._over.set)) as client:
                self._client = client
                if not opened.done():
                    opened.set_result(None)
                await self._over.wait()
        except asyncio.CancelledError as error:
            if not opened.done():
                opened.set_exception(TimeoutError("no answer in time"))
            self.failure = error
        except BaseException as error:
            self.failure = error
            if not opened.done():
                opened.set_exception(error)
        finally:
            self._over.set()


def leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from leaves(one)
    else:
        yield error


def _first_answer(refusal: MCPError) -> MCPError:
    before = refusal.__context__
    while isinstance(before, MCPError) and before.code == UNSUPPORTED_PROTOCOL_VERSION:
        before = before.__context__
    return before if isinstance(before, MCPError) else refusal


def reason(error: BaseException | None, last_words: str) -> str:
    """Why a connection failed, in one line."""
    leaf = next(leaves(error)) if error is not None else None
    if isinstance(leaf, MCPError) and leaf.code == UNSUPPORTED_PROTOCOL_VERSION:
        # A modern server whose first answer was an error is then asked for the older handshake, which it
        # refuses; what it said at first is the reason.
        leaf = _first_answer(leaf)
    if leaf is None or (isinstance(leaf, MCPError) and leaf.code == CONNECTION_CLOSED):
        text = "it ended the connection"
    elif isinstance(leaf, TimeoutError):
        text = "no answer in time"
    else:
        text = " ".join(f"{type(leaf).__name__}: {leaf}".split())
    last_line = last_words.strip().rpartition("\n")[2].strip()
    return f"{text}; its last words were: {last_line}" if last_line else text
