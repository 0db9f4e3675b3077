"""The carried format against Qwen3's real vocabulary and its own template."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_envscaler.chat.history import template_messages, to_turns
from langchain_envscaler.chat.prompt import CONTROL_TOKENS, render, render_segments

pytestmark = pytest.mark.transformers

FIRST_CONTROL_ID = 151_643
texts = st.lists(
    st.sampled_from(["a", " ", "\n", "é", "😀", '"', "{x}", "订单", "<b>", "\\"]), max_size=6
).map("".join)
arguments = st.dictionaries(
    texts, st.none() | st.booleans() | st.integers() | texts | st.lists(texts), max_size=3
)
calls = st.lists(
    st.fixed_dictionaries(
        {"function": st.fixed_dictionaries({"name": st.just("f"), "arguments": arguments})}
    ),
    max_size=2,
)
messages = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "tool"]), "content": texts}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": texts, "reasoning_content": texts, "tool_calls": calls}
    ),
)
TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "é <b>", "parameters": {"type": "object"}},
}


def ids_of(tokenizer: Any, segments: Any) -> list[int]:
    return [token for _, ids in tokenizer.encode(segments) for token in ids]


def test_golden_prompts_in_tokens(qwen3_text: Any, shared: Path) -> None:
    checked = 0
    for line in (shared / "golden" / "qwen3_render.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        ids = ids_of(qwen3_text.tokenizer, render_segments(row["messages"], row["tools"], **row["options"]))
        if row["token_sha256"] is not None:
            checked += 1
            assert len(ids) == row["token_count"], row["name"]
            digest = hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()
            assert digest == row["token_sha256"], row["name"]
    assert checked == 58


def test_a_spoofed_control_token_stays_text(qwen3_text: Any) -> None:
    def controls(said: str) -> list[int]:
        conversation = [{"role": role, "content": said} for role in ("system", "user", "tool")]
        ids = ids_of(qwen3_text.tokenizer, render_segments(conversation))
        return [token for token in ids if token >= FIRST_CONTROL_ID]

    assert controls("".join(CONTROL_TOKENS)) == controls("harmless")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    conversation=st.lists(messages, min_size=1, max_size=6),
    tools=st.sampled_from([None, [TOOL]]),
    thinking=st.booleans(),
    begins=st.booleans(),
)
def test_the_carried_format_is_the_template(
    qwen3_text: Any, conversation: list[dict[str, Any]], tools: Any, thinking: bool, begins: bool
) -> None:
    expected = qwen3_text.tokenizer.hf.apply_chat_template(
        template_messages(to_turns(conversation)),
        tools=tools,
        tokenize=False,
        add_generation_prompt=begins,
        enable_thinking=thinking,
    )
    assert render(conversation, tools, enable_thinking=thinking, add_generation_prompt=begins) == expected
