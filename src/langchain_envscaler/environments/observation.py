"""What an episode gives: observations of calls, evaluations, the records of its journal."""

from dataclasses import dataclass

from pydantic import JsonValue

__all__ = ["CallRecord", "CheckResult", "Evaluation", "Observation"]


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool call gave."""

    text: str
    """Python's `str` of what the tool returned, or what was wrong with the call."""
    data: JsonValue
    """The JSON form of what the tool returned; the text where it has none, and of an error."""
    is_error: bool
    call_id: str
    revision: int
    """The episode's revision after the call."""
    replayed: bool = False
    """Whether the call had been made before, and this is the result recorded then."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check of a scenario found."""

    item: str
    passed: bool
    reason: str | None = None
    """Why it did not pass, where it did anything but return False."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How far a scenario's goals were reached."""

    reward: float
    """The share of checks that returned exactly True, rounded to 4 places."""
    checks: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call in an episode's journal."""

    revision: int
    parent: int
    """The revision on which it ran."""
    depth: int
    """Calls from the start to this one, itself included."""
    base: int
    """The revision that the call named."""
    position: int | None
    """Its place among the calls of one message."""
    call_id: str
    name: str
    arguments: dict[str, JsonValue]
    text: str
    data: JsonValue
    is_error: bool
    created_at: float
    """Seconds since 1970."""
