"""The chat model over an engine that plays a script: what messages hold, streamed or not."""

import asyncio
import json
import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.load import dumpd, dumps, load
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from langchain_envscaler import ChatEnvScaler
from langchain_envscaler.chat.output import parse
from langchain_envscaler.errors import InfrastructureError, UsageError

CALL = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
OTHER_CALL = '<tool_call>\n{"name": "g", "arguments": {"y": "é"}}\n</tool_call>'
THOUGHT = "<think>\nhm\n</think>\n\n"


def joined(chunks: Any) -> AIMessageChunk:
    total: AIMessageChunk | None = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    assert total is not None
    return total


async def ajoined(chunks: Any) -> AIMessageChunk:
    return joined([chunk async for chunk in chunks])


def without_ids(calls: Any) -> list[dict[str, Any]]:
    return [{"name": call["name"], "args": call["args"]} for call in calls]


def same(first: AIMessage, second: AIMessage) -> bool:
    return (
        first.content == second.content
        and first.additional_kwargs == second.additional_kwargs
        and without_ids(first.tool_calls) == without_ids(second.tool_calls)
        and without_ids(first.invalid_tool_calls) == without_ids(second.invalid_tool_calls)
        and first.usage_metadata == second.usage_metadata
        and first.response_metadata == second.response_metadata
    )


def golden(shared: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shared / "golden" / "model_output.jsonl").read_text().splitlines()]


def test_reasoning_answer_usage_and_reason_reach_the_message(script: Any) -> None:
    message = ChatEnvScaler(backend=script(f"{THOUGHT}Hello."), model="m").invoke("hi")
    assert message.content == "Hello."
    assert message.additional_kwargs == {"reasoning_content": "hm"}
    assert [block["type"] for block in message.content_blocks] == ["reasoning", "text"]
    assert message.response_metadata["finish_reason"] == "stop"
    assert message.response_metadata["model_name"] == "m"
    assert message.usage_metadata == {
        "input_tokens": 10,
        "output_tokens": 27,
        "total_tokens": 37,
        "input_token_details": {"cache_read": 3},
        "output_token_details": {"reasoning": len("<think>\nhm\n</think>")},
    }


def test_an_output_without_reasoning_has_no_reasoning_tokens(script: Any) -> None:
    message = ChatEnvScaler(backend=script("Hello.")).invoke("hi")
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_token_details"] == {"reasoning": 0}
    assert message.additional_kwargs == {}


@pytest.mark.parametrize("parallel", [False, True])
async def test_every_way_to_ask_gives_the_same_answer(shared: Path, script: Any, parallel: bool) -> None:
    for row in golden(shared):
        engine = script(row["raw"], finish_reason=row["finish"])
        model = ChatEnvScaler(
            backend=engine, enable_thinking=row["enable_thinking"], parallel_tool_calls=parallel
        )
        message = model.invoke("hi")
        if parallel:
            assert without_ids(message.tool_calls) == without_ids(row["tool_calls"]), row["name"]
            assert (message.content, message.additional_kwargs.get("reasoning_content", "")) == (
                row["content"],
                row["reasoning"],
            )
        for other in (
            joined(model.stream("hi")),
            await model.ainvoke("hi"),
            await ajoined(model.astream("hi")),
        ):
            assert same(other, message), row["name"]


async def test_without_parallel_calls_generation_stops_at_the_first_closed_call(script: Any) -> None:
    text = f"{THOUGHT}Look:\n{CALL}"
    engine = script(f"{text}\n{OTHER_CALL} and more")
    model = ChatEnvScaler(backend=engine)
    for message in (model.invoke("hi"), joined(model.stream("hi")), await model.ainvoke("hi")):
        assert without_ids(message.tool_calls) == [{"name": "f", "args": {"x": 1}}]
        assert message.content == "Look:"
        assert message.response_metadata["finish_reason"] == "tool_calls"
        assert message.usage_metadata is not None
        assert message.usage_metadata["output_tokens"] == len(text)
    assert engine.played == 3 * len(text)
    assert engine.endings == 3


def test_a_tag_within_a_string_or_the_reasoning_does_not_stop_generation(script: Any) -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {"x": "</tool_call> <tool_call>"}}\n</tool_call>'
    text = f"<think>\ntry {CALL} first\n</think>\n\n{call}"
    message = ChatEnvScaler(backend=script(text)).invoke("hi")
    assert without_ids(message.tool_calls) == [{"name": "f", "args": {"x": "</tool_call> <tool_call>"}}]


