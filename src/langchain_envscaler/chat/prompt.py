"""Qwen3's chat format, written out: a conversation and tools in, the text that the model was trained on out.

No tokenizer is needed. What a message says and what the format itself says are kept apart
(:func:`render_segments`), so that a user or a tool that spells `<|im_end|>` only ever writes text.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_envscaler.chat.history import Message, Turn, to_turns

__all__ = [
    "CONTROL_TOKENS",
    "Segment",
    "escape_control_tokens",
    "format_segments",
    "render",
    "render_segments",
    "tool_schemas",
]

CONTROL_TOKENS: tuple[str, ...] = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""Qwen3's added tokens, in the order of their ids, which follow the vocabulary's."""

_ANY_CONTROL = re.compile("|".join(map(re.escape, CONTROL_TOKENS)))
# Within its reasoning the model drafts calls with the tokens themselves; replayed so, the next prompt
# begins with exactly the tokens that are in the cache, and none of these can end a turn.
_DRAFT_CONTROL = re.compile("</?tool_call>|<think>")

_TOOLS_BEFORE = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
_TOOLS_AFTER = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a prompt: one control token, or text in which no control token may be seen."""

    text: str
    is_control: bool = False


def render(
    messages: Sequence[Message],
    tools: Sequence[Any] | None = None,
    *,
    enable_thinking: bool = True,
    add_generation_prompt: bool = True,
) -> str:
    """The prompt that Qwen3's chat template gives.

    Args:
        messages: LangChain messages or OpenAI-form dicts.
        tools: OpenAI function schemas, rendered as they are; anything else that LangChain can turn into one.
        enable_thinking: False closes an empty think block in the model's place.
        add_generation_prompt: Whether the prompt ends where the model's turn begins.

    Returns:
        The prompt. Where a message spells a control token, so does this text: to tokenize it safely use
        :func:`render_segments`, to send it as text :func:`escape_control_tokens`.

    Raises:
        UsageError: There is no message, or one cannot be said in text.
    """
    segments = render_segments(
        messages, tools, enable_thinking=enable_thinking, add_generation_prompt=add_generation_prompt
    )
    return "".join(segment.text for segment in segments)


def render_segments(
    messages: Sequence[Message],
    tools: Sequence[Any] | None = None,
    *,
    enable_thinking: bool = True,
    add_generation_prompt: bool = True,
) -> list[Segment]:
    """The prompt of :func:`render` in pieces: the format's own control tokens, and the text between them.

    A tokenizer gives the ids that it gives for the whole prompt if it maps each control segment to its id
    and encodes each text segment without looking for added tokens.
    """
    turns = to_turns(messages)
    writer = _Writer()
    _write_head(writer, turns[0], tool_schemas(tools))
    last_query = _last_query(turns)
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            is_last = index == len(turns) - 1
            with_reasoning = index > last_query and (is_last or bool(turn.reasoning))
            _write_assistant(writer, turn, with_reasoning=with_reasoning)
        elif turn.role == "tool":
            begins = index == 0 or turns[index - 1].role != "tool"
            ends = index == len(turns) - 1 or turns[index + 1].role != "tool"
            _write_tool(writer, turn, begins=begins, ends=ends)
        elif turn.role == "user" or index > 0:
            _write_plain(writer, turn)
    if add_generation_prompt:
        writer.format(
            "<|im_start|>assistant\n" if enable_thinking else "<|im_start|>assistant\n<think>\n\n</think>\n\n"
        )
    return writer.segments()


def format_segments(text: str) -> list[Segment]:
    """Text of the format itself in pieces: each control token that it spells is one."""
    writer = _Writer()
    writer.format(text)
    return writer.segments()


def escape_control_tokens(text: str) -> str:
    """Text that spells no control token any more: a zero-width space follows each one's first character.

    For servers that tokenize a text themselves and would take such a spelling for the token.
    """
    return _ANY_CONTROL.sub(lambda found: f"<\u200b{found.group()[1:]}", text)


def tool_schemas(tools: Sequence[Any] | None) -> list[Mapping[str, Any]]:
    """The tools as OpenAI function schemas; one that is such a schema already stays untouched."""
    return [tool if _is_schema(tool) else convert_to_openai_tool(tool) for tool in tools or ()]


def _is_schema(tool: Any) -> bool:
    return (
        isinstance(tool, Mapping)
        and tool.get("type") == "function"
        and isinstance(tool.get("function"), Mapping)
    )


def _last_query(turns: Sequence[Turn]) -> int:
    """The turn after which reasoning is replayed: a user's last that is no tool result in disguise."""
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if turn.role == "user" and not (
            turn.content.startswith("<tool_response>") and turn.content.endswith("</tool_response>")
        ):
            return index
    return len(turns) - 1


def _write_head(writer: "_Writer", first: Turn, tools: Iterable[Mapping[str, Any]]) -> None:
    system = first.content if first.role == "system" else None
    schemas = [json.dumps(tool, ensure_ascii=False) for tool in tools]
    if not schemas:
        if system is not None:
            _write_plain(writer, first)
        return
    writer.format("<|im_start|>system\n")
    if system is not None:
        writer.text(f"{system}\n\n")
    writer.format(_TOOLS_BEFORE)
    for schema in schemas:
        writer.text(f"\n{schema}")
    writer.format(f"{_TOOLS_AFTER}<|im_end|>\n")


def _write_plain(writer: "_Writer", turn: Turn) -> None:
    writer.format(f"<|im_start|>{turn.role}\n")
    writer.text(turn.content)
    writer.format("<|im_end|>\n")


def _write_assistant(writer: "_Writer", turn: Turn, *, with_reasoning: bool) -> None:
    writer.format("<|im_start|>assistant\n")
    if with_reasoning:
        writer.format("<think>\n")
        writer.reasoning(turn.reasoning.strip("\n"))
        writer.format("\n</think>\n\n")
        writer.text(turn.content.lstrip("\n"))
    else:
        writer.text(turn.content)
    blocks = [*turn.raw_blocks]
    blocks += [f'{{"name": "{call.name}", "arguments": {call.arguments_text}}}' for call in turn.calls]
    for position, block in enumerate(blocks):
        if position or turn.content:
            writer.text("\n")
        writer.format("<tool_call>\n")
        writer.text(block)
        writer.format("\n</tool_call>")
    writer.format("<|im_end|>\n")


def _write_tool(writer: "_Writer", turn: Turn, *, begins: bool, ends: bool) -> None:
    writer.format("<|im_start|>user\n<tool_response>\n" if begins else "\n<tool_response>\n")
    writer.text(turn.content)
    writer.format("\n</tool_response><|im_end|>\n" if ends else "\n</tool_response>")


class _Writer:
    """Collects a prompt's pieces; neighbouring text becomes one segment, as a tokenizer would see it."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._text: list[str] = []

    def text(self, text: str) -> None:
        """What a message says."""
        self._text.append(text)

    def format(self, text: str) -> None:
        """What the format says: its control tokens count."""
        self._split(_ANY_CONTROL, text)

    def reasoning(self, text: str) -> None:
        """What the model thought."""
        self._split(_DRAFT_CONTROL, text)

    def segments(self) -> list[Segment]:
        self._end_text()
        return self._segments

    def _split(self, control: re.Pattern[str], text: str) -> None:
        end = 0
        for found in control.finditer(text):
            self._text.append(text[end : found.start()])
            self._end_text()
            self._segments.append(Segment(found.group(), is_control=True))
            end = found.end()
        self._text.append(text[end:])

    def _end_text(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text:
            self._segments.append(Segment(text))
