"""The optimizer section of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from liere.config_fields import CountOrZero, Positive, Rate, Real, Section
from liere.errors import InputError

from pydantic import Field, model_validator  # isort: skip  (`liere.config_fields` reports it if it is missing)

__all__ = ["OptimizerConfig"]


class OptimizerConfig(Section):
    """Adam or Muon, with a cosine schedule after warm-up."""

    name: Literal["adam", "muon"] = "adam"
    """adam, or muon (for the weight matrices of the layers, with adam for everything else)"""
    matrix_learning_rate: Positive | None = None
    """muon: peak learning rate of the weight matrices, which also scales their weight decay; null: 0.02"""
    muon_for_qkv: bool = True
    """muon: whether to use it for the query, key and value projections; false: adam for these"""
    learning_rate: Positive = 1e-4
    """peak learning rate"""
    generator_learning_rate: Positive | None = None
    """peak learning rate of the generators; null: the same as learning_rate"""
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    """Adam's betas"""
    eps: Positive = 1e-8
    """Adam's epsilon"""
    weight_decay: Annotated[Real, Field(ge=0, le=1e6)] = 0.0
    """decoupled weight decay of matrices, not of norms, biases, tokens and positions"""
    warmup_steps: CountOrZero = 0
    """steps of linear warm-up from 0"""
    clip: Positive | None = None
    """maximum norm of the gradient; null: no clipping"""

    @property
    def matrix_rate(self) -> float:
        """Learning rate of the matrices of the layers, with Muon."""
        return 0.02 if self.matrix_learning_rate is None else self.matrix_learning_rate

    @model_validator(mode="after")
    def _options_of_muon_are_for_muon(self) -> OptimizerConfig:
        for field in ("matrix_learning_rate", "muon_for_qkv"):
            value = getattr(self, field)
            if self.name != "muon" and value != type(self).model_fields[field].default:
                raise InputError(
                    f"optimizer.{field} {value!r} requires optimizer.name muon, but it is {self.name}: remove it, or "
                    "use muon"
                )
        return self
