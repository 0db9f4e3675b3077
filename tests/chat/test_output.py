"""Reading the model's output: the rules, and that neither chunking nor streaming changes anything."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_envscaler.chat.output import OutputDelta, OutputReader, ParsedOutput, parse

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
OTHER = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'

# The building blocks of every rule: joined at random they meet each other in every order.
FRAGMENTS = [
    "<think>",
    "</think>",
    "<tool_call>",
    "<tool_call>\n",
    "</tool_call>",
    "\n</tool_call>",
    CALL,
    OTHER,
    '{"name": "h", "arguments": {',
    '{"name": "h"}',
    '"s": "',
    '"x": [1, -0.5e3, true, null, {}]',
    "{",
    "}",
    "}}",
    "[",
    "]",
    '"',
    "\\",
    "\\u12",
    ",",
    ":",
    "\n",
    "\n\n",
    " ",
    "<",
    "</",
    "<tool_",
    "word",
    "🏳️‍🌈",
    "é",
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)


def read(
    chunks: list[str],
    *,
    enable_thinking: bool = True,
    finish_reason: str = "stop",
    first_call_only: bool = False,
) -> tuple[ParsedOutput, list[OutputDelta]]:
    reader = OutputReader(enable_thinking, first_call_only=first_call_only)
    deltas = [delta for chunk in chunks for delta in reader.feed(chunk)]
    deltas += reader.close(finish_reason)
    return reader.result, deltas


def plain(output: ParsedOutput) -> dict[str, Any]:
    """An output without its calls' ids, which are random."""
    return {
        "reasoning": output.reasoning,
        "content": output.content,
        "tool_calls": [{"name": call["name"], "args": call["args"]} for call in output.tool_calls],
        "invalid_tool_calls": [
            {"name": call["name"], "args": call["args"]} for call in output.invalid_tool_calls
        ],
    }


def cut(text: str, places: list[int]) -> list[str]:
    borders = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[begin:end] for begin, end in pairwise(borders)]


