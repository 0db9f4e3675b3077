"""Our reader as a parser of `vllm serve`: every golden output, whole and token by token."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.vllm

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture(scope="module")
def tokenizer(qwen3_folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(qwen3_folder)


@pytest.fixture
def make_parser(tokenizer: Any) -> Any:
    """Makes the parser that the server makes for one request."""
    from vllm.parser.parser_manager import ParserManager

    from langchain_envscaler.chat import vllm_plugin

    vllm_plugin.register()
    kind = ParserManager.get_parser(
        vllm_plugin.NAME, vllm_plugin.NAME, enable_auto_tools=True, tokenizer=tokenizer
    )
    return lambda request: kind(tokenizer, request.tools, chat_template_kwargs=request.chat_template_kwargs)


def make_request(*, thinking: bool = True, **options: Any) -> Any:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    return ChatCompletionRequest(
        messages=[{"role": "user", "content": "hi"}],
        chat_template_kwargs={"enable_thinking": thinking},
        **{"tools": TOOLS, "tool_choice": "auto", **options},
    )


def blocks(row: dict[str, Any]) -> list[str]:
    return [f"<tool_call>\n{call['args']}\n</tool_call>" for call in row["invalid_tool_calls"]]


def expected(row: dict[str, Any]) -> tuple[str, str, list[Any]]:
    """What a client gets: an invalid call is text, the same as the model wrote it."""
    content = "".join([row["content"], *blocks(row)])
    return row["reasoning"], content, [(call["name"], call["args"]) for call in row["tool_calls"]]


def golden(shared: Path) -> list[dict[str, Any]]:
    lines = (shared / "golden" / "model_output.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_golden_outputs_whole(make_parser: Any, shared: Path) -> None:
    for row in golden(shared):
        request = make_request(thinking=row["enable_thinking"])
        reasoning, content, calls = make_parser(request).parse(row["raw"], request, enable_auto_tools=True)
        read = [(call.name, json.loads(call.arguments)) for call in calls or ()]
        assert (reasoning or "", content or "", read) == expected(row), row["name"]


@pytest.mark.parametrize("step", [1, 4, 1000])
def test_golden_outputs_streamed(make_parser: Any, tokenizer: Any, shared: Path, step: int) -> None:
    for row in golden(shared):
        request = make_request(thinking=row["enable_thinking"])
        prompt = "<|im_start|>assistant\n" + ("" if row["enable_thinking"] else "<think>\n\n</think>\n\n")
        messages = stream(make_parser(request), tokenizer, request, prompt, row["raw"], step)
        calls = [call for message in messages for call in message.tool_calls]
        read = (
            "".join(message.reasoning or "" for message in messages),
            "".join(message.content or "" for message in messages),
            [(call.function.name, json.loads(call.function.arguments)) for call in calls],
        )
        assert read == expected(row), row["name"]
        assert [call.index for call in calls] == list(range(len(calls))), row["name"]


def stream(parser: Any, tokenizer: Any, request: Any, prompt: str, text: str, step: int) -> list[Any]:
    """The messages of a stream whose deltas are some tokens each, as the engine hands them over."""
    ids = tokenizer.encode(text, add_special_tokens=False)
    prompt_ids = tokenizer.encode(prompt, add_special_tokens=False)
    messages = []
    shown = 0
    for begin in range(0, max(len(ids), 1), step):
        end = begin + step
        so_far = tokenizer.decode(ids[:end])
        # The engine holds back an incomplete character.
        delta = so_far[shown:] if end >= len(ids) or not so_far.endswith("\ufffd") else ""
        shown += len(delta)
        message = parser.parse_delta(
            delta, ids[begin:end], request, prompt_token_ids=prompt_ids, finished=end >= len(ids)
        )
        messages += [message] if message else []
    return messages


@pytest.mark.parametrize("options", [{"tool_choice": "none"}, {"tools": None, "tool_choice": None}])
def test_without_a_tool_to_call_the_text_stays(make_parser: Any, tokenizer: Any, options: Any) -> None:
    text = 'Look:\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    request = make_request(**options)
    raw = f"<think>\nr\n</think>\n\n{text}"
    reasoning, content, calls = make_parser(request).parse(raw, request, enable_auto_tools=True)
    assert (reasoning, content, calls or []) == ("r", text, [])
    messages = stream(make_parser(request), tokenizer, request, "<|im_start|>assistant\n", raw, 1)
    assert "".join(message.content or "" for message in messages) == text


def test_reasoning_ends_where_the_models_own_turn_closes_it(make_parser: Any, tokenizer: Any) -> None:
    parser = make_parser(make_request()).reasoning_parser

    def ends(text: str) -> bool:
        return bool(parser.is_reasoning_end(tokenizer.encode(text, add_special_tokens=False)))

    earlier = "<|im_start|>assistant\n<think>\nr\n</think>\n\n<|im_end|>\n"
    assert not ends(f"{earlier}<|im_start|>assistant\n")
    assert ends(f"{earlier}<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert not ends("<|im_start|>assistant\n<think>\nr")
    ids = tokenizer.encode("<think>\nr\n</think>\n\nHi", add_special_tokens=False)
    assert tokenizer.decode(parser.extract_content_ids(ids)) == "\n\nHi"
    assert parser.count_reasoning_tokens(ids) == ids.index(151_668) + 1


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"tool_choice": "required"}, "tags_with_separator"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tags_with_separator"),
        ({"parallel_tool_calls": False}, "triggered_tags"),
    ],
)
def test_a_forced_call_is_held_to_its_schema(make_parser: Any, options: Any, kind: str) -> None:
    request = make_request(**options)
    adjusted = make_parser(request).adjust_request(request)
    tag = json.loads(adjusted.structured_outputs.structural_tag)
    assert tag["format"]["type"] == kind
    assert tag["format"]["stop_after_first"] is (options.get("parallel_tool_calls") is False)
    assert tag["format"]["tags"][0]["begin"] == '<tool_call>\n{"name": "f", "arguments": '


def test_a_free_answer_is_not_held_to_anything(make_parser: Any) -> None:
    request = make_request()
    assert make_parser(request).adjust_request(request).structured_outputs is None
