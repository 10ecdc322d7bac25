"""Rotations: the exponential of skew-symmetric matrices, and its application to queries and keys."""

from liere.rotations import flop_formulas  # noqa: F401  (registers them)
from liere.rotations.apply import apply_rotations, check_shapes, rotate_together
from liere.rotations.exponential import exp_products, exp_skew, position_rotations
from liere.rotations.streaming import fused_is_faster, rotate_by_positions, streams_by_itself

__all__ = [
    "apply_rotations",
    "check_shapes",
    "exp_products",
    "exp_skew",
    "fused_is_faster",
    "position_rotations",
    "rotate_by_positions",
    "rotate_together",
    "streams_by_itself",
]
