"""The process that all confined children are forked from: warm, and running none of the foreign code itself.

It holds the interpreter and the standard modules that environments import. Its host asks it over a socket for
a child, handing it the child's end of a socket pair, and for a child's end. A child confines itself before it
reads its first request, so foreign code never runs in a process that is not confined, and no child can fork.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from langchain_envscaler.environments.sandbox import entropy, worker
from langchain_envscaler.environments.sandbox.confinement import (
    Confinement,
    die_with_parent,
    drop_privileges,
    limit_resources,
    restrict_files,
)
from langchain_envscaler.environments.sandbox.requests import END, FORK, FORK_SEEDED, REPLY, REQUEST

__all__ = ["main"]

# What most environments import, and what the standard library imports behind one's back (`_strptime`).
_WARM = [
    *("typing", "datetime", "uuid", "time", "re", "collections", "json", "random", "math", "copy"),
    *("dataclasses", "enum", "_strptime"),
]
# What a few import; loaded while there is nothing else to do.
_WARM_LATER = [
    *("hashlib", "secrets", "decimal", "statistics", "string", "itertools", "functools", "calendar"),
    *("collections.abc", "operator", "bisect", "heapq", "textwrap", "fractions", "contextlib", "abc"),
    *("ast", "io", "base64", "logging", "traceback", "threading", "zoneinfo", "unicodedata", "locale"),
]
_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")


def main(control_fd: int, settings_text: str) -> None:
    """Serve the host until it closes the control socket."""
    settings = json.loads(settings_text)
    package_root = sys.path.pop()
    sys.path.extend(settings["import_roots"])
    for name in _WARM:
        import_module(name)
    sys.path_importer_cache.pop(package_root, None)
    # The compiled part now, since it is linked to libraries that cannot be read later.
    entropy.load_module("_time_machine", settings["clock_files"])
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("800")  # the first to go when the machine runs out of memory
    drop_privileges()
    abi = restrict_files(_readable_paths(settings["import_roots"], settings["clock_files"]))
    zygote = _Zygote(socket.socket(fileno=control_fd), settings["memory_bytes"])
    zygote.control.sendall(json.dumps({"landlock": abi, "seccomp": zygote.probe()}).encode() + b"\n")
    zygote.serve(settings["clock_files"])


class _Zygote:
    def __init__(self, control: socket.socket, memory_bytes: int) -> None:
        self.control = control
        self._memory_bytes = memory_bytes
        self._confinement = Confinement()
        self._ended: list[int] = []

    def probe(self) -> bool:
        """Whether a child can put on the filter here: tried in a child, since it cannot be taken off."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                limit_resources(self._memory_bytes)
                code = 0 if self._confinement.restrict_calls() else 1
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def serve(self, clock_files: dict[str, str]) -> None:
        later: Iterator[str] | None = iter(_WARM_LATER)
        _share_memory()
        while True:
            if later is not None and not select.select([self.control], [], [], 0)[0]:
                name = next(later, None)
                if name is None:
                    later = None
                    entropy.load_module("time_machine", clock_files)
                    _share_memory()
                else:
                    with suppress(ImportError):
                        import_module(name)
                continue
            # A request never begins in one message and ends in another: the host sends it in one piece.
            request, fds, _, _ = socket.recv_fds(self.control, REQUEST.size, 1)
            if not request:
                return
            command, pid = REQUEST.unpack(request)
            if command in (FORK, FORK_SEEDED):
                if command == FORK_SEEDED:
                    entropy.load_module("time_machine", clock_files)
                self._fork(fds[0], command == FORK_SEEDED)
            elif command == END:
                _kill(pid)
                self._ended.append(pid)  # that it is gone takes a moment, for which nobody waits
            else:
                _kill(pid)
                self.control.sendall(REPLY.pack(_status(pid, 0) or 0))
            self._ended = [pid for pid in self._ended if _status(pid, os.WNOHANG) is None]

    def _fork(self, fd: int, is_seeded: bool) -> None:
        pid = os.fork()
        if pid == 0:
            self.control.close()
            self._become_child(fd, is_seeded)
        os.close(fd)
        self.control.sendall(REPLY.pack(pid))

    def _become_child(self, fd: int, is_seeded: bool) -> NoReturn:
        try:
            die_with_parent()
            limit_resources(self._memory_bytes)
            self._confinement.restrict_calls()
            worker.serve(fd, is_seeded=is_seeded)
        finally:
            os._exit(0)


def _share_memory() -> None:
    """Keep the collector off what is there now, so that children go on sharing its memory."""
    gc.collect()
    gc.freeze()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _status(pid: int, options: int) -> int | None:
    """How a child ended; None if it has not yet."""
    try:
        reaped, status = os.waitpid(pid, options)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status) if reaped else None


def _readable_paths(import_roots: list[str], clock_files: dict[str, str]) -> list[str]:
    """The standard library without the folders of installed packages, time zones, and the import roots."""
    paths: list[str] = ["/dev/null", "/dev/urandom", "/usr/share/zoneinfo", *import_roots]
    paths += clock_files.values()
    if import_roots:  # compiled packages bring libraries of the system with them
        paths += _SYSTEM_LIBRARIES
    for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
        with suppress(OSError):
            names = os.listdir(folder)
            paths += [f"{folder}/{name}" for name in names if name not in ("site-packages", "dist-packages")]
    return paths
