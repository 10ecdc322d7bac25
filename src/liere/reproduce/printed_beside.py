"""Add the paper's numbers to comparisons on the paper's spatial task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from liere.data.spatial import SpatialData
from liere.reproduce.paper_numbers import LABELS, SPATIAL, SPATIAL_NOTE
from liere.runs.config import RunConfig

__all__ = ["add_printed_numbers"]


def add_printed_numbers(comparison: dict[str, Any], configs: Sequence[RunConfig]) -> None:
    """Add the paper's numbers to a comparison if its runs are on the spatial task.

    Args:
        comparison: The return value of `summarize`; sets `paper` and `paper_label` of its rows.
        configs: Configurations of the runs.
    """
    if not all(isinstance(config.data, SpatialData) and config.data.distance == 1 for config in configs):
        return
    for row in comparison["encodings"]:
        encoding = row["encoding"].partition(":")[0]
        printed = SPATIAL.get(encoding, {})
        sizes = [size for size in comparison["sizes"] if f"{size} px" in printed]
        row["paper"] = {str(size): printed[f"{size} px"].value for size in sizes} or None
        row["paper_label"] = LABELS.get(encoding) if printed else None
    if any(row["paper"] for row in comparison["encodings"]):
        comparison["paper_note"] = SPATIAL_NOTE
