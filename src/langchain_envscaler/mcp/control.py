"""Control tools: start an episode, take it back to its start, check it. Off unless the server asks for them.

They are for a person or a program that drives the episode, not for the model that is judged by it: `check`
shows the checks, and `reset` undoes what was done.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from mcp.server import ServerRequestContext
from mcp_types import RequestParams
from pydantic import BaseModel, Field

from langchain_envscaler.mcp.host_tools import HostTool, HostTools, ToolArguments
from langchain_envscaler.mcp.numbers import Revision, Seed
from langchain_envscaler.mcp.records import EpisodeRecord, EvaluationRecord

if TYPE_CHECKING:
    from langchain_envscaler.environments.episode import Episode

__all__ = [
    "EpisodeResolver",
    "EvaluateParams",
    "StartArguments",
    "Starter",
    "control_tools",
]

EpisodeResolver: TypeAlias = "Callable[[ServerRequestContext[Any, Any]], Awaitable[Episode]]"
"""Tells which episode a request is about."""


class StartArguments(ToolArguments):
    """What episode to start."""

    env_id: Annotated[
        str | None, Field(description="The environment; the one that is served if left out")
    ] = None
    task_id: Annotated[str | None, Field(description="The scenario's id; none starts without a task")] = None
    seed: Annotated[Seed | None, Field(description="Makes randomness and the clock repeatable")] = None


class _ResetArguments(ToolArguments):
    """Nothing: the episode goes back to its start."""


class _CheckArguments(ToolArguments):
    """Which revision to check."""

    revision: Annotated[
        Revision | None, Field(description="The revision to check; the newest if left out")
    ] = None


class EvaluateParams(RequestParams):
    """The parameters of the request `envscaler/evaluate`."""

    revision: Revision | None = None


class EpisodeRevision(BaseModel):
    """An episode and its newest revision."""

    episode_id: str
    revision: int


Starter: TypeAlias = Callable[[ServerRequestContext[Any, Any], StartArguments], Awaitable[EpisodeRecord]]
"""Starts another episode for the client of a request."""


async def evaluate(episode: "Episode", revision: int | None) -> EvaluationRecord:
    """The evaluation of an episode at a revision (the newest if None)."""
    if revision is None:
        await episode.arefresh()
    at = episode.revision if revision is None else revision
    return EvaluationRecord.of(episode.episode_id, at, await episode.aevaluate(at))


def control_tools(resolve: EpisodeResolver, start: Starter | None) -> HostTools:
    """The control tools of a server; without a starter there is no `start`."""

    async def reset(ctx: ServerRequestContext[Any, Any], _: _ResetArguments) -> EpisodeRevision:
        episode = await resolve(ctx)
        await episode.areset()
        return EpisodeRevision(episode_id=episode.episode_id, revision=episode.revision)

    async def check(ctx: ServerRequestContext[Any, Any], arguments: _CheckArguments) -> EvaluationRecord:
        return await evaluate(await resolve(ctx), arguments.revision)

    tools: list[HostTool[Any]] = []
    if start is not None:
        tools.append(
            HostTool(
                "start", "Start a new episode, of this environment or of another.", StartArguments, start
            )
        )
    tools += [
        HostTool("reset", "Take the episode back to the state it started from.", _ResetArguments, reset),
        HostTool("check", "Run the task's checks and show the reward.", _CheckArguments, check),
    ]
    return HostTools(tools)
