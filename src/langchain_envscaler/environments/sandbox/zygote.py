"""The process that all confined children are forked from: warm, and running none of the foreign code itself.

It holds the interpreter and the standard modules that environments import. Its host asks it over a socket for
a child, handing it the child's end of a socket pair, and for a child's end. A child confines itself before it
reads its first request, so foreign code never runs in a process that is not confined, and no child can fork.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
import sysconfig
from contextlib import suppress
from typing import NoReturn

from langchain_envscaler.environments.sandbox import worker
from langchain_envscaler.environments.sandbox.confinement import (
    Confinement,
    die_with_parent,
    drop_privileges,
    limit_resources,
    restrict_files,
)

__all__ = ["main"]

# What environments import, and what the standard library imports only when first needed (`_strptime`).
_WARM = [
    "typing",
    "datetime",
    "uuid",
    "time",
    "re",
    "collections",
    "collections.abc",
    "ast",
    "json",
    "random",
    "math",
    "copy",
    "dataclasses",
    "enum",
    "string",
    "hashlib",
    "itertools",
    "functools",
    "decimal",
    "fractions",
    "statistics",
    "secrets",
    "calendar",
    "operator",
    "textwrap",
    "bisect",
    "heapq",
    "abc",
    "contextlib",
    "types",
    "inspect",
    "traceback",
    "io",
    "base64",
    "zlib",
    "bz2",
    "lzma",
    "_strptime",
    "locale",
    "numbers",
    "zoneinfo",
    "concurrent.futures",
    "threading",
    "pickle",
    "marshal",
    "unicodedata",
    "difflib",
    "html",
    "urllib.parse",
    "pprint",
    "warnings",
    "logging",
    "weakref",
    "encodings.idna",
    "stringprep",
]
_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


def main(control_fd: int, settings_text: str) -> None:
    """Serve the host until it closes the control socket."""
    settings = json.loads(settings_text)
    package_root = sys.path.pop()
    sys.path.extend(settings["import_roots"])
    for name in _WARM:
        with suppress(ImportError):
            importlib.import_module(name)
    sys.path_importer_cache.pop(package_root, None)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("800")  # children go first when the machine runs out of memory
    drop_privileges()
    abi = restrict_files(_readable_paths(settings["import_roots"]))
    confinement = Confinement()
    control = socket.socket(fileno=control_fd)
    filtered = _probe(confinement, settings["memory_bytes"])
    control.sendall(json.dumps({"landlock": abi, "seccomp": filtered}).encode() + b"\n")
    gc.collect()
    gc.freeze()  # children share these objects' memory, which a collection would copy
    _serve(control, confinement, settings["memory_bytes"])


def _serve(control: socket.socket, confinement: Confinement, memory_bytes: int) -> None:
    while True:
        try:
            request, fds, _, _ = socket.recv_fds(control, 64, 1)
        except OSError:
            return
        if not request:
            return
        if request[:1] == b"F":
            pid = os.fork()
            if pid == 0:
                control.close()
                _become_child(fds[0], confinement, memory_bytes)
            os.close(fds[0])
            control.sendall(b"%d\n" % pid)
        else:
            control.sendall(b"%d\n" % _end_child(int(request[1:])))


def _become_child(fd: int, confinement: Confinement, memory_bytes: int) -> NoReturn:
    try:
        die_with_parent()
        limit_resources(memory_bytes)
        confinement.restrict_calls()
        worker.serve(fd)
    finally:
        os._exit(0)


def _end_child(pid: int) -> int:
    """Kill a child and tell how it ended: as a shell counts, an exit code, or minus a signal's number."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 0


def _probe(confinement: Confinement, memory_bytes: int) -> bool:
    """Whether a child can put on the filter here: tried in a child, since it cannot be taken off."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            limit_resources(memory_bytes)
            code = 0 if confinement.restrict_calls() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _readable_paths(import_roots: list[str]) -> list[str]:
    """The standard library without the folders of installed packages, time zones, and the import roots."""
    paths: list[str] = ["/dev/null", "/dev/urandom", "/usr/share/zoneinfo", *import_roots]
    if import_roots:  # compiled packages bring libraries of the system with them
        paths += [*_SYSTEM_LIBRARIES, "/etc/ld.so.cache"]
    for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
        with suppress(OSError):
            names = os.listdir(folder)
            paths += [f"{folder}/{name}" for name in names if name not in ("site-packages", "dist-packages")]
    return paths
