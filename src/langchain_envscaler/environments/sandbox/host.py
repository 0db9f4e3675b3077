"""The host's side of a zygote: starting it, asking it for children, and the level of isolation it reached."""

import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import langchain_envscaler
from langchain_envscaler.environments.limits import Limits
from langchain_envscaler.environments.sandbox.child import Child
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
    """"full": files, network, signals, processes and memory are all restricted; "limited": not all of them."""
    detail: str


class ZygoteGoneError(Exception):
    """The zygote's process ended; another one has to be started."""


class Zygote:
    """A running zygote. Safe for use by several threads."""

    def __init__(self, limits: Limits, import_roots: tuple[str, ...] = ()) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        settings = {"import_roots": list(import_roots), "memory_bytes": limits.memory_bytes}
        package_root = str(Path(langchain_envscaler.__file__).parent.parent)
        with theirs:
            fd = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-s", "-P", "-B", "-X", "utf8", "-c", _BOOT]
                + [package_root, str(fd), json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[fd],
                # Sets iterate in the same order in every process.
                env={"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8", "HOME": "/", "PATH": ""},
                cwd="/",
                start_new_session=True,  # Ctrl-C in a terminal is the host's to handle
            )
        self.isolation = self._started()

    def _started(self) -> IsolationReport:
        self._control.settimeout(_START_SECONDS)
        try:
            report = json.loads(self._line())
        except (OSError, ValueError, ZygoteGoneError):
            self._process.kill()
            errors = self._process.communicate()[1].decode(errors="replace").strip()
            reason = errors.splitlines()[-1] if errors else "it ended without a word"
            raise InfrastructureError(
                f"expected the sandbox's process to start, found: {reason[:500]}"
            ) from None
        self._control.settimeout(_CONTROL_SECONDS)
        return _isolation(report["landlock"], report["seccomp"])

    def fork(self) -> Child:
        """A new confined child.

        Raises:
            ZygoteGoneError: The zygote's process ended.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs, self._lock:
                socket.send_fds(self._control, [b"F"], [theirs.fileno()])
                pid = int(self._line())
        except OSError:
            ours.close()
            raise ZygoteGoneError from None
        return Child(ours, pid, self._end, self._limits.max_state_bytes)

    def _end(self, pid: int) -> int | None:
        try:
            with self._lock:
                self._control.sendall(b"E%d" % pid)
                return int(self._line())
        except (OSError, ZygoteGoneError):
            return None  # its children ended with it

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            received = self._control.recv(4096)
            if not received:
                raise ZygoteGoneError
            line += received
        return line

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End the zygote, and with it every child."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()


def _isolation(landlock: int, seccomp: bool) -> IsolationReport:
    if landlock and seccomp:
        return IsolationReport("full", f"Landlock (version {landlock}), seccomp and resource limits")
    missing = " and ".join(
        text
        for text, there in (("files (no Landlock)", landlock), ("system calls (no seccomp)", seccomp))
        if not there
    )
    system = f"{os.uname().sysname} {os.uname().release} on {os.uname().machine}"
    return IsolationReport(
        "limited", f"child processes with resource limits, but not confined in: {missing}; {system}"
    )
