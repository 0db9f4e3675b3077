"""vLLM in this process: the same outputs by every way to ask, grammars, budgets, cancellation, errors."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from langchain_envscaler.chat.backends.base import ContextOverflow
from langchain_envscaler.chat.model import ChatEnvScaler
from langchain_envscaler.errors import NotFoundError, UsageError

pytestmark = pytest.mark.vllm

Make = Callable[..., ChatEnvScaler]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "weather", "description": "W.", "parameters": SCHEMA}}


def joined(chunks: list[Any]) -> Any:
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    return total


def test_invoke_stream_and_async_forms_agree_in_any_loop(in_process: Make) -> None:
    model = in_process(enable_thinking=False)
    whole = model.invoke("hi")

    async def streamed() -> Any:
        return joined([chunk async for chunk in model.astream("hi")])

    assert whole.content
    for message in (
        joined(list(model.stream("hi"))),
        asyncio.run(model.ainvoke("hi")),
        asyncio.run(streamed()),
    ):
        assert message.content == whole.content
        assert message.usage_metadata == whole.usage_metadata
        assert message.response_metadata["finish_reason"] == whole.response_metadata["finish_reason"]


@pytest.mark.parametrize("thinking", [True, False])
def test_a_forced_call_fits_its_schema(in_process: Make, thinking: bool) -> None:
    model = in_process(max_tokens=160, enable_thinking=thinking).bind_tools([TOOL], tool_choice="any")
    for seed in range(4):
        message = model.invoke("hi", seed=seed)
        (call,) = message.tool_calls
        assert call["name"] == "weather"
        assert {"city"} <= set(call["args"]) <= {"city", "days"}
        assert bool(message.additional_kwargs.get("reasoning_content")) is thinking


def test_a_forced_call_that_is_cut_off_is_an_invalid_call_that_says_so(in_process: Make) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "minItems": 500}
    endless = {"type": "object", "properties": {"numbers": numbers}, "required": ["numbers"]}
    tool = {"type": "function", "function": {"name": "count", "parameters": endless}}
    model = in_process(max_tokens=100, enable_thinking=False)
    message = model.bind_tools([tool], tool_choice="any").invoke("hi")
    (call,) = message.invalid_tool_calls
    assert call["name"] == "count"
    assert "token limit" in str(call["error"])
    assert message.response_metadata["finish_reason"] == "length"


def test_structured_output_is_json_as_the_model_writes_it(in_process: Make) -> None:
    model = in_process(max_tokens=120).with_structured_output({"title": "A", **SCHEMA}, include_raw=True)
    result = model.invoke("hi")
    assert isinstance(result, dict)
    text = result["raw"].content
    assert json.dumps(json.loads(text), ensure_ascii=False) == json.dumps(
        result["parsed"], ensure_ascii=False
    )
    assert "\n" not in text


def test_a_thinking_budget_is_held(in_process: Make) -> None:
    message = in_process(thinking_budget=5, return_tokens=True).invoke("hi")
    tokens = message.response_metadata["tokens"]
    written = [token["text"] for token in tokens if not token["is_written"]]
    assert "".join(written) == "<think>\n\n</think>\n\n"
    assert [token["text"] for token in tokens].index("</think>") == 8
    assert message.content


def test_concurrent_requests_each_get_their_own_answer(in_process: Make) -> None:
    model = in_process(enable_thinking=False, temperature=0.0, max_tokens=8)
    alone = [model.invoke(f"question {number}").content for number in range(4)]
    together = model.batch([f"question {number}" for number in range(4)])
    assert [message.content for message in together] == alone


def test_one_bad_prompt_spoils_only_itself(in_process: Make) -> None:
    results = in_process(enable_thinking=False, max_tokens=4).batch(
        ["hi", "hello " * 5000, "hi"], return_exceptions=True
    )
    assert [isinstance(result, ContextOverflow) for result in results] == [False, True, False]
    assert "has 5013 tokens, but the model's context holds 4096" in str(results[1])


def test_leaving_a_stream_ends_the_generation(in_process: Make) -> None:
    model = in_process(enable_thinking=False, max_tokens=4000, extra={"ignore_eos": True})
    stream = model.stream("hi")
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert in_process(enable_thinking=False, max_tokens=2).invoke("hi").content


def test_a_repeated_prompt_is_found_in_the_cache(in_process: Make) -> None:
    model = in_process(enable_thinking=False, max_tokens=2)
    model.invoke("word " * 400)
    usage = model.invoke("word " * 400).usage_metadata
    assert usage is not None
    assert usage["input_token_details"]["cache_read"] > 128


def test_log_probabilities_and_tokens_come_on_request(in_process: Make) -> None:
    message = in_process(enable_thinking=False, logprobs=2, max_tokens=3).invoke("hi")
    for token in message.response_metadata["tokens"]:
        assert token["logprob"] < 0
        assert len(token["top_logprobs"]) == 2


def test_wrong_use_is_told_in_one_line(in_process: Make) -> None:
    with pytest.raises(UsageError, match="nope"):
        in_process(extra={"nope": 1}).invoke("hi")
    with pytest.raises(NotFoundError, match="no such folder"):
        ChatEnvScaler(backend="vllm", model="./no such model").invoke("hi")
