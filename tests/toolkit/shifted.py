"""A user-defined encoding in its own module, and settings for a very short training."""

from __future__ import annotations

import torch

import liere

__all__ = ["SHORT", "Shifted"]

SHORT = {"training.examples": 16, "training.validate_every": 2, "training.validation_examples": 4}


class Shifted(liere.PositionEncoding):
    """A user-defined encoding in its own file."""

    name = "shifted"

    def __init__(self, amount: float) -> None:
        super().__init__()
        self.amount = torch.nn.Parameter(torch.full((), float(amount)))

    @classmethod
    def build(cls, shape, *, amount=1.0):
        return cls(amount)

    def embed(self, tokens, positions, grid):
        return tokens + self.amount
