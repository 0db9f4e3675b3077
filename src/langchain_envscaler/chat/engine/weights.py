"""Loads a Qwen3: once for all chat models that use the same weights, and with a word on what is missing."""

import logging
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_envscaler.chat.backends.choice import BackendSettings
from langchain_envscaler.chat.engine.tokens import QwenTokenizer
from langchain_envscaler.errors import DataError, InfrastructureError, NotFoundError, UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from langchain_envscaler.chat.engine.runner import Runner
    from langchain_envscaler.chat.engine.text import ModelText

__all__ = ["context_size_of", "load_model", "load_runner", "load_tokenizer", "model_folder"]

logger = logging.getLogger(__name__)

_FILES = ["*.json", "*.safetensors", "*.txt", "*.jinja", "*.model"]
_TOKENIZER_FILES = ["*.json", "*.txt", "*.jinja", "*.model"]


def model_folder(settings: BackendSettings, *, weights: bool) -> Path:
    """The folder with a model's files, fetched from the Hub where the model is not a folder.

    Raises:
        NotFoundError: There is no such folder and no such model, or it cannot be reached.
    """
    folder = Path(settings.model).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = _FILES if weights else _TOKENIZER_FILES
    try:
        return Path(snapshot_download(settings.model, revision=settings.revision, allow_patterns=patterns))
    except HFValidationError as error:
        reason = "there is no such folder, and it is no name of the Hugging Face Hub"
        raise _no_model(settings, reason) from error
    except LocalEntryNotFoundError as error:
        reason = "it was never downloaded, and the Hugging Face Hub cannot be reached"
        raise _no_model(settings, reason) from error
    except (HfHubHTTPError, OSError) as error:
        raise _no_model(settings, f"{type(error).__name__}: {_first_line(error)}") from error


def load_tokenizer(folder: Path) -> QwenTokenizer:
    """A model's tokenizer.

    Raises:
        DataError: The folder holds none, or one of another kind.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"expected a tokenizer in {folder}, got none: {_first_line(error)}") from error
    return QwenTokenizer(tokenizer)


def context_size_of(folder: Path, settings: BackendSettings) -> int:
    """Tokens that prompt and output may have together: what was set, else what the configuration says."""
    from transformers import AutoConfig

    if settings.context_size is not None:
        return settings.context_size
    try:
        return int(AutoConfig.from_pretrained(folder).max_position_embeddings)
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(
            f"expected a model's config.json in {folder}, got none that can be read: {_first_line(error)}"
        ) from error


def load_runner(settings: BackendSettings, text: "ModelText") -> "Runner":
    """The model with its weights, ready to work; errors as for :func:`load_model`."""
    from langchain_envscaler.chat.engine.runner import Runner

    model = load_model(model_folder(settings, weights=True), settings)
    return Runner(model, text.tokenizer, context_size=text.context_size, max_rows=settings.max_batch_size)


def load_model(folder: Path, settings: BackendSettings) -> "PreTrainedModel":
    """The weights, on their device.

    Raises:
        NotFoundError: The folder holds no weights, or the adapter is missing.
        DataError: They are not of Qwen3's kind.
        InfrastructureError: Memory is too short.
        UsageError: The adapter or the quantization needs a package that is not installed.
    """
    import torch
    from transformers import AutoModelForCausalLM

    place = _placement(folder, settings)
    logger.info("loading %s as %s on %s", settings.model, place.dtype, place.device)
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, **place.options(settings))
        if settings.adapter:
            model = _with_adapter(model, settings)
        if not place.is_spread:
            model = model.to(place.device)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise _short_memory(settings, _first_line(error)) from error
    except ImportError as error:
        raise UsageError(
            f"{settings.model} needs a package that is not installed: {_first_line(error)}"
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise NotFoundError(
            f"expected a Qwen3's weights in {folder} (config.json and *.safetensors): {_first_line(error)}"
        ) from error
    _check_kind(model, settings)
    return model.eval().requires_grad_(False)


@dataclass(frozen=True)
class _Placement:
    """Where weights go and as what."""

    device: str
    dtype: "torch.dtype"
    is_spread: bool
    """Whether the loader places them itself: over several devices, or quantized."""

    def options(self, settings: BackendSettings) -> dict[str, Any]:
        options = {"dtype": self.dtype, "attn_implementation": "sdpa", **settings.model_kwargs}
        if self.is_spread and "device_map" not in options:
            options["device_map"] = self.device
        return options


def _placement(folder: Path, settings: BackendSettings) -> _Placement:
    import torch

    device = settings.device or _best_device()
    is_spread = "device_map" in settings.model_kwargs or "quantization_config" in settings.model_kwargs
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    if settings.dtype:
        dtype = getattr(torch, settings.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise UsageError(f"dtype: expected float32, bfloat16 or float16, got {settings.dtype!r}")
    else:
        dtype = _best_dtype(device, size)
    if device == "cpu" and not is_spread:
        _check_memory(settings, size // 2 * dtype.itemsize)
    return _Placement(device, dtype, is_spread)


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _best_dtype(device: str, size: int) -> "torch.dtype":
    """Half precision where it is fast; on a CPU only where single precision would not fit."""
    import psutil
    import torch

    if device != "cpu":
        return torch.float16 if device == "mps" else torch.bfloat16
    return torch.float32 if size * 2 < psutil.virtual_memory().available else torch.bfloat16


def _check_memory(settings: BackendSettings, needed: int) -> None:
    import psutil

    available = psutil.virtual_memory().available
    if needed > available:
        raise _short_memory(
            settings, f"about {needed / 1e9:.1f} GB are needed, {available / 1e9:.1f} GB are free"
        )


def _with_adapter(model: "PreTrainedModel", settings: BackendSettings) -> Any:
    if find_spec("peft") is None:
        raise UsageError("a LoRA adapter needs the package peft, which is not installed; pip install peft")
    from peft import PeftModel

    adapted = PeftModel.from_pretrained(model, settings.adapter)
    # Merged it costs nothing; quantized weights cannot take it in.
    is_quantized = getattr(model, "is_quantized", False)
    return adapted if is_quantized else adapted.merge_and_unload()


def _check_kind(model: "PreTrainedModel", settings: BackendSettings) -> None:
    kinds = set(getattr(model.config, "layer_types", None) or ["full_attention"])
    if not str(model.config.model_type).startswith("qwen3") or kinds != {"full_attention"}:
        raise DataError(
            f"expected a Qwen3 whose layers all have full attention, got {settings.model} of type "
            f"{model.config.model_type!r} ({', '.join(sorted(kinds))}); use a server for other models"
        )


def _no_model(settings: BackendSettings, reason: str) -> NotFoundError:
    return NotFoundError(
        "expected a folder with a Qwen3's weights or a model of the Hugging Face Hub, got "
        f"{settings.model!r}: {reason}; check the name, the network and HF_TOKEN, or give a server's base_url"
    )


def _short_memory(settings: BackendSettings, detail: str) -> InfrastructureError:
    return InfrastructureError(
        f"memory is too short to load {settings.model} ({detail}); take a smaller model, quantized weights "
        "(model_kwargs), or a server (base_url)"
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]
