"""No position encoding: the transformer treats its tokens as a set."""

from __future__ import annotations

from liere.encodings.contract import PositionEncoding, TransformerShape

__all__ = ["NoEncoding"]


class NoEncoding(PositionEncoding):
    """Leave tokens, queries and keys unchanged."""

    name = "none"
    has_coordinates = False

    @classmethod
    def build(cls, shape: TransformerShape) -> PositionEncoding:
        """Create the encoding; it has no options."""
        return cls()
