"""Two engines to test with: one that plays a script, and a real Qwen3.

The Qwen3 is small enough to make in seconds: random weights, the real vocabulary, the real template.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from langchain_envscaler.chat.backends.base import (
    Backend,
    FinishReason,
    GeneratedToken,
    GenerationChunk,
    GenerationRequest,
    Usage,
)
from langchain_envscaler.chat.prompt import CONTROL_TOKENS

FIRST_NOT_SPECIAL = CONTROL_TOKENS.index("<tool_call>")
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class Script(Backend):
    """Plays texts, one an output, in pieces; a piece counts as a token.

    Args:
        texts: What each output is, the last again and again; or what says so of a request.
        size: Characters of a piece.
        finish_reason: Why outputs end.
        error: Raised where a text ends, in place of a finish reason.
    """

    def __init__(
        self,
        texts: str | Sequence[str] | Callable[[GenerationRequest], str],
        *,
        size: int = 1,
        finish_reason: FinishReason = "stop",
        error: Exception | None = None,
    ) -> None:
        self._texts = [texts] if isinstance(texts, str) else texts
        self._size = size
        self._finish_reason = finish_reason
        self._error = error
        self.requests: list[GenerationRequest] = []
        self.played = 0
        """Pieces handed out."""
        self.endings = 0
        """Outputs that ended, or were left."""
        self.has_begun = threading.Event()
        self.has_ended = threading.Event()

    def stream(self, request: GenerationRequest) -> Iterator[GenerationChunk]:
        text = self._text(request)
        self.requests.append(request)
        try:
            for count, begin in enumerate(range(0, len(text), self._size), start=1):
                self.played += 1
                self.has_begun.set()
                piece = text[begin : begin + self._size]
                tokens = (GeneratedToken(count, piece, logprob=-0.5),) if request.return_tokens else ()
                yield GenerationChunk(piece, usage=Usage(10, count, 3), tokens=tokens)
            if self._error:
                raise self._error
            yield GenerationChunk(finish_reason=self._finish_reason)
        finally:
            self.endings += 1
            self.has_ended.set()

    def _text(self, request: GenerationRequest) -> str:
        if callable(self._texts):
            return self._texts(request)
        return self._texts[min(len(self.requests), len(self._texts) - 1)]


@pytest.fixture(scope="session")
def script() -> type[Script]:
    """An engine that plays texts: `script("text", size=1, finish_reason="stop", error=None)`."""
    return Script


def _file_in(package: str, path: str) -> Path:
    """A file of an installed package, which is not imported: what it needs itself is not installed."""
    try:
        return Path(str(metadata.distribution(package).locate_file(f"{package}/{path}")))
    except metadata.PackageNotFoundError:
        pytest.skip(
            f"skipped: {package} is not installed, whose files these tests read (make test-transformers)"
        )


@pytest.fixture(scope="session")
def qwen3_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a model of the Hub has it."""
    for module in ("torch", "transformers", "tiktoken"):
        pytest.importorskip(module, reason=f"skipped: {module} is not installed (make test-transformers)")
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder = tmp_path_factory.mktemp("qwen3")
    _tokenizer().save_pretrained(folder)
    # Several threads on operations this small cost more than they save, above all on a busy machine.
    torch.set_num_threads(1)
    torch.manual_seed(7)
    config = Qwen3Config(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        vocab_size=151_936,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        initializer_range=0.5,  # some tokens are likelier than others, as a trained model has it
        bos_token_id=151_643,
        eos_token_id=151_645,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder


def _tokenizer() -> Any:
    from tokenizers import AddedToken, normalizers
    from transformers import Qwen2Tokenizer
    from transformers.convert_slow_tokenizer import TikTokenConverter

    ranks = _file_in("dashscope", "resources/qwen.tiktoken")
    fast = TikTokenConverter(vocab_file=str(ranks), pattern=WORDS).converted()
    fast.normalizer = normalizers.NFC()
    fast.add_tokens(
        [
            AddedToken(text, special=place < FIRST_NOT_SPECIAL, normalized=False)
            for place, text in enumerate(CONTROL_TOKENS)
        ]
    )
    tokenizer = Qwen2Tokenizer(
        tokenizer_object=fast,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token=None,
        bos_token=None,
    )
    tokenizer.chat_template = _file_in("trl", "chat_templates/qwen3.jinja").read_text()
    return tokenizer


@pytest.fixture(scope="session")
def qwen3_text(qwen3_folder: Path) -> Any:
    """The model's tokenizer and what goes with it."""
    from langchain_envscaler.chat.backends.choice import BackendSettings
    from langchain_envscaler.chat.engine.text import ModelText

    return ModelText(BackendSettings(model=str(qwen3_folder)))


@pytest.fixture(scope="session")
def qwen3(qwen3_folder: Path) -> Callable[..., Any]:
    """Makes chat models of the small Qwen3 that share its weights, by their options; on the CPU."""
    from langchain_envscaler.chat.model import ChatEnvScaler

    def make(**options: Any) -> ChatEnvScaler:
        chosen = {"backend": "transformers", "device": "cpu", "max_tokens": 32, "seed": 1, **options}
        return ChatEnvScaler(model=str(qwen3_folder), **chosen)

    keeper = make()
    keeper.get_num_tokens("x")
    return make
