"""The chunk type of streamed answers: LangChain's own, but invalid calls stay invalid when chunks are joined.

LangChain reads the joined text of a tool call chunk as JSON, repairing what it can. A call that our reader
found invalid (a block without a name, arguments that are no object, a call that the token limit cut off)
would so become a valid call, and be executed. These chunks keep invalid calls that have a reason.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk, InvalidToolCall

__all__ = ["AnswerChunk"]


class AnswerChunk(AIMessageChunk):
    """An `AIMessageChunk` whose sum keeps invalid calls as they are, with their reason."""

    @classmethod
    def with_invalid_calls(cls, invalid: Iterable[InvalidToolCall], **fields: Any) -> "AnswerChunk":
        """A chunk of which some tool call chunks, told by their ids, are invalid calls."""
        return _keeping(cls(**fields), {call["id"]: call for call in invalid})

    @classmethod
    def lc_id(cls) -> list[str]:
        """Serialized as what it is to everyone else."""
        return AIMessageChunk.lc_id()

    @property  # type: ignore[misc]
    def __class__(self):  # type: ignore[no-untyped-def]
        # LangChain builds sums and finished messages by the class that a chunk names and by its parent:
        # to both this is an AIMessageChunk, and a finished message an AIMessage.
        return AIMessageChunk

    def __add__(self, other: Any) -> Any:
        total = super().__add__(other)
        if not isinstance(total, AIMessageChunk):
            return total
        parts = [self, *(other if isinstance(other, list | tuple) else [other])]
        invalid = {
            call["id"]: call for part in parts for call in part.invalid_tool_calls if call.get("error")
        }
        return _keeping(AnswerChunk.model_construct(total.model_fields_set, **dict(total)), invalid)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.model_fields_set, dict(self))


def _restored(fields_set: set[str], fields: Mapping[str, Any]) -> AnswerChunk:
    return AnswerChunk.model_construct(fields_set, **fields)


def _keeping(chunk: AnswerChunk, invalid: Mapping[str | None, InvalidToolCall]) -> AnswerChunk:
    """The chunk with these calls, told by their ids, as invalid ones."""
    if invalid:
        chunk.tool_calls = [call for call in chunk.tool_calls if call["id"] not in invalid]
        others = [call for call in chunk.invalid_tool_calls if call["id"] not in invalid]
        chunk.invalid_tool_calls = [*others, *invalid.values()]
    return chunk
