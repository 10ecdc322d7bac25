"""Whether claims of the paper hold for our runs: the order of two or more, and whether it may be chance."""

from __future__ import annotations

import numpy as np

from liere.evaluation.report.cells import p_value
from liere.evaluation.seeds import SIGNIFICANT
from liere.evaluation.statistics import paired_z_test
from liere.reproduce.names import label
from liere.reproduce.outcome import Claim
from liere.reproduce.results import Found, pair

__all__ = ["compare", "is_best"]


def compare(text: str, first: Found | None, second: Found | None, *, loss: bool = False) -> Claim:
    """Judge the claim that the first is better than the second.

    It holds if the first is ahead in every seed, and a paired z-test on the same examples calls that significant; it
    does not hold if the second is; otherwise it is not decided.
    """
    if first is None or second is None:
        return Claim(text, "is not decided", "not run")
    test = paired_z_test(*pair(first, second, loss=loss))
    gain = -test.difference if loss else test.difference
    unit, scale, digits = ("", 1.0, 3) if loss else (" points", 100.0, 1)
    p = p_value(test.p)
    evidence = (
        f"{scale * gain:+.{digits}f}{unit}, p {p}"
        if p.startswith("<")
        else f"{scale * gain:+.{digits}f}{unit}, p = {p}"
    )
    pairs = _by_seed(first, second, loss=loss)
    ahead = sum(one > other for one, other in pairs)
    evidence += f", ahead in {ahead} of {len(pairs)} seeds" if len(pairs) > 1 else ", one seed"
    if test.p < SIGNIFICANT and gain > 0 and ahead == len(pairs):
        return Claim(text, "holds", evidence)
    if test.p < SIGNIFICANT and gain < 0 and ahead == 0:
        return Claim(text, "does not hold", evidence)
    return Claim(text, "is not decided", evidence)


def is_best(text: str, name: str, found: dict[str, Found | None], *, loss: bool = False) -> Claim:
    """Judge the claim that one is the best of several: against the best of the others."""
    others = {other: one for other, one in found.items() if one is not None and other != name}
    if not others or found.get(name) is None:
        return Claim(text, "is not decided", "not run")

    def score(one: Found) -> float:
        return -one.loss.value if loss else one.accuracy.value

    rival = max(others, key=lambda other: score(others[other]))
    claim = compare(text, found[name], others[rival], loss=loss)
    return claim._replace(evidence=f"against {label(rival)}: {claim.evidence}")


def _by_seed(first: Found, second: Found, *, loss: bool) -> list[tuple[float, float]]:
    """Return a score of both for each seed; more is better."""

    def scores(found: Found) -> list[float]:
        return [-float(np.mean(one.losses)) for one in found.predictions] if loss else found.by_seed

    return list(zip(scores(first), scores(second), strict=False))
