"""Numbers that describe a position encoding: angles, commutators, relativity errors, gradients."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from liere.encodings import RotaryEncoding
from liere.encodings.liere import LieRE
from liere.generators import commutator_norm, rotation_planes
from liere.positions import grid_positions
from liere.shapes import Float
from liere.vit import VisionTransformer

__all__ = [
    "Inspection",
    "LayerNumbers",
    "basis_pattern",
    "gradients",
    "inspect_model",
    "relativity_errors",
]

FIXED, LEARNED = 1, 2  # entries of a generator that are not zero
PAIRS = 128  # number of random pairs of positions for the relativity error


@dataclass(frozen=True)
class LayerNumbers:
    """Numbers of one layer; None if the encoding has no rotations."""

    angles: list[list[float]] | None
    """For each axis, the angles in radians by which its planes rotate across the training grid, for all heads."""
    commutator: list[float] | None
    """For each head, `|AB - BA| / |A||B|`, averaged over blocks and pairs of axes."""
    relativity: float | None
    """Mean of `|R(x)^T R(y) - R(y - x)| / |R|` over heads and random pairs of positions in the grid."""
    generator_gradient: float | None
    """Norm of the gradient of the layer's generators; None if layers share them or they are frozen."""
    qkv_gradient: float | None
    """Norm of the gradient of the query, key and value weights; None if they are frozen."""


@dataclass(frozen=True)
class Inspection:
    """Numbers of a model's position encoding."""

    encoding: str
    parameters: int
    encoding_parameters: int
    head_dim: int
    rotated_dims: int
    encoding_gradient: float | None
    """Norm of the gradient of all parameters of the encoding."""
    layers: list[LayerNumbers]
    relativity_by_distance: list[tuple[float, float]] | None
    """Distance and relativity error of each random pair, averaged over heads and layers."""

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


def inspect_model(model: VisionTransformer, *, seed: int = 0) -> Inspection:
    """Return numbers that describe the position encoding of a model.

    Args:
        model: The model, which is not changed.
        seed: Seed of the random inputs for the gradients and of the random pairs of positions.

    Returns:
        The numbers; gradients are those of the sum of squared logits for two random inputs.

    Example:
        >>> from liere import create_model
        >>> size = {"dim": 32, "depth": 2, "heads": 2, "mlp_dim": 32}
        >>> model = create_model(encoding="rope_mixed", image_size=8, patch_size=2, num_classes=3, **size)
        >>> inspect_model(model).layers[1].commutator
        [0.0, 0.0]
    """
    encoding = model.encoding
    found = gradients(model, seed=seed)
    numbers: list[dict[str, Any]] = [{"angles": None, "commutator": None, "relativity": None} for _ in model.blocks]
    by_distance = None
    rotated = 0
    if isinstance(encoding, RotaryEncoding):
        rotated = encoding.num_blocks * encoding.block_size
        numbers, by_distance = _rotation_numbers(encoding, model, seed)
    has_own = isinstance(encoding, LieRE) and not encoding.share_layers
    own = found.get("encoding.generators") if has_own else None
    return Inspection(
        encoding=type(encoding).__name__,
        parameters=sum(p.numel() for p in model.parameters()),
        encoding_parameters=sum(p.numel() for p in encoding.parameters()),
        head_dim=model.head_dim,
        rotated_dims=rotated,
        encoding_gradient=_total([g for name, g in found.items() if name.startswith("encoding.")]),
        layers=[
            LayerNumbers(
                **numbers[layer],
                generator_gradient=None if own is None else own[layer].norm().item(),
                qkv_gradient=_total([g for name, g in found.items() if name == f"blocks.{layer}.attention.qkv.weight"]),
            )
            for layer in range(len(model.blocks))
        ],
        relativity_by_distance=by_distance,
    )


def basis_pattern(encoding: RotaryEncoding) -> Tensor:
    """Return which entries of a generator are zero (0), fixed (1) or learned (2), `[head_dim, head_dim]`.

    Example:
        >>> from liere import LieRE
        >>> basis_pattern(LieRE(2, 5, block_size=2))
        tensor([[0, 2, 0, 0, 0],
                [2, 0, 0, 0, 0],
                [0, 0, 0, 2, 0],
                [0, 0, 2, 0, 0],
                [0, 0, 0, 0, 0]])
    """
    used = encoding.skew_generators(0).detach().abs().amax(dim=(0, 1)) > 0  # [blocks, b, b]
    learned = any(p.requires_grad for p in encoding.parameters())
    if learned:
        used = ~torch.eye(encoding.block_size, dtype=torch.bool).expand_as(used)
    blocks = torch.block_diag(*used.int().cpu())
    rest = encoding.head_dim - len(blocks)
    return nn.functional.pad(blocks, (0, rest, 0, rest)).long() * (LEARNED if learned else FIXED)


def relativity_errors(
    encoding: RotaryEncoding,
    x: Float[Tensor, "pairs ndim"],
    y: Float[Tensor, "pairs ndim"],
    layer: int = 0,
) -> Float[Tensor, "heads pairs"]:
    """Return `|R(x)^T R(y) - R(y - x)| / |R|` in Frobenius norms: 0 if only relative positions matter, at most 2."""
    start, end, step = (encoding.rotations(p, layer) for p in (x.double(), y.double(), y.double() - x.double()))
    error = torch.linalg.matrix_norm(start.mT @ end - step).square().sum(-1).sqrt()
    return error / math.sqrt(encoding.num_blocks * encoding.block_size)


def gradients(model: VisionTransformer, *, seed: int = 0) -> dict[str, Tensor]:
    """Return the gradient of the sum of squared logits of two random inputs for every trainable parameter."""
    generator = torch.Generator().manual_seed(seed)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    like = model.patch_embed.projection.weight
    x = torch.randn(2, model.patch_embed.in_channels, *model.image_size, generator=generator).to(like)
    training = model.training
    try:
        with torch.enable_grad():
            loss = model.eval()(x).square().sum()
            found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, materialize_grads=True)
    finally:
        model.train(training)
    return dict(zip(parameters, found, strict=True))


def _rotation_numbers(
    encoding: RotaryEncoding, model: VisionTransformer, seed: int
) -> tuple[list[dict[str, Any]], list[tuple[float, float]]]:
    positions = grid_positions(model.grid, dtype=torch.float64)
    device = model.patch_embed.projection.weight.device
    generator = torch.Generator().manual_seed(seed)
    x, y = (positions[torch.randint(len(positions), (PAIRS,), generator=generator)] for _ in range(2))
    numbers, errors = [], []
    with torch.no_grad():
        for layer in range(len(model.blocks)):
            generators = encoding.skew_generators(layer).cpu()
            pairs = itertools.combinations(generators.unbind(0), 2)
            commutators = [commutator_norm(a, b).mean(-1) for a, b in pairs]
            error = relativity_errors(encoding, x.to(device), y.to(device), layer).cpu()
            errors.append(error.mean(0))
            numbers.append(
                {
                    "angles": [
                        (rotation_planes(axis).angles.flatten() * (n > 1)).tolist()
                        for axis, n in zip(generators, model.grid, strict=True)
                    ],
                    "commutator": torch.stack(commutators).mean(0).tolist() if commutators else None,
                    "relativity": error.mean().item(),
                }
            )
    distances = (y - x).norm(dim=-1)
    return numbers, list(zip(distances.tolist(), torch.stack(errors).mean(0).tolist(), strict=True))


def _total(parts: list[Tensor]) -> float | None:
    return torch.stack([part.norm() for part in parts]).norm().item() if parts else None
