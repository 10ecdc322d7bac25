"""Tables of predictions say that nothing was measured."""

from __future__ import annotations

import json
from pathlib import Path

from liere.bench.gpu_tables import gpu_tables

RESULTS = Path(__file__).parents[2] / "results"


def test_every_table_is_marked_as_predicted():
    tables = gpu_tables(json.loads((RESULTS / "bench_gpu.json").read_text()))
    assert len(tables) > 1
    assert all(table.title.startswith("PREDICTED, not measured") for table in tables)
    assert all(len(row) == len(table.header) for table in tables for row in table.rows)
