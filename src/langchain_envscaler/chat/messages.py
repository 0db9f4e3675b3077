"""An output that was read, as LangChain's messages: whole, or as chunks that add up to it."""

import json
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
from langchain_core.messages.tool import tool_call_chunk

from langchain_envscaler.chat.backends.base import GeneratedToken, Usage
from langchain_envscaler.chat.chunks import AnswerChunk
from langchain_envscaler.chat.output import OutputDelta
from langchain_envscaler.chat.reading import Reading

__all__ = ["PROVIDER", "ChunkWriter", "answer_message"]

PROVIDER = "envscaler"


def answer_message(reading: Reading, model_name: str, *, tokens: bool) -> AIMessage:
    """The whole answer.

    Args:
        reading: The output, closed.
        model_name: The model's name, unless the engine told one.
        tokens: Whether the message shall carry the output's tokens.
    """
    result = reading.result
    return AIMessage(
        content=result.content,
        additional_kwargs=_reasoning(result.reasoning),
        tool_calls=result.tool_calls,
        invalid_tool_calls=result.invalid_tool_calls,
        usage_metadata=_usage_metadata(reading.usage),
        response_metadata=_response_metadata(reading, model_name, tokens=tokens),
    )


class ChunkWriter:
    """Writes the pieces of one answer as chunks.

    Args:
        as_blocks: Whether a chunk's content is a list of standard content blocks, each with the number that
            tells what belongs together, as `output_version="v1"` wants it; else it is the text.
    """

    def __init__(self, *, as_blocks: bool = False) -> None:
        self._as_blocks = as_blocks
        self._block = -1
        self._block_type = ""

    def chunk(self, delta: OutputDelta) -> AnswerChunk:
        """A piece of the answer; a call comes whole, in one chunk."""
        call = delta.tool_call or delta.invalid_tool_call
        if call is None:
            return self._text_chunk(delta)
        args = json.dumps(call["args"], ensure_ascii=False) if call["type"] == "tool_call" else call["args"]
        chunk = tool_call_chunk(name=call["name"], args=args, id=call["id"], index=delta.index)
        invalid = [delta.invalid_tool_call] if delta.invalid_tool_call else []
        blocks = [] if invalid else [self._numbered({**chunk}, is_new=True)]
        return AnswerChunk.with_invalid_calls(invalid, tool_call_chunks=[chunk], **self._content("", blocks))

    def last(self, reading: Reading, model_name: str, *, tokens: bool) -> AnswerChunk:
        """The chunk that ends a stream: no text, but usage and why the output ended."""
        fields = self._content("", [])
        fields["response_metadata"] |= _response_metadata(reading, model_name, tokens=tokens)
        return AnswerChunk(**fields, usage_metadata=_usage_metadata(reading.usage), chunk_position="last")

    def _text_chunk(self, delta: OutputDelta) -> AnswerChunk:
        blocks: list[dict[str, Any]] = []
        if delta.reasoning:
            blocks.append(self._numbered({"type": "reasoning", "reasoning": delta.reasoning}))
        if delta.content:
            blocks.append(self._numbered({"type": "text", "text": delta.content}))
        fields = self._content(delta.content, blocks)
        return AnswerChunk(**fields, additional_kwargs=_reasoning(delta.reasoning))

    def _content(self, text: str, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        if self._as_blocks:
            return {"content": blocks, "response_metadata": {"output_version": "v1"}}
        return {"content": text, "response_metadata": {}}

    def _numbered(self, block: dict[str, Any], *, is_new: bool = False) -> dict[str, Any]:
        if is_new or block["type"] != self._block_type:
            self._block += 1
            self._block_type = block["type"]
        return {**block, "index": self._block}


def _reasoning(text: str) -> dict[str, Any]:
    return {"reasoning_content": text} if text else {}


def _usage_metadata(usage: Usage | None) -> UsageMetadata | None:
    if usage is None:
        return None
    return UsageMetadata(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_token_details=InputTokenDetails(cache_read=usage.cached_tokens),
        output_token_details=OutputTokenDetails(reasoning=usage.reasoning_tokens or 0),
    )


def _response_metadata(reading: Reading, model_name: str, *, tokens: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "finish_reason": reading.finish_reason,
        "model_name": reading.model_name or model_name,
        "model_provider": PROVIDER,
    }
    if tokens:
        metadata["tokens"] = [_token(token) for token in reading.tokens]
    return metadata


def _token(token: GeneratedToken) -> dict[str, Any]:
    """A token as JSON: id, text, whether the model wrote it, and its log-probability where asked for."""
    entry: dict[str, Any] = {"id": token.id, "text": token.text, "is_written": token.is_written}
    if token.logprob is not None:
        entry["logprob"] = token.logprob
        entry["top_logprobs"] = [_alternative(*pair) for pair in token.top]
    return entry


def _alternative(token: int | str, logprob: float) -> dict[str, Any]:
    return {"id" if isinstance(token, int) else "text": token, "logprob": logprob}
