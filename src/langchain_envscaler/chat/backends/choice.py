"""Which engine answers: an instance that was given, or one made from the chat model's settings."""

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from pydantic import SecretStr

from langchain_envscaler.chat.backends.base import Backend, ChatBackend
from langchain_envscaler.errors import UsageError

__all__ = ["BackendName", "BackendSettings", "EngineSlot", "create_backend"]

BackendName: TypeAlias = Literal["auto", "transformers", "vllm", "openai"]


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """What the chat model knows about its engine; fields as in `ChatEnvScaler`."""

    model: str
    backend: BackendName = "auto"
    base_url: str | None = None
    api: Literal["chat", "completions"] = "chat"
    api_key: SecretStr | None = None
    default_headers: dict[str, str] | None = None
    timeout: float | None = None
    max_retries: int = 2
    revision: str | None = None
    adapter: str | None = None
    device: str | None = None
    dtype: str | None = None
    context_size: int | None = None
    max_batch_size: int | None = None
    model_kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """What two chat models must have in common to share weights."""
        path = Path(self.model).expanduser()
        model = str(path.resolve()) if path.is_dir() else self.model
        options = repr(sorted(self.model_kwargs.items()))
        limits = (self.context_size, self.max_batch_size)
        return model, self.revision, self.adapter, self.device, self.dtype, limits, options


class EngineSlot:
    """The engines of one chat model, each made when first needed; mostly there is one.

    Copies of a chat model share its slot, and each gets what its own settings ask for; a pickled slot comes
    back empty.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engines: list[tuple[BackendSettings, Backend | ChatBackend]] = []

    @property
    def is_used(self) -> bool:
        """Whether there is an engine yet."""
        return bool(self._engines)

    def engine(self, settings: BackendSettings) -> Backend | ChatBackend:
        """The engine of these settings."""
        with self._lock:
            for known, engine in self._engines:
                if known == settings:
                    return engine
            engine = create_backend(settings)
            self._engines.append((settings, engine))
            return engine

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


def create_backend(settings: BackendSettings) -> Backend | ChatBackend:
    """The engine that the settings name; with "auto" a server where there is one, else what is installed.

    Nothing is loaded or connected yet.

    Raises:
        UsageError: The engine needs an extra that is not installed, or settings that are missing.
    """
    name = _resolve(settings)
    if name == "openai":
        from langchain_envscaler.chat.backends.openai import create_openai_backend

        return create_openai_backend(settings)
    if name == "vllm":
        _require("vllm", extra="vllm")
        from langchain_envscaler.chat.backends.vllm import VLLMBackend

        return VLLMBackend(settings)
    _require("torch", "transformers", extra="transformers")
    from langchain_envscaler.chat.backends.transformers import TransformersBackend

    return TransformersBackend(settings)


def _resolve(settings: BackendSettings) -> BackendName:
    if settings.backend != "auto":
        if settings.backend == "openai" and not settings.base_url:
            raise UsageError(
                'backend "openai" needs the address of a server; give base_url="http://localhost:8000/v1"'
            )
        return settings.backend
    if settings.base_url:
        return "openai"
    if _is_installed("vllm"):
        return "vllm"
    if _is_installed("torch") and _is_installed("transformers"):
        return "transformers"
    raise UsageError(
        f"no engine is installed to run {settings.model} in process; "
        "pip install 'langchain-envscaler[transformers]' (or [vllm]), or give the base_url of a server"
    )


def _is_installed(module: str) -> bool:
    return find_spec(module) is not None


def _require(*modules: str, extra: str) -> None:
    missing = [module for module in modules if not _is_installed(module)]
    if missing:
        raise UsageError(
            f'backend "{extra}" needs {" and ".join(missing)}, which is not installed; '
            f"pip install 'langchain-envscaler[{extra}]'"
        )
