"""Kinds of fields that a configuration has."""

from __future__ import annotations

from typing import Annotated

try:
    from pydantic import BaseModel, ConfigDict, Field
except ImportError:
    raise ImportError("training needs more packages: pip install 'liere[train]'") from None

__all__ = ["Count", "CountOrZero", "Positive", "Rate", "Real", "Section", "Seed", "Share", "Switch", "Whole"]

Whole = Annotated[int, Field(strict=True)]
Count = Annotated[Whole, Field(ge=1)]
CountOrZero = Annotated[Whole, Field(ge=0)]
Seed = Annotated[Whole, Field(ge=0, lt=2**63)]
Real = Annotated[float, Field(strict=True)]
Rate = Annotated[Real, Field(ge=0, lt=1)]
Share = Annotated[Real, Field(gt=0, le=1)]
Positive = Annotated[Real, Field(gt=0)]
Switch = Annotated[bool, Field(strict=True)]


class Section(BaseModel):
    """A part of a configuration: fields that are checked, and do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)
