"""The host's side of one confined child: requests with a deadline, and what went wrong when there is no reply."""

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from langchain_envscaler.environments.sandbox.frames import HEADER, frame

__all__ = ["Child", "ChildEndedError", "ChildError", "ChildGarbledError", "ChildTimeoutError", "Reply"]

_MAX_MESSAGE_BYTES = 32 * 2**20
_CHUNK = 1 << 18


class ChildError(Exception):
    """A child gave no reply. It is gone: nothing that it held counts."""


class ChildTimeoutError(ChildError):
    """No reply within the time allowed; the child was killed."""


class ChildEndedError(ChildError):
    """The child's process ended before it replied."""

    def __init__(self, status: int | None) -> None:
        self.status = status
        """As `subprocess` counts: an exit code, or minus the number of the signal; None if not known."""
        super().__init__(_ending(status))

    @property
    def was_killed(self) -> bool:
        """Whether something outside ended it (a child cannot send signals), so that trying again may help."""
        return self.status is None or self.status == -signal.SIGKILL


class ChildGarbledError(ChildError):
    """What came is not a reply; the child was killed."""


class Reply(NamedTuple):
    """What a child answered."""

    message: dict[str, Any]
    blob: bytes
    text: bytes
    """The message as it came: UTF-8 JSON."""


class Child:
    """A confined child process. Not for use by several threads at once."""

    def __init__(
        self, connection: socket.socket, pid: int, end: Callable[[int], int | None], max_blob_bytes: int
    ) -> None:
        self.pid = pid
        self._connection = connection
        self._end = end
        self._max_blob_bytes = max_blob_bytes
        self._open = True

    def request(self, message: Any, blob: bytes = b"", *, seconds: float) -> Reply:
        """Send a request and wait for its reply.

        Raises:
            ChildError: There was none, see its subclasses. The child is gone.
        """
        deadline = time.monotonic() + seconds
        try:
            self._connection.settimeout(seconds)
            self._connection.sendall(frame(message, blob))
            return self._reply(deadline)
        except TimeoutError:
            self.close()
            raise ChildTimeoutError(f"no answer within {seconds:g} s") from None
        except OSError:
            raise ChildEndedError(self.close()) from None
        except ChildGarbledError:
            self.close()
            raise

    def _reply(self, deadline: float) -> Reply:
        data = self._receive(deadline)
        while len(data) < HEADER.size:
            data += self._receive(deadline)
        text_length, blob_length = HEADER.unpack_from(data)
        if text_length > _MAX_MESSAGE_BYTES or blob_length > self._max_blob_bytes:
            raise ChildGarbledError(
                f"expected at most {_MAX_MESSAGE_BYTES} bytes of message and {self._max_blob_bytes} of state, "
                f"found {text_length} and {blob_length}"
            )
        total = HEADER.size + text_length + blob_length
        if len(data) < total:
            data = self._receive_rest(data, total, deadline)
        if len(data) > total:
            raise ChildGarbledError("expected one reply to a request, found more")
        text_end = HEADER.size + text_length
        text = data[HEADER.size : text_end]
        return Reply(_message(text), data[text_end:], text)

    def _receive(self, deadline: float, count: int = _CHUNK) -> bytes:
        data = self._connection.recv(count)
        if not data:
            raise ConnectionError
        if len(data) < count:  # more may follow, within the same deadline
            self._connection.settimeout(max(deadline - time.monotonic(), 1e-3))
        return data

    def _receive_rest(self, begin: bytes, total: int, deadline: float) -> bytes:
        buffer = bytearray(begin)
        while len(buffer) < total:
            buffer += self._receive(deadline, min(total - len(buffer), _CHUNK))
        return bytes(buffer)

    @property
    def is_idle(self) -> bool:
        """Whether the child is alive and has sent nothing that was not asked for."""
        if not self._open:
            return False
        self._connection.setblocking(False)
        try:
            self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> int | None:
        """Kill the process, if it is there still; tells how it ended, None if it was closed before."""
        if not self._open:
            return None
        self._open = False
        self._connection.close()
        return self._end(self.pid)

    def kill(self) -> None:
        """End the process from another thread; a request under way then raises."""
        if self._open:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _message(text: bytes) -> dict[str, Any]:
    try:
        message = json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise ChildGarbledError("expected a reply in JSON, found something else") from None
    if not isinstance(message, dict) or type(message.get("ok")) is not bool:
        raise ChildGarbledError("expected a reply, found other JSON")
    return message


def _ending(status: int | None) -> str:
    if status is None:
        return "the process ended"
    if status < 0:
        with suppress(ValueError):
            return f"the process ended by signal {signal.Signals(-status).name}"
    return f"the process ended with exit code {status}"
