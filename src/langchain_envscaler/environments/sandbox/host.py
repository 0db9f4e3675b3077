"""The host's side of a zygote: starting it, asking it for children, and the level of isolation it reached."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import langchain_envscaler
from langchain_envscaler.environments.limits import Limits
from langchain_envscaler.environments.sandbox.child import Child, kill
from langchain_envscaler.environments.sandbox.requests import END, FORK, FORK_SEEDED, REAP, REPLY, REQUEST
from langchain_envscaler.errors import InfrastructureError

__all__ = ["IsolationReport", "Zygote", "ZygoteGoneError"]

_START_SECONDS = 30.0
_CONTROL_SECONDS = 10.0
_BOOT = (
    "import sys; sys.path.append(sys.argv[1])\n"
    "from langchain_envscaler.environments.sandbox.zygote import main\n"
    "main(int(sys.argv[2]), sys.argv[3])"
)


@dataclass(frozen=True)
class IsolationReport:
    """How far environment code is confined on this machine."""

    level: Literal["full", "limited"]
    """"full": files, network, signals, processes and memory are restricted; "limited": not all of them."""
    detail: str


class ZygoteGoneError(Exception):
    """The zygote's process ended; another one has to be started."""


class _Answer:
    """A reply of the zygote that was asked for and may not have come yet."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: int | None = None


class Zygote:
    """A running zygote, the parent of children. Safe for use by several threads."""

    def __init__(self, limits: Limits, import_roots: tuple[str, ...] = ()) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._expected: deque[_Answer] = deque()  # replies come in the order of the requests
        self._children: set[Child] = set()
        self._control, theirs = socket.socketpair()
        settings = {
            "import_roots": list(import_roots),
            "memory_bytes": limits.memory_bytes,
            "clock_files": _clock_files(),
        }
        with theirs:
            self._process = _start(theirs.fileno(), settings)
        self.isolation = self._first_words()

    def _first_words(self) -> IsolationReport:
        self._control.settimeout(_START_SECONDS)
        try:
            line = b""
            while not line.endswith(b"\n"):
                received = self._control.recv(4096)
                if not received:
                    raise ConnectionError
                line += received
            report = json.loads(line)
        except (OSError, ValueError):
            self._process.kill()
            errors = self._process.communicate()[1].decode(errors="replace").strip()
            self._control.close()
            reason = errors.splitlines()[-1] if errors else "it ended without a word"
            raise InfrastructureError(
                f"expected the sandbox's process to start, found: {reason[:500]}"
            ) from None
        self._control.settimeout(_CONTROL_SECONDS)
        return _isolation(report["landlock"], report["seccomp"])

    def fork(self, *, is_seeded: bool = False) -> Child:
        """A new confined child. It may not be there yet; what is sent to it waits for it.

        Raises:
            ZygoteGoneError: The zygote's process ended.
        """
        ours, theirs = socket.socketpair()
        child = Child(ours, self, self._limits.max_state_bytes)
        request = REQUEST.pack(FORK_SEEDED if is_seeded else FORK, 0)
        try:
            with theirs, self._lock:
                socket.send_fds(self._control, [request], [theirs.fileno()])
                child.ticket = _Answer()
                self._expected.append(child.ticket)
                self._children.add(child)
        except OSError:
            ours.close()
            raise ZygoteGoneError from None
        return child

    def pid_of(self, child: Child) -> int | None:
        with suppress(ZygoteGoneError), self._lock:
            return self._value(child.ticket)
        return None

    def end(self, child: Child) -> None:
        # The zygote keeps an ended process as a zombie until it is told, so its id is no other process's.
        if (pid := self._let_go(child)) is not None:
            kill(pid)
            with suppress(OSError), self._lock:
                self._control.sendall(REQUEST.pack(END, pid))

    def reap(self, child: Child) -> int | None:
        if (pid := self._let_go(child)) is None:
            return None
        kill(pid)
        try:
            with self._lock:
                self._control.sendall(REQUEST.pack(REAP, pid))
                answer = _Answer()
                self._expected.append(answer)
                return self._value(answer)
        except (OSError, ZygoteGoneError):
            return None  # its children ended with it

    def _let_go(self, child: Child) -> int | None:
        pid = self.pid_of(child)
        with self._lock:
            self._children.discard(child)
        return pid

    def _value(self, answer: _Answer) -> int:
        """Wait for a reply, and thereby for those before it. With the lock held."""
        while answer.value is None:
            data = b""
            try:
                while len(data) < REPLY.size:
                    received = self._control.recv(REPLY.size - len(data))
                    if not received:
                        raise ZygoteGoneError
                    data += received
            except OSError:
                raise ZygoteGoneError from None
            self._expected.popleft().value = REPLY.unpack(data)[0]
        return answer.value

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End the zygote, and with it every child."""
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._control.close()
        with self._lock:
            children, self._children = self._children, set()
        for child in children:
            child.abandon()


def _start(control_fd: int, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
    package_root = str(Path(langchain_envscaler.__file__).parent.parent)
    return subprocess.Popen(
        [
            *(sys.executable, "-S", "-s", "-P", "-B", "-X", "utf8"),
            *("-c", _BOOT, package_root, str(control_fd), json.dumps(settings)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[control_fd],
        # With a fixed hash seed, sets iterate in the same order in every process.
        env={"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8", "HOME": "/", "PATH": ""},
        cwd="/",
        start_new_session=True,  # Ctrl-C in a terminal is the host's to handle
    )


def _clock_files() -> dict[str, str]:
    """The files of the package that sets the clock, for a process that does not see installed packages."""
    found = {name: find_spec(name) for name in ("_time_machine", "time_machine")}
    return {name: spec.origin for name, spec in found.items() if spec is not None and spec.origin}


def _isolation(landlock: int, seccomp: bool) -> IsolationReport:
    if landlock and seccomp:
        return IsolationReport("full", f"Landlock (version {landlock}), seccomp and resource limits")
    missing = [text for text, there in (("files", landlock), ("system calls", seccomp)) if not there]
    system = os.uname()
    return IsolationReport(
        "limited",
        f"child processes with resource limits, but {' and '.join(missing)} are not restricted, since "
        f"{system.sysname} {system.release} on {system.machine} lacks what that takes",
    )
