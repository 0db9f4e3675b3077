"""Environment code at work: loaded, constructed, resumed and checked in confined children of warm zygotes."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from langchain_envscaler.environments.limits import Limits
from langchain_envscaler.environments.metadata import Check, EnvironmentSpec
from langchain_envscaler.environments.sandbox.child import (
    Child,
    ChildEndedError,
    ChildError,
    ChildTimeoutError,
    Reply,
)
from langchain_envscaler.environments.sandbox.host import IsolationReport, Zygote, ZygoteGoneError
from langchain_envscaler.errors import DataError, InfrastructureError, UsageError

__all__ = ["Runtime"]

_ATTEMPTS = 4
_COMPILED_KEPT = 512

T = TypeVar("T")


class Runtime:
    """Starts confined children. Safe for use by several threads."""

    def __init__(self, limits: Limits, *, require_isolation: bool = False) -> None:
        self.limits = limits
        self._require_isolation = require_isolation
        self._lock = threading.Lock()
        self._zygotes: dict[tuple[str, ...], Zygote] = {}
        self._compiled: OrderedDict[str, bytes] = OrderedDict()
        self._closed = False

    @property
    def isolation(self) -> IsolationReport:
        """The level of isolation on this machine.

        Raises:
            InfrastructureError: The sandbox does not start, or is below the level that was required.
        """
        return self._zygote(()).isolation

    def construct(
        self, spec: EnvironmentSpec, init_config: dict[str, Any], clock: Any
    ) -> tuple[Child, bytes]:
        """A child with a new instance, and its state.

        Raises:
            DataError: The environment cannot be loaded or constructed.
        """

        def attempt() -> tuple[Child, bytes]:
            child = self._loaded(spec)
            message = {"do": "construct", "init_config": init_config, "clock": clock}
            reply = self._ask(child, message, b"", self.limits.start_seconds)
            if not reply.message["ok"]:
                child.close()
                raise DataError(
                    f"expected environment {spec.env_id!r} to start from its configuration, found: "
                    f"{reply.message.get('error')}"
                )
            return child, reply.blob

        return self._retried(attempt, f"environment {spec.env_id!r} to start")

    def resume(self, spec: EnvironmentSpec, state: bytes) -> Child:
        """A child with an instance that has this state.

        Raises:
            InfrastructureError: The state cannot be put back.
        """

        def attempt() -> Child:
            child = self._loaded(spec)
            reply = self._ask(child, {"do": "restore"}, state, self.limits.start_seconds)
            if not reply.message["ok"]:
                child.close()
                raise InfrastructureError(
                    f"expected a stored state of environment {spec.env_id!r} to load, found: "
                    f"{reply.message.get('error')}"
                )
            return child

        return self._retried(attempt, f"environment {spec.env_id!r} to wake up")

    def check(
        self, spec: EnvironmentSpec, check: Check, final: bytes, initial: bytes
    ) -> tuple[bool, str | None]:
        """Run one check in a child of its own.

        Returns:
            Whether it passed, and why not where it did not just return False.

        Raises:
            InfrastructureError: The check could not be run, so that nothing is known about it.
        """
        compiled = self.compiled(spec)
        message = {
            "do": "check",
            "source": check.check_func,
            "final_length": len(final),
            "initial_length": len(initial),
        }

        def attempt() -> tuple[bool, str | None]:
            child = self._fork(spec)
            try:
                reply = child.request(message, final + initial + compiled, seconds=self.limits.check_seconds)
            except ChildEndedError as error:
                if error.was_killed:
                    raise
                return False, str(error)
            except ChildTimeoutError as error:
                return False, str(error)
            except ChildError as error:
                return False, str(error)
            finally:
                child.close()
            return self._verdict(reply)

        return self._retried(attempt, f"a check of environment {spec.env_id!r} to run")

    @staticmethod
    def _verdict(reply: Reply) -> tuple[bool, str | None]:
        message = reply.message
        if message.get("unreadable"):
            raise InfrastructureError(
                f"expected a stored state to load for a check, found: {message.get('error')}"
            )
        if not message["ok"]:
            return False, str(message.get("error"))
        reason = message.get("reason")
        return message.get("passed") is True, reason if isinstance(reason, str) else None

    def compiled(self, spec: EnvironmentSpec) -> bytes:
        """The environment's code in compiled form, which only children read.

        Raises:
            DataError: It cannot be compiled.
        """
        key = hashlib.sha256(spec.env_class_code.encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            if (known := self._compiled.get(key)) is not None:
                self._compiled.move_to_end(key)
                return known
        compiled = self._retried(lambda: self._compile(spec), f"environment {spec.env_id!r} to be compiled")
        with self._lock:
            self._compiled[key] = compiled
            while len(self._compiled) > _COMPILED_KEPT:
                self._compiled.popitem(last=False)
        return compiled

    def _compile(self, spec: EnvironmentSpec) -> bytes:
        child = self._fork(spec)
        try:
            message = {"do": "compile", "source": spec.env_class_code}
            reply = self._ask(child, message, b"", self.limits.start_seconds)
        finally:
            child.close()
        if not reply.message["ok"]:
            raise DataError(
                f"expected the code of environment {spec.env_id!r} to compile, found: {reply.message.get('error')}"
            )
        return reply.blob

    def _loaded(self, spec: EnvironmentSpec) -> Child:
        """A child that has loaded the environment's code."""
        compiled = self.compiled(spec)
        child = self._fork(spec)
        message = {"do": "load", "class_name": spec.env_class_name}
        reply = self._ask(child, message, compiled, self.limits.start_seconds)
        if not reply.message["ok"]:
            child.close()
            raise DataError(
                f"expected the code of environment {spec.env_id!r} to load, found: {reply.message.get('error')}"
            )
        return child

    def _ask(self, child: Child, message: Any, blob: bytes, seconds: float) -> Reply:
        """A request while an environment starts: what goes wrong there is the environment's fault."""
        try:
            return child.request(message, blob, seconds=seconds)
        except ChildEndedError as error:
            if error.was_killed:
                raise
            raise DataError(f"expected an environment to start, found: {error}") from None
        except ChildError as error:
            raise DataError(f"expected an environment to start, found: {error}") from None

    def _retried(self, attempt: Callable[[], T], what: str) -> T:
        """Try again where a child or a zygote was killed from outside: nothing was committed yet."""
        for _ in range(_ATTEMPTS):
            with suppress(ChildEndedError, ZygoteGoneError):
                return attempt()
        raise InfrastructureError(
            f"expected {what}, found its process killed {_ATTEMPTS} times; is the machine out of memory?"
        )

    def _fork(self, spec: EnvironmentSpec) -> Child:
        return self._zygote(spec.import_roots).fork()

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
                    f"expected full isolation, found: {zygote.isolation.detail}; "
                    "run on Linux 5.13 or later, or do not require isolation"
                )
            self._zygotes[import_roots] = zygote
            return zygote

    def close(self) -> None:
        """End all children."""
        with self._lock:
            self._closed = True
            for zygote in self._zygotes.values():
                zygote.close()
            self._zygotes.clear()
