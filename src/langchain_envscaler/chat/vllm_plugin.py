"""Our output reader as a tool parser and a reasoning parser of `vllm serve`, for any client of the server.

    vllm serve MODEL --enable-auto-tool-choice --tool-call-parser envscaler --reasoning-parser envscaler \\
        --tool-parser-plugin langchain_envscaler.chat.vllm_plugin \\
        --reasoning-parser-plugin langchain_envscaler.chat.vllm_plugin

The package is installed beside vLLM. A forced or strict call is held to its schema by a grammar with fixed
white space. An invalid call stays text.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import ToolCall as LangChainCall
from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.reasoning import ReasoningParser, ReasoningParserManager
from vllm.tool_parsers import ToolParser, ToolParserManager
from vllm.tool_parsers.tool_strict_level import ToolStrictLevel
from xgrammar import StructuralTag

from langchain_envscaler.chat.constraint import CallConstraint, ToolSchema
from langchain_envscaler.chat.engine.grammar import fixed_json
from langchain_envscaler.chat.output import OutputDelta, OutputReader
from langchain_envscaler.chat.structural_tag import structural_tag
from langchain_envscaler.chat.tool_choice import call_constraint, resolve_tool_choice

__all__ = ["NAME", "EnvScalerReasoningParser", "EnvScalerToolParser", "register"]

NAME = "envscaler"
"""What the parsers are called on vLLM's command line."""

_CLOSED_THINKING = "<think></think>"


class EnvScalerReasoningParser(ReasoningParser):  # type: ignore[misc]
    """Tells reasoning from the answer as :mod:`langchain_envscaler.chat.output` does."""

    # vLLM then takes the end of the reasoning from here, and asks at the end for what is still held.
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._open_id = self.vocab.get("<think>")
        self._close_id = self.vocab.get("</think>")
        self._turn_id = self.vocab.get("<|im_start|>")
        if self._open_id is None or self._close_id is None:
            raise RuntimeError("expected a Qwen3's tokenizer, with <think> and </think>")
        self._reader = OutputReader()
        self._has_ended = False

    @property
    def reasoning_start_str(self) -> str:
        """What begins reasoning."""
        return "<think>"

    @property
    def reasoning_end_str(self) -> str:
        """What ends reasoning."""
        return "</think>"

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether the turn that the ids end in has its reasoning closed."""
        for token in reversed(input_ids):
            if token == self._close_id:
                return True
            if token in (self._open_id, self._turn_id):
                return False
        return False

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether the last ids close the reasoning."""
        return self._close_id in delta_ids

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Whether the reasoning has ended for the reader."""
        return self._has_ended

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """The ids after the reasoning."""
        if self._close_id not in input_ids:
            return []
        return input_ids[input_ids.index(self._close_id) + 1 :]

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """How many of an output's tokens are reasoning."""
        ids = list(token_ids)
        if self._close_id in ids:
            return ids.index(self._close_id) + 1
        return len(ids) if ids[:1] == [self._open_id] else 0

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """The reasoning, and the rest as a tool parser reads it."""
        kwargs = request.chat_template_kwargs or {}
        reader = OutputReader(kwargs.get("enable_thinking", True))
        deltas, rest = _feed_thinking(reader, model_output)
        if rest is None:
            deltas += reader.close()
        answer = _raw_answer(deltas) + (rest or "")
        return reader.result.reasoning or None, answer or None

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """The reasoning in a piece of output, and what follows its end."""
        deltas, rest = _feed_thinking(self._reader, delta_text)
        self._has_ended = rest is not None
        reasoning = "".join(delta.reasoning for delta in deltas)
        answer = _raw_answer(deltas) + (rest or "")
        if not reasoning and not answer:
            return None
        return DeltaMessage(reasoning=reasoning or None, content=answer or None)

    def finish_streaming(self) -> DeltaMessage | None:
        """What the end of the output makes certain, where the reasoning never closed."""
        return None if self._has_ended else _message(self._reader.close())


