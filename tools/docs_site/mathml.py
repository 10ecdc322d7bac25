"""Formulas as MathML, which browsers show by themselves: the site loads no script from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils.math import latex2mathml

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["formula", "setup"]


def formula(text: str, *, block: bool = False) -> str:
    r"""Return a formula of LaTeX as MathML.

    Example:
        >>> formula(r"e^x").startswith("<math") and "<msup>" in formula(r"e^x")
        True
    """
    return str(latex2mathml.tex2mathml(text, as_block=block))


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(formula(node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math-block">{formula(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
