"""Where a graph's episodes come from: a service in this process, or a server elsewhere."""

import asyncio
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ConfigDict

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import InfrastructureError, NotFoundError, UsageError
from langchain_envscaler.graphs.loop import BackgroundLoop
from langchain_envscaler.graphs.targets import MCPSource
from langchain_envscaler.graphs.toolset import MCPToolset
from langchain_envscaler.mcp.clients import HttpServerEntry
from langchain_envscaler.mcp.records import EpisodeRecord, EvaluationRecord

__all__ = [
    "ENVIRONMENT",
    "BundledWorlds",
    "EpisodeToolsets",
    "LocalWorlds",
    "RemoteWorlds",
    "WorldChoice",
    "Worlds",
]

ENVIRONMENT = "environment"
"""The name of the one server that a thread's own episode has."""

_KEPT_TOOLSETS = 512


class WorldChoice(BaseModel):
    """Which episode a thread begins."""

    model_config = ConfigDict(frozen=True)

    env_id: str
    task_id: str | None = None
    seed: int | None = None


class Worlds(Protocol):
    """Starts episodes and tells how to reach them. Its methods run on the graph's background loop."""

    async def start(self, choice: WorldChoice) -> EpisodeRecord:
        """Start an episode.

        Raises:
            NotFoundError: No such environment or task.
            InfrastructureError: It cannot be started here or now.
        """
        ...

    async def source(self, episode_id: str) -> MCPSource | Mapping[str, Any]:
        """What a toolset for an episode is made of.

        Raises:
            NotFoundError: No such episode.
        """
        ...

    async def evaluate(self, episode_id: str, revision: int) -> EvaluationRecord:
        """Run a task's checks on a revision.

        Raises:
            InfrastructureError: A check could not be run.
        """
        ...


class LocalWorlds:
    """Episodes of a service in this process, served over MCP in memory."""

    def __init__(self, service: EpisodeService) -> None:
        self.service = service

    async def start(self, choice: WorldChoice) -> EpisodeRecord:
        episode = await self.service.astart(choice.env_id, choice.task_id, seed=choice.seed)
        return EpisodeRecord.of(episode)

    async def source(self, episode_id: str) -> Mapping[str, Any]:
        return {ENVIRONMENT: await self.service.aget(episode_id)}

    async def evaluate(self, episode_id: str, revision: int) -> EvaluationRecord:
        episode = await self.service.aget(episode_id)
        return EvaluationRecord.of(episode_id, revision, await episode.aevaluate(revision))


class BundledWorlds:
    """The bundled environments in this process, loaded when they are first needed."""

    def __init__(self, store: str | Path | None = None) -> None:
        """Use the bundled environments.

        Args:
            store: Where episodes are kept, as for `EpisodeService`; without one they end with the process.
        """
        self._store = store
        self._lock = threading.Lock()
        self._worlds: LocalWorlds | None = None

    async def start(self, choice: WorldChoice) -> EpisodeRecord:
        return await (await self._local()).start(choice)

    async def source(self, episode_id: str) -> Mapping[str, Any]:
        return await (await self._local()).source(episode_id)

    async def evaluate(self, episode_id: str, revision: int) -> EvaluationRecord:
        return await (await self._local()).evaluate(episode_id, revision)

    async def _local(self) -> LocalWorlds:
        if self._worlds is not None:
            return self._worlds
        return await asyncio.to_thread(self._load)

    def _load(self) -> LocalWorlds:
        with self._lock:
            if self._worlds is not None:
                return self._worlds
            if isinstance(self._store, Path):
                self._store.parent.mkdir(parents=True, exist_ok=True)
            store = None if self._store is None else str(self._store)
            worlds = LocalWorlds(EpisodeService(Catalog.bundled(), store=store))
            self._worlds = worlds
            return worlds


