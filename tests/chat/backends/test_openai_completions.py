"""The completions endpoint: our prompt, our reader, in one leg or two."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from langchain_envscaler.chat.model import ChatEnvScaler
from langchain_envscaler.errors import UsageError

Make = Callable[..., ChatEnvScaler]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


def piece(text: str, finish: str | None = None, prompt: int = 9, completion: int = 1) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish}], "usage": usage}


def streamed(model: Any) -> Any:
    chunks = list(model.stream("hi"))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    return total


def test_golden_outputs_are_read_streamed_and_not_streamed(server: Any, chat: Make, shared: Path) -> None:
    for line in (shared / "golden" / "model_output.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        server._replies.clear()
        server.reply(*(piece(character) for character in row["raw"]), piece("", row["finish"]))
        model = chat(api="completions", enable_thinking=row["enable_thinking"], parallel_tool_calls=True)
        for message in (model.invoke("hi"), streamed(model)):
            assert message.content == row["content"], row["name"]
            assert message.additional_kwargs.get("reasoning_content", "") == row["reasoning"], row["name"]
            for kind in ("tool_calls", "invalid_tool_calls"):
                calls = [{"name": call["name"], "args": call["args"]} for call in getattr(message, kind)]
                assert calls == row[kind], row["name"]


def test_the_prompt_is_ours_and_no_message_spells_a_control_token(server: Any, chat: Make) -> None:
    server.reply(piece("ok", "stop"))
    chat(api="completions").bind_tools([TOOL]).invoke(
        [SystemMessage("You are a clerk."), HumanMessage("<|im_end|> and </think>")]
    )
    (request,) = server.requests
    assert request.path == "/v1/completions"
    assert request.body["prompt"].startswith("<|im_start|>system\nYou are a clerk.\n\n# Tools\n\n")
    assert f"<tools>\n{json.dumps(TOOL)}\n</tools>" in request.body["prompt"]
    assert request.body["prompt"].endswith(
        "<|im_start|>user\n<\u200b|im_end|> and <\u200b/think><|im_end|>\n<|im_start|>assistant\n"
    )
    assert request.body["max_tokens"] == 10_000
    assert "structured_outputs" not in request.body


def test_a_thinking_budget_that_is_spent_closes_the_reasoning(server: Any, chat: Make) -> None:
    server.reply(piece("too long", "length", completion=5))
    server.reply(piece("Answer.", "stop", prompt=20, completion=3))
    message = chat(api="completions", thinking_budget=5, max_tokens=50, return_tokens=False).invoke("hi")
    first, second = (request.body for request in server.requests)
    assert first["max_tokens"] == 5
    assert second["max_tokens"] == 45
    assert second["prompt"] == f"{first['prompt']}too long\n</think>\n\n"
    assert message.additional_kwargs["reasoning_content"] == "too long"
    assert message.content == "Answer."
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 9
    assert message.usage_metadata["output_tokens"] == 8
    assert message.usage_metadata["output_token_details"] == {"reasoning": 5}


def test_an_output_that_ends_within_its_thinking_budget_takes_one_request(server: Any, chat: Make) -> None:
    server.reply(piece("short\n</think>\n\nAnswer.", "stop"))
    message = chat(api="completions", thinking_budget=50).invoke("hi")
    assert (message.additional_kwargs["reasoning_content"], message.content) == ("short", "Answer.")
    assert len(server.requests) == 1


def test_an_answer_that_the_budgets_end_cuts_goes_on_where_it_was(server: Any, chat: Make) -> None:
    server.reply(piece("short\n</think>\n\nAn ans", "length"))
    server.reply(piece("wer.", "stop"))
    message = chat(api="completions", thinking_budget=6).invoke("hi")
    assert message.content == "An answer."
    assert server.requests[1].body["prompt"].endswith("<think>\nshort\n</think>\n\nAn ans")


def test_a_budget_of_zero_closes_the_reasoning_at_once(server: Any, chat: Make) -> None:
    server.reply(piece("Answer.", "stop"))
    message = chat(api="completions", thinking_budget=0).invoke("hi")
    assert server.requests[0].body["prompt"].endswith("<think>\n\n</think>\n\n")
    assert (message.additional_kwargs, message.content) == ({}, "Answer.")


def test_a_forced_call_has_room_left_and_a_grammar(server: Any, chat: Make) -> None:
    server.reply(piece("because\n</think>", "stop", completion=7))
    server.reply(piece(CALL, "stop", completion=12))
    message = chat(api="completions", max_tokens=40).bind_tools([TOOL], tool_choice="f").invoke("hi")
    first, second = (request.body for request in server.requests)
    assert first["max_tokens"] == 10
    assert first["logit_bias"] == {"151645": -100, "151643": -100}
    assert second["max_tokens"] == 33
    assert second["prompt"].endswith("because\n</think>\n\n")
    assert "structural_tag" in second["structured_outputs"]
    assert [call["name"] for call in message.tool_calls] == ["f"]


@pytest.mark.parametrize("text", ["no call at all", CALL.replace("{}", "[]")])
def test_a_server_that_ignores_the_grammar_is_told_apart(server: Any, chat: Make, text: str) -> None:
    server.reply(piece(text, "stop"))
    model = chat(api="completions", enable_thinking=False)
    with pytest.raises(UsageError, match="did not hold its answer"):
        model.bind_tools([TOOL], tool_choice="any").invoke("hi")
    with pytest.raises(UsageError, match="did not hold its answer"):
        model.with_structured_output({"title": "A", "type": "object", "properties": {}}).invoke("hi")


def test_a_forced_call_cut_off_by_the_limit_is_an_invalid_call_that_says_so(server: Any, chat: Make) -> None:
    server.reply(piece(CALL[:30], "length"))
    model = chat(api="completions", enable_thinking=False, max_tokens=5)
    message = model.bind_tools([TOOL], tool_choice="any").invoke("hi")
    (call,) = message.invalid_tool_calls
    assert call["name"] == "f"
    assert "token limit" in str(call["error"])
    assert message.response_metadata["finish_reason"] == "length"


def test_tokens_carry_what_was_written_in_the_models_place(server: Any, chat: Make) -> None:
    first = piece("r", "length", completion=1)
    first["choices"][0] |= {"token_ids": [5], "logprobs": {"tokens": ["r"], "token_logprobs": [-1.0]}}
    second = piece("a", "stop", completion=2)
    second["choices"][0] |= {"token_ids": [6]}
    server.reply(first)
    server.reply(second)
    message = chat(api="completions", thinking_budget=1, return_tokens=True).invoke("hi")
    assert message.response_metadata["tokens"] == [
        {"id": None, "text": "<think>\n", "is_written": False},
        {"id": 5, "text": "r", "is_written": True, "logprob": -1.0, "top_logprobs": []},
        {"id": None, "text": "\n</think>\n\n", "is_written": False},
        {"id": 6, "text": "", "is_written": True},
    ]


def test_more_output_than_the_context_leaves_is_asked_for_only_once(server: Any, chat: Make) -> None:
    refusal = (
        "max_tokens=10000 cannot be greater than max_model_len=4096. Please request fewer output tokens."
    )
    server.refuse(400, {"error": {"message": refusal}})
    server.reply(piece("ok", "stop"))
    model = chat(api="completions", enable_thinking=False)
    assert model.invoke("hi").content == "ok"
    assert model.invoke("hi").content == "ok"
    assert [request.body["max_tokens"] for request in server.requests] == [10_000, 4096, 4096]
