"""The host's side of one confined child: requests with a deadline, and why there is no reply."""

import json
import os
import signal
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from langchain_envscaler.environments.sandbox.frames import HEADER, frame

__all__ = [
    "Child",
    "ChildEndedError",
    "ChildError",
    "ChildGarbledError",
    "ChildTimeoutError",
    "Parent",
    "Reply",
    "kill",
]

_MAX_MESSAGE_BYTES = 32 * 2**20
_CHUNK = 1 << 15
_PF_EXITING = 0x4  # include/linux/sched.h


class ChildError(Exception):
    """A child gave no reply. It is gone: nothing that it held counts."""


class ChildTimeoutError(ChildError):
    """No reply within the time allowed; the child was killed."""


class ChildEndedError(ChildError):
    """The child's process ended before it replied."""

    def __init__(self, status: int | None, *, closed_itself: bool = False) -> None:
        self.status = status
        """As `subprocess` counts: an exit code, or minus the number of the signal; None if not known."""
        self.closed_itself = closed_itself
        """Whether it closed its connection while it ran, and the host killed it for that."""
        super().__init__("its process ended: it closed its connection" if closed_itself else _ending(status))

    @property
    def was_killed(self) -> bool:
        """Whether something outside ended it (a child cannot send signals), so that trying again may help."""
        return not self.closed_itself and (self.status is None or self.status == -signal.SIGKILL)


class ChildGarbledError(ChildError):
    """What came is not a reply; the child was killed."""


class Reply(NamedTuple):
    """What a child answered."""

    message: dict[str, Any]
    blob: bytes
    text: bytes
    """The message as it came: UTF-8 JSON."""


class Parent(Protocol):
    """What a child's process hangs on, as the host sees it."""

    def pid_of(self, child: "Child") -> int | None:
        """The process id, as long as the process was not reaped."""

    def end(self, child: "Child") -> None:
        """Kill and reap a child."""

    def reap(self, child: "Child") -> int | None:
        """Kill and reap a child; how it ended, if that is known."""


class Child:
    """A confined child process. Not for use by several threads at once."""

    def __init__(self, connection: socket.socket, parent: Parent, max_blob_bytes: int) -> None:
        self.ticket: Any = None
        """What its parent knows it by."""
        self._connection = connection
        self._parent = parent
        self._max_blob_bytes = max_blob_bytes
        self._seconds = 0.0
        self._open = True

    @property
    def pid(self) -> int | None:
        """Its process id; None once it is closed."""
        return self._parent.pid_of(self) if self._open else None

    def request(self, message: Any, blob: bytes = b"", *, seconds: float) -> Reply:
        """Send a request and wait for its reply.

        Raises:
            ChildError: There was none, see its subclasses. The child is gone.
        """
        self.send(message, blob, seconds=seconds)
        return self.receive(seconds=seconds)

    def send(self, message: Any, blob: bytes = b"", *, seconds: float) -> None:
        """Send a request whose reply is waited for later."""
        try:
            self._wait_at_most(seconds)
            self._connection.sendall(frame(message, blob))
        except BlockingIOError:
            raise self._too_late(seconds) from None
        except OSError:
            raise self._ended() from None

    def receive(self, *, seconds: float) -> Reply:
        """Wait for the reply to what was sent."""
        try:
            self._wait_at_most(seconds)
            return self._reply(time.monotonic() + seconds)
        except (BlockingIOError, TimeoutError):
            raise self._too_late(seconds) from None
        except OSError:
            raise self._ended() from None
        except ChildGarbledError:
            self.close()
            raise

    def _wait_at_most(self, seconds: float) -> None:
        """Bound the next system calls on the socket: the kernel waits, without a further call for it."""
        if seconds != self._seconds:
            bound = struct.pack("@ll", int(seconds), max(int(seconds % 1 * 1e6), 1))
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)
            self._seconds = seconds

    def _reply(self, deadline: float) -> Reply:
        data = self._connection.recv(_CHUNK)
        while len(data) < HEADER.size:
            data += self._receive_more(HEADER.size, data, deadline)
        text_length, blob_length = HEADER.unpack_from(data)
        if text_length > _MAX_MESSAGE_BYTES or blob_length > self._max_blob_bytes:
            raise ChildGarbledError(
                f"it answered with {text_length} bytes of message and {blob_length} of state, "
                f"allowed are {_MAX_MESSAGE_BYTES} and {self._max_blob_bytes}"
            )
        total = HEADER.size + text_length + blob_length
        if len(data) < total:
            buffer = bytearray(data)
            while len(buffer) < total:
                buffer += self._receive_more(total - len(buffer), buffer, deadline)
            data = bytes(buffer)
        if len(data) > total:
            raise ChildGarbledError("it answered more than was asked")
        text_end = HEADER.size + text_length
        text = data[HEADER.size : text_end]
        return Reply(_message(text), data[text_end:], text)

    def _receive_more(self, count: int, so_far: bytes | bytearray, deadline: float) -> bytes:
        if not so_far:
            raise ConnectionError
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._wait_at_most(left)  # a child that answers byte by byte does not get longer
        data = self._connection.recv(min(count, _CHUNK))
        if not data:
            raise ConnectionError
        return data

    @property
    def is_idle(self) -> bool:
        """Whether the child is alive and has sent nothing that was not asked for."""
        if not self._open:
            return False
        try:
            self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Kill the process, if it is there still."""
        if self._open:
            self._open = False
            self._connection.close()
            self._parent.end(self)

    def abandon(self) -> None:
        """Close the connection to a process that its parent's end has ended."""
        self._open = False
        self._connection.close()

    def _too_late(self, seconds: float) -> ChildTimeoutError:
        self.close()
        return ChildTimeoutError(f"no answer within {seconds:g} s")

    def _ended(self) -> ChildEndedError:
        if not self._open:
            return ChildEndedError(None)
        self._open = False
        self._connection.close()
        # The connection of a process that ends is closed while it exits. One that still runs closed it
        # itself; that the host then kills it is no sign of trouble from outside.
        pid = self._parent.pid_of(self)
        closed_itself = pid is not None and _is_running(pid)
        return ChildEndedError(self._parent.reap(self), closed_itself=closed_itself)


def _is_running(pid: int) -> bool:
    """Whether a process has not begun to exit; False where that cannot be told."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0] not in (b"Z", b"X") and not int(fields[6]) & _PF_EXITING
    except (OSError, ValueError, IndexError):
        return False


def kill(pid: int) -> None:
    """Send SIGKILL to a process that its parent has not reaped."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _message(text: bytes) -> dict[str, Any]:
    try:
        message = json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise ChildGarbledError("it answered with something that is not JSON") from None
    if not isinstance(message, dict) or type(message.get("ok")) is not bool:
        raise ChildGarbledError("it answered with other JSON than a reply")
    return message


def _ending(status: int | None) -> str:
    if status is None:
        return "its process ended"
    if status < 0:
        with suppress(ValueError):
            return f"its process ended by signal {signal.Signals(-status).name}"
    return f"its process ended with exit code {status}"
