"""LangChain's standard integration tests, on the transformers backend with a real Qwen3 of random weights."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_tests.integration_tests import ChatModelIntegrationTests

from langchain_envscaler.chat.backends.base import GenerationRequest
from langchain_envscaler.chat.model import ChatEnvScaler

pytestmark = pytest.mark.transformers


def call(name: str, **args: Any) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(args)}}}\n</tool_call>'


def loop(request: GenerationRequest) -> str:
    """Calls once, then answers."""
    return "It is sunny." if "<tool_response>" in request.prompt.text else call("get_weather", location="SF")


def customer(request: GenerationRequest) -> str:
    name = "你好啊集团" if "你好啊集团" in request.prompt.text else "こんにちは株式会社"
    return call("unicode_customer", customer_name=name, description="new")


JOKE = '{"setup": "Why do cats purr?", "punchline": "Because they can."}'
NO_END = "a model of random weights writes strings without a bound until the token limit cuts them"
# Tests that a model of random weights cannot meet: the reason, and what a script answers in its place.
SCRIPTED: dict[str, tuple[str, Any]] = {
    "test_tool_calling": ("asks for one certain argument", call("magic_function", input=3)),
    "test_tool_calling_async": ("asks for one certain argument", call("magic_function", input=3)),
    "test_bind_runnables_as_tools": (NO_END, call("greeting_generator", answer_style="pirate")),
    "test_tool_choice": (NO_END, [call("get_weather", location="SF"), call("magic_function", input=1)]),
    "test_structured_output": (NO_END, JOKE),
    "test_structured_output_async": (NO_END, JOKE),
    "test_structured_output_pydantic_2_v1": (NO_END, JOKE),
    "test_structured_output_optional_param": (NO_END, JOKE),
    "test_json_mode": ("only the prompt asks for the keys", JOKE),
    "test_agent_loop": ("the model must choose to call, and then to answer", loop),
    "test_unicode_tool_call_integration": ("asks for one certain argument", customer),
}


class TestTransformers(ChatModelIntegrationTests):
    @pytest.fixture(autouse=True)
    def _choose_engine(self, request: pytest.FixtureRequest, qwen3_folder: Path, script: Any) -> None:
        self.folder = str(qwen3_folder)
        _, texts = SCRIPTED.get(request.node.originalname, ("", None))
        self.backend = "transformers" if texts is None else script(texts)

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatEnvScaler

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": self.folder,
            "backend": self.backend,
            "device": "cpu",
            "max_tokens": 64,
            "thinking_budget": 4,
            "seed": 1,
        }

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return self.folder
