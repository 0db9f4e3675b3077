"""The engine's loop: requests join and leave one running batch, each with a grammar and options of its own.

One thread owns the model. It computes new prompts in parts, between the steps of the outputs that are under
way, so none waits for another to end; a batch of one costs what `generate` costs.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from langchain_envscaler.chat.engine.jobs import Job
from langchain_envscaler.chat.engine.key_values import KeyValues
from langchain_envscaler.chat.engine.prefixes import PrefixStore, common_length, encode_with
from langchain_envscaler.chat.engine.sampler import draw_tokens
from langchain_envscaler.chat.engine.tokens import QwenTokenizer
from langchain_envscaler.errors import EnvScalerError, InfrastructureError

__all__ = ["Forward", "Scheduler"]

logger = logging.getLogger(__name__)

Forward = Callable[[list[list[int]], KeyValues], torch.Tensor]
"""Each row's new token ids and the cache in, the logits after each row's last token out."""

_IDLE_SECONDS = 2.0
_LOOK_SECONDS = 0.1
# Prompt tokens computed between two steps of the running outputs; and where none runs, in one pass.
_SMALL_PART = 512
_LARGE_PART = 2048


@dataclass(slots=True)
class _Arrival:
    """A request whose prompt is being computed."""

    job: Job
    key_values: KeyValues


class Scheduler:
    """Runs jobs in a shared batch, on a thread that ends when there is nothing to do.

    Args:
        forward: One forward pass of the model.
        tokenizer: The model's.
        context_size: Tokens that prompt and output may have together.
        prefixes: What is remembered between requests.
        max_rows: How many outputs share a forward pass at most.
    """

    def __init__(
        self,
        forward: Forward,
        tokenizer: QwenTokenizer,
        *,
        context_size: int,
        prefixes: PrefixStore,
        max_rows: int,
    ) -> None:
        self._forward = forward
        self._tokenizer = tokenizer
        self._context_size = context_size
        self._prefixes = prefixes
        self._max_rows = max_rows
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting: deque[Job] = deque()
        self._arrivals: deque[_Arrival] = deque()
        self._rows: list[Job] = []
        self._key_values = KeyValues()
        self.passes = 0
        """Forward passes so far."""
        self.computed_tokens = 0
        """Tokens that forward passes took in so far."""

    def submit(self, job: Job) -> None:
        """Takes a job; its mailbox gets what comes of it."""
        with self._wake:
            self._waiting.append(job)
            if self._thread is None:
                # Not a daemon: one that is inside torch while the interpreter ends takes the process down.
                self._thread = threading.Thread(target=self._run, name="envscaler-engine", daemon=False)
                self._thread.start()
            self._wake.notify()

    def is_running(self) -> bool:
        """Whether the thread works; while a job is not done and this is False, the thread has died."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    @property
    def load(self) -> int:
        """How many jobs are waiting or under way."""
        return len(self._waiting) + len(self._arrivals) + len(self._rows)

    def _run(self) -> None:
        while self._has_work():
            try:
                with torch.inference_mode():
                    self._turn()
            except BaseException as error:
                self._fail_all(error)

    def _has_work(self) -> bool:
        """Waits for work for a while; without any, or where the interpreter ends, the thread has to end."""
        with self._wake:
            deadline = time.monotonic() + _IDLE_SECONDS
            while threading.main_thread().is_alive():
                if self.load:
                    return True
                if time.monotonic() >= deadline:
                    break
                self._wake.wait(_LOOK_SECONDS)
            self._thread = None
            left = [*self._waiting, *self._rows, *(arrival.job for arrival in self._arrivals)]
            self._waiting.clear()
        for job in left:
            job.fail(InfrastructureError("the program ended while this output was under way"))
        return False

    def _turn(self) -> None:
        self._drop_cancelled()
        self._admit()
        self._compute_arrivals()
        if self._rows:
            self._step()

    def _drop_cancelled(self) -> None:
        for place in range(len(self._rows) - 1, -1, -1):
            if self._rows[place].is_cancelled:
                self._remove(place)
        for arrival in [arrival for arrival in self._arrivals if arrival.job.is_cancelled]:
            self._arrivals.remove(arrival)
            self._prefixes.add(arrival.job.prefix(arrival.key_values))

    def _admit(self) -> None:
        while self._waiting and len(self._rows) + len(self._arrivals) < self._max_rows:
            job = self._waiting.popleft()
            if job.is_cancelled:
                continue
            try:
                self._begin(job)
            except Exception as error:
                job.fail(error)

    def _begin(self, job: Job) -> None:
        known = [*self._prefixes.pieces(), *(row.known_pieces() for row in self._rows)]
        pieces = encode_with(job.request.prompt.segments, known, self._tokenizer)
        job.begin(pieces, self._tokenizer, self._context_size)
        key_values = self._computed_prefix(job.ids)
        job.cached_tokens = key_values.lengths[0]
        self._arrivals.append(_Arrival(job, key_values))

    def _computed_prefix(self, ids: Sequence[int]) -> KeyValues:
        """The longest computed beginning of a prompt: a remembered one, or that of an output under way."""
        place, length = -1, self._prefixes.longest(ids)
        for candidate, row in enumerate(self._rows):
            common = min(common_length(row.ids, ids), len(ids) - 1)
            if common > length:
                place, length = candidate, common
        return self._prefixes.take(ids) if place < 0 else self._key_values.copy_prefix(place, length)

    def _compute_arrivals(self) -> None:
        """Computes some of the waiting prompts: so much as holds up the running outputs but little."""
        size = _SMALL_PART if self._rows else _LARGE_PART
        left = size
        while self._arrivals and left > 0:
            arrival = self._arrivals[0]
            done = arrival.key_values.lengths[0]
            part = arrival.job.ids[done : done + size]
            left -= len(part)
            scores = self._pass([part], arrival.key_values)
            if done + len(part) == len(arrival.job.ids):
                self._arrivals.popleft()
                self._key_values.join(arrival.key_values)
                self._rows.append(arrival.job)
                self._write(scores, first=len(self._rows) - 1)

    def _step(self) -> None:
        scores = self._pass([[job.last_token] for job in self._rows], self._key_values)
        self._write(scores, first=0)

    def _pass(self, ids: list[list[int]], key_values: KeyValues) -> torch.Tensor:
        self.passes += 1
        self.computed_tokens += sum(map(len, ids))
        return self._forward(ids, key_values)

    def _write(self, scores: torch.Tensor, *, first: int) -> None:
        """Draws the next token of each row from `first` on, and drops the rows that end with it."""
        jobs = self._rows[first:]
        tokens = self._next_tokens(scores, jobs)
        for place in range(len(jobs) - 1, -1, -1):
            job = jobs[place]
            try:
                goes_on = job.write(tokens[place], scores[place])
            except Exception as error:
                job.fail(error)
                goes_on = False
            if not goes_on:
                self._remove(first + place)

    def _next_tokens(self, scores: torch.Tensor, jobs: Sequence[Job]) -> list[int]:
        forced = [job.plan.forced() for job in jobs]
        if None not in forced:
            return [token for token in forced if token is not None]
        masked = self._masked(scores, jobs)
        tokens = draw_tokens(masked, [job.sampler for job in jobs])
        return [drawn if token is None else token for drawn, token in zip(tokens, forced, strict=True)]

    def _masked(self, scores: torch.Tensor, jobs: Sequence[Job]) -> torch.Tensor:
        """A copy of the scores in which what a grammar forbids cannot be drawn."""
        scores = scores.clone()
        rows = [place for place, job in enumerate(jobs) if job.plan.masks]
        if rows:
            import xgrammar

            mask = xgrammar.allocate_token_bitmask(len(jobs), self._tokenizer.size)
            for place in rows:
                jobs[place].plan.fill_mask(mask, place)
            xgrammar.apply_token_bitmask_inplace(scores, mask.to(scores.device), indices=rows)
        return scores

    def _remove(self, place: int) -> None:
        job = self._rows[place]
        last = self._rows.pop()
        if place < len(self._rows):
            self._rows[place] = last
        self._prefixes.add(job.prefix(self._key_values.leave(place)))

    def _fail_all(self, error: BaseException) -> None:
        """Ends all outputs under way: after a failed pass, what the batch holds cannot be told."""
        logger.warning("the engine failed; %d outputs end with an error", self.load, exc_info=error)
        jobs = [*self._rows, *(arrival.job for arrival in self._arrivals)]
        self._rows.clear()
        self._arrivals.clear()
        self._key_values = KeyValues()
        self._prefixes.clear()
        for job in jobs:
            job.fail(_as_failure(error))


def _as_failure(error: BaseException) -> BaseException:
    if isinstance(error, EnvScalerError):
        return error
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        failure = InfrastructureError(
            f"memory ran out while generating ({error}); lower max_batch_size or context_size, or load "
            "quantized weights"
        )
    else:
        failure = InfrastructureError(f"the model failed while generating: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
