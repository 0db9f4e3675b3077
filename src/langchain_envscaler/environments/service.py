"""The episodes of a process or a server: started, found again, put to sleep, deleted."""

import asyncio
import logging
import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from langchain_envscaler.environments.episode import Episode
from langchain_envscaler.environments.limits import Limits
from langchain_envscaler.environments.metadata import EnvironmentSpec, Scenario
from langchain_envscaler.environments.runtime import Runtime
from langchain_envscaler.environments.sandbox.host import IsolationReport
from langchain_envscaler.environments.store import EpisodeRow, Store, open_store
from langchain_envscaler.errors import DataError, LimitError, UsageError

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog

__all__ = ["EpisodeService"]

_logger = logging.getLogger("langchain_envscaler.environments")

T = TypeVar("T")
P = ParamSpec("P")


class EpisodeService:
    """Starts episodes of a catalog's environments and keeps them in a store. Safe for use by several threads."""

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
        """Args:
            catalog: The environments and scenarios.
            store: A store, or the address of one: ":memory:" (None means that too), a path,
                `sqlite:///PATH`, `postgresql://...`.
            limits: What environment code may use.
            require_isolation: Refuse to run anything below full isolation.
            max_episodes: How many episodes may be open here at once, asleep ones included.
            max_awake: How many episodes keep a process; the least recently used go to sleep.
            sleep_seconds: An episode not used for so long goes to sleep. None: never.
            expire_seconds: An episode not used for so long is deleted from the store. None: never.

        Raises:
            DataError: The store's file is not one.
            InfrastructureError: Isolation was required and is not there.
        """
        self.catalog = catalog
        self.limits = limits or Limits()
        self.store = open_store(store) if store is None or isinstance(store, str) else store
        self.runtime = Runtime(self.limits, require_isolation=require_isolation)
        self.executor = ThreadPoolExecutor(64, thread_name_prefix="episodes")
        self._max_episodes = max_episodes
        self._max_awake = max_awake
        self._sleep_seconds = sleep_seconds
        self._expire_seconds = expire_seconds
        self._lock = threading.Lock()
        self._episodes: dict[str, Episode] = {}
        self._awake: OrderedDict[str, Episode] = OrderedDict()
        self._stored: dict[int, tuple[Any, str]] = {}
        self._specs: dict[str, EnvironmentSpec] = {}
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
        """
        spec = self.catalog.environment(env_id)
        scenario = None if task_id is None else self.catalog.scenario(env_id, task_id)
        if init_config is None:
            init_config = scenario.init_config if scenario is not None else {}
        self._admit()
        clock = None if seed is None else [str(seed), 0]
        child, state = self.runtime.construct(spec, init_config, clock)
        try:
            now = time.time()
            identifier = episode_id if episode_id is not None else secrets.token_hex(10)
            row = EpisodeRow(
                episode_id=_valid_id(identifier),
                env_id=env_id,
                task_id=task_id,
                spec=self._document(spec),
                scenario=None if scenario is None else self._document(scenario),
                seed=seed,
                principal=principal,
                head=0,
                next_revision=1,
                origin=None,
                lineage=((identifier, 0),),
                created_at=now,
                used_at=now,
            )
            self.store.create(row, state)
            episode = Episode(self, row, spec, scenario)
            self._register(episode)
        except BaseException:
            child.close()
            raise
        episode._hold(child, 0)
        return episode

    def get(self, episode_id: str) -> Episode:
        """An episode that was started here or, earlier or elsewhere, on the same store.

        Raises:
            NotFoundError: There is none.
        """
        with self._lock:
            if (episode := self._episodes.get(episode_id)) is not None:
                return episode
        return self._opened(self.store.episode(episode_id))

    def delete(self, episode_id: str) -> None:
        """Delete an episode and what is kept of it (what its forks need stays until they are deleted too).

        Raises:
            NotFoundError: There is none.
        """
        self.store.episode(episode_id)
        with self._lock:
            episode = self._episodes.get(episode_id)
        if episode is not None:
            episode.close()
        self.store.delete(episode_id)

    def list(
        self, *, principal: str | None = None, after: Episode | None = None, limit: int = 100
    ) -> list[Episode]:
        """Episodes in the store, the oldest first.

        Args:
            principal: Only those that belong to it.
            after: Only those that were started after this one.
            limit: At most so many.
        """
        behind = None if after is None else (after.created_at, after.episode_id)
        rows = self.store.episodes(principal=principal, after=behind, limit=limit)
        with self._lock:
            opened = [self._episodes.get(row.episode_id) for row in rows]
        return [
            episode if episode is not None else Episode(self, row, *self._documents(row))
            for episode, row in zip(opened, rows, strict=True)
        ]

    def forked(self, origin: EpisodeRow) -> Episode:
        """A new episode that goes on where another one is."""
        self._admit()
        now = time.time()
        identifier = secrets.token_hex(10)
        row = EpisodeRow(
            episode_id=identifier,
            env_id=origin.env_id,
            task_id=origin.task_id,
            spec=origin.spec,
            scenario=origin.scenario,
            seed=origin.seed,
            principal=origin.principal,
            head=origin.head,
            next_revision=origin.next_revision,
            origin=origin.episode_id,
            lineage=((identifier, origin.next_revision), *origin.lineage),
            created_at=now,
            used_at=now,
        )
        self.store.create(row, None)
        return self._opened(row)

    def close(self) -> None:
        """End all processes and close the store. Episodes in a file or a server are kept there."""
        with self._lock:
            self._episodes.clear()
            self._awake.clear()
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # ------------------------------------------------------------------ for episodes

    def _admit(self) -> None:
        with self._lock:
            if len(self._episodes) >= self._max_episodes:
                raise LimitError(
                    f"expected fewer than {self._max_episodes} open episodes, found so many; "
                    "delete or close some, or raise max_episodes"
                )

    def _opened(self, row: EpisodeRow) -> Episode:
        spec, scenario = self._documents(row)
        episode = Episode(self, row, spec, scenario)
        with self._lock:
            return self._episodes.setdefault(row.episode_id, episode)

    def _register(self, episode: Episode) -> None:
        with self._lock:
            self._episodes[episode.episode_id] = episode

    def forget(self, episode: Episode) -> None:
        """An episode left memory."""
        with self._lock:
            self._episodes.pop(episode.episode_id, None)
            self._awake.pop(episode.episode_id, None)

    def note_awake(self, episode: Episode) -> None:
        """An episode has a process now; others go to sleep if too many have."""
        with self._lock:
            self._awake[episode.episode_id] = episode
            self._awake.move_to_end(episode.episode_id)
            excess = len(self._awake) - self._max_awake
            candidates = list(self._awake.values())[: max(excess, 0)]
        for candidate in candidates:
            if candidate is not episode:
                candidate.sleep()

    def note_asleep(self, episode: Episode) -> None:
        """An episode gave up its process."""
        with self._lock:
            self._awake.pop(episode.episode_id, None)

    def problem_with(self, spec: EnvironmentSpec, name: str, arguments: dict[str, Any]) -> str | None:
        """What keeps a call from being made, in words that a model can act on; None if nothing does."""
        for tool in spec.tools:
            function = tool.get("function", tool)
            if function["name"] == name:
                return _argument_problem(function, arguments)
        names = ", ".join(tool.get("function", tool)["name"] for tool in spec.tools)
        return f"Unknown tool: {name!r}. Available tools: {names}."

    def state_form(self, spec: EnvironmentSpec, state: bytes) -> dict[str, Any]:
        """The JSON form of a stored state."""
        child = self.runtime.resume(spec, state)
        try:
            reply = child.request({"do": "state"}, seconds=self.limits.start_seconds)
        finally:
            child.close()
        if not reply.message["ok"]:
            raise DataError(f"expected a state with a JSON form, found: {reply.message.get('error')}")
        form: dict[str, Any] = reply.message["state"]
        return form

    def log_output(self, episode: Episode, name: str, output: Any) -> None:
        """What environment code printed goes to the log."""
        if output:
            _logger.debug("episode %s, %s printed: %s", episode.episode_id, name, output)

    def _document(self, record: EnvironmentSpec | Scenario) -> str:
        # Kept by identity: records do not change, and hashing a large one takes longer than a call.
        known = self._stored.get(id(record))
        if known is not None and known[0] is record:
            return known[1]
        key = self.store.put_document(record.model_dump(mode="json"))
        self._stored[id(record)] = (record, key)
        if isinstance(record, EnvironmentSpec):
            self._specs[key] = record
        return key

    def _documents(self, row: EpisodeRow) -> tuple[EnvironmentSpec, Scenario | None]:
        spec = self._specs.get(row.spec)
        if spec is None:
            spec = EnvironmentSpec.model_validate(self.store.document(row.spec))
            self._specs[row.spec] = spec
        scenario = (
            None if row.scenario is None else Scenario.model_validate(self.store.document(row.scenario))
        )
        return spec, scenario

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
        self, *, principal: str | None = None, after: Episode | None = None, limit: int = 100
    ) -> "list[Episode]":
        """`list`, without blocking the event loop."""
        return await self._in_thread(self.list, principal=principal, after=after, limit=limit)

    async def aclose(self) -> None:
        """`close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    async def _in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executor, partial(function, *args, **kwargs))


def _argument_problem(function: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    parameters = function.get("parameters") or {}
    properties, required = parameters.get("properties") or {}, parameters.get("required") or []
    missing = [name for name in required if name not in arguments]
    unknown = [name for name in arguments if name not in properties]
    if not missing and not unknown:
        return None
    problems = [f"missing required argument {name!r}" for name in missing]
    problems += [f"unknown argument {name!r}" for name in unknown]
    listed = ", ".join(
        f"{name} ({schema.get('type', 'any')}, {'required' if name in required else 'optional'})"
        for name, schema in properties.items()
    )
    return f"Invalid arguments for {function['name']}: {'; '.join(problems)}. Expected: {listed or 'no arguments'}."


def _valid_id(episode_id: str) -> str:
    if (
        not episode_id
        or len(episode_id) > 128
        or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in episode_id)
    ):
        raise UsageError(f"expected an episode id of 1 to 128 letters, digits and -_. , found {episode_id!r}")
    return episode_id


def _close(runtime: Runtime, store: Store, executor: ThreadPoolExecutor) -> None:
    runtime.close()
    executor.shutdown(wait=False, cancel_futures=True)
    store.close()
