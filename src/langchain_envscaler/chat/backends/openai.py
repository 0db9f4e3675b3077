"""Any OpenAI-compatible server (vLLM, SGLang, llama.cpp, Ollama, ...) as an engine.

By its completions endpoint it continues our own prompt and its text goes through our own reader, the same as
in process. By its chat endpoint, the widest, it renders the prompt and may read the output itself.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

from langchain_envscaler.chat.backends.base import (
    Backend,
    ChatBackend,
    ChatChunk,
    ChatRequest,
    GenerationChunk,
    GenerationRequest,
)
from langchain_envscaler.chat.backends.openai_reading import ChatEvents, CompletionAnswer, TextReading
from langchain_envscaler.chat.backends.openai_requests import (
    ServerTraits,
    adapted,
    chat_body,
)
from langchain_envscaler.chat.backends.server import Server
from langchain_envscaler.chat.backends.server_errors import Refusal
from langchain_envscaler.errors import UsageError

if TYPE_CHECKING:
    from langchain_envscaler.chat.backends.choice import BackendSettings

__all__ = ["OpenAIBackend", "OpenAIChatBackend", "create_openai_backend"]


def create_openai_backend(settings: "BackendSettings") -> "OpenAIBackend | OpenAIChatBackend":
    """The engine for the server that the settings name; nothing is connected yet.

    Raises:
        UsageError: The address is none of HTTP.
    """
    key = settings.api_key.get_secret_value() if settings.api_key else None
    server = Server(
        settings.base_url or "",
        api_key=key,
        headers=settings.default_headers,
        timeout=settings.timeout,
        max_retries=settings.max_retries,
    )
    kind = OpenAIChatBackend if settings.api == "chat" else OpenAIBackend
    return kind(server, settings.model, context_size=settings.context_size)


class _ServerEngine:
    """What both endpoints share.

    Args:
        server: The connection.
        model: The server's name for its model.
        context_size: The most tokens of prompt and output, where it is known.
    """

    def __init__(self, server: Server, model: str, *, context_size: int | None = None) -> None:
        self._server = server
        self._model = model
        self._traits = ServerTraits(context_size=context_size)

    @property
    def model_name(self) -> str | None:
        """The server's name for its model."""
        return self._model

    @property
    def context_size(self) -> int | None:
        """The most tokens of prompt and output, once known."""
        return self._traits.context_size

    def close(self) -> None:
        """Closes the connections."""
        self._server.close()

    def _events(self, path: str, body: dict[str, Any], *, may_shorten: bool) -> Generator[dict[str, Any]]:
        """The events of an answer, asked for once more without what the server refused."""
        while True:
            try:
                with closing(self._server.events(path, body)) as events:
                    yield from events
                return
            except Refusal as refusal:
                changed = adapted(body, refusal, self._traits, may_shorten=may_shorten)
                if changed is None:
                    raise self._server.error(refusal, self._model) from None
                body = changed

    async def _aevents(
        self, path: str, body: dict[str, Any], *, may_shorten: bool
    ) -> AsyncGenerator[dict[str, Any]]:
        while True:
            try:
                async with aclosing(self._server.aevents(path, body)) as events:
                    async for event in events:
                        yield event
                return
            except Refusal as refusal:
                changed = adapted(body, refusal, self._traits, may_shorten=may_shorten)
                if changed is None:
                    raise await self._server.aerror(refusal, self._model) from None
                body = changed


class OpenAIBackend(_ServerEngine, Backend):
    """A server's completions endpoint: our prompt in, raw text out."""

    def stream(self, request: GenerationRequest) -> Generator[GenerationChunk]:
        """The output, as it comes. Closing the iterator ends the generation."""
        answer = CompletionAnswer(self._model, request, self._traits)
        while not answer.is_complete:
            yield answer.begin_leg()
            with closing(
                self._events("/completions", answer.body(), may_shorten=answer.may_shorten)
            ) as events:
                for event in events:
                    yield answer.read(event)
            yield answer.end_leg()

    async def astream(self, request: GenerationRequest) -> AsyncGenerator[GenerationChunk]:
        """As :meth:`stream`, for asyncio."""
        answer = CompletionAnswer(self._model, request, self._traits)
        while not answer.is_complete:
            yield answer.begin_leg()
            async with aclosing(
                self._aevents("/completions", answer.body(), may_shorten=answer.may_shorten)
            ) as events:
                async for event in events:
                    yield answer.read(event)
            yield answer.end_leg()


class OpenAIChatBackend(_ServerEngine, ChatBackend):
    """A server's chat endpoint: messages in, an output that the server may have read out.

    An answer that must have a form, or whose thinking has a budget, goes by the completions endpoint where
    the server is a vLLM: only there it holds exactly.
    """

    def __init__(self, server: Server, model: str, *, context_size: int | None = None) -> None:
        super().__init__(server, model, context_size=context_size)
        self._completions = OpenAIBackend(server, model, context_size=context_size)

    def stream_chat(self, request: ChatRequest) -> Generator[ChatChunk]:
        """The output, read, as it comes. Closing the iterator ends the generation."""
        if _is_led(request) and self._is_vllm():
            reading = TextReading(request)
            with closing(self._completions.stream(reading.request)) as chunks:
                for chunk in chunks:
                    yield reading.read(chunk)
            return
        _check_chat(request)
        events_reading = ChatEvents(request, self._traits)
        body = chat_body(self._model, request, self._traits)
        with closing(
            self._events("/chat/completions", body, may_shorten=request.max_tokens is None)
        ) as events:
            for event in events:
                yield events_reading.read(event)
        yield events_reading.close()

    async def astream_chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
        """As :meth:`stream_chat`, for asyncio."""
        if _is_led(request) and await asyncio.to_thread(self._is_vllm):
            reading = TextReading(request)
            async with aclosing(self._completions.astream(reading.request)) as chunks:
                async for chunk in chunks:
                    yield reading.read(chunk)
            return
        _check_chat(request)
        events_reading = ChatEvents(request, self._traits)
        body = chat_body(self._model, request, self._traits)
        async with aclosing(
            self._aevents("/chat/completions", body, may_shorten=request.max_tokens is None)
        ) as events:
            async for event in events:
                yield events_reading.read(event)
        yield events_reading.close()

    def _is_vllm(self) -> bool:
        if self._traits.is_vllm is None:
            models = self._server.models()
            self._traits.is_vllm = any(entry.get("owned_by") == "vllm" for entry in models)
        return self._traits.is_vllm


def _is_led(request: ChatRequest) -> bool:
    """Whether the output's form, or the length of its thinking, was asked for."""
    has_budget = request.enable_thinking and request.thinking_budget is not None
    return has_budget or request.constraint is not None


def _check_chat(request: ChatRequest) -> None:
    if request.enable_thinking and request.thinking_budget is not None:
        raise UsageError(
            'a chat endpoint has no thinking budget that every server knows; use api="completions", or the '
            "server's own option in extra={...}"
        )
