"""How much the answers of a model depend on the placement of the grid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from liere.evaluation.predictions import read_predictions
from liere.runs.conditions import Condition
from liere.runs.run import Run

__all__ = ["agreement", "describe_placements"]


def agreement(answers: Sequence[Sequence[int]]) -> float:
    """Return the fraction of examples with the same answer at every placement.

    Args:
        answers: For each placement, the predicted class of each example.

    Example:
        >>> agreement([[0, 1, 2, 3], [0, 1, 2, 0]])
        0.75
    """
    table = np.asarray(answers)
    return float((table == table[0]).all(axis=0).mean())


def describe_placements(run: Run, records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield one line per condition that was tested at several placements.

    Args:
        run: The run.
        records: Records returned by `evaluate`.
    """
    groups: dict[Condition, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[replace(Condition.of(record), placement="")].append(record)
    for condition, group in groups.items():
        if len(group) < 2:  # the same placement, given twice
            continue
        accuracies = [100 * record["accuracy"]["value"] for record in group]
        answers = [read_predictions(run, record).predictions for record in group]
        same = f", with the same answer at all of them for {100 * agreement(answers):.1f} % of examples"
        yield (
            f"{run.folder.name}: {condition.describe()}, {len(group)} placements: accuracy {min(accuracies):.1f} to "
            f"{max(accuracies):.1f} %" + (same if len({len(one) for one in answers}) == 1 else "")
        )
