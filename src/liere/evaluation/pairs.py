"""Pairwise comparisons of encodings, over seeds and over the same test examples."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from liere.evaluation.paired_tests import paired_difference
from liere.evaluation.predictions import Predictions, common_examples
from liere.evaluation.seeds import compare_seeds

__all__ = ["compare_pairs", "pairs_note", "share_examples"]

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


def share_examples(found: Found) -> tuple[Found, dict[int, int]]:
    """Return the predictions for the examples that all runs have at a size, and how many others are left out.

    Unreadable files may differ between runs. If each run kept its own examples, one with harder examples would look
    worse, and what holds over seeds could contradict what holds over the examples that all have.

    Returns:
        The predictions, and the number of examples that some run lacks by size, for the sizes that have any.

    Raises:
        ValueError: If runs have too few examples in common, or different labels for one.
    """
    shared: Found = {}
    left_out = {}
    for size, by_encoding in found.items():
        parts = [part for by_seed in by_encoding.values() for part in by_seed.values()]
        common = common_examples(parts)
        rest = iter(common)
        shared[size] = {name: {seed: next(rest) for seed in by_seed} for name, by_seed in by_encoding.items()}
        if count := len(set().union(*(part.ids for part in parts))) - len(common[0].ids):
            left_out[size] = count
    return shared, left_out


def compare_pairs(found: Found, left_out: Mapping[int, int] = MappingProxyType({})) -> list[dict[str, Any]]:
    """Return the comparison of every two encodings at every size, over examples and, if several, over seeds.

    Args:
        found: Predictions of all runs for the same examples, see `share_examples`.
        left_out: The number of examples that were left out for that, by size.
    """
    pairs = []
    for size, by_encoding in found.items():
        for first, second in itertools.combinations(reversed(by_encoding), 2):
            both = [by_encoding[first], by_encoding[second]]
            one, other = (np.mean([part.correct for part in parts.values()], axis=0) for parts in both)
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
                    **({"left_out": left_out[size]} if size in left_out else {}),
                }
            )
    return pairs


def pairs_note(found: Found) -> str:
    """Return the note below a table of pairs; empty if there is only one encoding."""
    by_encoding = next(iter(found.values()), {})
    if len(by_encoding) < 2:
        return ""
    return SEEDS_NOTE if any(len(seeds) > 1 for seeds in by_encoding.values()) else ONE_SEED_NOTE
