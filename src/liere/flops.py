"""The number of multiply-adds of a model, computed from its dimensions."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from liere.encodings import RotaryEncoding, TransformerShape, create_encoding
from liere.encodings.liere import LieRE
from liere.errors import check_amount, check_least, whole_number
from liere.generators import skew_at_positions
from liere.layers import grid_shape
from liere.positions import grid_positions
from liere.presets import ViTSize
from liere.rotations import exp_products
from liere.rotations.rays import find_rays
from liere.rotations.squarings import skew_norm

__all__ = ["PAPER", "FlopCount", "PaperFigure", "count_flops", "paper_figure"]


@dataclass(frozen=True)
class FlopCount:
    """Multiply-adds of one forward pass, per image. GELU, softmax and residuals are not counted, as in the paper."""

    patch_embedding: int
    projections: int
    """Projections to queries, keys, values and attention outputs."""
    attention: int
    """Scores and weighted sums."""
    mlp: int
    head: int
    norms: int
    """LayerNorm: five for each element."""
    paper_rotate: int
    """Rotation of queries and keys as the paper counts it: all tokens, learned rotations only."""
    rotate: int
    """Rotation of queries and keys of the tokens with a position."""
    exponential: float
    """Computing the rotations, once per batch, divided by the batch size."""

    @property
    def backbone(self) -> int:
        """Everything that does not depend on the encoding."""
        return self.patch_embedding + self.projections + self.attention + self.mlp + self.head + self.norms

    @property
    def paper(self) -> int:
        """The total as the paper counts it."""
        return self.backbone + self.paper_rotate

    @property
    def true(self) -> float:
        """The full cost."""
        return self.backbone + self.rotate + self.exponential

    def as_dict(self) -> dict[str, Any]:
        """Return parts and totals."""
        return asdict(self) | {"backbone": self.backbone, "paper": self.paper, "true": self.true}


def count_flops(
    size: ViTSize,
    encoding: str,
    *,
    image_size: tuple[int, ...],
    patch_size: tuple[int, ...],
    num_classes: int,
    in_channels: int = 3,
    num_prefix_tokens: int = 1,
    batch_size: int = 1,
    exp_norm: float | None = None,
    **encoding_options: Any,
) -> FlopCount:
    """Return the multiply-adds of a model at its training resolution.

    Args:
        size: Dimensions of the transformer.
        encoding: Name of the encoding.
        image_size: Input size on each axis.
        patch_size: Patch size on each axis.
        num_classes: Number of logits.
        in_channels: Channels of the input.
        num_prefix_tokens: Number of CLS and register tokens.
        batch_size: Number of images that share one computation of the rotations.
        exp_norm: Norm of the matrix to exponentiate at the far corner of the grid, which determines the number of
            squarings; by default the one expected at initialization.
        **encoding_options: Options of the encoding.

    Example:
        >>> from liere.presets import SIZES
        >>> cifar = {"image_size": (32, 32), "patch_size": (4, 4), "num_classes": 100}
        >>> f"{count_flops(SIZES['vit_base'], 'absolute', **cifar).paper / 1e9:.3f} G"
        '5.607 G'
    """
    check_least("batch_size", whole_number("batch_size", batch_size), 1)
    check_least("in_channels", whole_number("in_channels", in_channels), 1)
    check_least("num_classes", whole_number("num_classes", num_classes), 0)
    check_least("num_prefix_tokens", whole_number("num_prefix_tokens", num_prefix_tokens), 0)
    if exp_norm is not None:
        check_amount("exp_norm", exp_norm)
    shape = TransformerShape(grid_shape(image_size, patch_size), size.dim, size.heads, size.depth, num_prefix_tokens)
    with torch.random.fork_rng(devices=[]):  # leaves the caller's random state unchanged
        rope = create_encoding(encoding, shape, **encoding_options)
    rotations = _rotation_flops(rope, shape, exp_norm) if isinstance(rope, RotaryEncoding) else _RotationFlops(0, 0, 0)
    tokens, dim, depth = shape.num_tokens, size.dim, size.depth
    return FlopCount(
        patch_embedding=shape.num_patches * in_channels * math.prod(patch_size) * dim,
        projections=depth * tokens * 4 * dim**2,
        attention=depth * 2 * tokens**2 * dim,
        mlp=depth * 2 * tokens * dim * size.mlp_dim,
        head=dim * num_classes,
        norms=5 * dim * (2 * depth * tokens + 1),
        paper_rotate=rotations.paper_rotate,
        rotate=rotations.rotate,
        exponential=rotations.exponential / batch_size,
    )


class _RotationFlops(NamedTuple):
    """Multiply-adds of rotations: `paper_rotate` and `rotate` per image, `exponential` per batch."""

    paper_rotate: int
    rotate: int
    exponential: int


def _rotation_flops(rope: RotaryEncoding, shape: TransformerShape, exp_norm: float | None) -> _RotationFlops:
    b = rope.block_size
    blocks = shape.num_heads * rope.num_blocks * shape.depth
    distinct_heads = 1 if rope.share_heads else shape.num_heads
    distinct_layers = 1 if rope.share_layers else shape.depth
    distinct = distinct_layers * distinct_heads * rope.num_blocks
    products = _exp_products(rope, shape.grid, exp_norm)
    return _RotationFlops(
        # The paper counts products with learned matrices, but not VisionLLaMA's elementwise rotation.
        paper_rotate=2 * shape.num_tokens * blocks * b**2 if list(rope.parameters()) else 0,
        rotate=2 * shape.num_patches * blocks * b**2,
        exponential=distinct * (products * b**3 + shape.num_patches * shape.ndim * b**2),
    )


def _exp_products(rope: RotaryEncoding, grid: tuple[int, ...], exp_norm: float | None) -> int:
    """Return the number of matrix products for one block on a grid: one each along rays, elsewhere by the norm."""
    positions = grid_positions(grid)
    if rope.block_size <= 3:
        return len(positions) * exp_products(0.0, rope.block_size)
    norms = _expected_norms(rope, positions)
    if exp_norm is not None:
        norms = norms * (exp_norm / norms.max().clamp(min=1e-30))
    products = torch.tensor([exp_products(norm, rope.block_size) for norm in norms.tolist()])
    rays = find_rays(positions)
    if rays is None:
        return int(products.sum())
    roots = rays.for_levels(products - exp_products(0.0, rope.block_size)).roots
    return int(products[roots].sum()) + len(positions) - len(roots)


def _expected_norms(rope: RotaryEncoding, positions: Tensor) -> Tensor:
    """Return the norm by which `exp_skew` scales at each position; for LieRE, the RMS value at initialization."""
    if not isinstance(rope, LieRE):
        X = skew_at_positions(positions, rope.skew_generators(0).detach().float())
        return skew_norm(X).amax(dim=(0, 2))
    b = rope.block_size
    mean, variance = rope.init_scale / 2, rope.init_scale**2 / 12
    entry = positions.sum(-1).square() * mean**2 + positions.square().sum(-1) * variance
    return (b * (b - 1) / 2 * entry).sqrt()


@dataclass(frozen=True)
class PaperFigure:
    """A cell of the paper's FLOPs table: giga-multiply-adds, and percent increase over absolute positions."""

    giga: float
    increase: float | None = None

    def is_slip(self, giga: float, absolute_giga: float) -> bool:
        """Return whether the printed cell differs from the computed one by more than rounding."""
        if abs(self.giga - giga) > 0.0006:
            return True
        increase = 100 * (giga / absolute_giga - 1)
        rounding = 100 * 0.001 / absolute_giga  # the paper computed it from rounded numbers
        return self.increase is not None and abs(self.increase - increase) > rounding


