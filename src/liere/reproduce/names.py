"""How encodings are called in tables of the paper's layout."""

from __future__ import annotations

from liere.comparison.plan import parse_encoding
from liere.evaluation.report.names import plain_label

__all__ = ["label", "paper_row"]


def label(encoding: str) -> str:
    """Return an encoding's name for a reader; absolute positions with the deviation that they start from.

    Example:
        >>> label("absolute:init_std=1"), label("absolute"), label("liere8:init_scale=3.1416")
        ('absolute, init 1', 'absolute, init 0.02', 'LieRE₈')
    """
    name, options = parse_encoding(encoding)
    if name == "absolute":
        return f"absolute, init {options.get('init_std', 0.02):g}"
    return plain_label(name)


def paper_row(encoding: str, encodings: list[str]) -> str | None:
    """Return the paper's row that an encoding is shown beside, by the name of the encoding.

    The paper's absolute positions started at deviation 1, as its code does: where both are run, only these are.

    Example:
        >>> both = ["absolute:init_std=1", "absolute"]
        >>> [paper_row(name, both) for name in both], paper_row("absolute", ["absolute"])
        (['absolute', None], 'absolute')
    """
    name, options = parse_encoding(encoding)
    if name == "absolute" and not options and "absolute:init_std=1" in encodings:
        return None
    return name
