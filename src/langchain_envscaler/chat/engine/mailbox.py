"""How chunks get from the engine's thread to whoever reads them: a thread, or a task of an event loop."""

import asyncio
import queue
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

from langchain_envscaler.chat.backends.base import GenerationChunk
from langchain_envscaler.errors import InfrastructureError

__all__ = ["AsyncMailbox", "Letter", "Mailbox", "ThreadMailbox"]

Letter = GenerationChunk | BaseException
"""A chunk, the last of which has a finish reason, or the error that ended the output."""

_CHECK_SECONDS = 5.0


class Mailbox(ABC):
    """Takes letters from the engine's thread."""

    @abstractmethod
    def put(self, letter: Letter) -> bool:
        """Hands a letter over, without waiting; tells whether anyone may still read it."""


class ThreadMailbox(Mailbox):
    """Letters for a thread.

    Args:
        is_served: Whether the engine still works on the output; asked now and then, so that no reader waits
            for an engine that died.
    """

    def __init__(self, is_served: Callable[[], bool]) -> None:
        self._letters: queue.SimpleQueue[Letter] = queue.SimpleQueue()
        self._is_served = is_served

    def put(self, letter: Letter) -> bool:
        self._letters.put(letter)
        return True

    def chunks(self) -> Iterator[GenerationChunk]:
        """The chunks up to the last.

        Raises:
            Exception: The error that ended the output.
        """
        while True:
            chunk = _opened(self._next())
            yield chunk
            if chunk.finish_reason:
                return

    def _next(self) -> Letter:
        while True:
            is_served = self._is_served()
            try:
                return self._letters.get(timeout=_CHECK_SECONDS)
            except queue.Empty:
                if not is_served:
                    raise _engine_died() from None


class AsyncMailbox(Mailbox):
    """Letters for a task of the running event loop; `is_served` as for :class:`ThreadMailbox`."""

    def __init__(self, is_served: Callable[[], bool]) -> None:
        self._loop = asyncio.get_running_loop()
        self._letters: deque[Letter] = deque()
        self._has_letters = asyncio.Event()
        self._is_served = is_served

    def put(self, letter: Letter) -> bool:
        self._letters.append(letter)
        try:
            self._loop.call_soon_threadsafe(self._has_letters.set)
        except RuntimeError:  # the loop is closed
            return False
        return True

    async def chunks(self) -> AsyncIterator[GenerationChunk]:
        """As :meth:`ThreadMailbox.chunks`."""
        while True:
            chunk = _opened(await self._next())
            yield chunk
            if chunk.finish_reason:
                return

    async def _next(self) -> Letter:
        while not self._letters:
            is_served = self._is_served()
            self._has_letters.clear()
            if self._letters:
                break
            try:
                await asyncio.wait_for(self._has_letters.wait(), timeout=_CHECK_SECONDS)
            except TimeoutError:
                if not is_served:
                    raise _engine_died() from None
        return self._letters.popleft()


def _opened(letter: Letter) -> GenerationChunk:
    if isinstance(letter, BaseException):
        raise letter
    return letter


def _engine_died() -> InfrastructureError:
    return InfrastructureError(
        "the engine's thread ended while it worked on this output; see the log, then try again"
    )
