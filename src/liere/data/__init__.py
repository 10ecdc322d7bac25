"""Data sets, one a file."""

from liere.data.spatial import SpatialReasoning

__all__ = ["SpatialReasoning"]