def test_parallel_calls_stream_with_indexes_and_ids_of_their_own_and_each_name_once(script: Any) -> None:
    model = ChatEnvScaler(backend=script(f"{CALL}\n{OTHER_CALL}"), parallel_tool_calls=True)
    pieces = [piece for chunk in model.stream("hi") for piece in chunk.tool_call_chunks]
    assert [(piece["index"], piece["name"]) for piece in pieces] == [(0, "f"), (1, "g")]
    assert len({piece["id"] for piece in pieces}) == 2
    total = joined(model.stream("hi"))
    assert without_ids(total.tool_calls) == [
        {"name": "f", "args": {"x": 1}},
        {"name": "g", "args": {"y": "é"}},
    ]


@pytest.mark.parametrize(
    "block",
    ['{"name": "f", "arguments": [1]}', '{"arguments": {"x": 1}}', '{"name": "f", "arguments": {"x": 1'],
    ids=["arguments are a list", "no name", "cut off"],
)
def test_an_invalid_call_never_becomes_a_valid_one_when_chunks_are_joined(script: Any, block: str) -> None:
    model = ChatEnvScaler(backend=script(f"<tool_call>\n{block}", finish_reason="length"))
    total = joined(model.stream("hi"))
    assert total.tool_calls == []
    assert [call["args"] for call in total.invalid_tool_calls] == [block]
    assert total.invalid_tool_calls[0]["error"] == model.invoke("hi").invalid_tool_calls[0]["error"]
    for copy in (pickle.loads(pickle.dumps(total)), deepcopy(total), total.model_copy()):
        assert (copy + AIMessageChunk(content="")).tool_calls == []


async def test_a_stream_ends_with_one_chunk_that_tells_usage_and_reason(script: Any) -> None:
    model = ChatEnvScaler(backend=script(f"{THOUGHT}Hi"))
    chunks = [chunk async for chunk in model.astream("hi")]
    assert [chunk.chunk_position for chunk in chunks if chunk.chunk_position] == ["last"]
    assert [bool(chunk.usage_metadata) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].response_metadata["finish_reason"] == "stop"


def test_standard_blocks_keep_reasoning_text_and_calls_apart(script: Any) -> None:
    engine = script(f"{THOUGHT}Look:\n{CALL}\n{OTHER_CALL}")
    model = ChatEnvScaler(backend=engine, output_version="v1", parallel_tool_calls=True)
    blocks = joined(model.stream("hi")).content
    assert [block["type"] for block in blocks] == ["reasoning", "text", "tool_call", "tool_call"]
    assert [block["type"] for block in model.invoke("hi").content] == [
        "reasoning",
        "text",
        "tool_call",
        "tool_call",
    ]


def test_reasoning_of_a_tool_loop_is_replayed(script: Any) -> None:
    engine = script([f"{THOUGHT}{CALL}", "done"])
    model = ChatEnvScaler(backend=engine)
    first = model.invoke("hi")
    model.invoke([HumanMessage("hi"), first, {"role": "tool", "content": "7", "tool_call_id": "a"}])
    prompt = engine.requests[1].prompt.text
    assert f"<|im_start|>assistant\n{THOUGHT}{CALL}<|im_end|>" in prompt


async def test_generation_ends_when_the_consumer_leaves(script: Any) -> None:
    engine = script("x" * 1000)
    model = ChatEnvScaler(backend=engine, enable_thinking=False)
    for _ in model.stream("hi"):
        break
    assert (engine.endings, engine.played) == (1, 1)
    engine.has_ended.clear()
    stream = model.astream("hi")
    await anext(stream)
    await stream.aclose()
    assert await asyncio.to_thread(engine.has_ended.wait, 10)
    assert engine.played < 10


