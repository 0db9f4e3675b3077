"""Draws the next token of each row of a batch."""

import random
from collections.abc import Sequence

import torch

from langchain_envscaler.chat.backends.base import Sampling

__all__ = ["RowSampler", "draw_tokens"]

# A trained model's nucleus is nearly always among so many tokens; where it is not, all of them are searched.
_CANDIDATES = 64
_HALVINGS = 16
# A mixer of 64-bit numbers (splitmix64); as signed numbers, as torch has them.
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_MIXERS = ((30, 0xBF58476D1CE4E5B9 - (1 << 64)), (27, 0x94D049BB133111EB - (1 << 64)), (31, 1))
_FORTY_BITS = (1 << 40) - 1


class RowSampler:
    """One row's way to draw: its options, its source of randomness, the tokens that its penalties look at."""

    def __init__(self, sampling: Sampling, prompt_ids: Sequence[int]) -> None:
        self.sampling = sampling
        self._random = random.Random(sampling.seed)
        self._prompt = set(prompt_ids) if sampling.repetition_penalty else set()
        self._written: set[int] = set()

    @property
    def options(self) -> tuple[float, float, int, float]:
        """What rows must have in common to be drawn together."""
        sampling = self.sampling
        return sampling.temperature, sampling.top_p, sampling.top_k or 0, sampling.min_p or 0.0

    def dice(self) -> int:
        """The chance in the next draw, as 63 bits."""
        return self._random.getrandbits(63)

    def note(self, token: int) -> None:
        """Counts a token of the output."""
        if self.sampling.presence_penalty or self.sampling.repetition_penalty:
            self._written.add(token)

    def apply_penalties(self, scores: torch.Tensor) -> None:
        """Lowers, in place, the scores of tokens that occurred."""
        if (penalty := self.sampling.repetition_penalty) and (seen := self._prompt | self._written):
            ids = torch.tensor(sorted(seen), device=scores.device)
            picked = scores[ids]
            scores[ids] = torch.where(picked < 0, picked * penalty, picked / penalty)
        if (penalty := self.sampling.presence_penalty) and self._written:
            scores[torch.tensor(sorted(self._written), device=scores.device)] -= penalty


def draw_tokens(scores: torch.Tensor, rows: Sequence[RowSampler]) -> list[int]:
    """The next token of each row.

    Args:
        scores: The logits, `[rows, vocabulary]`, in float32; changed in place.
        rows: How each row draws.
    """
    groups: dict[tuple[float, float, int, float], list[int]] = {}
    for place, row in enumerate(rows):
        row.apply_penalties(scores[place])
        groups.setdefault(row.options, []).append(place)
    if len(groups) == 1:
        return _draw_group(scores, rows)
    tokens = [0] * len(rows)
    for places in groups.values():
        drawn = _draw_group(scores[places], [rows[place] for place in places])
        for place, token in zip(places, drawn, strict=True):
            tokens[place] = token
    return tokens


def _draw_group(scores: torch.Tensor, rows: Sequence[RowSampler]) -> list[int]:
    temperature, top_p, top_k, min_p = rows[0].options
    if temperature == 0:
        return [int(token) for token in scores.argmax(dim=-1).tolist()]
    scores /= temperature
    share: float | torch.Tensor = top_p
    ids = None
    if 0 < top_k < scores.shape[-1]:
        scores, ids = scores.topk(top_k, dim=-1)
    elif top_p < 1:
        best, places = scores.topk(min(_CANDIDATES, scores.shape[-1]), dim=-1)
        covered = (best - scores.logsumexp(dim=-1, keepdim=True)).exp().sum(dim=-1)
        if bool((covered >= top_p).all()):
            # Beyond the nucleus nothing is drawn, so its share is taken of the whole, not of the candidates.
            scores, ids, share = best, places, top_p / covered
    weights = _nucleus(scores.softmax(dim=-1), share, min_p)
    if ids is None:
        ids = torch.arange(scores.shape[-1], device=scores.device).expand_as(scores)
    first = (weights / _waits(ids, [row.dice() for row in rows])).argmax(dim=-1, keepdim=True)
    return [int(token) for token in ids.gather(-1, first).squeeze(-1).tolist()]


def _nucleus(weights: torch.Tensor, share: float | torch.Tensor, min_p: float) -> torch.Tensor:
    """The probabilities, zero outside the smallest set of likeliest tokens that has a share of the mass, and
    for tokens below `min_p` of the likeliest one's."""
    best = weights.amax(dim=-1, keepdim=True)
    least = min_p * best
    if isinstance(share, float) and share >= 1:
        return weights.masked_fill(weights < least, 0)
    wanted = torch.as_tensor(share, device=weights.device, dtype=weights.dtype).reshape(-1, 1)
    # The threshold, the largest whose tokens still have the mass, is found by halving: sorting costs more.
    # All tokens below the first `low` together have less than what may be left out.
    low = ((1 - wanted).clamp_min(1e-7) / weights.shape[-1]).log().minimum(best.log())
    high = best.log()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        mass = weights.masked_fill(weights < middle.exp(), 0).sum(dim=-1, keepdim=True)
        has_mass = mass >= wanted
        low, high = torch.where(has_mass, middle, low), torch.where(has_mass, high, middle)
    return weights.masked_fill(weights < torch.maximum(low.exp(), least), 0)


def _waits(ids: torch.Tensor, dice: Sequence[int]) -> torch.Tensor:
    """Exponentially distributed waiting times, one for each token and die.

    Whose time divided by its probability is shortest is drawn: as likely as its probability says. Each time
    depends on the die and the token alone, so the small differences in scores that a batch's size makes
    hardly ever change what a seed draws, as they would by running sums.
    """
    bits = ids * _GOLDEN + torch.tensor(dice, device=ids.device)[:, None]
    for shift, factor in _MIXERS:
        bits = (bits ^ ((bits >> shift) & ((1 << 64 - shift) - 1))) * factor
    uniform = ((bits >> 24) & _FORTY_BITS).float().add_(0.5).mul_(2.0**-40)
    return uniform.neg_().log1p_().neg_()
