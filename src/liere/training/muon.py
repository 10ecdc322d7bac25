"""Muon: steps along orthogonalized momentum for weight matrices, AdamW for all other parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from liere.errors import InputError
from liere.shapes import Float
from liere.sharding import gathered, sharded_like

__all__ = ["Muon", "orthogonalize"]

# The quintic of Keller Jordan's Muon: singular values from 0.003 on end between 0.68 and 1.2 after five iterations.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Step groups of weight matrices along their orthogonalized momentum, and all other groups with AdamW.

    All directions of a matrix learn at the same rate, so that small transformers leave plateaus earlier than with Adam.
    `torch.optim.Muon` accepts only matrices and computes in bfloat16; here both kinds of parameters share one optimizer
    with one state to save, and matrices keep the precision of their dtype.

    Args:
        groups: Parameter groups. Groups with `"matrix_blocks": n` are stepped by Muon: 2-D parameters whose rows are
            divided into n equal blocks, each orthogonalized separately (3 for a fused q, k, v projection). The default
            0 means AdamW.
        momentum: Decay of the momentum of matrices; can be set per group.
        **options: Options of AdamW for the other groups, such as `betas`; `lr` and `weight_decay` apply to all.

    Raises:
        ValueError: If a parameter of a group with `matrix_blocks` is not a matrix, or its rows are not divisible by it.

    Example:
        >>> layer = torch.nn.Linear(4, 8)
        >>> optimizer = Muon([{"params": [layer.weight], "matrix_blocks": 1, "lr": 0.1}, {"params": [layer.bias]}])
        >>> before = layer.weight.detach().clone()
        >>> layer(torch.randn(16, 4)).square().sum().backward()
        >>> optimizer.step()
        >>> lengths = torch.linalg.svdvals((layer.weight - before).detach())  # near 0.1 * sqrt(8 / 4) in all directions
        >>> bool((lengths > 0.08).all() and (lengths < 0.19).all())
        True
    """

    def __init__(self, groups: Iterable[dict[str, Any]], *, momentum: float = 0.95, **options: Any) -> None:
        self._adam = torch.optim.AdamW([torch.zeros(0)], **options)  # receives its groups and their state in each step
        super().__init__(groups, self._adam.defaults | {"matrix_blocks": 0, "momentum": momentum})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group after checking that its matrices fit its `matrix_blocks`."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        blocks = group["matrix_blocks"]
        if not isinstance(blocks, int) or blocks < 0:
            raise InputError(f"matrix_blocks must be 0 (AdamW) or a positive integer (Muon), got {blocks!r}")
        for parameter in group["params"] if blocks else ():
            if parameter.ndim != 2 or parameter.shape[0] % blocks:
                raise InputError(
                    f"a group with matrix_blocks={blocks} has a parameter of shape {list(parameter.shape)}: use "
                    "matrices whose number of rows is divisible by matrix_blocks"
                )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step: Muon's for groups of matrices, AdamW's for the others."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._adam.state = self.state
        self._adam.param_groups = [group for group in self.param_groups if not group["matrix_blocks"]]
        self._adam.step()
        self._step_matrices()
        return loss

    @torch.no_grad()
    def _step_matrices(self) -> None:
        """Step all matrices; blocks of the same shape are orthogonalized together, which takes fewer operations."""
        blocks: list[Tensor] = []
        owners: list[tuple[Tensor, dict[str, Any]]] = []
        for group in self.param_groups:
            for parameter in group["params"] if group["matrix_blocks"] else ():
                if parameter.grad is not None:
                    owners.append((parameter, group))
                    # Sharded matrices are gathered: the parts of an orthogonal matrix are not orthogonal.
                    direction = gathered(self._direction(parameter, group["momentum"]))
                    blocks += direction.chunk(group["matrix_blocks"])
        steps = iter(_orthogonalize_each(blocks))
        for parameter, group in owners:
            own = [next(steps) for _ in range(group["matrix_blocks"])]
            rows, columns = own[0].shape
            if group["weight_decay"]:
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
            update = sharded_like(own[0] if len(own) == 1 else torch.cat(own), parameter)
            parameter.sub_(update, alpha=group["lr"] * max(rows / columns, 1) ** 0.5)

    def _direction(self, parameter: Tensor, decay: float) -> Tensor:
        """Return the gradient of a parameter, averaged with earlier ones."""
        assert parameter.grad is not None
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum = state["momentum"].lerp_(parameter.grad, 1 - decay)
        return parameter.grad.lerp(momentum, decay)


def _orthogonalize_each(matrices: list[Tensor]) -> list[Tensor]:
    """Return the orthogonalized matrices."""
    places: dict[Any, list[int]] = {}
    for place, matrix in enumerate(matrices):
        places.setdefault((matrix.shape, matrix.dtype, matrix.device), []).append(place)
    found = list(matrices)
    for same in places.values():
        for place, matrix in zip(same, orthogonalize(torch.stack([matrices[n] for n in same])), strict=True):
            found[place] = matrix
    return found


def orthogonalize(matrices: Float[Tensor, "*batch rows columns"]) -> Float[Tensor, "*batch rows columns"]:
    """Return nearly orthogonal matrices with the same singular vectors and singular values near 1.

    Example:
        >>> singular_values = torch.linalg.svdvals(orthogonalize(torch.diag(torch.tensor([1.0, 0.1, 0.02]))))
        >>> bool((singular_values > 0.6).all() and (singular_values < 1.3).all())
        True
    """
    a, b, c = COEFFICIENTS
    rows, columns = matrices.shape[-2:]
    wide = (matrices if rows <= columns else matrices.mT).reshape(-1, min(rows, columns), max(rows, columns))
    wide = wide / torch.linalg.matrix_norm(wide, keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = wide @ wide.mT
        polynomial = torch.baddbmm(square, square, square, beta=b, alpha=c)
        wide = torch.baddbmm(wide, polynomial, wide, beta=a)
    wide = wide.view(*matrices.shape[:-2], *wide.shape[-2:])
    return wide if rows <= columns else wide.mT