# The FLOPs table of the paper: CIFAR-100 input (32 x 32, patch 4, 100 classes, CLS).
PAPER = {
    ("vit_tiny", "absolute"): PaperFigure(0.963),
    ("vit_base", "absolute"): PaperFigure(5.607),
    ("vit_large", "absolute"): PaperFigure(19.856),
    ("vit_tiny", "visionllama"): PaperFigure(0.963, 0.001),
    ("vit_base", "visionllama"): PaperFigure(5.607, 0.002),
    ("vit_large", "visionllama"): PaperFigure(19.856, 0.000),
    ("vit_tiny", "rope_mixed"): PaperFigure(0.964, 0.104),
    ("vit_base", "rope_mixed"): PaperFigure(5.609, 0.036),
    ("vit_large", "rope_mixed"): PaperFigure(19.863, 0.035),
    ("vit_tiny", "liere8"): PaperFigure(0.968, 0.519),
    ("vit_base", "liere8"): PaperFigure(5.617, 0.178),
    ("vit_large", "liere8"): PaperFigure(19.882, 0.065),
    ("vit_tiny", "liere64"): PaperFigure(0.970, 0.727),
    ("vit_base", "liere64"): PaperFigure(5.684, 1.375),
    ("vit_large", "liere64"): PaperFigure(20.061, 1.033),
}
PAPER_INPUT = {"image_size": (32, 32), "patch_size": (4, 4), "num_classes": 100, "in_channels": 3}


def paper_figure(name: str, encoding: str, model_input: dict[str, Any]) -> PaperFigure | None:
    """Return the paper's cell for a size, an encoding and an input, or None if it has none."""
    return PAPER.get((name, encoding)) if model_input == PAPER_INPUT else None
