"""Putting idle episodes to sleep and deleting expired ones, in the background."""

import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING

from langchain_envscaler.errors import EnvScalerError

if TYPE_CHECKING:
    from langchain_envscaler.environments.service import EpisodeService

__all__ = ["Housekeeper"]

_logger = logging.getLogger("langchain_envscaler.environments")

_MIN_ROUND_SECONDS, _MAX_ROUND_SECONDS = 0.05, 30.0


class Housekeeper:
    """A thread that looks after a service's episodes now and then, from the first one on."""

    def __init__(
        self, service: "EpisodeService", sleep_seconds: float | None, expire_seconds: float | None
    ) -> None:
        # The thread must not keep the service alive.
        self._service = weakref.ref(service)
        self._sleep_seconds = sleep_seconds
        self._expire_seconds = expire_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, if there is anything to look after and it did not begin yet."""
        limits = [seconds for seconds in (self._sleep_seconds, self._expire_seconds) if seconds is not None]
        if self._thread is not None or not limits:
            return
        round_seconds = min(max(min(limits) / 4, _MIN_ROUND_SECONDS), _MAX_ROUND_SECONDS)
        self._thread = threading.Thread(
            target=self._work, args=(round_seconds,), name="episode-housekeeping", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _work(self, round_seconds: float) -> None:
        while not self._stop.wait(round_seconds):
            service = self._service()
            if service is None:
                return
            try:
                self.tidy(service)
            except EnvScalerError as error:
                _logger.warning("could not tidy up episodes: %s", error)
            del service

    def tidy(self, service: "EpisodeService") -> None:
        """One round."""
        if self._sleep_seconds is not None:
            for episode in service.awake():
                if episode.idle_seconds >= self._sleep_seconds:
                    episode.sleep()
        if self._expire_seconds is not None:
            for episode_id in service.store.expired(time.time() - self._expire_seconds):
                service.delete(episode_id)
