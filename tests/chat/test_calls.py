"""One block's JSON as a call: what is accepted, and what an invalid one tells."""

import json

import pytest

from langchain_envscaler.chat.calls import read_call, read_name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "f", "arguments": {"b": }}', "not valid JSON"),
        ('{"name": "f", "arguments": {"b": NaN}}', "NaN is no JSON value"),
        ('{"name": "f", "arguments": {"b": 1' + "0" * 5000 + "}}", "not valid JSON"),
        ('{"name": "f", "arguments": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"arguments": {}}', "expected a name"),
        ('{"name": "", "arguments": {}}', "expected a name"),
        ('{"name": "f", "arguments": [1]}', "expected arguments as an object, got a list"),
        ('{"name": "f", "arguments": true}', "expected arguments as an object, got a boolean"),
        ('{"name": "f", "arguments": "[1]"}', "expected arguments as an object, got a list"),
        ('{"name": "f", "arguments": "text"}', "got a string that holds none"),
    ],
)
def test_an_invalid_call_keeps_its_text_and_says_why(text: str, reason: str) -> None:
    call = read_call(text)
    assert call["type"] == "invalid_tool_call"
    assert call["args"] == text
    assert reason in str(call["error"])
    assert call["id"]


def test_half_of_an_escaped_character_cannot_reach_what_stores_the_call() -> None:
    call = read_call(r'{"name": "f", "arguments": {"\ud83d": ["a\ude00", "\ud83d\ude00"]}}')
    assert call["args"] == {"\ufffd": ["a\ufffd", "😀"]}
    json.dumps(call, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"arguments": {"name": "bob", "x": }, "name": "w"}', "w"),
        ('{"arguments": {"name": "bob"', None),
        ('{"name": "f", "argum', "f"),
        ('{"name": "f', None),
        ('{"name": 5}', None),
        (r'{"name" : "\u4f60"', "你"),
        (r'{"name": "\x"', None),
        ("", None),
    ],
)
def test_a_name_is_read_where_it_can_be_told(text: str, name: str | None) -> None:
    assert read_name(text) == name
