"""RoPE-Mixed: learned frequencies on all axes for every pair of dimensions, which is LieRE with block size 2."""

from __future__ import annotations

from typing import Any

from liere.encodings.liere import LieRE
from liere.errors import InputError

__all__ = ["RoPEMixed"]


class RoPEMixed(LieRE):
    """LieRE with `block_size=2`: the same parameters and the same rotations.

    Args:
        ndim: Number of position axes.
        head_dim: Width of a head.
        block_size: Must be 2.
        **options: Other options of `LieRE`.

    Example:
        >>> RoPEMixed(2, 64, num_heads=12, depth=12).generators.numel()
        9216
    """

    name = "rope_mixed"

    def __init__(self, ndim: int, head_dim: int, *, block_size: int = 2, **options: Any) -> None:
        if block_size != 2:
            raise InputError(f"RoPE-Mixed has block_size=2, got {block_size}: use LieRE for other sizes")
        super().__init__(ndim, head_dim, block_size=block_size, **options)

    @classmethod
    def match(cls, name: str) -> dict[str, Any] | None:
        """Match the name `"rope_mixed"`."""
        return {"block_size": 2} if name == cls.name else None
