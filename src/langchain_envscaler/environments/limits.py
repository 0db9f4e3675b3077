"""What environment code may use."""

from dataclasses import dataclass

__all__ = ["Limits"]

_MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """Bounds on one episode's process. Times are in seconds of the clock on the wall."""

    start_seconds: float = 30.0
    """To load an environment's code and to construct it."""
    call_seconds: float = 30.0
    """For one tool call."""
    check_seconds: float = 10.0
    """For one check of a scenario."""
    memory_bytes: int = 512 * _MIB
    """Address space of a process, the interpreter's own (about 60 MiB) included."""
    max_observation_chars: int = 256 * 1024
    """Of a result's text; what is longer is cut, with a note."""
    max_state_bytes: int = 64 * _MIB
    """Of a state as it is stored."""
    chain_seconds: float = 10.0
    """How long a call waits for the calls before it in the same message."""
