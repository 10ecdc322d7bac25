"""What tests of a run found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from liere.evaluation.data_frames import as_frame
from liere.runs.conditions import Condition
from liere.terminal.text_table import text_table

__all__ = ["Scores"]


@dataclass(frozen=True, repr=False)
class Scores:
    """What tests of a run found.

    Attributes:
        records: One per condition, as `evaluation.json` holds them, in the order that was asked for.
    """

    records: tuple[dict[str, Any], ...]

    def table(self, *, pandas: bool | None = None) -> Any:
        """Return one row per condition.

        A row has `size`, `policy`, `shuffle`, `attention_scale` and `placement` (`""`: as in training), `accuracy` and
        `loss` with the ends of their 95 % confidence intervals (`accuracy_low`, `accuracy_high`, ...), and `examples`.

        Args:
            pandas: True for a `DataFrame`, False for a list of dicts; None for a `DataFrame` where pandas is installed.

        Raises:
            ImportError: If pandas is asked for and not installed.
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
        """Show accuracies with their intervals."""
        rows = [
            [
                Condition.of(record).describe(),
                *(f"{100 * record['accuracy'][key]:.1f}" for key in ("value", "low", "high")),
                f"{record['examples']:,}",
            ]
            for record in self.records
        ]
        return "\n".join(text_table(["tested at", "accuracy, %", "low", "high", "examples"], rows))
