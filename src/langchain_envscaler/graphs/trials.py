"""What an evaluation leaves: its settings, the environments' tools, and one record per trial.

A folder of results holds `run.json` (a `RunRecord`), `environments.json` (an `EnvironmentRecord` by
`env_id`) and `trials.jsonl` (a `Trial` a line, in the order in which they ended). Reports, comparisons and
exports read these and nothing else.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from langchain_envscaler.environments.diff import StateChange
from langchain_envscaler.errors import DataError

__all__ = [
    "CheckRecord",
    "EnvironmentRecord",
    "RunRecord",
    "ToolCallRecord",
    "Trial",
    "TrialError",
    "TrialMessage",
    "Usage",
    "read_environments",
    "read_run",
    "read_trials",
]

RUN = "run.json"
ENVIRONMENTS = "environments.json"
TRIALS = "trials.jsonl"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class ToolCallRecord(_Record):
    """One tool call that the model wrote."""

    id: str | None
    name: str
    arguments: dict[str, JsonValue] | str
    """The arguments; their raw text where the call is invalid."""
    error: str | None = None
    """Why the call could not be read; None for a valid one."""


class TrialMessage(_Record):
    """One message of a transcript."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    reasoning: str | None = None
    tool_calls: tuple[ToolCallRecord, ...] = ()
    """Of an assistant's message."""
    tool_call_id: str | None = None
    """Of a tool's message: the call that it answers."""
    name: str | None = None
    """Of a tool's message: the tool."""
    is_error: bool = False
    """Of a tool's message: whether the call failed."""
    revision: int | None = None
    """Of a tool's message: the episode's revision after the call."""
    changes: tuple[StateChange, ...] = ()
    """Of a tool's message: what the call changed in the environment's state."""


class CheckRecord(_Record):
    """What one check found."""

    item: str
    passed: bool
    reason: str | None = None


class Usage(_Record):
    """Tokens of all model calls of a trial, as far as the model told."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0


class TrialError(_Record):
    """What kept a trial from being scored: a fault of the set-up, not of the model."""

    kind: str
    message: str


class Trial(_Record):
    """One attempt at one scenario."""

    env_id: str
    task_id: str
    trial: int
    """Which of the scenario's attempts, from 0."""
    seed: int | None
    """The episode's seed."""
    task: str
    messages: tuple[TrialMessage, ...] = ()
    reward: float | None
    """None where an error kept the trial from being scored."""
    idle_reward: float | None
    """What doing nothing earns: the share of checks that hold from the start."""
    checks: tuple[CheckRecord, ...] = ()
    ended: Literal["completed", "failed", "answered", "user", "max_steps", "max_turns", "limit", "error"]
    """Why it was over: the agent said Task Completed or Task Failed, or ended its turn without either; the
    user said that it was; a bound on steps, the user's turns, or tokens; an error."""
    model_calls: int = 0
    steps: int = 0
    """Tool calls that were answered."""
    invalid_calls: int = 0
    """Calls that could not be read, that name no tool, or that miss or make up arguments."""
    usage: Usage = Usage()
    seconds: float = 0.0
    """Wall time."""
    error: TrialError | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells a trial from every other of its run."""
        return self.env_id, self.task_id, self.trial

    @property
    def is_solved(self) -> bool:
        """Whether every check passed."""
        return self.reward == 1.0


class EnvironmentRecord(_Record):
    """What a reader of trials needs to know of an environment."""

    env_id: str
    summary: str = ""
    introduction: str = ""
    rules: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    """OpenAI's function schemas, as the model was given them."""


class RunRecord(_Record):
    """The settings of an evaluation."""

    model: str
    settings: dict[str, JsonValue] = {}
    """Everything else that a trial's outcome depends on: sampling, limits, the simulated user."""
    trials: int = 1
    """Attempts per scenario."""
    seed: int | None = None
    """The first attempt's seed; the others' follow."""
    version: str = ""
    """The package's version."""
    started_at: float = 0.0
    """Seconds since 1970."""


def read_run(folder: Path) -> RunRecord:
    """The settings of the run that left its results in a folder.

    Raises:
        DataError: There are none, or the file is not one.
    """
    path = folder / RUN
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"expected results of an evaluation in {folder}, found no {RUN}") from None
    except ValidationError as error:
        raise DataError(f"{path}: {_first(error)}") from None


def read_environments(folder: Path) -> dict[str, EnvironmentRecord]:
    """The environments of a run, by `env_id`; empty where the folder names none.

    Raises:
        DataError: The file cannot be read as such.
    """
    path = folder / ENVIRONMENTS
    if not path.exists():
        return {}
    try:
        entries = json.loads(path.read_bytes())
        return {env_id: EnvironmentRecord.model_validate(entry) for env_id, entry in entries.items()}
    except ValidationError as error:
        raise DataError(f"{path}: {_first(error)}") from None
    except (ValueError, AttributeError) as error:
        raise DataError(f"{path}: expected a JSON object of environments, found {error}") from None


def read_trials(folder: Path) -> Iterator[Trial]:
    """The trials in a folder, one at a time, in the order in which they ended.

    A last line that a killed process left unfinished is passed over.

    Raises:
        DataError: Another line is not a trial; its number is named.
    """
    path = folder / TRIALS
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield Trial.model_validate_json(line)
            except ValidationError as error:
                raise DataError(f"{path}, line {number}: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    detail = error.errors()[0]
    where = ".".join(str(part) for part in detail["loc"])
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])
