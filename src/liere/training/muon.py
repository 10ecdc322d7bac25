"""Muon: momentum whose matrices are made orthogonal, and Adam for everything that is not a matrix of a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from liere.shapes import Float

__all__ = ["Muon", "orthogonalize"]

# The quintic of Keller Jordan's Muon: singular values from 0.003 on end between 0.7 and 1.2 after five iterations.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


class Muon(torch.optim.AdamW):
    """AdamW with groups of matrices that are stepped along their orthogonalized momentum instead.

    All directions of a matrix then learn at the same rate, so that small transformers leave plateaus earlier than with
    Adam. `torch.optim.Muon` is for matrices alone and computes in bfloat16; here both kinds share one optimizer, with
    one state to save, and matrices keep the digits of their type.

    Args:
        groups: Parameter groups as for AdamW. Groups with `"matrix_blocks": n` are stepped by Muon: 2-D parameters
            whose rows are cut into n equal blocks, each orthogonalized by itself (3 for a fused q, k, v projection).
        momentum: Decay of the momentum of matrices.
        **options: Options of AdamW, for the other groups.

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

    def __init__(self, groups: list[dict[str, Any]], *, momentum: float = 0.95, **options: Any) -> None:
        for group in groups:
            group.setdefault("matrix_blocks", 0)
            for parameter in group["params"] if group["matrix_blocks"] else ():
                if parameter.ndim != 2 or parameter.shape[0] % group["matrix_blocks"]:
                    raise ValueError(
                        f"a group with matrix_blocks={group['matrix_blocks']} has a parameter of shape "
                        f"{list(parameter.shape)}: use matrices whose rows that number divides"
                    )
        super().__init__(groups, **options)
        self.momentum = momentum

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step: Muon's for groups of matrices, Adam's for the others."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()  # which clears and clips the gradients of all groups
        groups = self.param_groups
        self.param_groups = [group for group in groups if not group["matrix_blocks"]]
        try:
            super().step()
        finally:
            self.param_groups = groups
        for group in groups:
            if group["matrix_blocks"]:
                self._step_matrices(group)
        return loss

    @torch.no_grad()
    def _step_matrices(self, group: dict[str, Any]) -> None:
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            state = self.state[parameter]
            if not state:
                # Adam looks for its count of steps in the state of every parameter when a state is loaded.
                state["step"], state["momentum"] = torch.tensor(0.0), torch.zeros_like(parameter)
            state["step"] += 1
            momentum = state["momentum"].lerp_(parameter.grad, 1 - self.momentum)
            blocks = parameter.grad.lerp(momentum, self.momentum).chunk(group["matrix_blocks"])
            rows, columns = blocks[0].shape
            update = torch.cat([orthogonalize(block) for block in blocks])
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            parameter.sub_(update, alpha=group["lr"] * max(rows / columns, 1) ** 0.5)


def orthogonalize(matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """Return about the nearest matrix with orthonormal rows or columns: same singular vectors, singular values near 1.

    Example:
        >>> singular_values = torch.linalg.svdvals(orthogonalize(torch.diag(torch.tensor([1.0, 0.1, 0.02]))))
        >>> bool((singular_values > 0.6).all() and (singular_values < 1.3).all())
        True
    """
    a, b, c = COEFFICIENTS
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = wide @ wide.T
        wide = a * wide + (b * square + c * square @ square) @ wide
    return wide if matrix.shape[0] <= matrix.shape[1] else wide.T
