"""What a child gives up for good before it runs foreign code. Runs in the child; no privilege is needed.

Landlock (Linux 5.13 and later) limits files, seccomp limits system calls, resource limits bound memory. Each
can only be narrowed from there.
"""

import ctypes
import os
import resource
import struct
from collections.abc import Iterable

from langchain_envscaler.environments.sandbox.syscalls import ARCHITECTURES, filter_program

__all__ = ["Confinement", "die_with_parent", "drop_privileges", "limit_resources", "restrict_files"]

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_SIGKILL = 9

# The same numbers on every architecture (asm-generic).
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION, _RULE_PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# Rights to handle, so that each not granted is denied: how many file rights each ABI version knows.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_ALL_NETWORK, _ALL_SCOPES = 0b11, 0b11  # bind and connect TCP (ABI 4); abstract sockets and signals (ABI 6)


def _prctl(option: int, value: int, pointer: "ctypes.c_void_p | int" = 0) -> None:
    zero = ctypes.c_ulong(0)
    if _libc.prctl(option, ctypes.c_ulong(value), pointer or zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def landlock_version() -> int:
    """The Landlock ABI of this kernel; 0 where there is none."""
    version = _libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _CREATE_RULESET_VERSION)
    return max(int(version), 0)


def restrict_files(readable: Iterable[str]) -> int:
    """Give up every file, TCP port, outside signal and abstract socket but the readable paths, for reading.

    Returns:
        The Landlock ABI in force; 0 if the kernel has none, and nothing was restricted.

    Raises:
        OSError: The kernel has Landlock, but refused.
    """
    abi = landlock_version()
    if abi == 0:
        return 0
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    file_rights = (1 << _FILE_RIGHTS[min(abi, 5)]) - 1
    attributes = struct.pack("=Q", file_rights)
    if abi >= 4:
        attributes += struct.pack("=Q", _ALL_NETWORK)
    if abi >= 6:
        attributes += struct.pack("=Q", _ALL_SCOPES)
    ruleset = _checked(
        _libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock"
    )
    for path in readable:
        _allow_reading(ruleset, path)
    _checked(_libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)
    return abi


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not there: nothing to read
    rights = _READ_FILE | _READ_DIR if os.path.isdir(path) else _READ_FILE
    rule = struct.pack("=Qi", rights, fd)
    result = _libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    os.close(fd)
    _checked(result, f"landlock rule for {path}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


class Confinement:
    """A seccomp filter made ready once, for many children to put on."""

    def __init__(self) -> None:
        machine = os.uname().machine
        self._program: _FilterProgram | None = None
        if os.uname().sysname == "Linux" and machine in ARCHITECTURES:
            self._code = filter_program(machine)
            self._program = _FilterProgram(len(self._code) // 8, self._code)

    def restrict_calls(self) -> bool:
        """Give up every system call but the allowed ones.

        Returns:
            False if this system has no such filter, and nothing was restricted.

        Raises:
            OSError: The kernel has seccomp, but refused.
        """
        if self._program is None:
            return False
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        try:
            _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.pointer(self._program))  # type: ignore[arg-type]
        except OSError as error:
            if error.errno == 22:  # EINVAL: a kernel built without seccomp filters
                return False
            raise
        return True


def die_with_parent() -> None:
    """Be killed as soon as the parent process ends."""
    if os.uname().sysname == "Linux":
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def drop_privileges() -> None:
    """Give up all capabilities and the right of others of the same user to look into this process."""
    if os.uname().sysname != "Linux":
        return
    _prctl(_PR_SET_DUMPABLE, 0)
    header = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    _libc.capset(header, bytes(24))


def limit_resources(memory_bytes: int) -> None:
    """Bound address space, open files, file size and core dumps, as far as the system has these limits."""
    wanted = {"RLIMIT_AS": memory_bytes, "RLIMIT_NOFILE": 64, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0}
    for name, value in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError):
            continue  # macOS refuses some; the level reported says that limits are partial
