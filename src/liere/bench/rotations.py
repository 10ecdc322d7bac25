"""How fast is the exponential, compared with `torch.matrix_exp` and with the matrix products it consists of?"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from liere.bench.devices import wait_for
from liere.bench.race import Race, race, spread
from liere.bench.record import Answer, Settings
from liere.encodings.liere import LieRE
from liere.generators import skew_at_positions
from liere.positions import grid_positions
from liere.rotations import exp_products, exp_skew, position_rotations

__all__ = ["CASES", "QUICK_CASES", "Case", "measure"]


@dataclass(frozen=True)
class Case:
    """Rotations of one layer.

    Attributes:
        name: Name of the case.
        block_size: Size of the matrices.
        head_dim: Width of a head, which is filled with as many blocks as fit.
        heads: Number of attention heads.
        grid: Tokens on each axis.
        samples: Number of examples with their own random positions, instead of one grid; 0 for the grid.
        init_scale: Scale of the generators.
        dtype: Data type of the matrices.
        rounds: Number of timed rounds.
    """

    name: str
    block_size: int
    head_dim: int = 64
    heads: int = 12
    grid: tuple[int, ...] = (14, 14)
    samples: int = 0
    init_scale: float = 2 * math.pi
    dtype: torch.dtype = torch.float32
    rounds: int = 3

    def positions(self) -> Tensor:
        """Return the positions of the tokens, `[*batch, tokens, ndim]`."""
        if self.samples:
            return torch.rand(self.samples, math.prod(self.grid), len(self.grid), dtype=self.dtype)
        return grid_positions(self.grid).to(self.dtype)

    def generators(self) -> Tensor:
        """Return newly initialized generators, `[1, ndim, heads, blocks, b, b]`."""
        layer = LieRE(
            len(self.grid),
            self.head_dim,
            num_heads=self.heads,
            block_size=self.block_size,
            init_scale=self.init_scale,
            dtype=self.dtype,
        )
        return layer.skew_generators().detach()[None]


CASES = [
    # A layer of ViT-B at 224 px: the numbers that are quoted.
    *(Case(f"ViT-B layer, b = {b}", b, rounds=7) for b in (64, 32, 16, 8)),
    # Other cases, to avoid tuning for those four alone.
    *(Case(f"b = {b}", b) for b in (48, 12, 5)),
    Case("b = 80, one block", 80, head_dim=80),
    Case("fp64, b = 32, 6x6", 32, grid=(6, 6), dtype=torch.float64),
    Case("fp64, b = 8, 6x6", 8, grid=(6, 6), dtype=torch.float64),
    Case("3 axes, b = 16, 4x8x8", 16, grid=(4, 8, 8)),
    Case("4 x 49 random positions, b = 8", 8, grid=(7, 7), samples=4),
    Case("b = 16, small angles", 16, init_scale=0.01),
    Case("b = 16, large angles", 16, init_scale=100.0),
]
QUICK_CASES = [
    *(Case(f"2 heads of ViT-B, b = {b}", b, heads=2) for b in (64, 32, 16, 8, 5)),
    Case("fp64, b = 8, 6x6", 8, heads=2, grid=(6, 6), dtype=torch.float64),
    Case("3 axes, b = 16, 2x4x4", 16, heads=2, grid=(2, 4, 4)),
]

BASELINE, PRODUCT = "matrix_exp", "product"
ENTRANTS = ("exp_skew", "layer")
"""The exponential of given matrices, and the rotations of a layer from its positions and generators."""


def measure(settings: Settings) -> Answer:
    """Time the rotations of every case, for the forward pass alone and with the backward pass."""
    cases = QUICK_CASES if settings.quick else CASES
    rows = [_measure_case(case, settings) for case in cases]
    return Answer(max(row["rounds"] for row in rows), rows)


def _measure_case(case: Case, settings: Settings) -> dict[str, Any]:
    torch.manual_seed(0)
    positions, generators = case.positions().to(settings.device), case.generators().to(settings.device)
    rotations = next(position_rotations(positions, generators))
    X = skew_at_positions(positions, generators[0]).reshape(-1, case.block_size, case.block_size)
    norms = (torch.linalg.matrix_norm(X) / math.sqrt(2)).tolist()
    products = statistics.fmean(exp_products(norm, case.block_size, case.dtype) for norm in norms)
    rounds = settings.choose_rounds(full=case.rounds, quick=case.rounds)
    # Each gradient has the memory layout of its output, so that no copy is timed.
    gradient = torch.randn_like(X)
    calls: dict[str, tuple[Callable[[Tensor], Tensor], Tensor, Tensor]] = {
        BASELINE: (torch.matrix_exp, X, gradient),
        "exp_skew": (exp_skew, X, gradient),
        "layer": (lambda A: next(position_rotations(positions, A)), generators, torch.randn_like(rotations)),
    }
    product = functools.partial(_product, X, torch.empty_like(X))
    forward = race(
        {name: functools.partial(_forward, function, x) for name, (function, x, _) in calls.items()}
        | {PRODUCT: product},
        rounds,
        name=f"{case.name}, forward",
        watch=settings.watch,
    )
    both = race(
        {name: functools.partial(_forward_backward, *call) for name, call in calls.items()} | {PRODUCT: product},
        rounds,
        name=f"{case.name}, forward + backward",
        watch=settings.watch,
    )
    return {
        "case": case.name,
        **{key: value for key, value in dataclasses.asdict(case).items() if key not in ("name", "dtype", "rounds")},
        "dtype": str(case.dtype).removeprefix("torch."),
        "rounds": rounds,
        "matrices": len(X),
        "products": products,
        "forward": _summary(forward, products),
        # The backward pass repeats all products except the last one, and computes two gradients for each.
        "forward_backward": _summary(both, 4 * products - 1),
    }


def _product(X: Tensor, out: Tensor) -> None:
    torch.bmm(X, X, out=out)
    wait_for(X.device)


def _forward(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with torch.no_grad():
        found = function(x)
    wait_for(x.device)
    return found


def _forward_backward(function: Callable[[Tensor], Tensor], x: Tensor, gradient: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    (found,) = torch.autograd.grad(function(x), x, gradient)
    wait_for(x.device)
    return found


def _summary(result: Race, products: float) -> dict[str, Any]:
    """Return times, speedups over the baseline, and shares of the limit set by the bare products."""
    limits = [products * seconds for seconds in result.seconds[PRODUCT]]

    def share(name: str) -> dict[str, Any]:
        pairs = zip(limits, result.seconds[name], strict=True)
        return spread([limit / seconds for limit, seconds in pairs]).as_dict()

    return {
        "seconds": {name: result.times(name).as_dict() for name in result.seconds},
        "limit_seconds": spread(limits).as_dict(),
        "speedup": {name: result.speedup(name).as_dict() for name in ENTRANTS},
        "share_of_limit": {name: share(name) for name in ENTRANTS},
    }
