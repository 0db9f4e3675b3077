"""What is asked of an OpenAI-compatible server: the bodies of requests, from the chat model's own.

Fields that only some servers know (`top_k`, `chat_template_kwargs`, ...) are sent only where asked for.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_envscaler.chat.backends.base import ChatRequest, GenerationRequest, Prompt, Sampling
from langchain_envscaler.chat.backends.course import Leg
from langchain_envscaler.chat.backends.server_errors import Refusal, overflow_lengths
from langchain_envscaler.chat.history import Turn
from langchain_envscaler.chat.profile import MAX_OUTPUT_TOKENS
from langchain_envscaler.chat.prompt import escape_control_tokens
from langchain_envscaler.chat.structural_tag import bounded_json, structural_tag

__all__ = ["ServerTraits", "adapted", "chat_body", "completion_body", "prompt_text"]

# Qwen3's two ends of a turn, forbidden.
_NO_END = {"151645": -100, "151643": -100}
_NO_PARSER = re.compile("tool choice requires|tool-call-parser|tool_call_parser")


@dataclass(slots=True)
class ServerTraits:
    """What was learned about a server, so that it is asked only once in a way that it refuses.

    Attributes:
        counts_as_it_goes: Whether it can tell the usage with each event.
        reads_calls: Whether it has a tool parser; without one, calls are read from its text.
        reads_reasoning: Whether it was seen to hand reasoning over apart from the answer.
        context_size: The model's context in tokens, once known.
        is_vllm: Whether it is a vLLM, once known.
    """

    counts_as_it_goes: bool = True
    reads_calls: bool = True
    reads_reasoning: bool = False
    context_size: int | None = None
    is_vllm: bool | None = None

    def largest_output(self, max_tokens: int | None) -> int:
        """The tokens to ask for where `max_tokens` were asked for; servers refuse more than their context."""
        if max_tokens is not None:
            return max_tokens
        return min(MAX_OUTPUT_TOKENS, self.context_size or MAX_OUTPUT_TOKENS)


def completion_body(
    model: str, request: GenerationRequest, prompt: str, leg: Leg, traits: ServerTraits
) -> dict[str, Any]:
    """The body of a request to the completions endpoint, for one leg of an output."""
    body = _common(model, request.sampling, traits)
    body["prompt"] = prompt
    body["max_tokens"] = leg.max_tokens
    if leg.ends_thinking:
        body |= {"stop": ["</think>"], "include_stop_str_in_output": True, "logit_bias": _NO_END}
    if leg.constraint is not None:
        tag = structural_tag(leg.constraint, bounded_json)
        body["structured_outputs"] = {"structural_tag": json.dumps(tag, ensure_ascii=False)}
    if request.logprobs is not None:
        body["logprobs"] = request.logprobs
    if request.return_tokens or request.logprobs is not None:
        body["return_token_ids"] = True
    return {**body, **request.extra}


def chat_body(model: str, request: ChatRequest, traits: ServerTraits) -> dict[str, Any]:
    """The body of a request to the chat endpoint."""
    body = _common(model, request.sampling, traits)
    body["messages"] = [_message(turn) for turn in request.turns]
    body["max_tokens"] = traits.largest_output(request.max_tokens)
    if request.tools:
        body["tools"] = [_tool(tool, strict=request.strict) for tool in request.tools]
        body["tool_choice"] = _tool_choice(request.tool_choice, traits)
        body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.response_schema is not None:
        schema = {"name": "answer", "schema": request.response_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.json_object:
        body["response_format"] = {"type": "json_object"}
    if not request.enable_thinking:
        body["chat_template_kwargs"] = {"enable_thinking": False}
    if request.logprobs is not None:
        body["logprobs"] = True
        body["top_logprobs"] = request.logprobs
    if request.return_tokens or request.logprobs is not None:
        body["return_token_ids"] = True
    return {**body, **request.extra}


def adapted(
    body: dict[str, Any], refusal: Refusal, traits: ServerTraits, *, may_shorten: bool
) -> dict[str, Any] | None:
    """The body to send in place of one that was refused; None where there is none.

    Args:
        body: What was refused.
        refusal: What the server said.
        traits: What is known of the server; what the refusal tells is kept there.
        may_shorten: Whether the output may be shorter than the body asks for.
    """
    said = refusal.message.lower()
    if refusal.status not in (400, 413, 422):
        return None
    if traits.counts_as_it_goes and ("continuous_usage_stats" in said or "stream_options" in said):
        traits.counts_as_it_goes = False
        return {**body, "stream_options": {"include_usage": True}}
    if body.get("tool_choice") == "auto" and traits.reads_calls and _NO_PARSER.search(said):
        traits.reads_calls = False
        return {**body, "tool_choice": "none"}
    if not refusal.is_overflow:
        return None
    traits.context_size, prompt_length = overflow_lengths(refusal)
    if may_shorten and traits.context_size is not None:
        left = traits.context_size - (prompt_length or 0)
        if 0 < left < body["max_tokens"]:
            return {**body, "max_tokens": left}
    return None


def prompt_text(prompt: Prompt) -> str:
    """The prompt as text for a server that tokenizes it: no message in it spells a control token."""
    return "".join(
        segment.text if segment.is_control else escape_control_tokens(segment.text)
        for segment in prompt.segments
    )


def _common(model: str, sampling: Sampling, traits: ServerTraits) -> dict[str, Any]:
    options = {"include_usage": True}
    if traits.counts_as_it_goes:
        options["continuous_usage_stats"] = True
    body: dict[str, Any] = {
        "model": model,
        "stream": True,
        "stream_options": options,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
    }
    for name in ("top_k", "min_p", "repetition_penalty", "presence_penalty", "seed"):
        value = getattr(sampling, name)
        if value is not None:
            body[name] = value
    return body


def _message(turn: Turn) -> dict[str, Any]:
    """A turn as a message whose text spells no control token, in every form of the reasoning field."""
    content = escape_control_tokens(turn.content)
    if turn.role == "tool":
        return {"role": "tool", "content": content, "tool_call_id": turn.tool_call_id or ""}
    if turn.role != "assistant":
        return {"role": turn.role, "content": content}
    message: dict[str, Any] = {"role": "assistant", "content": _with_blocks(content, turn.raw_blocks)}
    if turn.reasoning:
        message["reasoning"] = message["reasoning_content"] = escape_control_tokens(turn.reasoning)
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_{position}",
                "type": "function",
                "function": {"name": call.name, "arguments": escape_control_tokens(call.arguments_text)},
            }
            for position, call in enumerate(turn.calls)
        ]
    return message


def _with_blocks(content: str, blocks: Iterable[str]) -> str:
    escaped = tuple(escape_control_tokens(block) for block in blocks)
    return Turn("assistant", content, raw_blocks=escaped).content_with_blocks


def _tool(tool: Mapping[str, Any], *, strict: bool) -> Mapping[str, Any]:
    return {**tool, "function": {**tool["function"], "strict": True}} if strict else tool


def _tool_choice(choice: str, traits: ServerTraits) -> Any:
    if choice == "auto":
        # Without a parser some servers refuse "auto"; with "none" they still show the tools to the model.
        return "auto" if traits.reads_calls else "none"
    if choice in ("none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