async def test_a_cancelled_task_ends_its_generation(script: Any) -> None:
    engine = script("x" * 1_000_000)
    task = asyncio.create_task(ChatEnvScaler(backend=engine).ainvoke("hi"))
    assert await asyncio.to_thread(engine.has_begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(engine.has_ended.wait, 10)
    assert engine.played < 1_000_000


async def test_the_engines_error_reaches_whoever_asked(script: Any) -> None:
    model = ChatEnvScaler(backend=script("ab", error=InfrastructureError("out of memory")))
    with pytest.raises(InfrastructureError, match="out of memory"):
        model.invoke("hi")
    with pytest.raises(InfrastructureError, match="out of memory"):
        list(model.stream("hi"))
    with pytest.raises(InfrastructureError, match="out of memory"):
        await model.ainvoke("hi")
    with pytest.raises(InfrastructureError, match="out of memory"):
        await ajoined(model.astream("hi"))


def test_an_output_at_its_token_limit_says_so(script: Any) -> None:
    message = ChatEnvScaler(backend=script("<think>\nround and round", finish_reason="length")).invoke("hi")
    assert message.response_metadata["finish_reason"] == "length"
    assert message.additional_kwargs["reasoning_content"] == "round and round"
    assert message.content == ""


def test_tokens_come_with_the_message_when_asked_for(script: Any) -> None:
    model = ChatEnvScaler(backend=script("ab", size=2), return_tokens=True)
    expected = [{"id": 1, "text": "ab", "is_written": True, "logprob": -0.5, "top_logprobs": []}]
    assert model.invoke("hi").response_metadata["tokens"] == expected
    assert joined(model.stream("hi")).response_metadata["tokens"] == expected
    assert "tokens" not in model.invoke("hi", return_tokens=False).response_metadata


def test_a_batch_asks_for_all_at_once_and_one_bad_input_spoils_only_itself(script: Any) -> None:
    model = ChatEnvScaler(backend=script("fine"))
    image = [{"role": "user", "content": [{"type": "image", "base64": "", "mime_type": "image/png"}]}]
    results = model.batch(["a", image, "b"], return_exceptions=True)
    assert [getattr(result, "content", None) for result in results] == ["fine", None, "fine"]
    assert isinstance(results[1], UsageError)


def test_render_gives_the_prompts_of_the_reference_data(shared: Path) -> None:
    model = ChatEnvScaler()
    rows = [json.loads(line) for line in (shared / "golden" / "qwen3_render.jsonl").read_text().splitlines()]
    for row in rows:
        if row["options"].get("add_generation_prompt", True):
            thinking = row["options"].get("enable_thinking", True)
            assert model.render(row["messages"], row["tools"], enable_thinking=thinking) == row["text"]


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_serialized_it_keeps_its_settings_and_hides_its_secrets() -> None:
    url = "http://localhost:1/v1"
    model = ChatEnvScaler(model="m", base_url=url, api_key="s3cret", temperature=0.1, seed=3)
    assert "s3cret" not in dumps(model)
    assert "s3cret" not in repr(model)
    secrets = {"ENVSCALER_API_KEY": "s3cret"}
    again = load(
        dumpd(model),
        secrets_map=secrets,
        valid_namespaces=["langchain_envscaler"],
        allowed_objects=[ChatEnvScaler],
    )
    assert isinstance(again, ChatEnvScaler)
    assert again.model_dump() == model.model_dump()
    for copy in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        assert copy.model_dump() == model.model_dump()


def test_the_profile_tells_context_and_abilities() -> None:
    profile = ChatEnvScaler(context_size=8192).profile
    assert profile is not None
    assert profile["max_input_tokens"] == 8192
    assert profile["tool_calling"]
    assert profile["reasoning_output"]
    assert not profile["image_inputs"]


def test_tokens_are_estimated_where_the_engine_has_no_tokenizer(script: Any) -> None:
    model = ChatEnvScaler(backend=script("x"))
    assert 1 <= model.get_num_tokens("Hello there, world") <= 10
    assert model.get_num_tokens_from_messages([HumanMessage("Hello there")]) > 1
    with pytest.raises(UsageError, match="tokenizer"):
        model.get_token_ids("x")


def test_a_message_reads_as_its_text_would(script: Any) -> None:
    text = f"{THOUGHT}a\n{CALL}"
    message, output = ChatEnvScaler(backend=script(text)).invoke("hi"), parse(text)
    assert (message.content, message.additional_kwargs["reasoning_content"]) == (
        output.content,
        output.reasoning,
    )
    assert without_ids(message.tool_calls) == without_ids(output.tool_calls)
