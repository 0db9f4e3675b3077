"""The system calls that a confined child may make, as a seccomp filter.

Everything else is answered with EPERM: no process, no thread, no program, no socket, no signal, no timer, no
change of a file's name or attributes. Opening files is left to Landlock, which the process is under as well.
"""

import errno
import struct

__all__ = ["ARCHITECTURES", "filter_program"]

# What a Python process needs to run code, import from readable folders and answer on its pipe:
# name: (x86_64, aarch64), numbers from the kernel's tables; None where an architecture lacks the call.
_ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "open": (2, None),
    "close": (3, 57),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "poll": (7, None),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, None),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "fcntl": (72, 25),
    "getcwd": (79, 17),
    "readlink": (89, None),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "times": (100, 153),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getppid": (110, 173),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "time": (201, None),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "getdents64": (217, 61),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "openat": (257, 56),
    "newfstatat": (262, 79),
    "readlinkat": (267, 78),
    "faccessat": (269, 48),
    "ppoll": (271, 73),
    "set_robust_list": (273, 99),
    "getrandom": (318, 278),
    "rseq": (334, 293),
    "faccessat2": (439, 439),
}
# Calls whose callers expect another answer than EPERM: "not a terminal", and "use the older call".
_ANSWERED: dict[str, tuple[int, int, int]] = {
    "ioctl": (16, 29, errno.ENOTTY),
    "statx": (332, 291, errno.ENOSYS),
    "clone3": (435, 435, errno.ENOSYS),
    "openat2": (437, 437, errno.ENOSYS),
}

# machine (as os.uname tells it): (column of the tables, AUDIT_ARCH constant of linux/audit.h)
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
_NR_OFFSET, _ARCH_OFFSET = 0, 4  # in struct seccomp_data
_KILL_PROCESS, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000


def filter_program(machine: str) -> bytes:
    """The filter as an array of `struct sock_filter`.

    Raises:
        KeyError: The machine's system call numbers are not known here.
    """
    column, audit_arch = ARCHITECTURES[machine]
    steps = [
        (_LOAD_WORD, 0, 0, _ARCH_OFFSET),
        (_JUMP_EQUAL, 1, 0, audit_arch),
        (_RETURN, 0, 0, _KILL_PROCESS),  # a call by another architecture's numbers
        (_LOAD_WORD, 0, 0, _NR_OFFSET),
    ]
    for numbers in _ALLOWED.values():
        if (number := numbers[column]) is not None:
            steps += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for answered in _ANSWERED.values():
        steps += [(_JUMP_EQUAL, 0, 1, answered[column]), (_RETURN, 0, 0, _ERRNO | answered[2])]
    steps.append((_RETURN, 0, 0, _ERRNO | errno.EPERM))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
