"""A conversation in any form that LangChain knows, brought into one: text turns in Qwen3's four roles.

Both ways to a prompt, the carried template and a tokenizer's own, start from these turns, so that neither
meets what a chat template cannot render: lists of content blocks, arguments that are JSON text, calls that
could not be read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_envscaler.chat.calls import read_name
from langchain_envscaler.errors import UsageError

__all__ = ["HistoryCall", "Message", "Role", "Turn", "template_messages", "to_turns"]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
# Blocks that repeat what a message also holds in fields of its own.
_CALL_BLOCKS = frozenset(
    {"tool_call", "tool_call_chunk", "invalid_tool_call", "tool_use", "input_json_delta", "function_call"}
)
_REASONING_BLOCKS = frozenset({"reasoning", "thinking", "reasoning_content"})


@dataclass(frozen=True, slots=True)
class HistoryCall:
    """A tool call of an earlier turn; `arguments` is an object, or raw text where it could not be read."""

    name: str
    arguments: dict[str, Any] | str
    id: str | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as the model writes them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as the model's template sees it: a role and text, and for an assistant what it did."""

    role: Role
    content: str
    reasoning: str = ""
    calls: tuple[HistoryCall, ...] = ()
    raw_blocks: tuple[str, ...] = ()
    """Blocks that were no readable call, each as the model wrote it between its tags."""
    tool_call_id: str | None = None

    @property
    def content_with_blocks(self) -> str:
        """The content, and after it each raw block between its tags, where a template would put calls."""
        blocks = [f"<tool_call>\n{block}\n</tool_call>" for block in self.raw_blocks]
        return "\n".join([self.content, *blocks] if self.content else blocks)


Message: TypeAlias = BaseMessage | Mapping[str, Any] | tuple[str, Any] | str | Turn
"""LangChain's messages, OpenAI-form dicts, (role, content) pairs, a user's text, or turns."""


def to_turns(messages: Sequence[Message]) -> list[Turn]:
    """The conversation as turns.

    Raises:
        UsageError: There is no message, or one has an unknown role or content that is not text.
    """
    if not messages:
        raise UsageError(
            "expected at least one message, got none; give the conversation as a list of messages"
        )
    return [_turn(message, index) for index, message in enumerate(messages)]


def template_messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """The turns as dicts that any chat template of Qwen3's kind renders as :func:`render` does."""
    return [_template_message(turn) for turn in turns]


def _template_message(turn: Turn) -> dict[str, Any]:
    if turn.role != "assistant":
        return {"role": turn.role, "content": turn.content}
    message: dict[str, Any] = {
        "role": "assistant",
        "content": turn.content_with_blocks,
        "reasoning_content": turn.reasoning,
    }
    if turn.calls:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}
            for call in turn.calls
        ]
    return message


def _turn(message: Message, index: int) -> Turn:
    if isinstance(message, Turn):
        return message
    if isinstance(message, str):
        return Turn("user", message)
    if isinstance(message, BaseMessage):
        return _from_langchain(message, index)
    if isinstance(message, Mapping):
        return _from_dict(message, index)
    if isinstance(message, tuple) and len(message) == 2:
        return _from_dict({"role": message[0], "content": message[1]}, index)
    raise UsageError(
        f"message {index}: expected a LangChain message or a dict with role and content, "
        f"got {type(message).__name__}"
    )


def _role(name: Any, index: int) -> Role:
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise UsageError(
            f"message {index}: expected the role system, user, assistant or tool, got {name!r}; rename it"
        )
    return role


def _from_langchain(message: BaseMessage, index: int) -> Turn:
    if isinstance(message, AIMessage):
        calls, raw_blocks = _calls_of(message)
        return _assistant(message.content, _reasoning_of(message.additional_kwargs), calls, raw_blocks, index)
    if isinstance(message, ToolMessage):
        return Turn("tool", _tool_text(message.content), tool_call_id=message.tool_call_id)
    if isinstance(message, FunctionMessage):
        return Turn("tool", _tool_text(message.content))
    if isinstance(message, SystemMessage):
        return Turn("system", _text(message.content, index))
    if isinstance(message, HumanMessage):
        return Turn("user", _text(message.content, index))
    if isinstance(message, ChatMessage):
        return _from_dict(
            {**message.additional_kwargs, "role": message.role, "content": message.content}, index
        )
    raise UsageError(
        f"message {index}: expected a system, human, AI or tool message, "
        f"got {type(message).__name__}; leave it out"
    )


def _from_dict(message: Mapping[str, Any], index: int) -> Turn:
    role = _role(message.get("role", message.get("type")), index)
    content = message.get("content")
    if role == "tool":
        return Turn("tool", _tool_text(content), tool_call_id=message.get("tool_call_id"))
    if role != "assistant":
        return Turn(role, _text(content, index))
    calls: list[HistoryCall] = []
    raw_blocks: list[str] = []
    for entry in message.get("tool_calls") or ():
        _sort_call(_dict_call(entry, index), calls, raw_blocks)
    return _assistant(content, _reasoning_of(message), calls, raw_blocks, index)


