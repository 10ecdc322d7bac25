"""Tensor shapes in signatures.

`Float[Tensor, "*batch tokens ndim"]` documents a shape. Where jaxtyping is installed the annotations are real
and the tests check every call against them; elsewhere they mean plain tensors, so that the core needs torch alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxtyping import Float, Real
else:
    try:
        from jaxtyping import Float, Real
    except ImportError:

        class _PlainTensor:
            def __class_getitem__(cls, item: Any) -> Any:
                return item[0]

        Float = Real = _PlainTensor

__all__ = ["Float", "Real"]
