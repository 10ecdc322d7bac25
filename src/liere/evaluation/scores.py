"""Scores of a run under test conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from liere.evaluation.data_frames import as_frame
from liere.runs.conditions import Condition
from liere.terminal.text_table import text_table

__all__ = ["Scores"]


@dataclass(frozen=True, repr=False)
class Scores:
    """Scores of a run under test conditions.

    Attributes:
        records: One record per condition, as in `evaluation.json`, in the requested order.
    """

    records: tuple[dict[str, Any], ...]

    def table(self, *, pandas: bool | None = None) -> Any:
        """Return one row per condition.

        A row has `size`, `policy`, `shuffle`, `attention_scale` and `placement` (`""`: as in training), `accuracy` and
        `loss` with the ends of their 95 % confidence intervals (`accuracy_low`, `accuracy_high`, ...), and `examples`.

        Args:
            pandas: True for a `DataFrame`, False for a list of dicts; None for a `DataFrame` if pandas is installed.

        Raises:
            ImportError: If `pandas` is True but pandas is not installed.
        """
        rows = [
            vars(Condition.of(record))
            | {
                name + end: record[name][key]
                for name in ("accuracy", "loss")
                for end, key in {"": "value", "_low": "low", "_high": "high"}.items()
            }
            | {"examples": record["examples"]}
            for record in self.records
        ]
        return as_frame(rows, pandas)

    def __repr__(self) -> str:
        """Return a table of accuracies with their intervals."""
        rows = [
            [
                Condition.of(record).describe(),
                *(f"{100 * record['accuracy'][key]:.1f}" for key in ("value", "low", "high")),
                f"{record['examples']:,}",
            ]
            for record in self.records
        ]
        return "\n".join(text_table(["tested at", "accuracy, %", "low", "high", "examples"], rows))
