"""One call of the model: from messages to pieces of the answer, on either kind of engine."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from contextlib import aclosing, closing

from langchain_core.messages import AIMessage

from langchain_envscaler.chat.backends.base import Backend, ChatBackend, ChatChunk, GenerationChunk
from langchain_envscaler.chat.chunks import AnswerChunk
from langchain_envscaler.chat.history import Message
from langchain_envscaler.chat.messages import ChunkWriter, answer_message
from langchain_envscaler.chat.options import CallOptions
from langchain_envscaler.chat.reading import Reading

__all__ = ["Run"]


class Run:
    """Reads one output; the engine stops as soon as enough was read, or the reader leaves.

    Args:
        engine: What answers.
        options: The call's options.
        model_name: The model's name, unless the engine tells one.
    """

    def __init__(self, engine: Backend | ChatBackend, options: CallOptions, model_name: str) -> None:
        self._engine = engine
        self._options = options
        self._model_name = engine.model_name or model_name
        self._reading = Reading(options)

    def answer(self, messages: Sequence[Message]) -> AIMessage:
        """The whole answer."""
        with closing(self._chunks(messages)) as chunks:
            for chunk in chunks:
                self._reading.read(chunk)
                if self._reading.is_done:
                    break
        return self._answer()

    async def aanswer(self, messages: Sequence[Message]) -> AIMessage:
        """As :meth:`answer`, for asyncio."""
        async with aclosing(self._achunks(messages)) as chunks:
            async for chunk in chunks:
                self._reading.read(chunk)
                if self._reading.is_done:
                    break
        return self._answer()

    def stream(self, messages: Sequence[Message], writer: ChunkWriter) -> Generator[AnswerChunk]:
        """The answer in chunks, as it comes."""
        with closing(self._chunks(messages)) as chunks:
            for chunk in chunks:
                for delta in self._reading.read(chunk):
                    yield writer.chunk(delta)
                if self._reading.is_done:
                    break
        for delta in self._reading.close():
            yield writer.chunk(delta)
        yield self._last(writer)

    async def astream(self, messages: Sequence[Message], writer: ChunkWriter) -> AsyncGenerator[AnswerChunk]:
        """As :meth:`stream`, for asyncio."""
        async with aclosing(self._achunks(messages)) as chunks:
            async for chunk in chunks:
                for delta in self._reading.read(chunk):
                    yield writer.chunk(delta)
                if self._reading.is_done:
                    break
        for delta in self._reading.close():
            yield writer.chunk(delta)
        yield self._last(writer)

    def _answer(self) -> AIMessage:
        self._reading.close()
        return answer_message(self._reading, self._model_name, tokens=self._options.wants_tokens)

    def _last(self, writer: ChunkWriter) -> AnswerChunk:
        return writer.last(self._reading, self._model_name, tokens=self._options.wants_tokens)

    def _chunks(self, messages: Sequence[Message]) -> Generator[GenerationChunk | ChatChunk]:
        engine, options = self._engine, self._options
        if isinstance(engine, ChatBackend):
            yield from engine.stream_chat(options.chat_request(messages))
            return
        prompt = engine.prompt(messages, options.prompt_tools, enable_thinking=options.enable_thinking)
        yield from engine.stream(options.generation_request(prompt))

    async def _achunks(self, messages: Sequence[Message]) -> AsyncGenerator[GenerationChunk | ChatChunk]:
        engine, options = self._engine, self._options
        chunks: AsyncIterator[GenerationChunk | ChatChunk]
        if isinstance(engine, ChatBackend):
            chunks = engine.astream_chat(options.chat_request(messages))
        else:
            # Rendering may load a tokenizer, which would hold up everything else on the loop.
            prompt = await asyncio.to_thread(
                engine.prompt, messages, options.prompt_tools, enable_thinking=options.enable_thinking
            )
            chunks = engine.astream(options.generation_request(prompt))
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