class EnvScalerToolParser(ToolParser):  # type: ignore[misc]
    """Reads calls as :mod:`langchain_envscaler.chat.output` does."""

    engine_based_streaming = True
    # The form of the calls; it makes vLLM ask for the structural tag below.
    structural_tag_model = "hermes"
    supports_required_and_named = False

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__(tokenizer, tools)
        self._reader: OutputReader | None = None

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """The calls and the text of a whole answer."""
        reader = _answer_reader(request)
        message = _message([*reader.feed(model_output), *reader.close()]) or DeltaMessage()
        calls = [
            ToolCall(
                id=call.id, function=FunctionCall(name=call.function.name, arguments=call.function.arguments)
            )
            for call in message.tool_calls
        ]
        return ExtractedToolCallInformation(
            tools_called=bool(calls), tool_calls=calls, content=message.content or None
        )

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """The calls and the text that a piece of an answer makes certain; a call comes whole."""
        if self._reader is None:
            self._reader = _answer_reader(request)
        return self._noted(self._reader.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """What the end of the answer makes certain."""
        return self._noted(self._reader.close()) if self._reader else None

    def get_structural_tag(
        self, request: Any, *, reasoning: bool = False, strict_level: Any = ToolStrictLevel.AUTO
    ) -> StructuralTag | None:
        """The grammar that a forced or a strict call is held to."""
        tools = [tool.model_dump(mode="json", exclude_none=True) for tool in request.tools or ()]
        choice = request.tool_choice
        named = choice if choice is None or isinstance(choice, str) else choice.model_dump(mode="json")
        resolved = resolve_tool_choice(named, tools)
        is_parallel = request.parallel_tool_calls is not False
        is_strict = strict_level >= ToolStrictLevel.PARAMETER
        constraint = call_constraint(tools, resolved, strict=is_strict, parallel=is_parallel)
        if constraint is None and resolved == "auto" and strict_level >= ToolStrictLevel.FUNCTION:
            schemas = tuple(ToolSchema(tool["function"]["name"]) for tool in tools)
            constraint = CallConstraint(schemas, required=False, parallel=is_parallel)
        if constraint is None:
            return None
        return StructuralTag.model_validate(structural_tag(constraint, fixed_json))

    def _noted(self, deltas: Iterable[OutputDelta]) -> DeltaMessage | None:
        """The deltas as a message; its calls are noted where vLLM looks for what was streamed of each."""
        message = _message(deltas, first_index=len(self.prev_tool_call_arr))
        for call in message.tool_calls if message else ():
            self.prev_tool_call_arr.append({"name": call.function.name, "arguments": call.function.arguments})
            self.streamed_args_for_tool.append(call.function.arguments)
        return message


def register() -> None:
    """Makes the parsers known to vLLM."""
    ToolParserManager.register_module(NAME, force=True, module=EnvScalerToolParser)
    ReasoningParserManager.register_module(NAME, force=True, module=EnvScalerReasoningParser)


def _feed_thinking(reader: OutputReader, text: str) -> tuple[list[OutputDelta], str | None]:
    """Feeds the reader up to the end of its reasoning.

    Returns:
        What became certain, and the text after the reasoning, None where it has not ended.
    """
    deltas: list[OutputDelta] = []
    for position, character in enumerate(text):
        if not reader.is_thinking:
            return deltas, text[position:]
        deltas += reader.feed(character)
    return deltas, None if reader.is_thinking else ""


def _answer_reader(request: Any) -> OutputReader:
    """A reader of what follows the reasoning; where no tool may be called, no block is a call."""
    reader = OutputReader(read_calls=bool(request.tools) and request.tool_choice != "none")
    reader.feed(_CLOSED_THINKING)
    return reader


def _message(deltas: Iterable[OutputDelta], *, first_index: int = 0) -> DeltaMessage | None:
    """The deltas as one message; an invalid call is text in it, and takes no index."""
    message = DeltaMessage()
    for delta in deltas:
        message.reasoning = (message.reasoning or "") + delta.reasoning or None
        message.content = (message.content or "") + _content(delta) or None
        if delta.tool_call:
            message.tool_calls.append(_tool_call(delta.tool_call, first_index + len(message.tool_calls)))
    is_empty = not (message.reasoning or message.content or message.tool_calls)
    return None if is_empty else message


def _content(delta: OutputDelta) -> str:
    if delta.invalid_tool_call:
        return _block(delta.invalid_tool_call["args"] or "")
    return delta.content


def _tool_call(call: LangChainCall, index: int) -> DeltaToolCall:
    arguments = json.dumps(call["args"], ensure_ascii=False)
    function = DeltaFunctionCall(name=call["name"], arguments=arguments)
    return DeltaToolCall(id=call["id"], type="function", index=index, function=function)


def _raw_answer(deltas: Iterable[OutputDelta]) -> str:
    """What of the answer was read along with the reasoning, written out again so that it reads the same."""
    pieces = []
    for delta in deltas:
        if delta.tool_call:
            call = {"name": delta.tool_call["name"], "arguments": delta.tool_call["args"]}
            pieces.append(f"\n{_block(json.dumps(call, ensure_ascii=False))}\n")
        else:
            pieces.append(_content(delta))
    return "".join(pieces)


def _block(text: str) -> str:
    return f"<tool_call>\n{text}\n</tool_call>"


register()
