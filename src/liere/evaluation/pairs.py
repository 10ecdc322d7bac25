"""Pairwise comparisons of encodings, over seeds and over the same test examples."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from liere.evaluation.paired_tests import paired_difference
from liere.evaluation.predictions import Predictions, common_examples
from liere.evaluation.seeds import compare_seeds

__all__ = ["compare_pairs", "pairs_note"]

Found = dict[int, dict[str, dict[int, Predictions]]]
"""Predictions by image size, encoding and seed."""

ONE_SEED_NOTE = (
    "With one seed per encoding this compares these trained models, not the encodings: another seed may turn a "
    "difference around. Differences and p-values are over test examples (McNemar's exact test), without correction for "
    "the number of pairs."
)
SEEDS_NOTE = (
    "Differences are of means over seeds, with a 95 % confidence interval over seeds (t). p over seeds: a paired t "
    "test where encodings have seeds in common, else Welch's; the test examples are taken as they are. p over "
    "examples: a permutation test on the same test examples, each counted with its mean over seeds; it is about these "
    "trained models, and other seeds may differ. There is no correction for the number of pairs."
)


def compare_pairs(found: Found) -> list[dict[str, Any]]:
    """Return the comparison of every two encodings at every size, over examples and, if several, over seeds.

    Test examples are paired by their ids; those that are missing in some run are left out and counted.

    Raises:
        ValueError: If two runs have too few examples in common, or different labels for one.
    """
    pairs = []
    for size, by_encoding in found.items():
        for first, second in itertools.combinations(reversed(by_encoding), 2):
            both = [by_encoding[first], by_encoding[second]]
            examples, left_out = _common(both)
            one, other = (np.mean([part.correct for part in parts], axis=0) for parts in examples)
            over_examples = paired_difference(one, other)
            accuracies = ({seed: float(part.correct.mean()) for seed, part in parts.items()} for parts in both)
            over_seeds = compare_seeds(*accuracies)
            interval = over_examples.interval
            pairs.append(
                {
                    "size": size,
                    "first": first,
                    "second": second,
                    "difference": interval.value,
                    "low": interval.low,
                    "high": interval.high,
                    "p": over_examples.p,
                    "over_seeds": over_seeds.as_dict() if over_seeds else None,
                    **({"left_out": left_out} if left_out else {}),
                }
            )
    return pairs


def pairs_note(found: Found, pairs: list[dict[str, Any]]) -> str:
    """Return the note below a table of pairs; empty if there is only one encoding."""
    by_encoding = next(iter(found.values()), {})
    if len(by_encoding) < 2:
        return ""
    note = SEEDS_NOTE if any(len(seeds) > 1 for seeds in by_encoding.values()) else ONE_SEED_NOTE
    left_out: dict[int, int] = {}
    for pair in pairs:
        if "left_out" in pair:
            left_out[pair["size"]] = max(left_out.get(pair["size"], 0), pair["left_out"])
    if not left_out:
        return note
    counts = ", ".join(f"{count} at {size} px" for size, count in left_out.items())
    return f"{note} Test examples that not all runs of a pair have are left out of it: up to {counts}."


def _common(both: list[dict[int, Predictions]]) -> tuple[list[list[Predictions]], int]:
    """Return the predictions of two encodings for examples that all of their runs have, and the number of others."""
    parts = [part for by_seed in both for part in by_seed.values()]
    common = common_examples(parts)
    everything = len(set().union(*(part.ids for part in parts)))
    return [common[: len(both[0])], common[len(both[0]) :]], everything - len(common[0].ids)
