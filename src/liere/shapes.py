"""Tensor shapes in signatures: `Float[Tensor, "*batch tokens ndim"]`.

For users and type checkers they are annotated tensors. The tests import jaxtyping first, which checks every call
against them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.modules.get("jaxtyping") is None:
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int
    from typing import Annotated as Real
    from typing import Annotated as UInt8
else:
    from jaxtyping import Bool, Float, Int, Real, UInt8

__all__ = ["Bool", "Float", "Int", "Real", "UInt8"]
