"""Randomness and time of an episode with a seed: derived for each call from the seed and the call's depth.

So the same calls give the same ids and times in whatever process they run, and no id comes twice on a path.
Randomness that Python code can ask for is covered (`random`, `secrets`, `uuid`, `os.urandom`), and the clocks
of `time` and `datetime`; compiled extension modules may have sources of their own.
"""

import hashlib
import os
import random
import sys
import uuid
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

__all__ = ["Entropy", "load_module"]

# Calls are a minute apart, from the beginning of 2026 (UTC); each look at the clock is a microsecond later.
_EPOCH_NS = 1_767_225_600 * 10**9
_CALL_NS = 60 * 10**9
_LOOK_NS = 1_000

_unseeded_random_seed = random.Random.seed


def load_module(name: str, files: dict[str, str]) -> None:
    """Import a module from its file, if there is one: no folder of packages can be read here."""
    if name in sys.modules or name not in files:
        return
    spec = spec_from_file_location(name, files[name])
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


class Entropy:
    """This process's randomness and clock, from a seed. Made once, before foreign code is loaded."""

    def __init__(self) -> None:
        self._key = b""
        self._counter = 0
        self._clock = _stepping_clock()
        os.urandom = self.take
        if hasattr(os, "getrandom"):
            os.getrandom = lambda size, flags=0: self.take(size)
        random._urandom = self.take  # type: ignore[attr-defined]
        random.Random.seed = self._seed_random  # type: ignore[method-assign]
        uuid._node = 0x02_00_00_00_00_00  # type: ignore[attr-defined] # a locally administered address

    def begin(self, seed: str, depth: int) -> None:
        """What comes is of the call at this depth."""
        self._key = hashlib.sha256(f"{seed}/{depth}".encode()).digest()
        self._counter = 0
        random.seed(int.from_bytes(self._key, "big"))
        self._clock.set_ns(_EPOCH_NS + depth * _CALL_NS)

    def take(self, size: int) -> bytes:
        """So many bytes, other ones each time."""
        self._counter += 1
        return hashlib.shake_256(self._key + self._counter.to_bytes(8, "big")).digest(size)

    @property
    def _seed_random(self) -> Any:
        entropy = self

        def seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
            _unseeded_random_seed(
                generator, int.from_bytes(entropy.take(32), "big") if a is None else a, version
            )

        return seed


def _stepping_clock() -> Any:
    import time_machine  # only where an episode has a seed; loaded by `load_module`

    class SteppingClock(time_machine.Traveller):
        """A clock that stands, but for a step at each look, so that code which waits for it ends."""

        def time_ns(self) -> int:
            self._destination_timestamp_ns += _LOOK_NS
            return self._destination_timestamp_ns

        def set_ns(self, value: int) -> None:
            self._destination_timestamp_ns = value
            uuid._last_timestamp = None  # type: ignore[attr-defined]

    clock = SteppingClock(_EPOCH_NS, None, False)
    time_machine.travel(0, tick=False).start()
    time_machine.traveller_stack[:] = [clock]
    return clock
