"""What the runs of an experiment found, by what they are in its table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from liere.evaluation.intervals import accuracy_interval, mean_interval
from liere.evaluation.predictions import Predictions, common_examples, read_predictions
from liere.reproduce.experiment import Experiment
from liere.reproduce.measured import Measured
from liere.reproduce.wanted_runs import Key
from liere.runs.conditions import Condition
from liere.runs.run import Run

__all__ = ["Found", "Results", "pair"]


@dataclass(frozen=True)
class Found:
    """What a model found under a condition, over its seeds.

    Attributes:
        predictions: One set per seed; examples that not all seeds could read are left out.
        seeds: The seeds; 0, 1, ... where they are not given.
    """

    predictions: list[Predictions]
    seeds: list[int] = field(default_factory=list)

    @cached_property
    def common(self) -> list[Predictions]:
        """Predictions of each seed for the examples that all of them have, in the same order.

        Raises:
            ValueError: If seeds have few examples in common, or different labels for one.
        """
        return common_examples(self.predictions)

    @cached_property
    def correct(self) -> NDArray[np.float64]:
        """Share of seeds that answer each example rightly."""
        return _mean_correct(self.common)

    @cached_property
    def losses(self) -> NDArray[np.float64]:
        """Loss of each example, mean over seeds."""
        return _mean_losses(self.common)

    @cached_property
    def accuracy(self) -> Measured:
        """Accuracy: its interval over examples, and each seed."""
        return Measured(accuracy_interval(self.correct), self.by_seed)

    @cached_property
    def loss(self) -> Measured:
        """Loss: its interval over examples, and each seed."""
        losses = [float(np.mean(one.losses)) for one in self.predictions]
        return Measured(mean_interval(self.losses), losses, most=math.inf)

    @property
    def by_seed(self) -> list[float]:
        """Accuracy of each seed."""
        return [float(one.correct.mean()) for one in self.predictions]

    def named(self, values: Sequence[float]) -> dict[int, float]:
        """Return values that stand in the order of the predictions by their seeds."""
        return dict(zip(self.seeds or range(len(self.predictions)), values, strict=True))


def pair(first: Found, second: Found, *, loss: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what two found for the examples that both have: right answers, or losses.

    Raises:
        ValueError: If they have few examples in common, or different labels for one.
    """
    parts = common_examples([*first.common, *second.common])
    mean = _mean_losses if loss else _mean_correct
    return mean(parts[: len(first.common)]), mean(parts[len(first.common) :])


def _mean_correct(parts: Sequence[Predictions]) -> NDArray[np.float64]:
    return np.mean([part.correct for part in parts], axis=0)


def _mean_losses(parts: Sequence[Predictions]) -> NDArray[np.float64]:
    return np.mean([part.losses for part in parts], axis=0)


class Results:
    """The finished runs of an experiment.

    Args:
        experiment: The experiment.
        runs: Its runs, by what they are, one per seed.
    """

    def __init__(self, experiment: Experiment, runs: dict[Key, list[Run]]) -> None:
        self.experiment, self.runs = experiment, runs
        self._found: dict[tuple[Key, Condition], Found] = {}

    @property
    def data(self) -> list[str]:
        """Data sets that were run."""
        return list(dict.fromkeys(key.data for key in self.runs))

    @property
    def variants(self) -> list[str]:
        """Variations that were run."""
        return list(dict.fromkeys(key.variant for key in self.runs))

    def encodings(self, data: str, variant: str | None = None) -> list[str]:
        """Return the encodings that were run on a data set."""
        return list(
            dict.fromkeys(key.encoding for key in self.runs if key.data == data and variant in (None, key.variant))
        )

    def paper_data(self, data: str) -> str:
        """Return the paper's data set that one is shown beside."""
        return self.experiment.data[data].stands_for or data

    def condition(self, key: Key, *, size: int | None = None, policy: str = "", shuffle: str = "") -> Condition:
        """Return a condition; the size is that of training unless said otherwise."""
        return Condition(size or self.runs[key][0].config.data.side, policy, shuffle)

    def found(self, key: Key, condition: Condition | None = None) -> Found | None:
        """Return what was found; None where it was not run, or not tested so."""
        if key not in self.runs:
            return None
        condition = condition or self.condition(key)
        if (key, condition) not in self._found:
            parts = [_read(run, condition) for run in self.runs[key]]
            if any(part is None for part in parts):
                return None
            seeds = [run.config.training.seed for run in self.runs[key]]
            self._found[key, condition] = Found([part for part in parts if part is not None], seeds)
        return self._found[key, condition]

    def parameters(self, key: Key) -> int:
        """Return how many parameters the encoding has."""
        return int(self.runs[key][0].result()["encoding_parameters"])

    def seconds(self, key: Key) -> float:
        """Return how long a run took, mean over seeds."""
        return statistics.fmean(run.result()["seconds"] for run in self.runs[key])

    @property
    def has_several_seeds(self) -> bool:
        """Whether anything was run with more than one seed."""
        return any(len(runs) > 1 for runs in self.runs.values())

    @property
    def has_single_seeds(self) -> bool:
        """Whether anything was run with one seed alone."""
        return any(len(runs) == 1 for runs in self.runs.values())

    def left_out_notes(self) -> list[str]:
        """Return a sentence on test examples that some runs of what was found lack; none where all have the same."""
        ids: dict[tuple[str, Condition], list[set[int]]] = {}
        for (key, condition), found in self._found.items():
            ids.setdefault((key.data, condition), []).extend(set(part.ids) for part in found.predictions)
        most = max((len(set.union(*sets)) - len(set.intersection(*sets)) for sets in ids.values()), default=0)
        return [f"Test examples that not all runs have are left out of comparisons: up to {most}."] if most else []

    def all_runs(self) -> Sequence[Run]:
        """Return every run, as often as the table has it."""
        return [run for runs in self.runs.values() for run in runs]

    def unique_runs(self) -> Sequence[Run]:
        """Return every run once."""
        return list({run.folder: run for run in self.all_runs()}.values())


def _read(run: Run, condition: Condition) -> Predictions | None:
    for record in run.evaluations("final"):
        if Condition.of(record) == condition:
            return read_predictions(run, record)
    return None
