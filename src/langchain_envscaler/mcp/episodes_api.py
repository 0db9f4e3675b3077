"""The HTTP interface beside MCP: environments and scenarios to choose from, episodes to start and inspect."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue
from starlette.responses import Response

from langchain_envscaler.environments.diff import state_changes
from langchain_envscaler.mcp.control import evaluate
from langchain_envscaler.mcp.desk import Caller, EpisodeDesk
from langchain_envscaler.mcp.numbers import Revision, Seed
from langchain_envscaler.mcp.operations import Body, Call, NoQuery, Query, Shape, json_response, operation
from langchain_envscaler.mcp.paging import page
from langchain_envscaler.mcp.records import (
    CallEntry,
    EnvironmentPage,
    EnvironmentRecord,
    EpisodePage,
    EpisodeRecord,
    EvaluationRecord,
    ScenarioPage,
    ScenarioRecord,
    SnapshotRecord,
    StateDiff,
    StateRecord,
    TrajectoryPage,
)

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.episode import Episode

__all__ = ["EpisodesApi"]

_ENVIRONMENT = "/environments/{env_id}"
_EPISODE = "/episodes/{episode_id}"

Identifier = Annotated[str, Field(min_length=1, max_length=200)]


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
    seed: Annotated[Seed | None, Field(description="Makes randomness and the clock repeatable")] = None


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

    @operation(Shape("GET", "/environments", EnvironmentPage, query=PageQuery))
    async def list_environments(self, call: Call[PageQuery, None]) -> EnvironmentPage:
        """The environments, in the order of their files."""
        return EnvironmentPage.of(self._catalog, call.query.cursor, call.query.limit)

    @operation(Shape("GET", _ENVIRONMENT, EnvironmentRecord, problems=[404]))
    async def get_environment(self, call: Call[NoQuery, None]) -> EnvironmentRecord:
        """An environment: its texts and its tools."""
        return EnvironmentRecord.of(self._catalog.environment(call.path("env_id")))

    @operation(Shape("GET", f"{_ENVIRONMENT}/scenarios", ScenarioPage, query=PageQuery, problems=[404]))
    async def list_scenarios(self, call: Call[PageQuery, None]) -> ScenarioPage:
        """The scenarios of an environment."""
        env_id = call.path("env_id")
        return ScenarioPage.of(self._catalog, env_id, call.query.cursor, call.query.limit)

    @operation(Shape("GET", f"{_ENVIRONMENT}/scenarios/{{task_id}}", ScenarioRecord, problems=[404]))
    async def get_scenario(self, call: Call[NoQuery, None]) -> ScenarioRecord:
        """A scenario: its task, its checks and the state it starts from."""
        return ScenarioRecord.of(self._catalog.scenario(call.path("env_id"), call.path("task_id")))

    @operation(Shape("POST", "/episodes", EpisodeRecord, status=201, body=StartBody, problems=[404, 429]))
    async def start_episode(self, call: Call[NoQuery, StartBody]) -> Response:
        """Start an episode; its address is in the answer."""
        body, caller = call.body, self._desk.caller(call.request)
        episode = await self._desk.start(
            caller, body.env_id, body.task_id, init_config=body.init_config, seed=body.seed
        )
        return self._created(caller, episode)

    @operation(Shape("GET", "/episodes", EpisodePage, query=PageQuery))
    async def list_episodes(self, call: Call[PageQuery, None]) -> EpisodePage:
        """The caller's episodes, the oldest first."""
        caller = self._desk.caller(call.request)
        episodes, next_cursor = await self._desk.page(caller, call.query.cursor, call.query.limit)
        return EpisodePage(
            episodes=[self._desk.record(caller, episode) for episode in episodes], next_cursor=next_cursor
        )

    @operation(Shape("GET", _EPISODE, EpisodeRecord, problems=[404]))
    async def get_episode(self, call: Call[NoQuery, None]) -> EpisodeRecord:
        """An episode and its newest revision."""
        return self._desk.record(self._desk.caller(call.request), await self._episode(call))

    @operation(Shape("DELETE", _EPISODE, status=204, problems=[404]))
    async def delete_episode(self, call: Call[NoQuery, None]) -> None:
        """Delete an episode and all that is kept of it."""
        await self._desk.delete(self._desk.caller(call.request), call.path("episode_id"))

    @operation(Shape("GET", f"{_EPISODE}/state", StateRecord, query=RevisionQuery, problems=[404, 409]))
    async def get_state(self, call: Call[RevisionQuery, None]) -> StateRecord:
        """The state at a revision."""
        episode = await self._episode(call)
        revision = _or_head(call.query.revision, episode)
        return StateRecord(revision=revision, state=await episode.astate(revision))

    @operation(Shape("GET", f"{_EPISODE}/diff", StateDiff, query=DiffQuery, problems=[404, 409]))
    async def get_diff(self, call: Call[DiffQuery, None]) -> StateDiff:
        """What changed in the state between two revisions."""
        episode = await self._episode(call)
        until = _or_head(call.query.until, episode)
        before, after = await episode.astate(call.query.since), await episode.astate(until)
        return StateDiff(since=call.query.since, until=until, changes=state_changes(before, after))

    @operation(Shape("GET", f"{_EPISODE}/trajectory", TrajectoryPage, query=PageQuery, problems=[404]))
    async def get_trajectory(self, call: Call[PageQuery, None]) -> TrajectoryPage:
        """The calls that led to the newest revision."""
        history = await (await self._episode(call)).ahistory()
        calls, next_cursor = page(history, call.query.cursor, call.query.limit)
        return TrajectoryPage(calls=[CallEntry.of(one) for one in calls], next_cursor=next_cursor)

    @operation(
        Shape(
            "POST",
            f"{_EPISODE}/evaluate",
            EvaluationRecord,
            body=EvaluateBody,
            body_optional=True,
            problems=[404, 409],
        )
    )
    async def evaluate_episode(self, call: Call[NoQuery, EvaluateBody]) -> EvaluationRecord:
        """Run the scenario's checks on a revision."""
        return await evaluate(await self._episode(call), call.body.revision)

    @operation(Shape("POST", f"{_EPISODE}/snapshot", SnapshotRecord, problems=[404]))
    async def snapshot_episode(self, call: Call[NoQuery, None]) -> SnapshotRecord:
        """Take a snapshot of the newest revision."""
        episode = await self._episode(call)
        return SnapshotRecord(snapshot=await episode.asnapshot(), revision=episode.revision)

    @operation(Shape("POST", f"{_EPISODE}/restore", EpisodeRecord, body=RestoreBody, problems=[404, 409]))
    async def restore_episode(self, call: Call[NoQuery, RestoreBody]) -> EpisodeRecord:
        """Take the episode back to a snapshot."""
        episode = await self._episode(call)
        await episode.arestore(call.body.snapshot)
        return self._desk.record(self._desk.caller(call.request), episode)

    @operation(Shape("POST", f"{_EPISODE}/fork", EpisodeRecord, status=201, problems=[404, 429]))
    async def fork_episode(self, call: Call[NoQuery, None]) -> Response:
        """Start a second episode where this one is."""
        caller = self._desk.caller(call.request)
        return self._created(caller, await self._desk.fork(caller, call.path("episode_id")))

    async def _episode(self, call: Call[Any, Any]) -> "Episode":
        """The episode that the address names, as it is now: other servers may have gone on with it."""
        episode = await self._desk.get(self._desk.caller(call.request), call.path("episode_id"))
        await episode.arefresh()
        return episode

    def _created(self, caller: Caller, episode: "Episode") -> Response:
        location = f"{caller.base_url}/episodes/{episode.episode_id}"
        return json_response(self._desk.record(caller, episode), 201, {"Location": location})


def _or_head(revision: int | None, episode: "Episode") -> int:
    return episode.revision if revision is None else revision
