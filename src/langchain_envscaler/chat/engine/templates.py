"""A tokenizer's own chat template, where it has one that is not the format that we carry."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_envscaler.chat.backends.base import Prompt
from langchain_envscaler.chat.engine.tokens import QwenTokenizer
from langchain_envscaler.chat.history import Message, template_messages, to_turns
from langchain_envscaler.chat.prompt import CONTROL_TOKENS, Segment, render, render_segments, tool_schemas

__all__ = ["Templates"]

_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "description": "F.", "parameters": {"type": "object", "properties": {}}},
}
_CALL = {
    "role": "assistant",
    "reasoning_content": "r",
    "content": "c",
    "tool_calls": [{"function": {"name": "f"}}],
}
# Conversations in which templates of Qwen3's kind differ, if they differ: tools, reasoning kept and dropped.
_PROBES: tuple[tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]], ...] = (
    ([{"role": "user", "content": "a"}], []),
    ([{"role": "system", "content": "s"}, {"role": "user", "content": "a"}], [_TOOL]),
    ([{"role": "user", "content": "a"}, _CALL, {"role": "tool", "content": "t"}], [_TOOL]),
    (
        [
            {"role": "user", "content": "a"},
            _CALL,
            {"role": "tool", "content": "t"},
            {"role": "user", "content": "b"},
        ],
        [],
    ),
)
# Stands for a control token that a message spells, while the template renders; from a private-use area.
_STAND_IN = "\U000f5c00{}\U000f5c01"


class Templates:
    """Renders prompts as a tokenizer's template does: by the carried format where that is the same.

    Args:
        tokenizer: The tokenizer, with or without a template of its own.
    """

    def __init__(self, tokenizer: QwenTokenizer) -> None:
        self._hf = tokenizer.hf
        self.is_carried = not getattr(self._hf, "chat_template", None) or self._agrees()
        """Whether the carried format is the tokenizer's own."""

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[Any] | None, *, enable_thinking: bool
    ) -> Prompt:
        """The prompt of a conversation."""
        if self.is_carried:
            return Prompt(tuple(render_segments(messages, tools, enable_thinking=enable_thinking)))
        guarded = [_guarded(message) for message in template_messages(to_turns(messages))]
        text = self._apply(guarded, tool_schemas(tools), enable_thinking=enable_thinking)
        return Prompt(tuple(_segments(text)))

    def _agrees(self) -> bool:
        return all(
            self._apply(template_messages(to_turns(messages)), tools, enable_thinking=thinking)
            == render(messages, tools, enable_thinking=thinking)
            for messages, tools in _PROBES
            for thinking in (True, False)
        )

    def _apply(self, messages: list[dict[str, Any]], tools: Sequence[Any], *, enable_thinking: bool) -> str:
        return str(
            self._hf.apply_chat_template(
                messages,
                tools=list(tools) or None,
                tokenize=False,
                add_generation_prompt=True,
                enable_thinking=enable_thinking,
            )
        )


def _guarded(value: Any) -> Any:
    """A message in which the control tokens that its texts spell are replaced by stand-ins."""
    if isinstance(value, str):
        for place, control in enumerate(CONTROL_TOKENS):
            value = value.replace(control, _STAND_IN.format(place))
        return value
    if isinstance(value, list):
        return [_guarded(item) for item in value]
    if isinstance(value, dict):
        return {key: _guarded(item) for key, item in value.items()}
    return value


def _segments(text: str) -> list[Segment]:
    segments: list[Segment] = []
    begin = 0
    while begin < len(text):
        found = [(place, control) for control in CONTROL_TOKENS if (place := text.find(control, begin)) >= 0]
        end, control = min(found, default=(len(text), ""))
        if end > begin:
            segments.append(Segment(_unguarded(text[begin:end])))
        if control:
            segments.append(Segment(control, is_control=True))
        begin = end + len(control)
    return segments


def _unguarded(text: str) -> str:
    for place, control in enumerate(CONTROL_TOKENS):
        text = text.replace(_STAND_IN.format(place), control)
    return text
