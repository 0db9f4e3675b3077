"""A Qwen3's tokenizer: prompts to ids without mistaking text for control tokens, ids to text as they come."""

import codecs
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langchain_envscaler.chat.prompt import Segment
from langchain_envscaler.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

__all__ = ["Detokenizer", "Piece", "QwenTokenizer", "pieces_ids"]

Piece: TypeAlias = tuple[Segment, tuple[int, ...]]
"""A segment with the ids that stand for it: in a prompt its encoding, in an output what the model wrote."""


def pieces_ids(pieces: Iterable[Piece]) -> list[int]:
    """All ids of some pieces."""
    return [token for _, ids in pieces for token in ids]


class QwenTokenizer:
    """A byte-level tokenizer of transformers, with Qwen3's control tokens.

    Args:
        tokenizer: A fast tokenizer of transformers.

    Raises:
        DataError: It is not of Qwen3's kind.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self.hf = tokenizer
        self._fast = cast(Any, getattr(tokenizer, "backend_tokenizer", None))
        added = self._fast.get_added_tokens_decoder() if hasattr(tokenizer, "backend_tokenizer") else {}
        self._added = {token.content: number for number, token in added.items()}
        self._control_texts = {number: token.content for number, token in added.items()}
        missing = [text for text in ("<|im_start|>", "<|im_end|>") if text not in self._added]
        if missing or not self._is_byte_level():
            raise DataError(
                f"expected a tokenizer of Qwen3's kind (byte-level, with <|im_start|> and <|im_end|>), got "
                f"{type(tokenizer).__name__}; give a Qwen3 as model"
            )
        self._special = {number for number, token in added.items() if token.special}
        self.size: int = self._fast.get_vocab_size(with_added_tokens=True)
        """How many ids stand for anything; a model's logits may have more places."""
        self.end_ids = tuple(
            self._added[text] for text in ("<|im_end|>", "<|endoftext|>") if text in self._added
        )
        self.think_ids = (self._added.get("<think>"), self._added.get("</think>"))
        self._bytes: dict[int, bytes] = {}

    def encode(self, segments: Iterable[Segment]) -> list[Piece]:
        """Each segment's ids: a control segment is one token, and in text no control token is seen."""
        return [(segment, self._segment_ids(segment)) for segment in segments]

    def encode_text(self, text: str) -> tuple[int, ...]:
        """A text's ids, no control token among them."""
        spells_control = any(control in text for control in self._added)
        encoder = self._text_only if spells_control else self._fast
        return tuple(encoder.encode(text, add_special_tokens=False).ids)

    def token_bytes(self, token: int) -> bytes:
        """What a token stands for; special control tokens, and ids beyond the vocabulary, for nothing."""
        known = self._bytes.get(token)
        if known is None:
            known = self._bytes[token] = self._spell(token)
        return known

    def token_text(self, token: int) -> str:
        """A token's text to show, U+FFFD where it is a part of a character."""
        return self._control_texts.get(token) or self.token_bytes(token).decode("utf-8", "replace")

    def output_pieces(self, ids: Sequence[int]) -> list[Piece]:
        """An output's tokens as pieces: in a later prompt their text is known to stand for these ids."""
        pieces: list[Piece] = []
        run: list[int] = []
        for token in ids:
            if token in self._control_texts:
                self._end_run(run, pieces)
                pieces.append((Segment(self._control_texts[token], is_control=True), (token,)))
            else:
                run.append(token)
        self._end_run(run, pieces)
        return pieces

    def _end_run(self, run: list[int], pieces: list[Piece]) -> None:
        if run:
            text = b"".join(map(self.token_bytes, run)).decode("utf-8", "ignore")
            pieces.append((Segment(text), tuple(run)))
            run.clear()

    def _segment_ids(self, segment: Segment) -> tuple[int, ...]:
        if segment.is_control and segment.text in self._added:
            return (self._added[segment.text],)
        return self.encode_text(segment.text)

    def _spell(self, token: int) -> bytes:
        if token in self._control_texts:
            return b"" if token in self._special else self._control_texts[token].encode()
        symbols = self._fast.id_to_token(token)
        return b"" if symbols is None else bytes(_BYTE_OF[symbol] for symbol in symbols)

    def _is_byte_level(self) -> bool:
        decoder: Any = self._fast.decoder
        return decoder is not None and type(decoder).__name__ == "ByteLevel"

    @cached_property
    def _text_only(self) -> "Tokenizer":
        """The tokenizer without its added tokens: what spells one is encoded as any other text."""
        from tokenizers import Tokenizer

        form = json.loads(self._fast.to_str())
        form["added_tokens"] = []
        return Tokenizer.from_str(json.dumps(form))


class Detokenizer:
    """The text of tokens as they come: whole characters only, and bytes that form none are left out."""

    def __init__(self, tokenizer: QwenTokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")

    def feed(self, token: int) -> str:
        """The text that a token completes."""
        return self._decoder.decode(self._tokenizer.token_bytes(token))


def _byte_symbols() -> dict[str, int]:
    """The characters with which byte-level tokenizers write bytes; printable ones stand for themselves."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {chr(byte): byte for byte in printable}
    return symbols | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTE_OF = _byte_symbols()
