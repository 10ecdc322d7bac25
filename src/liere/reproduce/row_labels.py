"""Row labels of encodings in tables with the paper's layout."""

from __future__ import annotations

from liere.report.encoding_style import plain_label
from liere.runs.encoding_text import parse_encoding

__all__ = ["label", "paper_row"]


def label(encoding: str) -> str:
    """Return an encoding's display name with its options; for absolute positions always with the initialization.

    Example:
        >>> label("absolute:init_std=1"), label("absolute"), label("liere8"), label("liere8:init_scale=3.1416")
        ('absolute, init 1', 'absolute, init 0.02', 'LieRE₈', 'LieRE₈, init 3.1416')
        >>> label("liere:share_heads=true,init_scale=1")
        'LieRE (dense), share_heads=True, init 1'
    """
    name, options = parse_encoding(encoding)
    if name == "absolute":
        options = {"init_std": 0.02} | options
    return ", ".join([plain_label(name), *(_option_text(option, value) for option, value in options.items())])


def _option_text(option: str, value: object) -> str:
    if option in ("init_std", "init_scale") and isinstance(value, int | float):
        return f"init {value:g}"
    return f"{option}={value}"


def paper_row(encoding: str, encodings: list[str]) -> str | None:
    """Return the row of the paper to show next to an encoding, or None.

    The paper's absolute positions start with standard deviation 1, as in its code, and its other encodings have no
    options. If that exact encoding is among `encodings`, its variants get no row of the paper.

    Example:
        >>> both = ["absolute:init_std=1", "absolute"]
        >>> [paper_row(name, both) for name in both], paper_row("absolute", ["absolute"])
        (['absolute', None], 'absolute')
        >>> [paper_row("liere8:init_scale=3.1416", names) for names in (["liere8:init_scale=3.1416"], ["liere8"])]
        ['liere8', None]
    """
    name, options = parse_encoding(encoding)
    own = (name, {"init_std": 1} if name == "absolute" else {})
    return name if (name, options) == own or own not in map(parse_encoding, encodings) else None
