"""The options of one call: what the model was made with, overridden by what was bound or given with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_envscaler.chat.backends.base import ChatRequest, GenerationRequest, Prompt, Sampling
from langchain_envscaler.chat.constraint import Constraint, JsonConstraint
from langchain_envscaler.chat.history import Message, to_turns
from langchain_envscaler.chat.prompt import tool_schemas
from langchain_envscaler.chat.tool_choice import call_constraint, resolve_tool_choice
from langchain_envscaler.errors import UsageError

__all__ = ["CALL_OPTIONS", "CallOptions", "call_options"]

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "seed")
_PLAIN = ("max_tokens", "enable_thinking", "thinking_budget", "logprobs", "return_tokens")
_TOOLS = ("tools", "tool_choice", "strict", "parallel_tool_calls", "response_format", "stop")
CALL_OPTIONS = (*_SAMPLING, *_PLAIN, *_TOOLS, "extra")
"""What a single call may override or add, by `bind` or as keyword arguments."""
# What callers pass to every chat model: how to run it, not what to ask of it.
_IGNORED = frozenset({"stream", "streaming"})


@dataclass(frozen=True, slots=True)
class CallOptions:
    """One call's options, resolved and checked; fields as in :class:`ChatRequest`."""

    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: str = "auto"
    strict: bool = False
    parallel_tool_calls: bool = False
    json_answer: JsonConstraint | None = None
    stop: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    enable_thinking: bool = True
    thinking_budget: int | None = None
    logprobs: int | None = None
    return_tokens: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reads_calls(self) -> bool:
        """Whether a block in the output is a call; else it stays text."""
        return self.tool_choice != "none"

    @property
    def wants_tokens(self) -> bool:
        """Whether the answer shall carry its tokens."""
        return self.return_tokens or self.logprobs is not None

    @property
    def prompt_tools(self) -> tuple[Mapping[str, Any], ...]:
        """The tools that the prompt shows: none where none may be called."""
        return self.tools if self.reads_calls else ()

    @property
    def constraint(self) -> Constraint | None:
        """What the output must look like; None where it is free."""
        calls = call_constraint(
            self.tools, self.tool_choice, strict=self.strict, parallel=self.parallel_tool_calls
        )
        if self.json_answer is None:
            return calls
        if calls is None and self.prompt_tools:
            calls = call_constraint(self.tools, "required", strict=True, parallel=self.parallel_tool_calls)
        return JsonConstraint(self.json_answer.schema, calls)

    def generation_request(self, prompt: Prompt) -> GenerationRequest:
        """The request to an engine that continues a prompt."""
        return GenerationRequest(
            prompt=prompt,
            sampling=self.sampling,
            max_tokens=self.max_tokens,
            enable_thinking=self.enable_thinking,
            thinking_budget=self.thinking_budget,
            constraint=self.constraint,
            logprobs=self.logprobs,
            return_tokens=self.return_tokens,
            extra=self.extra,
        )

    def chat_request(self, messages: Sequence[Message]) -> ChatRequest:
        """The request to an engine that answers messages."""
        answer = self.json_answer
        return ChatRequest(
            turns=tuple(to_turns(messages)),
            tools=self.prompt_tools,
            tool_choice=self.tool_choice,
            parallel_tool_calls=self.parallel_tool_calls,
            strict=self.strict,
            response_schema=answer.schema if answer else None,
            json_object=answer is not None and answer.schema is None,
            constraint=self.constraint,
            stop=self.stop,
            sampling=self.sampling,
            max_tokens=self.max_tokens,
            enable_thinking=self.enable_thinking,
            thinking_budget=self.thinking_budget,
            logprobs=self.logprobs,
            return_tokens=self.return_tokens,
            extra=self.extra,
        )


def call_options(
    defaults: Mapping[str, Any], stop: Sequence[str] | None, given: Mapping[str, Any]
) -> CallOptions:
    """The options of one call.

    Args:
        defaults: What the model was made with, by the names of :data:`CALL_OPTIONS`.
        stop: Texts at which the answer ends, in place of the model's own.
        given: What was bound or given with the call.

    Raises:
        UsageError: An option is unknown, has the wrong form, or two of them contradict each other.
    """
    unknown = given.keys() - set(CALL_OPTIONS) - _IGNORED
    if unknown:
        raise UsageError(
            f"unknown option {', '.join(sorted(unknown))}; a call takes {', '.join(CALL_OPTIONS)}; "
            "options of the engine go into extra={...}"
        )
    values = {**defaults, **given}
    tools = tuple(tool_schemas(values.get("tools")))
    choice = resolve_tool_choice(values.get("tool_choice"), tools)
    answer = _json_answer(values.get("response_format"))
    if answer is not None and choice not in ("auto", "none"):
        raise UsageError(
            f"tool_choice {choice!r} forces a call and response_format forces a JSON answer: an output "
            "cannot be both; leave one of them out"
        )
    stops = _stops(values.get("stop") if stop is None else stop)
    if answer is not None and stops:
        raise UsageError("stop sequences would cut a JSON answer short; leave out stop or response_format")
    return CallOptions(
        tools=tools,
        tool_choice=choice,
        strict=bool(values.get("strict")),
        parallel_tool_calls=bool(values.get("parallel_tool_calls")),
        json_answer=answer,
        stop=stops,
        sampling=_sampling(values),
        extra=values.get("extra") or {},
        max_tokens=_count(values, "max_tokens", least=1),
        enable_thinking=bool(values.get("enable_thinking", True)),
        thinking_budget=_count(values, "thinking_budget", least=0),
        logprobs=_logprobs(values.get("logprobs")),
        return_tokens=bool(values.get("return_tokens")),
    )


def _json_answer(response_format: Any) -> JsonConstraint | None:
    """The constraint behind an OpenAI-form `response_format`."""
    if response_format is None:
        return None
    kind = response_format.get("type") if isinstance(response_format, Mapping) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return JsonConstraint()
    holder = response_format.get("json_schema") if kind == "json_schema" else None
    schema = holder.get("schema") if isinstance(holder, Mapping) else None
    if not isinstance(schema, Mapping):
        raise UsageError(
            'response_format: expected {"type": "json_schema", "json_schema": {"name": ..., "schema": ...}}, '
            f'{{"type": "json_object"}} or {{"type": "text"}}, got {response_format!r}'
        )
    return JsonConstraint(schema)


def _stops(stop: Sequence[str] | None) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if not all(isinstance(text, str) and text for text in stops):
        raise UsageError(f"stop: expected texts that are not empty, got {list(stops)!r}")
    return stops


def _sampling(values: Mapping[str, Any]) -> Sampling:
    sampling = Sampling(**{name: values[name] for name in _SAMPLING if values.get(name) is not None})
    if sampling.temperature < 0:
        raise UsageError(f"temperature: expected 0 or more, got {sampling.temperature}")
    if not 0 < sampling.top_p <= 1:
        raise UsageError(f"top_p: expected more than 0 and at most 1, got {sampling.top_p}")
    return sampling


def _count(values: Mapping[str, Any], name: str, *, least: int) -> int | None:
    value = values.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
        raise UsageError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return value


def _logprobs(value: Any) -> int | None:
    """True and False as OpenAI's option has them; a number is how many alternatives are wanted."""
    if value is None or value is False:
        return None
    return 0 if value is True else int(value)
