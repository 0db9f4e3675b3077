"""One environment as a stdio server: one process, one episode, the way that desktop clients start servers.

Nothing but the protocol goes to stdout, the log goes to stderr. The episode starts while the client is still
introducing itself, so that a client waits for the imports and not for the sandbox.
"""

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcp.server import ServerRequestContext
from mcp.server.stdio import stdio_server

from langchain_envscaler.errors import NotFoundError, UsageError
from langchain_envscaler.mcp.changes import Changes
from langchain_envscaler.mcp.control import StartArguments
from langchain_envscaler.mcp.records import EpisodeRecord
from langchain_envscaler.mcp.resources import STATE, TASK
from langchain_envscaler.mcp.server import create_server

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.episode import Episode
    from langchain_envscaler.environments.service import EpisodeService

__all__ = ["serve"]


def serve(
    env_id: str,
    task_id: str | None = None,
    *,
    catalog: "Catalog | None" = None,
    episode_id: str | None = None,
    store: str | None = None,
    init_config: dict[str, Any] | None = None,
    seed: int | None = None,
    control: bool = False,
    strict_arguments: bool = False,
    require_isolation: bool = False,
) -> None:
    """Serve one episode over stdin and stdout until the client closes stdin or the process is told to end.

    Args:
        env_id: The environment.
        task_id: The scenario; None starts without a task.
        catalog: Where they are looked up; None is the bundled one.
        episode_id: The episode's name. One of that name that the store holds goes on, so that a client which
            starts a process for each connection finds its state again.
        store: Where the episode is kept: a path or a database URL. None keeps it in memory, and with the
            process it is gone.
        init_config: A state to start from instead of the scenario's.
        seed: Makes the environment's randomness and clock repeatable.
        control: Offer the control tools (start, reset, check).
        strict_arguments: Refuse tool arguments that do not fit the tool's schema.
        require_isolation: Refuse to run where environment code cannot be confined in full.

    Raises:
        NotFoundError: No such environment or scenario.
        UsageError: An isolation that is required and not there, or an episode of another environment.
    """
    _log_to_stderr()
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.service import EpisodeService

    catalog = catalog or Catalog.bundled()
    # Wrong use is told before the protocol begins, where a person sees it.
    catalog.environment(env_id)
    if task_id is not None:
        catalog.scenario(env_id, task_id)
    service = EpisodeService(catalog, store=store or ":memory:", require_isolation=require_isolation)
    served = _ServedEpisode(service, env_id, task_id, episode_id, init_config, seed)
    asyncio.run(_serve(served, control=control, strict_arguments=strict_arguments))


class _ServedEpisode:
    """The episode that the process serves; `start` puts another in its place."""

    def __init__(
        self,
        service: "EpisodeService",
        env_id: str,
        task_id: str | None,
        episode_id: str | None,
        init_config: dict[str, Any] | None,
        seed: int | None,
    ) -> None:
        self.changes = Changes()
        self._service = service
        self._env_id = env_id
        self._first = (task_id, episode_id, init_config, seed)
        self._opening: asyncio.Task[Episode] | None = None

    def open(self) -> None:
        """Begin to start the episode, so that it is there when it is asked for."""
        self._opening = asyncio.create_task(self._open())

    async def _open(self) -> "Episode":
        task_id, episode_id, init_config, seed = self._first
        if episode_id is not None:
            with suppress(NotFoundError):
                return _of_environment(await self._service.aget(episode_id), self._env_id)
        return await self._service.astart(
            self._env_id, task_id, init_config=init_config, seed=seed, episode_id=episode_id
        )

    async def resolve(self, _: ServerRequestContext[Any, Any]) -> "Episode":
        """The episode that the process serves now."""
        if self._opening is None or _failed(self._opening):
            self.open()
        assert self._opening is not None
        # A client that gives up on its request must not take the episode with it.
        return await asyncio.shield(self._opening)

    async def start(self, ctx: ServerRequestContext[Any, Any], arguments: StartArguments) -> EpisodeRecord:
        """Start another episode in the served one's place, and tell the clients."""
        before = await self.resolve(ctx)
        env_id = arguments.env_id or before.spec.env_id
        episode = await self._service.astart(env_id, arguments.task_id, seed=arguments.seed)
        self._opening = asyncio.create_task(_ready(episode))
        await before.aclose()
        if env_id != before.spec.env_id:
            await self.changes.tools_changed()
        await self.changes.resources_changed(TASK, STATE)
        return EpisodeRecord.of(episode)

    async def close(self) -> None:
        """Put the episode away and end what runs behind it."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        await self._service.aclose()


def _failed(task: "asyncio.Task[Episode]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _of_environment(episode: "Episode", env_id: str) -> "Episode":
    if episode.spec.env_id != env_id:
        raise UsageError(
            f"expected an episode of environment {env_id!r}, found {episode.episode_id!r} of "
            f"{episode.spec.env_id!r}; give another --episode-id"
        )
    return episode


async def _ready(episode: "Episode") -> "Episode":
    return episode


async def _serve(served: _ServedEpisode, *, control: bool, strict_arguments: bool) -> None:
    server = create_server(
        served.resolve,
        control=control,
        start=served.start if control else None,
        strict_arguments=strict_arguments,
        changes=served.changes if control else None,
    )
    served.open()
    ended_by_signal = _signalled()
    async with stdio_server() as (read_stream, write_stream):
        serving = asyncio.create_task(
            server.run(read_stream, write_stream, server.create_initialization_options())
        )
        await asyncio.wait([serving, ended_by_signal], return_when=asyncio.FIRST_COMPLETED)
        await served.close()
        if not serving.done():
            # A thread still waits for the next line of stdin and cannot be woken.
            logging.shutdown()
            os._exit(0)
        await serving


def _signalled() -> "asyncio.Future[None]":
    """Done when the process is told to end (SIGTERM, SIGINT)."""
    loop = asyncio.get_running_loop()
    signalled: asyncio.Future[None] = loop.create_future()

    def note() -> None:
        if not signalled.done():
            signalled.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        # Windows has no handlers in the event loop; there the process just ends.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, note)
    return signalled


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
