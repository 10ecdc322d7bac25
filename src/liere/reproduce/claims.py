"""Whether claims of the paper hold for our runs: the order of two or more, and whether it may be chance."""

from __future__ import annotations

from collections.abc import Sequence

from liere.evaluation.report.cells import p_value
from liere.evaluation.report.tables import SIGNIFICANT
from liere.evaluation.statistics import paired_z_test
from liere.reproduce.names import label
from liere.reproduce.outcome import Claim
from liere.reproduce.results import Found

__all__ = ["compare", "is_best"]


def compare(text: str, first: Found | None, second: Found | None, *, loss: bool = False) -> Claim:
    """Judge the claim that the first is better than the second.

    It holds if the first is ahead and a paired z-test on the same examples calls that significant; it does not hold if
    the second is significantly ahead; otherwise it is not decided.
    """
    if first is None or second is None:
        return Claim(text, "is not decided", "not run")
    a, b = (first.losses, second.losses) if loss else (first.correct, second.correct)
    test = paired_z_test(a, b)
    gain = -test.difference if loss else test.difference
    unit, scale = ("", 1.0) if loss else (" points", 100.0)
    p = p_value(test.p)
    evidence = f"{scale * gain:+.2g}{unit}, p {p}" if p.startswith("<") else f"{scale * gain:+.2g}{unit}, p = {p}"
    evidence += _seeds(first, second)
    if test.p >= SIGNIFICANT:
        return Claim(text, "is not decided", evidence)
    return Claim(text, "holds" if gain > 0 else "does not hold", evidence)


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


def _seeds(first: Found, second: Found) -> str:
    pairs: Sequence[tuple[float, float]] = list(zip(first.by_seed, second.by_seed, strict=False))
    if len(pairs) < 2:
        return ", one seed"
    return f", ahead in {sum(a > b for a, b in pairs)} of {len(pairs)} seeds"
