"""The results of the runs of an experiment, by their role in its table."""

from __future__ import annotations

import math
import operator
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

__all__ = ["Found", "Results", "pair", "shared"]


@dataclass(frozen=True)
class Found:
    """The predictions of one model under one condition, for all seeds.

    Attributes:
        predictions: One set of predictions per seed.
        seeds: The seeds; 0, 1, ... if empty.
    """

    predictions: list[Predictions]
    seeds: list[int] = field(default_factory=list)

    @cached_property
    def common(self) -> list[Predictions]:
        """Predictions of each seed for the examples that all seeds have in common, in the same order.

        Raises:
            ValueError: If seeds have few examples in common, or different labels for the same example.
        """
        return common_examples(self.predictions)

    @cached_property
    def correct(self) -> NDArray[np.float64]:
        """Fraction of seeds that classify each example correctly."""
        return _mean_correct(self.common)

    @cached_property
    def losses(self) -> NDArray[np.float64]:
        """Loss of each example, mean over seeds."""
        return _mean_losses(self.common)

    @cached_property
    def accuracy(self) -> Measured:
        """Accuracy, with its interval over test examples and the value of each seed."""
        return Measured(accuracy_interval(self.correct), self.by_seed)

    @cached_property
    def loss(self) -> Measured:
        """Loss, with its interval over test examples and the value of each seed."""
        losses = [float(np.mean(one.losses)) for one in self.predictions]
        return Measured(mean_interval(self.losses), losses, most=math.inf)

    @property
    def by_seed(self) -> list[float]:
        """Accuracy of each seed."""
        return [float(one.correct.mean()) for one in self.predictions]

    def named(self, values: Sequence[float]) -> dict[int, float]:
        """Return values, given in the order of the predictions, by seed."""
        return dict(zip(self.seeds or range(len(self.predictions)), values, strict=True))


def pair(first: Found, second: Found, *, loss: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the correctness or losses of two results on the examples that both have.

    Raises:
        ValueError: If they have few examples in common, or different labels for the same example.
    """
    one, other = shared(first, second)
    return (one.losses, other.losses) if loss else (one.correct, other.correct)


def shared(*results: Found) -> list[Found]:
    """Return results with only the examples that all of them have, so that their seeds can be compared.

    Raises:
        ValueError: If they have few examples in common, or different labels for the same example.
    """
    given = [part for one in results for part in one.predictions]
    common = common_examples(given)
    if all(map(operator.is_, common, given)):
        return list(results)  # with what they have computed
    parts = iter(common)
    return [Found([next(parts) for _ in one.predictions], one.seeds) for one in results]


def _mean_correct(parts: Sequence[Predictions]) -> NDArray[np.float64]:
    return np.mean([part.correct for part in parts], axis=0)


def _mean_losses(parts: Sequence[Predictions]) -> NDArray[np.float64]:
    return np.mean([part.losses for part in parts], axis=0)


class Results:
    """The finished runs of an experiment.

    Args:
        experiment: The experiment.
        runs: Its runs by their role in the table, one per seed.
    """

    def __init__(self, experiment: Experiment, runs: dict[Key, list[Run]]) -> None:
        self.experiment, self.runs = experiment, runs
        self._found: dict[tuple[Key, Condition], Found] = {}

    @property
    def data(self) -> list[str]:
        """Data sets with finished runs."""
        return list(dict.fromkeys(key.data for key in self.runs))

    @property
    def variants(self) -> list[str]:
        """Variations with finished runs."""
        return list(dict.fromkeys(key.variant for key in self.runs))

    def encodings(self, data: str, variant: str | None = None) -> list[str]:
        """Return the encodings with finished runs on a data set."""
        return list(
            dict.fromkeys(key.encoding for key in self.runs if key.data == data and variant in (None, key.variant))
        )

    def paper_data(self, data: str) -> str:
        """Return the paper's data set that a data set is compared with."""
        return self.experiment.data[data].stands_for or data

    def condition(self, key: Key, *, size: int | None = None, policy: str = "", shuffle: str = "") -> Condition:
        """Return a test condition, by default at the training size."""
        return Condition(size or self.runs[key][0].config.data.side, policy, shuffle)

    def found(self, key: Key, condition: Condition | None = None) -> Found | None:
        """Return the predictions under a condition; None if there is no such run or test."""
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
        """Return the number of parameters of the encoding."""
        return int(self.runs[key][0].result()["encoding_parameters"])

    def seconds(self, key: Key) -> float:
        """Return the training time of a run in seconds, averaged over seeds."""
        return statistics.fmean(run.result()["seconds"] for run in self.runs[key])

    @property
    def has_several_seeds(self) -> bool:
        """Whether any result has more than one seed."""
        return any(len(runs) > 1 for runs in self.runs.values())

    @property
    def has_single_seeds(self) -> bool:
        """Whether any result has only one seed."""
        return any(len(runs) == 1 for runs in self.runs.values())

    def left_out_notes(self) -> list[str]:
        """Return a note on test examples that are missing from some runs; empty if all runs have the same examples."""
        ids: dict[tuple[str, Condition], list[set[int]]] = {}
        for (key, condition), found in self._found.items():
            ids.setdefault((key.data, condition), []).extend(set(part.ids) for part in found.predictions)
        most = max((len(set.union(*sets)) - len(set.intersection(*sets)) for sets in ids.values()), default=0)
        return [f"Comparisons leave out test examples that some runs lack: at most {most}."] if most else []

    def all_runs(self) -> Sequence[Run]:
        """Return every run, repeated if it appears in the table more than once."""
        return [run for runs in self.runs.values() for run in runs]

    def unique_runs(self) -> Sequence[Run]:
        """Return every run once."""
        return list({run.folder: run for run in self.all_runs()}.values())


def _read(run: Run, condition: Condition) -> Predictions | None:
    for record in run.evaluations("final"):
        if Condition.of(record) == condition:
            return read_predictions(run, record)
    return None
