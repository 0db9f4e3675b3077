"""The scanner ends an object exactly where a JSON decoder does, in any chunking."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_envscaler.chat.json_scanner import ObjectScanner

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def scan(chunks: list[str]) -> tuple[int, ObjectScanner]:
    scanner = ObjectScanner()
    total = 0
    for chunk in chunks:
        position = scanner.scan(chunk, 0)
        total += position
        if scanner.complete or scanner.failed:
            break
    return total, scanner


@given(
    value=st.dictionaries(st.text(max_size=4), values, max_size=4),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
    size=st.integers(1, 9),
)
def test_an_object_is_complete_at_its_closing_brace(
    value: dict[str, Any], indent: int | None, ascii_only: bool, size: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    after = text + '\n</tool_call>"{'
    for chunks in ([after], [after[i : i + size] for i in range(0, len(after), size)]):
        end, scanner = scan(chunks)
        assert scanner.complete
        assert end == len(text)
    end, scanner = scan([text[:-1]])
    assert not scanner.complete
    assert not scanner.failed


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('{"a": ', "}"),
        ('{"a" ', "1"),
        ('{"a": "He said "', 'hi""}'),
        ('{"a": 1', "]"),
        ('{"a": [1', "}"),
        ('{"a": 1, ', "}"),
        ("{", "'a': 1}"),
        ('{"a": ', "True}"),
        ('{"a": [1 ', "2]}"),
        ('{"a": {"b": 2}', "\n</tool_call>".strip()),
        ('{"a": 1', '"}'),
        ("{", "{"),
    ],
)
def test_a_scan_fails_at_the_first_character_that_does_not_fit(good: str, bad: str) -> None:
    for chunks in ([good + bad], list(good + bad)):
        end, scanner = scan(chunks)
        assert scanner.failed
        assert end == len(good)
