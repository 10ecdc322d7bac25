"""Field types of configurations."""

from __future__ import annotations

from typing import Annotated

from liere.optional.extras import require
from liere.presets import LARGEST_SIDE

require("yaml", "pydantic")

from pydantic import BaseModel, ConfigDict, Field  # noqa: E402  (after the check for missing packages)

__all__ = [
    *("Count", "CountOrZero", "Few", "FewOrZero", "Positive", "Rate", "Real", "Section", "Seed", "Share", "Side"),
    *("Switch", "Whole", "Width"),
]

Whole = Annotated[int, Field(strict=True)]
Count = Annotated[Whole, Field(ge=1, le=10**15)]
CountOrZero = Annotated[Whole, Field(ge=0, le=10**15)]
Few = Annotated[Whole, Field(ge=1, le=10**4)]
FewOrZero = Annotated[Whole, Field(ge=0, le=10**4)]
Width = Annotated[Whole, Field(ge=1, le=10**6)]
Side = Annotated[Whole, Field(ge=1, le=LARGEST_SIDE)]
Seed = Annotated[Whole, Field(ge=0, lt=2**63)]
Real = Annotated[float, Field(strict=True)]
Rate = Annotated[Real, Field(ge=0, lt=1)]
Share = Annotated[Real, Field(gt=0, le=1)]
Positive = Annotated[Real, Field(gt=0, le=1e30)]
Switch = Annotated[bool, Field(strict=True)]


class Section(BaseModel):
    """A section of a configuration, with validated, immutable fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)
