"""The process that holds an episode's instance: woken from a stored state, asked, thrown away.

It is only a cache. What counts is in the store; so a process may be killed at any time, by anyone.
"""

import json
from dataclasses import dataclass
from typing import Any

from langchain_envscaler.environments.metadata import EnvironmentSpec
from langchain_envscaler.environments.runtime import Runtime
from langchain_envscaler.environments.sandbox.child import (
    Child,
    ChildEndedError,
    ChildError,
    ChildTimeoutError,
)
from langchain_envscaler.environments.sandbox.host import ZygoteGoneError
from langchain_envscaler.errors import DataError, InfrastructureError

__all__ = ["EpisodeProcess", "Outcome", "refused"]

_MAX_REASON = 2000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running a call gave; nothing of it is recorded yet."""

    text: str
    data: Any
    is_error: bool
    result: bytes
    """The same as JSON."""
    state: bytes | None = None
    """None where the call left the state as it was."""
    log: str = ""
    """What the environment printed."""


def refused(text: str) -> Outcome:
    """The outcome of a call that did not run, or of which nothing is kept."""
    result = json.dumps({"text": text, "data": text, "is_error": True}).encode()
    return Outcome(text, text, True, result)


class EpisodeProcess:
    """At most one process, which holds the state of one revision. Not for use by several threads at once."""

    def __init__(self, runtime: Runtime, spec: EnvironmentSpec, *, is_seeded: bool) -> None:
        self._runtime = runtime
        self._spec = spec
        self._is_seeded = is_seeded
        self._child: Child | None = None
        self._revision = -1

    @property
    def is_awake(self) -> bool:
        """Whether there is a process."""
        return self._child is not None

    @property
    def pid(self) -> int | None:
        """The process's id."""
        return None if self._child is None else self._child.pid

    @property
    def revision(self) -> int:
        """The revision whose state the process holds, if there is one."""
        return self._revision

    def hold(self, child: Child, revision: int) -> None:
        """Take over a process that has this revision's state."""
        self._child, self._revision = child, revision

    def moved_on(self, revision: int) -> None:
        """What the process holds is this revision's state now: its last call was recorded."""
        self._revision = revision

    def holds(self, revision: int) -> bool:
        """Whether the process has this revision's state, and is alive and quiet."""
        return self._child is not None and self._revision == revision and self._child.is_idle

    def discard(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def wake(self, revision: int, state: bytes) -> None:
        """Start a process with a stored state."""
        self.discard()
        self.hold(self._runtime.resume(self._spec, state, is_seeded=self._is_seeded), revision)

    def call(self, name: str, arguments: dict[str, Any], clock: list[Any] | None) -> Outcome | None:
        """Call a tool.

        Returns:
            None if the process was killed from outside before it answered: then nothing happened, and the
            call can be made again in another one.
        """
        limits = self._runtime.limits
        message = {
            "do": "call",
            "name": name,
            "arguments": arguments,
            "max_chars": limits.max_observation_chars,
        }
        if clock is not None:
            message["clock"] = clock
        child = self._child
        if child is None:
            return None
        try:
            reply = child.request(message, seconds=limits.call_seconds)
        except ChildTimeoutError:
            self._child = None
            return _nothing_kept(f"{name} was stopped after {limits.call_seconds:g} s without an answer")
        except ChildError as error:
            self._child = None
            if isinstance(error, ChildEndedError) and error.was_killed:
                return None
            return _nothing_kept(f"{name} failed: {error}")
        answer = reply.message
        if not answer["ok"]:
            self.discard()
            return _nothing_kept(
                f"{name} left a state that cannot be kept: {str(answer.get('error'))[:2000]}"
            )
        text, is_error = answer.get("text"), answer.get("is_error")
        if type(text) is not str or type(is_error) is not bool or "data" not in answer:
            self.discard()
            return _nothing_kept(f"{name} gave no readable result")
        return Outcome(
            text, answer["data"], is_error, reply.text, reply.blob or None, str(answer.get("log", ""))
        )

    def state_form(self) -> dict[str, Any]:
        """The JSON form of the state that the process holds.

        Raises:
            DataError: It has none.
            InfrastructureError: The process ended.
        """
        if self._child is None:
            raise InfrastructureError("expected a process that holds the state, found none")
        return state_form(self._child, self._runtime.limits.start_seconds)


def state_form(child: Child, seconds: float) -> dict[str, Any]:
    """The JSON form of the state that a child holds."""
    try:
        reply = child.request({"do": "state"}, seconds=seconds)
    except (ChildError, ZygoteGoneError) as error:
        raise InfrastructureError(f"expected the state of an episode, found: {error}") from None
    form = reply.message.get("state")
    if not reply.message["ok"] or not isinstance(form, dict):
        raise DataError(f"expected a state that has a JSON form; {reply.message.get('error')}")
    return form


def _nothing_kept(what: str) -> Outcome:
    return refused(f"The call of {what[:_MAX_REASON]}. Nothing that it did was kept.")
