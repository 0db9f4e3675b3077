"""The episodes of a process or a server: started, found again, put to sleep, deleted."""

import asyncio
import logging
import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from langchain_envscaler.environments.episode import Episode
from langchain_envscaler.environments.housekeeping import Housekeeper
from langchain_envscaler.environments.limits import Limits
from langchain_envscaler.environments.records import Records
from langchain_envscaler.environments.runtime import Runtime
from langchain_envscaler.environments.sandbox.host import IsolationReport
from langchain_envscaler.environments.store import EpisodeRow, Store
from langchain_envscaler.environments.stores import open_store
from langchain_envscaler.errors import LimitError, UsageError

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog

__all__ = ["EpisodeService"]

_logger = logging.getLogger("langchain_envscaler.environments")

_MAX_ID_LENGTH = 128
_SPARE_THREADS = 16

T = TypeVar("T")
P = ParamSpec("P")


class EpisodeService:
    """Starts episodes of a catalog's environments and keeps them in a store.

    Safe for use by several threads.
    """

    def __init__(
        self,
        catalog: "Catalog",
        *,
        store: Store | str | None = None,
        limits: Limits | None = None,
        require_isolation: bool = False,
        max_episodes: int = 10_000,
        max_awake: int = 64,
        sleep_seconds: float | None = 300.0,
        expire_seconds: float | None = None,
    ) -> None:
        """
        Args:
            catalog: The environments and scenarios.
            store: A store, or the address of one: ":memory:" (None means that too), a path,
                `sqlite:///PATH`, `postgresql://...`.
            limits: What environment code may use.
            require_isolation: Refuse to run anything below full isolation.
            max_episodes: How many episodes may be open here at once, asleep ones included.
            max_awake: How many episodes keep a process; the least recently used ones go to sleep.
            sleep_seconds: An episode not used for so long goes to sleep. None: never.
            expire_seconds: An episode not used for so long is deleted from the store. None: never.

        Raises:
            DataError: The store's file is not one.
            InfrastructureError: Isolation was required and is not there; the database cannot be reached.
        """
        self.catalog = catalog
        self.limits = limits or Limits()
        self.store = open_store(store) if store is None or isinstance(store, str) else store
        self.runtime = Runtime(self.limits, require_isolation=require_isolation)
        self.executor = ThreadPoolExecutor(max_awake + _SPARE_THREADS, thread_name_prefix="episodes")
        self._records = Records(self.store)
        self._max_episodes = max_episodes
        self._max_awake = max_awake
        self._lock = threading.Lock()
        self._episodes: dict[str, Episode] = {}
        self._awake: OrderedDict[str, Episode] = OrderedDict()
        self._housekeeper = Housekeeper(self, sleep_seconds, expire_seconds)
        self._finalizer = weakref.finalize(self, _close, self.runtime, self.store, self.executor)
        if require_isolation:
            try:
                _ = self.isolation
            except BaseException:
                self.close()
                raise

    @property
    def isolation(self) -> IsolationReport:
        """How far environment code is confined here.

        Raises:
            InfrastructureError: The sandbox does not start, or is below the level that was required.
        """
        return self.runtime.isolation

    # ------------------------------------------------------------------ episodes

    def start(
        self,
        env_id: str,
        task_id: str | None = None,
        *,
        init_config: dict[str, Any] | None = None,
        seed: int | None = None,
        episode_id: str | None = None,
        principal: str | None = None,
    ) -> Episode:
        """Start an episode.

        Args:
            env_id: The environment.
            task_id: The scenario; it gives the state to start from, the task and the checks.
            init_config: The state to start from, instead of the scenario's.
            seed: Makes ids, randomness and the clock repeatable: the same calls give the same observations.
            episode_id: The id to give it; made up if None.
            principal: Whom it belongs to.

        Raises:
            NotFoundError: No such environment or scenario.
            DataError: The environment cannot be loaded or constructed.
            LimitError: As many episodes are open as may be.
            UsageError: An id that is taken, or has other characters than letters, digits, "-", "_" and ".".
        """
        spec = self.catalog.environment(env_id)
        scenario = None if task_id is None else self.catalog.scenario(env_id, task_id)
        identifier = secrets.token_hex(10) if episode_id is None else _checked_id(episode_id)
        self._admit()
        if init_config is None:
            init_config = {} if scenario is None else scenario.init_config
        clock = None if seed is None else [str(seed), 0]
        child, state = self.runtime.construct(spec, init_config, clock)
        try:
            now = time.time()
            row = EpisodeRow(
                episode_id=identifier,
                env_id=env_id,
                task_id=task_id,
                spec=self._records.put(spec),
                scenario=None if scenario is None else self._records.put(scenario),
                seed=seed,
                principal=principal,
                created_at=now,
                used_at=now,
            )
            episode = Episode(self, self.store.create(row, state), spec, scenario)
        except BaseException:
            child.close()
            raise
        with self._lock:
            self._episodes[identifier] = episode
        episode._hold(child)
        return episode

    def get(self, episode_id: str) -> Episode:
        """An episode that was started here or, earlier or elsewhere, on the same store.

        Raises:
            NotFoundError: There is none.
        """
        episode = self._episodes.get(episode_id)
        return episode if episode is not None else self._opened(self.store.episode(episode_id))

    def delete(self, episode_id: str) -> None:
        """Delete an episode and what is kept of it. What its forks need stays until they are deleted too.

        Raises:
            NotFoundError: There is none.
        """
        self.store.episode(episode_id)
        episode = self._episodes.get(episode_id)
        if episode is not None:
            episode.close()
        self.store.delete(episode_id)

    def list(self, *, principal: str | None = None, after: int = 0, limit: int = 100) -> Sequence[Episode]:
        """Episodes in the store, the oldest first.

        Args:
            principal: Only those that belong to it.
            after: Only those with a `number` above this one.
            limit: At most so many.
        """
        return [
            self._opened(row) for row in self.store.episodes(principal=principal, after=after, limit=limit)
        ]

    def count(self, *, principal: str | None = None) -> int:
        """How many episodes the store keeps, of a principal or in all."""
        return self.store.count(principal=principal)

    def fork(self, origin: EpisodeRow) -> Episode:
        """A new episode that goes on where another one is; see `Episode.fork`."""
        self._admit()
        now = time.time()
        row = EpisodeRow(
            episode_id=secrets.token_hex(10),
            env_id=origin.env_id,
            task_id=origin.task_id,
            spec=origin.spec,
            scenario=origin.scenario,
            seed=origin.seed,
            principal=origin.principal,
            created_at=now,
            used_at=now,
            head=origin.head,
            next_revision=origin.next_revision,
            first_revision=origin.next_revision,
            ancestors=origin.lineage,
        )
        return self._opened(self.store.create(row, None))

    def _opened(self, row: EpisodeRow) -> Episode:
        """The one episode of this process for a row."""
        episode = self._episodes.get(row.episode_id)
        if episode is not None:
            episode._see(row)
            return episode
        scenario = None if row.scenario is None else self._records.scenario(row.scenario)
        episode = Episode(self, row, self._records.environment(row.spec), scenario)
        with self._lock:
            return self._episodes.setdefault(row.episode_id, episode)

    def _admit(self) -> None:
        if len(self._episodes) >= self._max_episodes:
            raise LimitError(
                f"expected fewer than {self._max_episodes} open episodes, found so many; "
                "delete or close some, or raise max_episodes"
            )

    def close(self) -> None:
        """End all processes and close the store. Episodes in a file or on a server are kept there."""
        self._housekeeper.stop()
        with self._lock:
            awake = list(self._awake.values())
            self._episodes.clear()
            self._awake.clear()
        for episode in awake:
            episode.sleep()
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # ------------------------------------------------------------------ for its episodes

    def forget(self, episode: Episode) -> None:
        """An episode left memory."""
        with self._lock:
            if self._episodes.get(episode.episode_id) is episode:
                del self._episodes[episode.episode_id]
            self._awake.pop(episode.episode_id, None)

    def note_awake(self, episode: Episode) -> None:
        """An episode has a process now; others go to sleep if too many have."""
        with self._lock:
            self._awake[episode.episode_id] = episode
            self._awake.move_to_end(episode.episode_id)
            surplus = list(self._awake.values())[: max(len(self._awake) - self._max_awake, 0)]
        for other in surplus:
            if other is not episode:
                other.sleep()
        self._housekeeper.start()

    def note_asleep(self, episode: Episode) -> None:
        """An episode gave up its process."""
        with self._lock:
            self._awake.pop(episode.episode_id, None)

    def awake(self) -> Sequence[Episode]:
        """The episodes that have a process here, the one that has had it longest first."""
        with self._lock:
            return [*self._awake.values()]

    def log_output(self, episode: Episode, name: str, output: str) -> None:
        """What environment code printed goes to the log, at level DEBUG."""
        if output:
            _logger.debug("episode %s, tool %s printed: %s", episode.episode_id, name, output)

    # ------------------------------------------------------------------ for asyncio

    async def astart(
        self,
        env_id: str,
        task_id: str | None = None,
        *,
        init_config: dict[str, Any] | None = None,
        seed: int | None = None,
        episode_id: str | None = None,
        principal: str | None = None,
    ) -> Episode:
        """`start`, without blocking the event loop."""
        return await self._in_thread(
            self.start,
            env_id,
            task_id,
            init_config=init_config,
            seed=seed,
            episode_id=episode_id,
            principal=principal,
        )

    async def aget(self, episode_id: str) -> Episode:
        """`get`, without blocking the event loop."""
        episode = self._episodes.get(episode_id)
        return episode if episode is not None else await self._in_thread(self.get, episode_id)

    async def adelete(self, episode_id: str) -> None:
        """`delete`, without blocking the event loop."""
        await self._in_thread(self.delete, episode_id)

    async def alist(
        self, *, principal: str | None = None, after: int = 0, limit: int = 100
    ) -> Sequence[Episode]:
        """`list`, without blocking the event loop."""
        return await self._in_thread(self.list, principal=principal, after=after, limit=limit)

    async def acount(self, *, principal: str | None = None) -> int:
        """`count`, without blocking the event loop."""
        return await self._in_thread(self.count, principal=principal)

    async def aclose(self) -> None:
        """`close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    async def _in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executor, partial(function, *args, **kwargs))


def _checked_id(episode_id: str) -> str:
    valid = episode_id.isascii() and all(c.isalnum() or c in "-_." for c in episode_id)
    if not valid or not 0 < len(episode_id) <= _MAX_ID_LENGTH:
        raise UsageError(
            f"expected an episode id of 1 to {_MAX_ID_LENGTH} letters, digits, '-', '_' or '.', "
            f"found {episode_id!r}"
        )
    return episode_id


def _close(runtime: Runtime, store: Store, executor: ThreadPoolExecutor) -> None:
    runtime.close()
    executor.shutdown(wait=False, cancel_futures=True)
    store.close()