class RemoteWorlds:
    """Episodes of a server that was started with `envscaler serve --http`."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        """Use a server.

        Args:
            url: The server's address, without a path to an episode.
            token: A bearer token, where the server wants one.
        """
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http: httpx2.AsyncClient | None = None

    async def start(self, choice: WorldChoice) -> EpisodeRecord:
        answer = await self._post("/episodes", choice.model_dump(exclude_none=True), choice.env_id)
        return EpisodeRecord.model_validate_json(answer)

    async def source(self, episode_id: str) -> HttpServerEntry:
        url = f"{self._url}/episodes/{quote(episode_id, safe='')}/mcp"
        return HttpServerEntry(name=ENVIRONMENT, url=url, headers=self._headers)

    async def evaluate(self, episode_id: str, revision: int) -> EvaluationRecord:
        path = f"/episodes/{quote(episode_id, safe='')}/evaluate"
        return EvaluationRecord.model_validate_json(
            await self._post(path, {"revision": revision}, episode_id)
        )

    async def _post(self, path: str, body: dict[str, Any], about: str) -> bytes:
        if self._http is None:
            self._http = httpx2.AsyncClient(headers=self._headers, timeout=httpx2.Timeout(30.0, read=300.0))
        try:
            response = await self._http.post(self._url + path, json=body)
        except httpx2.HTTPError as error:
            raise InfrastructureError(
                f"expected the environments' server to answer at its address, found: {error}"
            ) from error
        if response.is_success:
            return response.content
        detail = _detail(response)
        if response.status_code == 404:
            raise NotFoundError(f"expected {about!r} at the environments' server, found none: {detail}")
        if response.status_code in (400, 401, 403, 409, 422):
            raise UsageError(f"the environments' server refused the request for {about!r}: {detail}")
        raise InfrastructureError(
            f"expected an answer of the environments' server, found {response.status_code}: {detail}"
        )


def _detail(response: httpx2.Response) -> str:
    try:
        problem = response.json()
    except ValueError:
        problem = None
    detail = problem.get("detail") if isinstance(problem, dict) else None
    return str(detail or response.reason_phrase)


class EpisodeToolsets:
    """The toolsets of many threads' episodes, on one background loop. Safe for use by several threads.

    The least recently used are let go, and close when nothing uses them any more; they come back when they
    are asked for.
    """

    def __init__(self, worlds: Worlds, *, timeout: float | None = 300.0) -> None:
        self.worlds = worlds
        self.loop = BackgroundLoop("envscaler-episodes")
        self._timeout = timeout
        self._lock = threading.Lock()
        self._toolsets: OrderedDict[str, MCPToolset] = OrderedDict()
        weakref.finalize(self, self.loop.close)

    def of(self, state: Mapping[str, Any]) -> MCPToolset:
        """The toolset of a thread's episode."""
        return self.get(_episode_id(state))

    async def aof(self, state: Mapping[str, Any]) -> MCPToolset:
        """As `of`."""
        return await self.aget(_episode_id(state))

    def get(self, episode_id: str) -> MCPToolset:
        """The toolset of an episode."""
        if (known := self._known(episode_id)) is not None:
            return known
        return self._added(episode_id, self.loop.run(self.worlds.source(episode_id)))

    async def aget(self, episode_id: str) -> MCPToolset:
        """As `get`."""
        if (known := self._known(episode_id)) is not None:
            return known
        return self._added(episode_id, await self.loop.arun(self.worlds.source(episode_id)))

    def _known(self, episode_id: str) -> MCPToolset | None:
        with self._lock:
            if episode_id in self._toolsets:
                self._toolsets.move_to_end(episode_id)
            return self._toolsets.get(episode_id)

    def _added(self, episode_id: str, source: MCPSource | Mapping[str, Any]) -> MCPToolset:
        with self._lock:
            if episode_id not in self._toolsets:
                self._toolsets[episode_id] = MCPToolset(source, timeout=self._timeout, loop=self.loop)
            while len(self._toolsets) > _KEPT_TOOLSETS:
                self._toolsets.popitem(last=False)
            return self._toolsets[episode_id]


def _episode_id(state: Mapping[str, Any]) -> str:
    place = (state.get("episodes") or {}).get(ENVIRONMENT)
    if place is None:
        raise UsageError(
            "expected a thread with an episode, found none in its state; begin a thread at the start"
        )
    return str(place["episode_id"])
