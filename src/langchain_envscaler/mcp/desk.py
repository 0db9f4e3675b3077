"""A service's episodes as each principal may use them: their own, and no more than the limits allow."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from langchain_envscaler.errors import LimitError, NotFoundError
from langchain_envscaler.mcp.auth import principal_of
from langchain_envscaler.mcp.records import EpisodeRecord
from langchain_envscaler.mcp.telemetry import Metrics

if TYPE_CHECKING:
    from langchain_envscaler.environments.episode import Episode
    from langchain_envscaler.environments.service import EpisodeService

__all__ = ["Caller", "EpisodeDesk"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and how they reach the server."""

    request: Request
    public_url: str | None

    @property
    def principal(self) -> str | None:
        """Whose request it is; None where nobody is authenticated."""
        return principal_of(self.request.scope)

    @property
    def base_url(self) -> str:
        """The address by which the caller knows the server."""
        return self.public_url or str(self.request.base_url).rstrip("/")


class EpisodeDesk:
    """Starts, finds and deletes episodes on behalf of callers."""

    def __init__(
        self,
        service: "EpisodeService",
        metrics: Metrics,
        *,
        public_url: str | None = None,
        max_per_principal: int | None = None,
    ) -> None:
        self._service = service
        self._metrics = metrics
        self._public_url = public_url.rstrip("/") if public_url else None
        self._max_per_principal = max_per_principal
        # Counting and starting are one step for each principal.
        self._starting: defaultdict[str | None, asyncio.Lock] = defaultdict(asyncio.Lock)

    def caller(self, request: Request) -> Caller:
        """Who a request comes from."""
        return Caller(request, self._public_url)

    def record(self, caller: Caller, episode: "Episode") -> EpisodeRecord:
        """What a caller is told about an episode."""
        return EpisodeRecord.of(episode, caller.base_url)

    async def start(
        self,
        caller: Caller,
        env_id: str,
        task_id: str | None = None,
        *,
        init_config: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> "Episode":
        """Start an episode that belongs to the caller.

        Raises:
            NotFoundError: No such environment or scenario.
            LimitError: As many episodes are open as may be.
        """
        return await self._started(
            caller,
            lambda: self._service.astart(
                env_id, task_id, init_config=init_config, seed=seed, principal=caller.principal
            ),
        )

    async def get(self, caller: Caller, episode_id: str) -> "Episode":
        """The caller's episode.

        Raises:
            NotFoundError: No such episode, or another's: who may not use it need not know of it.
        """
        episode = await self._service.aget(episode_id)
        if episode.principal != caller.principal:
            raise _unknown(episode_id)
        return episode

    async def page(self, caller: Caller, cursor: int, limit: int) -> "tuple[Sequence[Episode], int | None]":
        """A page of the caller's episodes, the oldest first, and the next page's cursor."""
        # One more than asked for tells whether there is a next page.
        found = await self._service.alist(principal=caller.principal, after=cursor, limit=limit + 1)
        return found[:limit], found[limit - 1].number if len(found) > limit else None

    async def fork(self, caller: Caller, episode_id: str) -> "Episode":
        """A second episode, the caller's too, that goes on where the first one is."""
        episode = await self.get(caller, episode_id)
        return await self._started(caller, episode.afork)

    async def delete(self, caller: Caller, episode_id: str) -> None:
        """Delete the caller's episode and all that is kept of it."""
        await self.get(caller, episode_id)
        await self._service.adelete(episode_id)

    async def _started(self, caller: Caller, start: "Callable[[], Awaitable[Episode]]") -> "Episode":
        async with self._starting[caller.principal]:
            try:
                await self._admit(caller)
                episode = await start()
            except LimitError:
                self._metrics.refused.inc()
                raise
        self._metrics.started.labels(episode.spec.env_id).inc()
        return episode

    async def _admit(self, caller: Caller) -> None:
        """Refuse a caller who has as many episodes as one may have."""
        most = self._max_per_principal
        if most is None:
            return
        if await self._service.acount(principal=caller.principal) >= most:
            raise LimitError(
                f"expected fewer than {most} episodes of one principal, found so many; delete some of yours"
            )


def _unknown(episode_id: str) -> NotFoundError:
    return NotFoundError(f"expected one of your episodes, found none of the id {episode_id!r}")
