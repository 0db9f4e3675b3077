"""The keys and values of several sequences, a row each, in buffers that grow.

A row begins at column 0 and has a length of its own, so a sequence joins or leaves a running batch without
moving the others; what lies beyond a row's length is masked. A single row is handed over without a copy.
"""

from typing import Self

import torch

__all__ = ["KeyValues"]

_STEP = 256


class KeyValues:
    """The attention cache of some rows, for a forward pass over all of them."""

    def __init__(self) -> None:
        self._layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.lengths: list[int] = []
        """How many tokens each row holds."""
        self._capacity = 0
        self._pass_length = 0
        self._positions: torch.Tensor | None = None

    @classmethod
    def empty_row(cls) -> Self:
        """One row without tokens."""
        row = cls()
        row.lengths = [0]
        return row

    @property
    def num_bytes(self) -> int:
        """The memory that the buffers take."""
        return sum(keys.nbytes + values.nbytes for keys, values in self._layers)

    def begin_pass(self, positions: torch.Tensor, count: int = 1) -> None:
        """Announces a forward pass that adds `count` tokens to each row; several only where there is one row.

        Args:
            positions: Each row's length, on the model's device.
        """
        self._positions = positions
        self._pass_length = max(self.lengths) + count
        self._reserve(len(self.lengths), self._pass_length)

    def end_pass(self, count: int = 1) -> None:
        """Counts the tokens that a forward pass added."""
        self.lengths = [length + count for length in self.lengths]

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: object, **__: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Stores a layer's new keys and values; returns all of them, as attention in transformers expects."""
        if layer == len(self._layers):
            self._layers.append(self._allocate(keys, values))
        stored = self._layers[layer]
        rows, count = keys.shape[0], keys.shape[2]
        if rows == 1:
            begin = self.lengths[0]
            stored[0][:1, :, begin : begin + count] = keys
            stored[1][:1, :, begin : begin + count] = values
        else:
            row_index = torch.arange(rows, device=keys.device)
            columns = self._positions.to(keys.device) if self._positions is not None else row_index
            stored[0][row_index, :, columns] = keys[:, :, 0]
            stored[1][row_index, :, columns] = values[:, :, 0]
        return stored[0][:rows, :, : self._pass_length], stored[1][:rows, :, : self._pass_length]

    def get_seq_length(self, layer: int = 0) -> int:
        """The longest row; transformers asks for it."""
        return max(self.lengths, default=0)

    def join(self, row: "KeyValues") -> None:
        """Adds a sequence of its own as the last row."""
        if not self.lengths:
            self._layers, self._capacity, self.lengths = row._layers, row._capacity, row.lengths
            return
        place, length = len(self.lengths), row.lengths[0]
        self._reserve(place + 1, length)
        for stored, added in zip(self._layers, row._layers, strict=True):
            for target, source in zip(stored, added, strict=True):
                target[place, :, :length] = source[0, :, :length]
        self.lengths.append(length)

    def leave(self, place: int) -> "KeyValues":
        """Takes a row out, as a sequence of its own; the last row moves into its place."""
        row = KeyValues()
        if len(self.lengths) == 1:
            row._layers, row._capacity, row.lengths = self._layers, self._capacity, self.lengths
            self._layers, self._capacity, self.lengths = [], 0, []
            return row
        row = self.copy_prefix(place, self.lengths[place])
        last = len(self.lengths) - 1
        if place != last:
            length = self.lengths[last]
            for keys, values in self._layers:
                keys[place, :, :length] = keys[last, :, :length]
                values[place, :, :length] = values[last, :, :length]
            self.lengths[place] = length
        self.lengths.pop()
        return row

    def copy_prefix(self, place: int, length: int) -> "KeyValues":
        """A copy of the beginning of a row, as a sequence of its own."""
        row = KeyValues()
        row.lengths = [length]
        row._layers = [
            (keys[place : place + 1, :, :length].clone(), values[place : place + 1, :, :length].clone())
            for keys, values in self._layers
        ]
        row._capacity = length
        return row

    def crop(self, length: int) -> None:
        """Forgets what lies beyond `length` in the only row."""
        self.lengths = [length]

    def _reserve(self, rows: int, length: int) -> None:
        if not self._layers:
            self._capacity = max(self._capacity, _rounded(length))
            return
        buffer = self._layers[0][0]
        if rows <= buffer.shape[0] and length <= self._capacity:
            return
        if length > self._capacity:
            self._capacity = max(_rounded(length), _rounded(self._capacity * 5 // 4))
        if rows > buffer.shape[0]:
            rows = max(rows, buffer.shape[0] * 2)
        self._layers = [(self._grown(keys, rows), self._grown(values, rows)) for keys, values in self._layers]

    def _grown(self, buffer: torch.Tensor, rows: int) -> torch.Tensor:
        used_rows, used = len(self.lengths), max(self.lengths)
        rows = max(rows, used_rows)
        grown = buffer.new_zeros((rows, buffer.shape[1], self._capacity, buffer.shape[3]))
        grown[:used_rows, :, :used] = buffer[:used_rows, :, :used]
        return grown

    def _allocate(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # Zeros: a masked column still takes part in the product, where anything not finite would spread.
        shapes = [(*buffer.shape[:2], self._capacity, buffer.shape[3]) for buffer in (keys, values)]
        return keys.new_zeros(shapes[0]), values.new_zeros(shapes[1])


def _rounded(length: int) -> int:
    return -(-length // _STEP) * _STEP
