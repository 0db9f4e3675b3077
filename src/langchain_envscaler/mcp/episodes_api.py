"""The HTTP interface beside MCP: environments and scenarios to choose from, episodes to start and inspect."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue
from starlette.responses import Response

from langchain_envscaler.environments.diff import state_changes
from langchain_envscaler.environments.metadata import EnvironmentSpec
from langchain_envscaler.mcp.control import evaluate
from langchain_envscaler.mcp.desk import Caller, EpisodeDesk
from langchain_envscaler.mcp.operations import Body, Call, NoQuery, Operation, Query, json_response
from langchain_envscaler.mcp.paging import page
from langchain_envscaler.mcp.problems import HttpProblem
from langchain_envscaler.mcp.records import (
    CallEntry,
    EnvironmentPage,
    EnvironmentRecord,
    EnvironmentSummary,
    EpisodePage,
    EpisodeRecord,
    EvaluationRecord,
    ScenarioPage,
    ScenarioRecord,
    ScenarioSummary,
    SnapshotRecord,
    StateDiff,
    StateRecord,
    TrajectoryPage,
)

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.episode import Episode

__all__ = ["EpisodesApi"]

Identifier = Annotated[str, Field(min_length=1, max_length=200)]
Revision = Annotated[int, Field(ge=0, le=2**53)]


class PageQuery(Query):
    """Which page of a list."""

    limit: Annotated[int, Field(ge=1, le=200, description="How many entries at most")] = 50
    cursor: Annotated[
        int, Field(ge=0, le=2**53, description="Where the page starts: the `next_cursor` of the one before")
    ] = 0


class RevisionQuery(Query):
    """Which revision; the newest if left out."""

    revision: Revision | None = None


class DiffQuery(Query):
    """Which two revisions to compare."""

    since: Annotated[Revision, Field(description="The earlier revision")] = 0
    until: Annotated[Revision | None, Field(description="The later revision; the newest if left out")] = None


class StartBody(Body):
    """What episode to start."""

    env_id: Identifier
    task_id: Annotated[Identifier | None, Field(description="A scenario of the environment")] = None
    init_config: Annotated[
        dict[str, JsonValue] | None, Field(description="A state to start from instead of the scenario's")
    ] = None
    seed: Annotated[
        int | None,
        Field(ge=-(2**63), lt=2**63, description="Makes randomness and the clock repeatable"),
    ] = None


class EvaluateBody(Body):
    """What to evaluate."""

    revision: Annotated[Revision | None, Field(description="The newest if left out")] = None


class RestoreBody(Body):
    """What to restore."""

    snapshot: Annotated[str, Field(min_length=1, description="A snapshot of the same episode")]


class EpisodesApi:
    """The operations on one service's environments and episodes."""

    def __init__(self, catalog: "Catalog", desk: EpisodeDesk) -> None:
        self._catalog = catalog
        self._desk = desk

    def operations(self) -> list[Operation]:
        """Every operation, to be served and documented."""
        environment, scenario = "/environments/{env_id}", "/environments/{env_id}/scenarios/{task_id}"
        episode = "/episodes/{episode_id}"
        return [
            Operation(
                "GET",
                "/environments",
                "list_environments",
                "The environments, in the order of their files",
                self.list_environments,
                EnvironmentPage,
                query=PageQuery,
            ),
            Operation(
                "GET",
                environment,
                "get_environment",
                "An environment: its texts and its tools",
                self.get_environment,
                EnvironmentRecord,
                problems=[404],
            ),
            Operation(
                "GET",
                f"{environment}/scenarios",
                "list_scenarios",
                "The scenarios of an environment",
                self.list_scenarios,
                ScenarioPage,
                query=PageQuery,
                problems=[404],
            ),
            Operation(
                "GET",
                scenario,
                "get_scenario",
                "A scenario: its task and the state it starts from",
                self.get_scenario,
                ScenarioRecord,
                problems=[404],
            ),
            Operation(
                "POST",
                "/episodes",
                "start_episode",
                "Start an episode; its address is in the answer",
                self.start,
                EpisodeRecord,
                status=201,
                body=StartBody,
                problems=[404, 429],
            ),
            Operation(
                "GET",
                "/episodes",
                "list_episodes",
                "The caller's episodes, the oldest first",
                self.list_episodes,
                EpisodePage,
                query=PageQuery,
            ),
            Operation(
                "GET",
                episode,
                "get_episode",
                "An episode and its newest revision",
                self.get,
                EpisodeRecord,
                problems=[404],
            ),
            Operation(
                "DELETE",
                episode,
                "delete_episode",
                "Delete an episode and all that is kept of it",
                self.delete,
                status=204,
                problems=[404],
            ),
            Operation(
                "GET",
                f"{episode}/state",
                "get_state",
                "The state at a revision",
                self.state,
                StateRecord,
                query=RevisionQuery,
                problems=[404],
            ),
            Operation(
                "GET",
                f"{episode}/diff",
                "get_diff",
                "What changed in the state between two revisions",
                self.diff,
                StateDiff,
                query=DiffQuery,
                problems=[404],
            ),
            Operation(
                "GET",
                f"{episode}/trajectory",
                "get_trajectory",
                "The calls that led to the newest revision",
                self.trajectory,
                TrajectoryPage,
                query=PageQuery,
                problems=[404],
            ),
            Operation(
                "POST",
                f"{episode}/evaluate",
                "evaluate_episode",
                "Run the scenario's checks on a revision",
                self.evaluate,
                EvaluationRecord,
                body=EvaluateBody,
                body_optional=True,
                problems=[404, 409],
            ),
            Operation(
                "POST",
                f"{episode}/snapshot",
                "snapshot_episode",
                "Take a snapshot of the newest revision",
                self.snapshot,
                SnapshotRecord,
                problems=[404],
            ),
            Operation(
                "POST",
                f"{episode}/restore",
                "restore_episode",
                "Take the episode back to a snapshot",
                self.restore,
                EpisodeRecord,
                body=RestoreBody,
                problems=[404, 409],
            ),
            Operation(
                "POST",
                f"{episode}/fork",
                "fork_episode",
                "Start a second episode where this one is",
                self.fork,
                EpisodeRecord,
                status=201,
                problems=[404, 429],
            ),
        ]

    async def list_environments(self, call: Call[PageQuery, None]) -> EnvironmentPage:
        specs, next_cursor = page(
            list(self._catalog.environments.values()), call.query.cursor, call.query.limit
        )
        return EnvironmentPage(
            environments=[EnvironmentSummary.of(spec, self._catalog) for spec in specs],
            next_cursor=next_cursor,
        )

    async def get_environment(self, call: Call[NoQuery, None]) -> EnvironmentRecord:
        return EnvironmentRecord.of(self._environment(call))

    async def list_scenarios(self, call: Call[PageQuery, None]) -> ScenarioPage:
        of_environment = self._catalog.scenarios_of(self._environment(call).env_id)
        scenarios, next_cursor = page(of_environment, call.query.cursor, call.query.limit)
        return ScenarioPage(
            scenarios=[ScenarioSummary.of(scenario) for scenario in scenarios], next_cursor=next_cursor
        )

    async def get_scenario(self, call: Call[NoQuery, None]) -> ScenarioRecord:
        return ScenarioRecord.of(self._catalog.scenario(call.path("env_id"), call.path("task_id")))

    async def start(self, call: Call[NoQuery, StartBody]) -> Response:
        body, caller = call.body, self._desk.caller(call.request)
        episode = await self._desk.start(
            caller, body.env_id, body.task_id, init_config=body.init_config, seed=body.seed
        )
        return self._created(caller, episode)

    async def list_episodes(self, call: Call[PageQuery, None]) -> EpisodePage:
        caller = self._desk.caller(call.request)
        episodes, next_cursor = await self._desk.list(caller, call.query.cursor, call.query.limit)
        return EpisodePage(
            episodes=[self._desk.record(caller, episode) for episode in episodes], next_cursor=next_cursor
        )

    async def get(self, call: Call[NoQuery, None]) -> EpisodeRecord:
        return self._desk.record(self._desk.caller(call.request), await self._episode(call))

    async def delete(self, call: Call[NoQuery, None]) -> None:
        await self._desk.delete(self._desk.caller(call.request), call.path("episode_id"))

    async def state(self, call: Call[RevisionQuery, None]) -> StateRecord:
        episode = await self._episode(call)
        revision = _or_head(call.query.revision, episode)
        return StateRecord(revision=revision, state=await episode.astate(revision))

    async def diff(self, call: Call[DiffQuery, None]) -> StateDiff:
        episode = await self._episode(call)
        until = _or_head(call.query.until, episode)
        before, after = await episode.astate(call.query.since), await episode.astate(until)
        return StateDiff(since=call.query.since, until=until, changes=state_changes(before, after))

    async def trajectory(self, call: Call[PageQuery, None]) -> TrajectoryPage:
        history = await (await self._episode(call)).ahistory()
        calls, next_cursor = page(history, call.query.cursor, call.query.limit)
        return TrajectoryPage(calls=[CallEntry.of(one) for one in calls], next_cursor=next_cursor)

    async def evaluate(self, call: Call[NoQuery, EvaluateBody]) -> EvaluationRecord:
        return await evaluate(await self._episode(call), call.body.revision)

    async def snapshot(self, call: Call[NoQuery, None]) -> SnapshotRecord:
        episode = await self._episode(call)
        return SnapshotRecord(snapshot=await episode.asnapshot(), revision=episode.revision)

    async def restore(self, call: Call[NoQuery, RestoreBody]) -> EpisodeRecord:
        episode = await self._episode(call)
        await episode.arestore(call.body.snapshot)
        return self._desk.record(self._desk.caller(call.request), episode)

    async def fork(self, call: Call[NoQuery, None]) -> Response:
        caller = self._desk.caller(call.request)
        return self._created(caller, await self._desk.fork(caller, call.path("episode_id")))

    def _environment(self, call: Call[Any, Any]) -> EnvironmentSpec:
        env_id = call.path("env_id")
        spec = self._catalog.environments.get(env_id)
        if spec is None:
            raise HttpProblem(404, "expected an environment of the catalog; GET /environments lists them")
        return spec

    async def _episode(self, call: Call[Any, Any]) -> "Episode":
        return await self._desk.get(self._desk.caller(call.request), call.path("episode_id"))

    def _created(self, caller: Caller, episode: "Episode") -> Response:
        location = f"{caller.base_url}/episodes/{episode.episode_id}"
        return json_response(self._desk.record(caller, episode), 201, {"Location": location})


def _or_head(revision: int | None, episode: "Episode") -> int:
    return episode.revision if revision is None else revision