@pytest.fixture(scope="module")
def golden(shared: Path) -> list[dict[str, Any]]:
    lines = (shared / "golden" / "model_output.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_golden_outputs_are_read_whole_and_character_by_character(golden: list[dict[str, Any]]) -> None:
    assert len(golden) == 40
    for row in golden:
        expected = {key: row[key] for key in ("reasoning", "content", "tool_calls", "invalid_tool_calls")}
        options = {"enable_thinking": row["enable_thinking"], "finish_reason": row["finish"]}
        assert plain(parse(row["raw"], **options)) == expected, row["name"]
        assert repr(plain(parse(row["raw"], **options))) == repr(expected), row["name"]
        assert plain(read(list(row["raw"]), **options)[0]) == expected, row["name"]


@given(data=st.data())
def test_golden_outputs_are_read_in_any_chunking(golden: list[dict[str, Any]], data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(golden))
    chunks = cut(row["raw"], data.draw(st.lists(st.integers(0, 500), max_size=8)))
    output, _ = read(chunks, enable_thinking=row["enable_thinking"], finish_reason=row["finish"])
    assert plain(output) == {
        key: row[key] for key in ("reasoning", "content", "tool_calls", "invalid_tool_calls")
    }


@given(
    text=texts,
    places=st.lists(st.integers(0, 500), max_size=6),
    thinking=st.booleans(),
    finish_reason=st.sampled_from(["stop", "length"]),
    first_call_only=st.booleans(),
)
def test_chunking_changes_nothing_and_deltas_join_to_the_result(
    text: str, places: list[int], thinking: bool, finish_reason: str, first_call_only: bool
) -> None:
    whole, *others = (
        read(
            chunks,
            enable_thinking=thinking,
            finish_reason=finish_reason,
            first_call_only=first_call_only,
        )
        for chunks in ([text], list(text), cut(text, places))
    )
    for output, deltas in (whole, *others):
        assert plain(output) == plain(whole[0])
        assert [call["error"] for call in output.invalid_tool_calls] == [
            call["error"] for call in whole[0].invalid_tool_calls
        ]
        assert "".join(delta.reasoning for delta in deltas) == output.reasoning
        assert "".join(delta.content for delta in deltas) == output.content
        assert [delta.tool_call for delta in deltas if delta.tool_call] == output.tool_calls
        assert [delta.invalid_tool_call for delta in deltas if delta.invalid_tool_call] == (
            output.invalid_tool_calls
        )
        indexes = [delta.index for delta in deltas if delta.index is not None]
        assert indexes == list(range(len(output.tool_calls) + len(output.invalid_tool_calls)))
    assert not first_call_only or len(whole[0].tool_calls) <= 1


@given(text=texts, thinking=st.booleans())
def test_nothing_that_was_streamed_is_taken_back(text: str, thinking: bool) -> None:
    reader = OutputReader(thinking)
    for position, character in enumerate(text):
        reader.feed(character)
        so_far = reader.result
        end = parse(text, enable_thinking=thinking)
        assert end.reasoning.startswith(so_far.reasoning), position
        assert end.content.startswith(so_far.content), position
        assert plain(end)["tool_calls"][: len(so_far.tool_calls)] == plain(so_far)["tool_calls"]


def test_reasoning_and_answer_stream_before_their_end() -> None:
    reader = OutputReader()
    assert reader.feed("<think>\nfirst ") == [OutputDelta(reasoning="first")]
    assert reader.feed("second") == [OutputDelta(reasoning=" second")]
    assert reader.is_thinking
    assert reader.feed("\n</think>\n\nAn ") == [OutputDelta(content="An ")]
    assert not reader.is_thinking
    assert reader.feed("answer") == [OutputDelta(content="answer")]


def test_without_an_opening_tag_thinking_output_is_held_until_it_is_decided() -> None:
    reader = OutputReader()
    assert reader.feed("plan ") == []
    assert reader.is_thinking
    assert reader.feed("more\n</think>\n\nDone") == [
        OutputDelta(reasoning="plan more"),
        OutputDelta(content="Done"),
    ]
    reader = OutputReader()
    assert reader.feed("Just an answer.") == []
    assert reader.close() == [OutputDelta(content="Just an answer.")]


def test_with_thinking_off_an_answer_streams_at_once() -> None:
    reader = OutputReader(enable_thinking=False)
    assert reader.feed("Hel") == [OutputDelta(content="Hel")]
    assert not reader.is_thinking


def test_with_thinking_off_think_tags_in_the_answer_are_text_but_a_leading_block_is_reasoning() -> None:
    assert plain(parse("Write <think> or </think>.", enable_thinking=False))["content"] == (
        "Write <think> or </think>."
    )
    output = parse("<think>\nit thinks all the same\n</think>\n\nHi", enable_thinking=False)
    assert (output.reasoning, output.content) == ("it thinks all the same", "Hi")


def test_a_character_that_was_streamed_comes_once_and_whole() -> None:
    text = "Flag 🏳️‍🌈, 家族, e\u0301 <"
    _, deltas = read(list(f"<think>{text}</think>{text}"))
    assert "".join(delta.content for delta in deltas) == text
    assert "".join(delta.reasoning for delta in deltas) == text


def test_parallel_calls_get_indexes_in_order_and_ids_of_their_own() -> None:
    output, deltas = read(list(f"{CALL}\n{OTHER}"), enable_thinking=False)
    assert [delta.index for delta in deltas] == [0, 1]
    assert [delta.tool_call["name"] for delta in deltas if delta.tool_call] == ["f", "g"]
    assert output.tool_calls[0]["id"] != output.tool_calls[1]["id"]
    assert {call["type"] for call in output.tool_calls} == {"tool_call"}


def test_a_call_is_handed_out_when_its_tag_closes() -> None:
    reader = OutputReader(enable_thinking=False)
    assert reader.feed(CALL.removesuffix("_call>")) == []
    (delta,) = reader.feed("_call>")
    assert delta.tool_call is not None
    assert delta.tool_call["args"] == {"a": 1}


def test_reading_stops_after_the_first_valid_call_where_one_is_wanted() -> None:
    reader = OutputReader(enable_thinking=False, first_call_only=True)
    reader.feed(f"Look: {OTHER.replace('{}', '[]')}\n{CALL} and ")
    assert reader.is_done
    assert reader.feed(f"more {OTHER}") == []
    assert reader.close() == []
    assert plain(reader.result) == {
        "reasoning": "",
        "content": "Look: ",
        "tool_calls": [{"name": "f", "args": {"a": 1}}],
        "invalid_tool_calls": [{"name": "g", "args": '{"name": "g", "arguments": []}'}],
    }


def test_a_draft_in_an_open_think_block_does_not_stop_the_reading() -> None:
    reader = OutputReader(first_call_only=True)
    reader.feed(f"<think>\nmaybe {CALL}")
    assert not reader.is_done
    reader.feed(f" or better\n</think>\n\n{OTHER}")
    assert reader.is_done
    assert [call["name"] for call in reader.result.tool_calls] == ["g"]
    assert reader.result.reasoning == f"maybe {CALL} or better"


def test_a_think_block_that_never_closes_gives_every_call_it_ends_in() -> None:
    output = parse(f"<think>\nboth, not {CALL} but\n{CALL}\n{OTHER}\n")
    assert output.reasoning == f"both, not {CALL} but"
    assert [call["name"] for call in output.tool_calls] == ["f", "g"]


def test_an_incomplete_or_invalid_call_at_the_end_of_an_open_think_block_is_reasoning() -> None:
    for ending in ('<tool_call>\n{"name": "f", "argum', '<tool_call>\n{"name": 5}\n</tool_call>'):
        output = parse(f"<think>\nplan\n{ending}", finish_reason="length")
        assert plain(output) == {
            "reasoning": f"plan\n{ending}",
            "content": "",
            "tool_calls": [],
            "invalid_tool_calls": [],
        }


def test_a_closing_think_tag_ends_the_reasoning_within_a_half_written_draft() -> None:
    output = parse('<think>\nI could <tool_call>\n{"name": "f", "arguments": {"s": "x\n</think>\n\nNo.')
    assert output.content == "No."
    assert output.reasoning == 'I could <tool_call>\n{"name": "f", "arguments": {"s": "x'


def test_a_closing_think_tag_in_a_drafts_string_is_text() -> None:
    draft = '<tool_call>\n{"name": "f", "arguments": {"s": "</think>"}}\n</tool_call>'
    output = parse(f"<think>\nmaybe {draft} no\n</think>\n\nHi")
    assert (output.reasoning, output.content) == (f"maybe {draft} no", "Hi")


def test_text_before_a_late_think_block_is_content() -> None:
    output = parse(f"Sure.\n{CALL}\n<think>\nplan\n</think>\n\nDone")
    assert plain(output) == {
        "reasoning": "plan",
        "content": "Sure.\nDone",
        "tool_calls": [{"name": "f", "args": {"a": 1}}],
        "invalid_tool_calls": [],
    }


def test_later_think_tags_are_content() -> None:
    output = parse("<think>\na <think> b\n</think>\n\nUse <think> and </think>.")
    assert (output.reasoning, output.content) == ("a <think> b", "Use <think> and </think>.")


def test_a_call_with_an_unclosed_string_does_not_swallow_the_next_call() -> None:
    broken = '<tool_call>\n{"name": "g", "arguments": {"s": "never closed}}\n</tool_call>'
    output = parse(f"<think>x</think>{broken}\n{CALL}\nBye")
    assert plain(output) == {
        "reasoning": "x",
        "content": "Bye",
        "tool_calls": [{"name": "f", "args": {"a": 1}}],
        "invalid_tool_calls": [{"name": "g", "args": '{"name": "g", "arguments": {"s": "never closed}}'}],
    }


def test_a_call_that_never_closed_ends_where_the_next_one_begins() -> None:
    output = parse(f'<think>x</think><tool_call>\n{{"name": "g", "arguments": {{"b": 1}}\n{CALL}')
    assert [call["args"] for call in output.invalid_tool_calls] == ['{"name": "g", "arguments": {"b": 1}']
    assert [call["name"] for call in output.tool_calls] == ["f"]


def test_a_brace_too_many_is_part_of_its_block() -> None:
    text = CALL.replace("}}", "}}}")
    assert plain(parse(f"<think>x</think>{text}\nBye")) == {
        "reasoning": "x",
        "content": "Bye",
        "tool_calls": [{"name": "f", "args": {"a": 1}}],
        "invalid_tool_calls": [],
    }


def test_white_space_between_calls_is_no_content_and_inner_newlines_stay() -> None:
    output = parse(f"<think>x</think>\n\n  one\n\ntwo \n\n{CALL} \n {OTHER}\n\n  three\n")
    assert output.content == "  one\n\ntwo \n  three\n"


def test_a_call_cut_off_by_the_token_limit_says_so() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {"x": "ab'
    cut_off = parse(text, enable_thinking=False, finish_reason="length").invalid_tool_calls[0]
    stopped = parse(text, enable_thinking=False, finish_reason="stop").invalid_tool_calls[0]
    assert "token limit" in str(cut_off["error"])
    assert "token limit" not in str(stopped["error"])
    assert cut_off["name"] == stopped["name"] == "f"


def test_an_output_cut_off_within_the_closing_tag_is_a_call() -> None:
    for end in ("", "\n", "\n<", "\n</tool_ca"):
        text = CALL.removesuffix("\n</tool_call>") + end
        output = parse(text, enable_thinking=False, finish_reason="length")
        assert (output.content, len(output.tool_calls)) == ("", 1), end


def test_a_reader_that_is_closed_ignores_more_text() -> None:
    reader = OutputReader(enable_thinking=False)
    reader.feed("Hi")
    reader.close()
    assert reader.is_done
    assert reader.feed("more") == []
    assert reader.close() == []
    assert reader.result.content == "Hi"
