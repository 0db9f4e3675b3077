"""A Qwen3 in process, by transformers: loaded when first used, its weights shared between chat models."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_envscaler.chat.backends.base import Backend, GenerationChunk, GenerationRequest, Prompt
from langchain_envscaler.chat.backends.choice import BackendSettings
from langchain_envscaler.chat.engine.mailbox import AsyncMailbox, Mailbox, ThreadMailbox
from langchain_envscaler.chat.engine.shared import Shared
from langchain_envscaler.chat.engine.tokens import pieces_ids
from langchain_envscaler.chat.history import Message

if TYPE_CHECKING:
    from langchain_envscaler.chat.engine.jobs import Job
    from langchain_envscaler.chat.engine.runner import Runner
    from langchain_envscaler.chat.engine.text import ModelText

__all__ = ["TransformersBackend"]

_TEXTS = Shared(kept=4)
_RUNNERS = Shared(kept=1)


class TransformersBackend(Backend):
    """Runs the model that the settings name.

    Args:
        settings: The model and how to load it; nothing is loaded yet.
    """

    def __init__(self, settings: BackendSettings) -> None:
        self._settings = settings

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._settings,)

    @cached_property
    def text(self) -> "ModelText":
        """The model's tokenizer and what goes with it, loaded without the weights."""
        from langchain_envscaler.chat.engine.text import ModelText

        return _TEXTS.get(self._settings.key, lambda: ModelText(self._settings))  # type: ignore[no-any-return]

    @cached_property
    def runner(self) -> "Runner":
        """The model with its weights."""
        from langchain_envscaler.chat.engine.weights import load_runner

        return _RUNNERS.get(self._settings.key, lambda: load_runner(self._settings, self.text))  # type: ignore[no-any-return]

    @property
    def model_name(self) -> str:
        """The model's name or folder."""
        return self._settings.model

    @property
    def context_size(self) -> int:
        """The most tokens that prompt and output may have together; reads the model's configuration."""
        return self.text.context_size

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[Any] | None = None, *, enable_thinking: bool = True
    ) -> Prompt:
        """The prompt of a conversation, by the tokenizer's own template."""
        return self.text.templates.prompt(messages, tools, enable_thinking=enable_thinking)

    def token_ids(self, prompt: Prompt) -> list[int]:
        """The prompt's tokens."""
        return pieces_ids(self.text.tokenizer.encode(prompt.segments))

    def stream(self, request: GenerationRequest) -> Iterator[GenerationChunk]:
        """The output as it comes, each token at once."""
        mailbox = ThreadMailbox(self.runner.scheduler.is_running)
        job = self._job(request, mailbox)
        self.runner.scheduler.submit(job)
        try:
            yield from mailbox.chunks()
        finally:
            job.cancel()

    async def astream(self, request: GenerationRequest) -> AsyncIterator[GenerationChunk]:
        """As :meth:`stream`, with no thread that waits."""
        if "runner" not in self.__dict__:
            await asyncio.to_thread(lambda: self.runner)
        mailbox = AsyncMailbox(self.runner.scheduler.is_running)
        # A grammar may take a while to compile, a job without one takes no time.
        job = (
            await asyncio.to_thread(self._job, request, mailbox)
            if request.constraint
            else self._job(request, mailbox)
        )
        self.runner.scheduler.submit(job)
        try:
            async for chunk in mailbox.chunks():
                yield chunk
        finally:
            job.cancel()

    def close(self) -> None:
        """Lets go of the weights; they are freed unless another chat model uses them."""
        self.__dict__.pop("runner", None)
        _RUNNERS.forget(self._settings.key)

    def _job(self, request: GenerationRequest, mailbox: Mailbox) -> "Job":
        from langchain_envscaler.chat.engine.jobs import Job

        matcher = self.text.grammars.matcher(request.constraint) if request.constraint else None
        return Job(request, matcher, mailbox)
