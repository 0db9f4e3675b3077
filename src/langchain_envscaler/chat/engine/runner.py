"""A loaded model, ready to work: one forward pass over a batch of sequences, and the loop around it."""

import inspect
from typing import TYPE_CHECKING

import torch

from langchain_envscaler.chat.engine.key_values import KeyValues
from langchain_envscaler.chat.engine.prefixes import PrefixStore
from langchain_envscaler.chat.engine.scheduler import Scheduler
from langchain_envscaler.chat.engine.tokens import QwenTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Runner"]

_PREFIX_SHARE = 0.25
_ROWS_ON_CPU = 16
_ROWS_ON_ACCELERATOR = 64


class Runner:
    """A model and the scheduler that runs it.

    Args:
        model: A Qwen3 of transformers, in evaluation mode.
        tokenizer: Its tokenizer.
        context_size: Tokens that prompt and output may have together.
        max_rows: How many outputs share a forward pass at most; None: what suits the device.
        prefix_bytes: The memory for what is remembered between requests; None: a quarter of what is free now.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: QwenTokenizer,
        *,
        context_size: int,
        max_rows: int | None = None,
        prefix_bytes: int | None = None,
    ) -> None:
        self._model = model
        self._cache_argument = _cache_argument(model)
        self._vocabulary = tokenizer.size
        self._device = model.device
        if max_rows is None:
            max_rows = _ROWS_ON_CPU if self._device.type == "cpu" else _ROWS_ON_ACCELERATOR
        if prefix_bytes is None:
            prefix_bytes = int(_free_bytes(self._device) * _PREFIX_SHARE)
        self.prefixes = PrefixStore(prefix_bytes)
        self.scheduler = Scheduler(
            self.forward, tokenizer, context_size=context_size, prefixes=self.prefixes, max_rows=max_rows
        )

    def forward(self, ids: list[list[int]], key_values: KeyValues) -> torch.Tensor:
        """One forward pass.

        Args:
            ids: Each row's new tokens; one each where there are several rows.
            key_values: The rows' cache; it holds the new tokens afterwards.

        Returns:
            The logits after each row's last token, `[rows, vocabulary]`, in float32.
        """
        count = len(ids[0])
        lengths = torch.tensor(key_values.lengths, device=self._device)
        key_values.begin_pass(lengths, count)
        output = self._model(
            input_ids=torch.tensor(ids, device=self._device),
            attention_mask={"full_attention": _mask(key_values.lengths, lengths, count)},
            position_ids=lengths[:, None] + torch.arange(count, device=self._device),
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: key_values},
        )
        key_values.end_pass(count)
        # Places beyond the tokenizer's vocabulary stand for nothing and are never drawn.
        logits: torch.Tensor = output.logits[:, -1, : self._vocabulary]
        return logits.float()


def _cache_argument(model: "PreTrainedModel") -> str:
    """What the model's forward pass calls its attention cache; transformers renames it in 5.24."""
    plain = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "cache" if "cache" in inspect.signature(plain.forward).parameters else "past_key_values"


def _mask(lengths: list[int], positions: torch.Tensor, count: int) -> torch.Tensor | None:
    """Which columns each new token sees: its row's, up to its own; None where attention sees just these."""
    longest = max(lengths)
    if count == 1 and min(lengths) == longest:
        return None
    if count > 1 and longest == 0:
        return None
    columns = torch.arange(longest + count, device=positions.device)
    own = positions[:, None, None, None] + torch.arange(count, device=positions.device)[None, None, :, None]
    return columns[None, None, None, :] <= own


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    import psutil

    return int(psutil.virtual_memory().available)
