"""Environment code at work: loaded, constructed, resumed and checked in confined children of warm zygotes."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from langchain_envscaler.environments.limits import Limits
from langchain_envscaler.environments.metadata import Check, EnvironmentSpec
from langchain_envscaler.environments.sandbox.child import Child, ChildEndedError, ChildError, Reply
from langchain_envscaler.environments.sandbox.host import IsolationReport, Zygote, ZygoteGoneError
from langchain_envscaler.environments.sandbox.names import MODULE_NAME
from langchain_envscaler.errors import DataError, InfrastructureError, UsageError

__all__ = ["Runtime"]

_ATTEMPTS = 4
_COMPILED_KEPT = 512
# What is sent to a child before it is needed has to fit into the buffer of its socket.
_MAX_STANDBY_CODE = 128 * 1024
_CHECKS_AT_ONCE = 3

T = TypeVar("T")


class Runtime:
    """Starts confined children. Safe for use by several threads."""

    def __init__(self, limits: Limits, *, require_isolation: bool = False, max_standby: int = 8) -> None:
        """
        Args:
            limits: What a child may use.
            require_isolation: Refuse to run anything below full isolation.
            max_standby: How many children, each of another environment, wait with its code loaded.
        """
        self.limits = limits
        self._require_isolation = require_isolation
        self._max_standby = max_standby
        self._lock = threading.Lock()
        self._zygotes: dict[tuple[str, ...], Zygote] = {}
        self._compiled: OrderedDict[str, bytes] = OrderedDict()
        self._standby: OrderedDict[tuple[str, str, tuple[str, ...], bool], Child] = OrderedDict()
        self._closed = False

    @property
    def isolation(self) -> IsolationReport:
        """The level of isolation on this machine.

        Raises:
            InfrastructureError: The sandbox does not start, or is below the level that was required.
        """
        return self._zygote(()).isolation

    # ------------------------------------------------------------------ episodes

    def construct(
        self, spec: EnvironmentSpec, init_config: dict[str, Any], clock: list[Any] | None
    ) -> tuple[Child, bytes]:
        """A child with a new instance, and its state.

        Raises:
            DataError: The environment cannot be loaded or constructed.
        """
        message = {"do": "construct", "init_config": init_config}
        if clock is not None:
            message["clock"] = clock

        def attempt() -> tuple[Child, bytes]:
            child = self._loaded(spec, is_seeded=clock is not None)
            what = f"environment {spec.env_id!r} to start from its configuration"
            return child, self._ask(child, message, b"", what).blob

        return self._retried(attempt, f"environment {spec.env_id!r} to start")

    def resume(self, spec: EnvironmentSpec, state: bytes, *, is_seeded: bool = False) -> Child:
        """A child with an instance that has this state.

        Raises:
            DataError: The state cannot be put back.
        """

        def attempt() -> Child:
            child = self._loaded(spec, is_seeded=is_seeded)
            self._ask(
                child, {"do": "restore"}, state, f"a stored state of environment {spec.env_id!r} to load"
            )
            return child

        return self._retried(attempt, f"environment {spec.env_id!r} to wake up")

    def _loaded(self, spec: EnvironmentSpec, *, is_seeded: bool) -> Child:
        """A child that has loaded the environment's code; the next one is made ready as this one is taken."""
        key = (_code_hash(spec), spec.env_class_name, spec.import_roots, is_seeded)
        with self._lock:
            child = self._standby.pop(key, None)
        if child is None:
            child = self._loading(spec, is_seeded=is_seeded)
        try:
            reply = child.receive(seconds=self.limits.start_seconds)
        except ChildError as error:
            raise _as_data_error(error, f"the code of environment {spec.env_id!r} to load") from None
        _demand(child, reply, f"the code of environment {spec.env_id!r} to load")
        self._make_ready(key, spec)
        return child

    def _loading(self, spec: EnvironmentSpec, *, is_seeded: bool) -> Child:
        """A child that is about to load the environment's code, and will say so."""
        compiled = self.compiled(spec)
        child = self._zygote(spec.import_roots).fork(is_seeded=is_seeded)
        message = {"do": "load", "class_name": spec.env_class_name}
        child.send(message, compiled, seconds=self.limits.start_seconds)
        return child

    def _make_ready(self, key: tuple[str, str, tuple[str, ...], bool], spec: EnvironmentSpec) -> None:
        if self._max_standby == 0 or len(self.compiled(spec)) > _MAX_STANDBY_CODE:
            return
        with self._lock:
            if key in self._standby or self._closed:
                return
        with suppress(ChildError, ZygoteGoneError):
            child = self._loading(spec, is_seeded=key[3])
            with self._lock:
                surplus = [child] if self._closed else [self._standby.pop(key, None)]
                if not self._closed:
                    self._standby[key] = child
                while len(self._standby) > self._max_standby:
                    surplus.append(self._standby.popitem(last=False)[1])
            for other in surplus:
                if other is not None:
                    other.close()

    # ------------------------------------------------------------------ checks

    def check(
        self, spec: EnvironmentSpec, checks: Sequence[Check], final: bytes, initial: bytes
    ) -> list[tuple[bool, str | None]]:
        """Run checks, each in a child of its own and on a copy of its own of the states.

        Returns:
            Of each, whether it passed, and why not where it did anything but return False.

        Raises:
            InfrastructureError: A check could not be run, so that nothing is known about it.
        """
        # The environment's code goes with states that hold instances of its classes.
        of_module = MODULE_NAME.encode() in final + initial
        blob = final + initial + (self.compiled(spec) if of_module else b"")
        lengths = {"final_length": len(final), "initial_length": len(initial)}
        messages = [{"do": "check", "source": check.check_func, **lengths} for check in checks]
        return list(self._checked(spec, messages, blob))

    def _checked(
        self, spec: EnvironmentSpec, messages: Sequence[dict[str, Any]], blob: bytes
    ) -> Iterator[tuple[bool, str | None]]:
        """The verdicts in order; a few children work at a time."""
        working: list[Child] = []
        try:
            for index, message in enumerate(messages):
                for later in messages[index + len(working) : index + _CHECKS_AT_ONCE]:
                    working.append(self._started(spec, later, blob))
                yield self._verdict(spec, working.pop(0), message, blob)
        finally:
            for child in working:
                child.close()

    def _started(self, spec: EnvironmentSpec, message: dict[str, Any], blob: bytes) -> Child:
        def attempt() -> Child:
            child = self._zygote(spec.import_roots).fork()
            # A child that is gone already is noticed when its answer is waited for.
            with suppress(ChildError):
                child.send(message, blob, seconds=self.limits.check_seconds)
            return child

        return self._retried(attempt, f"a check of environment {spec.env_id!r} to run")

    def _verdict(
        self, spec: EnvironmentSpec, child: Child, message: dict[str, Any], blob: bytes
    ) -> tuple[bool, str | None]:
        first: list[Child] = [child]

        def attempt() -> tuple[bool, str | None]:
            child = first.pop() if first else self._started(spec, message, blob)
            try:
                return _verdict(child.receive(seconds=self.limits.check_seconds))
            except ChildEndedError as error:
                if error.was_killed:
                    raise
                return False, str(error)
            except ChildError as error:
                return False, str(error)
            finally:
                child.close()

        return self._retried(attempt, f"a check of environment {spec.env_id!r} to run")

    # ------------------------------------------------------------------ code

    def compiled(self, spec: EnvironmentSpec) -> bytes:
        """The environment's code in compiled form, which only children read.

        Raises:
            DataError: It cannot be compiled.
        """
        key = _code_hash(spec)
        with self._lock:
            if (known := self._compiled.get(key)) is not None:
                return known
        compiled = self._retried(lambda: self._compile(spec), f"environment {spec.env_id!r} to be compiled")
        with self._lock:
            self._compiled[key] = compiled
            while len(self._compiled) > _COMPILED_KEPT:
                self._compiled.popitem(last=False)
        return compiled

    def _compile(self, spec: EnvironmentSpec) -> bytes:
        child = self._zygote(spec.import_roots).fork()
        message = {"do": "compile", "source": spec.env_class_code}
        blob = self._ask(child, message, b"", f"the code of environment {spec.env_id!r} to compile").blob
        child.close()
        return blob

    # ------------------------------------------------------------------ processes

    def _ask(self, child: Child, message: dict[str, Any], blob: bytes, what: str) -> Reply:
        """A request while an environment starts: what goes wrong there is the environment's fault."""
        try:
            reply = child.request(message, blob, seconds=self.limits.start_seconds)
        except ChildError as error:
            raise _as_data_error(error, what) from None
        return _demand(child, reply, what)

    def _retried(self, attempt: Callable[[], T], what: str) -> T:
        """Try again where a child or a zygote was killed from outside: nothing was recorded yet."""
        for _ in range(_ATTEMPTS):
            with suppress(ChildEndedError, ZygoteGoneError):
                return attempt()
        raise InfrastructureError(
            f"expected {what}, found its process killed {_ATTEMPTS} times; is the machine out of memory?"
        )

    def _zygote(self, import_roots: tuple[str, ...]) -> Zygote:
        with self._lock:
            if self._closed:
                raise UsageError("expected an open service, found a closed one; make another")
            zygote = self._zygotes.get(import_roots)
            if zygote is not None and zygote.is_running:
                return zygote
            if zygote is not None:
                zygote.close()
            zygote = Zygote(self.limits, import_roots)
            if self._require_isolation and zygote.isolation.level != "full":
                zygote.close()
                raise InfrastructureError(
                    f"expected full isolation, found {zygote.isolation.level}: {zygote.isolation.detail}; "
                    "use Linux 5.13 or later with Landlock, or do not require isolation"
                )
            self._zygotes[import_roots] = zygote
            return zygote

    def close(self) -> None:
        """End all children."""
        with self._lock:
            self._closed = True
            standby, self._standby = self._standby, OrderedDict()
            zygotes, self._zygotes = self._zygotes, {}
        for child in standby.values():
            child.close()
        for zygote in zygotes.values():
            zygote.close()


def _code_hash(spec: EnvironmentSpec) -> str:
    return hashlib.sha256(spec.env_class_code.encode("utf-8", "surrogatepass")).hexdigest()


def _demand(child: Child, reply: Reply, what: str) -> Reply:
    if not reply.message["ok"]:
        child.close()
        raise DataError(f"expected {what}, found {str(reply.message.get('error'))[:2000]}")
    return reply


def _as_data_error(error: ChildError, what: str) -> Exception:
    """The error for the caller; one to try again after, where something outside killed the child."""
    if isinstance(error, ChildEndedError) and error.was_killed:
        return error
    return DataError(f"expected {what}, found: {error}")


def _verdict(reply: Reply) -> tuple[bool, str | None]:
    message = reply.message
    if message.get("unreadable"):
        raise InfrastructureError(
            f"expected a stored state to load for a check, found {message.get('error')}"
        )
    if not message["ok"]:
        return False, str(message.get("error"))
    reason = message.get("reason")
    return message.get("passed") is True, reason if isinstance(reason, str) else None