def _dict_call(entry: Any, index: int) -> HistoryCall:
    function = entry.get("function") or entry if isinstance(entry, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise UsageError(
            f"message {index}: expected tool calls with a function's name and arguments, got {entry!r}"
        )
    arguments = function.get("arguments", function.get("args"))
    return HistoryCall(function["name"], _as_arguments(arguments), entry.get("id"))


def _calls_of(message: AIMessage) -> tuple[list[HistoryCall], list[str]]:
    calls = [HistoryCall(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    raw_blocks: list[str] = []
    for invalid in message.invalid_tool_calls:
        call = HistoryCall(invalid["name"] or "", invalid["args"] or "", invalid["id"])
        _sort_call(call, calls, raw_blocks)
    return calls, raw_blocks


def _sort_call(call: HistoryCall, calls: list[HistoryCall], raw_blocks: list[str]) -> None:
    """A call whose arguments are the raw text of a whole block goes back as that block."""
    raw = call.arguments
    if isinstance(raw, str) and (not call.name or read_name(raw) == call.name):
        raw_blocks.append(raw)
    else:
        calls.append(call)


def _as_arguments(value: Any) -> dict[str, Any] | str:
    """Arguments as an object, decoded where they are JSON text, even twice over; else raw text."""
    if value is None:
        return {}
    decoded = value
    for _ in range(2):
        if isinstance(decoded, str):
            try:
                decoded = json.loads(decoded, strict=False)
            except (ValueError, RecursionError):
                break
    if isinstance(decoded, Mapping):
        return dict(decoded)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _assistant(
    content: Any,
    reasoning: str | None,
    calls: list[HistoryCall],
    raw_blocks: list[str],
    index: int,
) -> Turn:
    text = _text(content, index, is_assistant=True)
    if reasoning is None:
        reasoning = _reasoning_in_blocks(content)
    if reasoning is None:
        reasoning, text = _split_inline_reasoning(text)
    return Turn("assistant", text, reasoning, tuple(calls), tuple(raw_blocks))


def _split_inline_reasoning(text: str) -> tuple[str, str]:
    """Reasoning and answer of a text that still holds its think block, as other adapters store it."""
    before, tag, after = text.partition("</think>")
    if not tag:
        return "", text
    return before.rstrip("\n").rpartition("<think>")[2].lstrip("\n"), after.lstrip("\n")


def _reasoning_of(fields: Mapping[str, Any]) -> str | None:
    for key in ("reasoning_content", "reasoning"):
        value = fields.get(key)
        if isinstance(value, str):
            return value
    return None


def _reasoning_in_blocks(content: Any) -> str | None:
    if not isinstance(content, list):
        return None
    blocks = [
        block for block in content if isinstance(block, Mapping) and block.get("type") in _REASONING_BLOCKS
    ]
    if not blocks:
        return None
    return "".join(_block_reasoning(block) for block in blocks)


def _block_reasoning(block: Mapping[str, Any]) -> str:
    for key in ("reasoning", "thinking", "reasoning_content", "text"):
        if isinstance(block.get(key), str):
            return cast(str, block[key])
    summary = block.get("summary")
    parts = summary if isinstance(summary, list) else []
    return "".join(
        part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    )


def _text(content: Any, index: int, *, is_assistant: bool = False) -> str:
    """Content as one text. A message's blocks are pieces of one text: nothing comes between them."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise UsageError(
            f"message {index}: expected content as text or a list of text blocks, "
            f"got {type(content).__name__}"
        )
    return "".join(_block_text(block, index, is_assistant=is_assistant) for block in content)


def _block_text(block: Any, index: int, *, is_assistant: bool) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping):
        kind = block.get("type")
        if is_assistant and kind in _CALL_BLOCKS | _REASONING_BLOCKS:
            return ""
        for key in ("text", "refusal"):
            if isinstance(block.get(key), str):
                return cast(str, block[key])
        raise UsageError(
            f"message {index}: expected text blocks, got a block of type {kind!r}; Qwen3 reads text only, "
            "leave the block out or describe it in words"
        )
    raise UsageError(f"message {index}: expected text blocks, got {type(block).__name__}")


def _tool_text(content: Any) -> str:
    """A tool's result as text, its blocks each on a line of its own; nothing vanishes, nothing raises."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(block, str) or _is_block(block) for block in content):
        return "\n".join(block if isinstance(block, str) else _tool_block_text(block) for block in content)
    return str(content)


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)


def _tool_block_text(block: Mapping[str, Any]) -> str:
    if isinstance(block.get("text"), str):
        return cast(str, block["text"])
    resource = block.get("resource")
    if isinstance(resource, Mapping) and isinstance(resource.get("text"), str):
        return cast(str, resource["text"])
    if block["type"] in ("image", "image_url", "audio", "input_audio", "video", "file", "resource", "blob"):
        return f"[{block['type']} left out: this model reads text only]"
    return str(dict(block))
