"""How the weights of a run are changed, as its configuration has it."""

from __future__ import annotations

from typing import Annotated, Literal

from liere.config_fields import CountOrZero, Positive, Rate, Real, Section
from liere.errors import InputError

from pydantic import Field, model_validator  # isort: skip  (`liere.config_fields` has told what to install)

__all__ = ["OptimizerConfig"]


class OptimizerConfig(Section):
    """Adam or Muon, with a cosine schedule after warm-up."""

    name: Literal["adam", "muon"] = "adam"
    """adam, or muon for the matrices of the layers and adam for everything else"""
    matrix_learning_rate: Positive | None = None
    """muon: greatest learning rate of the matrices of the layers, whose weight decay it scales, too; null: 0.02"""
    muon_for_qkv: bool = True
    """muon: also for the projections to queries, keys and values; false: adam for these"""
    learning_rate: Positive = 1e-4
    """greatest learning rate"""
    generator_learning_rate: Positive | None = None
    """that of generators; null: the same"""
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    """decay of Adam's averages"""
    eps: Positive = 1e-8
    """Adam's epsilon"""
    weight_decay: Annotated[Real, Field(ge=0, le=1e6)] = 0.0
    """decoupled, of matrices only: not of norms, biases, tokens and positions"""
    warmup_steps: CountOrZero = 0
    """steps in which the rate grows from 0"""
    clip: Positive | None = None
    """greatest norm of the gradient; null: no clipping"""

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
                    f"optimizer.{field} {value!r} is for optimizer.name muon, which is {self.name}: leave it out, or "
                    "use muon"
                )
        return self
