"""Rotations: the exponential of skew-symmetric matrices, and its application to queries and keys."""

from liere.rotations import flop_formulas  # noqa: F401  (registers them)
from liere.rotations.apply import apply_rotations, check_shapes, rotate_together
from liere.rotations.exponential import exp_products, exp_skew, position_rotations

__all__ = [
    "apply_rotations",
    "check_shapes",
    "exp_products",
    "exp_skew",
    "position_rotations",
    "rotate_together",
]
