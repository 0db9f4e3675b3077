"""The records that cross the wire, in HTTP responses and in the results of host tools."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from langchain_envscaler.environments.diff import StateChange
from langchain_envscaler.environments.metadata import EnvironmentSpec, Scenario
from langchain_envscaler.mcp.paging import page

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.episode import CallRecord, Episode, Evaluation

__all__ = [
    "CallEntry",
    "CheckOutcome",
    "EnvironmentPage",
    "EnvironmentRecord",
    "EnvironmentSummary",
    "EpisodePage",
    "EpisodeRecord",
    "EvaluationRecord",
    "Health",
    "ScenarioPage",
    "ScenarioRecord",
    "ScenarioSummary",
    "SnapshotRecord",
    "StateDiff",
    "StateRecord",
    "TrajectoryPage",
]


class EnvironmentSummary(BaseModel):
    """An environment in a list."""

    env_id: str
    summary: str
    tools: int
    scenarios: int


class EnvironmentPage(BaseModel):
    """A page of environments."""

    environments: list[EnvironmentSummary]
    next_cursor: int | None

    @classmethod
    def of(cls, catalog: "Catalog", cursor: int, limit: int) -> "EnvironmentPage":
        specs, next_cursor = page(list(catalog.environments.values()), cursor, limit)
        scenarios = Counter(scenario.env_id for scenario in catalog.scenarios)
        summaries = [
            EnvironmentSummary(
                env_id=spec.env_id,
                summary=spec.environment_summary,
                tools=len(spec.tools),
                scenarios=scenarios[spec.env_id],
            )
            for spec in specs
        ]
        return cls(environments=summaries, next_cursor=next_cursor)


class EnvironmentRecord(BaseModel):
    """An environment: its texts and its tools, as OpenAI function schemas."""

    env_id: str
    summary: str
    introduction: str
    rules: list[str]
    tools: list[dict[str, Any]]

    @classmethod
    def of(cls, spec: EnvironmentSpec) -> "EnvironmentRecord":
        return cls(
            env_id=spec.env_id,
            summary=spec.environment_summary,
            introduction=spec.environment_introduction,
            rules=spec.constraints_rules,
            tools=spec.tools,
        )


class ScenarioSummary(BaseModel):
    """A scenario in a list."""

    task_id: str
    task: str
    checks: int

    @classmethod
    def of(cls, scenario: Scenario) -> "ScenarioSummary":
        return cls(task_id=scenario.task_id, task=scenario.task, checks=len(scenario.checklist_with_func))


class ScenarioPage(BaseModel):
    """A page of an environment's scenarios."""

    scenarios: list[ScenarioSummary]
    next_cursor: int | None

    @classmethod
    def of(cls, catalog: "Catalog", env_id: str, cursor: int, limit: int) -> "ScenarioPage":
        catalog.environment(env_id)
        scenarios, next_cursor = page(catalog.scenarios_of(env_id), cursor, limit)
        return cls(scenarios=[ScenarioSummary.of(one) for one in scenarios], next_cursor=next_cursor)


class ScenarioRecord(BaseModel):
    """A scenario: its task and the state it starts from."""

    env_id: str
    task_id: str
    task: str
    init_config: dict[str, Any]
    checks: list[str]

    @classmethod
    def of(cls, scenario: Scenario) -> "ScenarioRecord":
        return cls(
            env_id=scenario.env_id,
            task_id=scenario.task_id,
            task=scenario.task,
            init_config=scenario.init_config,
            checks=[check.check_item for check in scenario.checklist_with_func] or list(scenario.checklist),
        )


class EpisodeRecord(BaseModel):
    """An episode and where to reach it."""

    episode_id: str
    env_id: str
    task_id: str | None
    task: str | None
    revision: Annotated[int, Field(description="The newest revision; 0 is the start")]
    url: Annotated[str | None, Field(description="The address of its MCP endpoint")] = None

    @classmethod
    def of(cls, episode: "Episode", base_url: str | None = None) -> "EpisodeRecord":
        scenario = episode.scenario
        return cls(
            episode_id=episode.episode_id,
            env_id=episode.spec.env_id,
            task_id=scenario.task_id if scenario else None,
            task=scenario.task if scenario else None,
            revision=episode.revision,
            url=None if base_url is None else f"{base_url}/episodes/{episode.episode_id}/mcp",
        )


class EpisodePage(BaseModel):
    """A page of the caller's episodes."""

    episodes: list[EpisodeRecord]
    next_cursor: int | None


class StateRecord(BaseModel):
    """A state, as JSON."""

    revision: int
    state: dict[str, Any]


class StateDiff(BaseModel):
    """How a state changed between two revisions."""

    since: int
    until: int
    changes: list[StateChange]


class CallEntry(BaseModel):
    """One call of a trajectory, with what it answered."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    observation: str
    is_error: bool
    parent: Annotated[int, Field(description="The revision that it ran on")]
    revision: Annotated[int, Field(description="The revision that it made")]

    @classmethod
    def of(cls, record: "CallRecord") -> "CallEntry":
        return cls(
            call_id=record.call_id,
            name=record.name,
            arguments=record.arguments,
            observation=record.text,
            is_error=record.is_error,
            parent=record.parent,
            revision=record.revision,
        )


class TrajectoryPage(BaseModel):
    """A page of the calls that led to the newest revision."""

    calls: list[CallEntry]
    next_cursor: int | None


class CheckOutcome(BaseModel):
    """One check's outcome."""

    item: str
    passed: bool
    reason: str | None = None


class EvaluationRecord(BaseModel):
    """A reward and the checks behind it."""

    episode_id: str
    revision: int
    reward: float
    checks: list[CheckOutcome]

    @classmethod
    def of(cls, episode_id: str, revision: int, evaluation: "Evaluation") -> "EvaluationRecord":
        return cls(
            episode_id=episode_id,
            revision=revision,
            reward=evaluation.reward,
            checks=[
                CheckOutcome(item=check.item, passed=check.passed, reason=check.reason)
                for check in evaluation.checks
            ],
        )


class SnapshotRecord(BaseModel):
    """A snapshot: a name for a revision, to be restored later."""

    snapshot: str
    revision: int


class Health(BaseModel):
    """That the server is up, and how well environment code is confined."""

    status: str = "ok"
    version: str
    isolation: Annotated[str, Field(description="full, or what is missing")]
    isolation_detail: str
