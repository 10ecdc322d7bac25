"""No position encoding: a transformer over a set."""

from __future__ import annotations

from liere.encodings.contract import PositionEncoding, TransformerShape

__all__ = ["NoEncoding"]


class NoEncoding(PositionEncoding):
    """Leave tokens, queries and keys as they are."""

    name = "none"
    has_coordinates = False

    @classmethod
    def build(cls, shape: TransformerShape) -> PositionEncoding:
        """Make it; it has no options."""
        return cls()
