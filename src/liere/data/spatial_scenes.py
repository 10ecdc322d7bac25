"""The spatial reasoning task of the paper: which way does the arrow at the base of the Y point?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from liere.data.counter_random import combine, random_below, random_bits
from liere.data.examples import Batch, ExampleSet
from liere.data.facts import DataFacts
from liere.data.glyphs import CELL, DIRECTIONS, SYMBOLS, draw_symbols
from liere.errors import InputError, suggest, whole_number
from liere.shapes import Int, UInt8

__all__ = ["SpatialReasoning"]

LENGTHS = {"train": 800_000, "val": 10_000, "test": 10_000}
# The sixteenths of all grids that belong to each split. A grid is in one split only, whatever the seed.
SHARES = {"train": range(12), "val": range(12, 14), "test": range(14, 16)}
VARIANTS = 16  # all of them miss an eighth of the grids with probability 0.12; then another grid is drawn
ATTEMPTS = 2_000  # all of them miss it, even without arrows to turn, with probability 1e-116
ARROWS_PER_DRAW = 31
INKS = {
    "black": [(0, 0, 0)],
    "random": [(200, 30, 45), (20, 120, 60), (30, 80, 200), (190, 110, 0), (120, 50, 160), (0, 0, 0)],
}
PAPER = 255
ARROW, Y, LETTER = SYMBOLS.index("↑"), SYMBOLS.index("Y↑"), SYMBOLS.index("A")
NUM_LETTERS = len(SYMBOLS) - LETTER
STEPS = torch.tensor([[-1, 0], [0, 1], [1, 0], [0, -1]])  # (row, column) of DIRECTIONS


class SpatialReasoning(ExampleSet):
    """Grids of arrows and letters, generated on demand.

    A grid contains a Y whose base points at an arrow, the target, and other arrows and letters as distractors. The
    label is the direction of the target: 0 up, 1 right, 2 down, 3 left. Counting arrows alone gives 44 %.

    Sample `i` depends only on `(seed, split, i)` and the options. The contents of a grid decide which split it belongs
    to, so splits have no grids in common, whatever their seeds.

    Args:
        size: Side of the image in pixels, a multiple of 12 (the side of a cell); 108 gives 9 x 9 cells.
        split: `"train"`, `"val"` or `"test"`.
        seed: Seed of the data set.
        length: Number of samples; by default 800,000 for `"train"` and 10,000 for the others.
        distance: Cells from the Y to the target: a number, or the minimum and maximum of a range. The cells between the
            two are empty.
        distractor_arrows: Number of arrows in addition to the target.
        distractor_letters: Number of letters, A to E in turn, in addition to the Y.
        colors: `"black"` or `"random"`; the color of a symbol is independent of the label.
        dtype: `torch.float32`, in [0, 1], or `torch.uint8`, in [0, 255].

    Raises:
        TypeError: If an argument that must be a number is not one.
        ValueError: If the size is not a multiple of 12, symbols do not fit, or a split or color is unknown.

    Example:
        >>> data = SpatialReasoning(108, split="test")
        >>> image, label = data[0]
        >>> image.shape, data.classes[label]
        (torch.Size([3, 108, 108]), 'right')
        >>> images, labels = data.batch(range(64))
        >>> images.shape, images.dtype
        (torch.Size([64, 3, 108, 108]), torch.uint8)
    """

    classes = DIRECTIONS

    def __init__(
        self,
        size: int = 108,
        split: str = "train",
        seed: int = 0,
        length: int | None = None,
        *,
        distance: int | tuple[int, int] = 1,
        distractor_arrows: int = 7,
        distractor_letters: int = 5,
        colors: str = "black",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        size = whole_number("size", size)
        if size < CELL or size % CELL:
            near = max(round(size / CELL), 4) * CELL
            raise InputError(f"size must be a multiple of {CELL} px, the side of a cell, got {size}: use {near}")
        if split not in LENGTHS:
            raise InputError(f"unknown split {split!r}: {suggest(str(split), LENGTHS)}")
        if colors not in INKS:
            raise InputError(f"unknown colors {colors!r}: {suggest(str(colors), INKS)}")
        if dtype not in (torch.float32, torch.uint8):
            raise InputError(f"dtype must be torch.float32 or torch.uint8, got {dtype}")
        self.size, self.split, self.colors, self.dtype = size, split, colors, dtype
        self.seed = whole_number("seed", seed)
        if not -(2**63) <= self.seed < 2**63:
            raise InputError(f"seed must fit into 64 bits, got {seed}: use a smaller one")
        self.length = LENGTHS[split] if length is None else whole_number("length", length)
        self.cells_per_side = size // CELL
        self.distance = _range("distance", distance)
        self.distractor_arrows = whole_number("distractor_arrows", distractor_arrows)
        self.distractor_letters = whole_number("distractor_letters", distractor_letters)
        self._check()
        seed_and_split = torch.tensor([self.seed, list(LENGTHS).index(split)])
        self._stream = combine(torch.tensor(0), *seed_and_split)
        # One random number per cell and symbol: their sum determines the split of a grid.
        kinds = torch.arange(self.cells_per_side**2 * len(SYMBOLS))
        self._content_bits = combine(torch.tensor(-1), kinds).view(self.cells_per_side**2, len(SYMBOLS))
        self._content_bits[:, 0] = 0  # an empty cell does not count

    def _check(self) -> None:
        for name in ("length", "distractor_arrows", "distractor_letters"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}")
        side = self.cells_per_side
        nearest, farthest = self.distance
        if not 1 <= nearest <= farthest < side:
            raise InputError(
                f"distance must be between 1 and {side - 1} cells in a grid of {side} x {side}, got "
                f"{nearest if nearest == farthest else self.distance}: choose a smaller distance or a larger size"
            )
        needed = 1 + farthest + self.distractor_arrows + self.distractor_letters
        if needed > side**2:
            raise InputError(
                f"size {self.size} has {side} x {side} cells, too few for {self.distractor_arrows} distractor_arrows, "
                f"{self.distractor_letters} distractor_letters, the Y and its target: "
                "choose a larger size or fewer distractors"
            )

    @property
    def facts(self) -> DataFacts:
        """Properties that a model needs; mean and deviation are approximate, because images are mostly white."""
        return DataFacts(self.classes, 3, (self.size, self.size), (0.9,) * 3, (0.3,) * 3)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, int]]:
        """Return several samples, as `DataLoader` requests them; images are views of one tensor."""
        images, labels = self.batch(indices)
        if self.dtype == torch.float32:
            images = images.float().div_(255)
        return list(zip(images.unbind(), labels.tolist(), strict=True))

    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch; random bits are ignored, because there is no augmentation."""
        return Batch(torch.tensor(indices, dtype=torch.long), *self.batch(indices))

    def batch(self, indices: Iterable[int] | Tensor) -> tuple[UInt8[Tensor, "batch 3 size size"], Int[Tensor, "batch"]]:
        """Return uint8 images and labels as tensors, without the overhead of single samples."""
        places, symbols, streams = self._place(indices)
        return self._draw(places, symbols, streams), symbols[:, 1] - ARROW

    def cells(self, index: int) -> list[list[str]]:
        """Return the contents of a sample's cells, row by row, as entries of `liere.data.glyphs.SYMBOLS`.

        Example:
            >>> for row in SpatialReasoning(48, distractor_arrows=2, distractor_letters=1).cells(0):
            ...     print(" ".join(symbol.rjust(2, ".") for symbol in row))
            .. .. Y↓ .→
            .↑ .. .↑ ..
            .. .. .. ..
            .. .. .A ..
        """
        return [[SYMBOLS[code] for code in row] for row in self.codes([index])[0].tolist()]

    def codes(self, indices: Iterable[int] | Tensor) -> Int[Tensor, "batch side side"]:
        """Return the cells of several samples as indices into `SYMBOLS`."""
        places, symbols, _ = self._place(indices)
        side = self.cells_per_side
        return torch.zeros(len(places), side**2, dtype=torch.long).scatter_(1, places, symbols).view(-1, side, side)

    def _place(self, indices: Iterable[int] | Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the positions and codes of the symbols, `[batch, symbols]`, the Y and the target first.

        Each sample is the first grid in its stream that belongs to the split. The third result is the state of the
        stream at that grid, `[batch]`.
        """
        numbers = self._check_indices(indices)
        pending = torch.arange(len(numbers))
        chosen: list[tuple[Tensor, ...]] = []
        for attempt in range(ATTEMPTS):
            streams = combine(self._stream.expand(len(pending)), numbers[pending], torch.tensor(attempt))
            places, symbols, fits = self._propose(streams)
            chosen.append((pending[fits], places[fits], symbols[fits], streams[fits]))
            pending = pending[~fits]
            if not len(pending):
                break
        else:
            raise InputError(
                f"a grid of size {self.size} with so few symbols has no example in split {self.split!r}: "
                "choose a larger size or more distractors"
            )
        order, places, symbols, streams = map(torch.cat, zip(*chosen, strict=True))
        order = order.argsort()
        return places[order], symbols[order], streams[order]

    def _check_indices(self, indices: Iterable[int] | Tensor) -> Tensor:
        listed = indices.tolist() if isinstance(indices, Tensor) else indices
        given = [whole_number("index", index) for index in listed]
        for index in given:
            if not -self.length <= index < self.length:
                raise IndexError(f"index {index} is out of range for {self.length} samples")
        return torch.tensor([index % self.length for index in given], dtype=torch.long)

    def _propose(self, streams: Int[Tensor, "batch"]) -> tuple[Tensor, Tensor, Tensor]:
        """Return a random grid for each stream, and whether it belongs to the split.

        Only the directions of the distractors are drawn several times, which is enough for most grids.
        """
        side, arrows = self.cells_per_side, self.distractor_arrows
        draws = random_bits(streams, 5 + side**2)
        heading = random_below(draws[:, 0], 4)
        nearest, farthest = self.distance
        distance = nearest + random_below(draws[:, 1], farthest - nearest + 1)
        # The target must be inside the grid, so the range of the Y is shorter along the ray.
        step = STEPS[heading]
        room = side - step.abs() * distance[:, None]
        y = random_below(draws[:, 2:4], room) + (-step).clamp(min=0) * distance[:, None]
        y, stride = (pair[:, :1] * side + pair[:, 1:] for pair in (y, step))
        target = y + stride * distance[:, None]
        # Distractors take the cells with the smallest random keys; the Y and its ray get the largest keys.
        keys = draws[:, 5:] >> 1
        for cell in range(farthest + 1):
            keys.scatter_(1, y + stride * distance[:, None].clamp(max=cell), torch.iinfo(torch.long).max)
        others = keys.topk(arrows + self.distractor_letters, largest=False).indices
        places = torch.cat([y, target, others], dim=1)
        letters = LETTER + torch.arange(self.distractor_letters) % NUM_LETTERS
        fixed = torch.cat(
            [Y + heading[:, None], ARROW + random_below(draws[:, 4:5], 4), letters.expand(len(y), -1)], dim=1
        )
        # Each direction takes two bits; one random number serves up to ARROWS_PER_DRAW arrows.
        draws_per_variant = -(-arrows // ARROWS_PER_DRAW)
        directions = random_bits(combine(streams, torch.tensor(1)), VARIANTS * draws_per_variant)
        directions = directions.view(len(y), VARIANTS, draws_per_variant, 1) >> (2 * torch.arange(ARROWS_PER_DRAW))
        variants = ARROW + (directions.flatten(2)[..., :arrows] & 3)
        fixed_places = torch.cat([places[:, :2], places[:, 2 + arrows :]], dim=1)
        content = self._content_bits[fixed_places, fixed].sum(1)[:, None]
        content = content + self._content_bits[others[:, None, :arrows], variants].sum(2)
        sixteenth = random_below(content, 16)
        fits = (sixteenth >= SHARES[self.split].start) & (sixteenth < SHARES[self.split].stop)
        chosen = variants[torch.arange(len(y)), fits.int().argmax(1)]
        return places, torch.cat([fixed[:, :2], chosen, fixed[:, 2:]], dim=1), fits.any(1)

    def _draw(self, places: Tensor, symbols: Tensor, streams: Tensor) -> Tensor:
        batch, side = len(places), self.cells_per_side
        inks = torch.tensor(INKS[self.colors], dtype=torch.uint8)
        chosen = random_below(random_bits(combine(streams, torch.tensor(2)), places.shape[1]), len(inks))
        inks = inks[:, :1] if self.colors == "black" else inks  # one channel is drawn, then copied
        atlas = torch.where(draw_symbols()[:, None, None].bool(), inks[:, :, None, None], torch.tensor(PAPER).byte())
        canvas = torch.full((batch, inks.shape[1], self.size, self.size), PAPER, dtype=torch.uint8)
        # Four pixels are copied at a time, as one int32: `[batch, row, column, channel, y, x]`.
        fields = (
            canvas.view(torch.int32).view(batch, inks.shape[1], side, CELL, side, CELL // 4).permute(0, 2, 4, 1, 3, 5)
        )
        drawn = atlas.view(torch.int32)[symbols, chosen]
        fields[torch.arange(batch)[:, None], places // side, places % side] = drawn
        return canvas.expand(-1, 3, -1, -1).contiguous()


def _range(name: str, value: Any) -> tuple[int, int]:
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise InputError(f"{name} must be a number or a pair (minimum, maximum), got {value!r}")
        return whole_number(name, value[0]), whole_number(name, value[1])
    return whole_number(name, value), whole_number(name, value)
