"""Sentences that quote numbers agree with the committed results; tables are generated and tested elsewhere."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, numbers, one_line

PLACEMENT = DOCS / "results" / "placement.md"
LEARNED = ("rope_mixed", "liere8", "liere")

pytestmark = pytest.mark.skipif(not PLACEMENT.exists(), reason="the pages are not beside the tests")


def says(page: Path, *texts: str) -> None:
    """Hold a page to texts."""
    missing = [text for text in texts if text not in one_line(page)]
    assert not missing, f"{page.name} does not say {missing}"


def scaled(**wanted: Any) -> list[dict[str, Any]]:
    rows = numbers("attention_scale.json")["rows"]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def test_placement_noise_and_the_attention_scale():
    plain = [row["by_seed"].values() for row in scaled(position_shift=0.0, size=276, attention_scale="log")]
    means = [100 * statistics.fmean(seeds) for seeds in plain]
    says(PLACEMENT, f"the means are {min(means):.0f} to {max(means):.0f} % already")
    without = [row["by_seed"].values() for row in scaled(position_shift=0.0, size=540)]
    means = [100 * statistics.fmean(seeds) for seeds in without]
    seeds = [100 * value for values in without for value in values]
    least = min(value for row in scaled(position_shift=1.75, size=540) for value in row["by_seed"].values())
    says(
        PLACEMENT,
        f"the means at 540 px are {min(means):.0f} to {max(means):.0f} %",
        f"from seeds between {min(seeds):.0f} and {max(seeds):.1f} %",
        f"every seed has {100 * least:.1f} % or more",
    )


def test_changes_by_the_attention_scale():
    def changes(encoding: str, shift: float, size: int) -> list[float]:
        constant, log = (
            scaled(encoding=encoding, position_shift=shift, size=size, attention_scale=scale)[0]["by_seed"]
            for scale in ("constant", "log")
        )
        return [100 * (log[seed] - constant[seed]) for seed in constant]

    first, second, third = (f"{change:+.1f}" for change in changes("rope_mixed", 0.0, 372))
    greatest = max(abs(change) for name in LEARNED for size in (276, 372) for change in changes(name, 1.75, size))
    says(PLACEMENT, f"by {first}, {second} and {third} points", f"by more than {greatest:.1f} points")


def studied(name: str, variant: str, size: int, **wanted: Any) -> list[list[float]]:
    """Return, for each encoding of a study, the accuracy of every seed in percent."""
    return [
        [100 * value for value in row["by_seed"]]
        for row in numbers(f"studies/{name}.json")["rows"]
        if (row["variant"], row["size"]) == (variant, size) and all(row.get(k) == v for k, v in wanted.items())
    ]


def test_one_change_at_a_time():
    def worst(variant: str, *sizes: int) -> list[float]:
        """Return the worst seed of each encoding: RoPE-Mixed, LieRE_8, dense LieRE."""
        return [
            min(value for seeds in of_encoding for value in seeds)
            for of_encoding in zip(*(studied("larger", variant, size) for size in sizes), strict=True)
        ]

    zoomed, stretched = (worst(f"{name} 2 instead", 108, 276, 372, 540) for name in ("zoom", "stretch"))
    assert min(zoomed) >= 95.0
    assert zoomed[0] >= 99.5
    assert min(stretched[1:]) >= 99.0
    unseen = worst("CLS sees keys unrotated, no placement and no noise", 540)
    assert min(unseen[1:]) >= 92.0
    placed = worst("placement alone", 540)
    says(
        PLACEMENT,
        "keeps 95 % or more at all sizes",
        f"one seed of RoPE-Mixed falls to {stretched[0]:.1f} % at 540 px",
        f"keeps {placed[0]:.1f} % at 540 px with RoPE-Mixed and {min(placed[1:]):.0f} to",
        "LieRE keeps 92 % or more at 540 px",
    )
    says(DOCS / "how-to" / "other-resolutions.md", "95 % or more at all sizes in all six models")


def test_real_images():
    lost = [
        statistics.fmean(before) - statistics.fmean(after)
        for before, after in zip(
            studied("cifar10", "no placement", 32), studied("cifar10", "placement 1.15", 32), strict=True
        )
    ]
    gained = [
        statistics.fmean(after) - statistics.fmean(before)
        for before, after in zip(
            studied("cifar10", "no placement", 64, policy="extend"),
            studied("cifar10", "placement 1.15", 64, policy="extend"),
            strict=True,
        )
    ]
    says(
        PLACEMENT,
        f"costs {min(lost):.0f} to {max(lost):.0f} points at the training size",
        f"by {min(gained):.0f} points (RoPE-Mixed) to {max(gained):.0f} (dense LieRE)",
    )
    best = max(
        statistics.fmean(seeds)
        for policy in ("extend", "rescale")
        for seeds in studied("cifar10", "placement 1.15", 64, policy=policy)
    )
    rescaled = [statistics.fmean(seeds) for seeds in studied("cifar10", "no placement", 64, policy="rescale")]
    says(PLACEMENT, f"{min(rescaled):.0f} to {max(rescaled):.0f} % at 64 px against {best:.0f} % at best")


def test_the_spread_of_seeds_on_cifar10():
    accuracy = numbers("reproduce/small/main.json")["numbers"]["accuracy"]
    spread = {name: max(row["CIFAR-10"]["by_seed"]) - min(row["CIFAR-10"]["by_seed"]) for name, row in accuracy.items()}
    says(
        DOCS / "results" / "paper.md",
        f"seeds on CIFAR-10 differ by {100 * spread['liere']:.1f} points",
        f"three seeds of RoPE-Mixed under [Accuracy](#accuracy) differ by {100 * spread['rope_mixed']:.1f} points",
    )


def test_policies_at_other_resolutions():
    found = numbers("reproduce/small/resolution.json")["numbers"]
    for encoding in ("rope_mixed", "liere"):
        for recipe in ("as trained", "fine-tuned"):
            for policy in ("extend", "rescale"):
                value = found[f"{recipe}, {policy}"][encoding]["64 px"]["value"]
                says(DOCS / "how-to" / "other-resolutions.md", f"{100 * value:.1f} %")
