"""An event loop in a thread of its own: what lives on it outlasts the task or the loop that asked for it."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from langchain_envscaler.errors import UsageError

__all__ = ["BackgroundLoop"]

Result = TypeVar("Result")


class BackgroundLoop:
    """An event loop in a daemon thread, started when it is first needed.

    Work is handed to it from synchronous code and from other event loops alike, so that what it holds (a
    connection, a subprocess) belongs to one task there, whoever opens, uses and closes it.
    """

    def __init__(self, name: str = "envscaler-mcp") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def started(self) -> bool:
        """Whether it was ever needed."""
        return self._loop is not None

    def run(self, work: Coroutine[Any, Any, Result], timeout: float | None = None) -> Result:
        """Run the work and wait for it, from synchronous code.

        Args:
            timeout: Seconds to wait; then the work is cancelled.

        Raises:
            UsageError: The loop is closed, or it would have to wait for itself.
            TimeoutError: The work took longer.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError(
                "expected a call from outside of the toolset's loop; there, await the async form"
            )
        future = self._submit(work)
        try:
            return future.result(timeout)
        except BaseException:
            # A TimeoutError or KeyboardInterrupt of the waiting thread must not leave the work running.
            future.cancel()
            raise

    async def arun(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run the work and await it; a cancelled caller cancels it.

        Raises:
            UsageError: The loop is closed.
        """
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(self._submit(work))

    def close(self) -> None:
        """Stop the loop, after what runs on it was cancelled. A closed loop cannot be used again."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(loop.stop)
        if threading.current_thread() is not thread:
            thread.join(timeout=10)

    def _submit(self, work: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        try:
            # The lock is held over both, so that no work is handed to a loop that is being closed.
            with self._lock:
                return asyncio.run_coroutine_threadsafe(work, self._started())
        except BaseException:
            work.close()
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._closed:
            raise UsageError("expected an open toolset, found a closed one; make another")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
            self._thread.start()
        return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
