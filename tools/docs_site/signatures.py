"""Signatures in the API reference, as the code writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["setup", "tidy"]

SHAPED = re.compile(r"(?:~?typing\.)?Annotated\[~?(?:torch\.)?(Tensor), ('[^']*'|\"[^\"]*\")\]")


def tidy(signature: str) -> str:
    """Return a signature with tensors and their shapes in a short form.

    Example:
        >>> tidy("(x: ~typing.Annotated[~torch.Tensor, 'tokens ndim'], *, n: int = 0)")
        "(x: Tensor['tokens ndim'], *, n: int = 0)"
    """
    return SHAPED.sub(r"\1[\2]", signature)


def _process(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    if signature is None:
        return None
    return tidy(signature), tidy(returns) if returns else returns


def setup(app: Sphinx) -> None:
    """Register the rule."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", _process)
