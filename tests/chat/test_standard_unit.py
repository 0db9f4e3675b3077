"""LangChain's standard unit tests for chat models, once for each engine; none is loaded or reached."""

import importlib
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_envscaler.chat.model import ChatEnvScaler

# The package's attribute of this name is the function.
load_module = importlib.import_module("langchain_core.load.load")


class _UnitTests(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatEnvScaler

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return "another-model"

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return {"ENVSCALER_API_KEY": "key"}, self.chat_model_params, {"api_key": "key"}


class TestTransformersUnit(_UnitTests):
    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "a-model", "backend": "transformers"}


class TestVLLMUnit(_UnitTests):
    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "a-model", "backend": "vllm"}


class TestOpenAIUnit(_UnitTests):
    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "a-model", "backend": "openai"}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENVSCALER_API_KEY", raising=False)


@pytest.fixture(autouse=True)
def _listed_by_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the class on LangChain's list of partner classes, which `load(allowed_objects="all")` goes by.

    Only its maintainers extend that list; users name the class: `load(..., allowed_objects=[ChatEnvScaler])`.
    """
    path = tuple(ChatEnvScaler.lc_id())
    monkeypatch.setitem(load_module.ALL_SERIALIZABLE_MAPPINGS, path, path)
    monkeypatch.setattr(load_module, "_default_class_paths_cache", {})
