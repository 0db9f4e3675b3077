"""A Qwen3 in process, by vLLM: loaded when first used, shared by all chat models of the same weights."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_envscaler.chat.backends.base import Backend, GenerationChunk, GenerationRequest, Prompt
from langchain_envscaler.chat.backends.choice import BackendSettings
from langchain_envscaler.chat.engine.mailbox import AsyncMailbox, ThreadMailbox
from langchain_envscaler.chat.engine.shared import Shared
from langchain_envscaler.chat.engine.tokens import pieces_ids
from langchain_envscaler.chat.history import Message

if TYPE_CHECKING:
    from langchain_envscaler.chat.engine.text import ModelText
    from langchain_envscaler.chat.engine.vllm_engine import VLLMEngine

__all__ = ["VLLMBackend"]

_TEXTS = Shared(kept=4)
_ENGINES = Shared(kept=1)


class VLLMBackend(Backend):
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
    def engine(self) -> "VLLMEngine":
        """The engine with the model's weights."""
        from langchain_envscaler.chat.engine.vllm_engine import VLLMEngine

        return _ENGINES.get(self._settings.key, lambda: VLLMEngine(self._settings, self.text))  # type: ignore[no-any-return]

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

    def stream(self, request: GenerationRequest) -> Generator[GenerationChunk]:
        """The output as it comes. Closing the iterator ends the generation."""
        mailbox = ThreadMailbox(self.engine.is_running)
        task = self.engine.submit(request, mailbox)
        try:
            yield from mailbox.chunks()
        finally:
            task.cancel()

    async def astream(self, request: GenerationRequest) -> AsyncGenerator[GenerationChunk]:
        """As :meth:`stream`, with no thread that waits."""
        if "engine" not in self.__dict__:
            await asyncio.to_thread(lambda: self.engine)
        mailbox = AsyncMailbox(self.engine.is_running)
        task = self.engine.submit(request, mailbox)
        try:
            async for chunk in mailbox.chunks():
                yield chunk
        finally:
            task.cancel()

    def close(self) -> None:
        """Lets go of the weights; they are freed when no other chat model uses them."""
        self.__dict__.pop("engine", None)
        _ENGINES.forget(self._settings.key)
