"""Judge the paper's claims on our runs: which result is better, and whether seeds and test examples support it."""

from __future__ import annotations

from collections.abc import Mapping

from liere.evaluation.paired_tests import paired_z_test
from liere.evaluation.seeds import SIGNIFICANT, SeedComparison, compare_seeds
from liere.report.table_cells import p_value
from liere.reproduce.outcome import Claim, Verdict
from liere.reproduce.results import Found, pair, shared
from liere.reproduce.row_labels import label

__all__ = ["compare", "is_best", "judge", "p_text"]


def compare(text: str, first: Found | None, second: Found | None, *, loss: bool = False) -> Claim:
    """Return a verdict on the claim that the first result is better than the second.

    The claim holds if the first is ahead in every seed and both a test over seeds and a paired z-test over the same
    examples are significant. It does not hold if the same is true of the second. Otherwise, and always with one seed,
    it is not decided.
    """
    if first is None or second is None:
        return Claim(text, "is not decided", "not run")
    first, second = shared(first, second)
    test = paired_z_test(*pair(first, second, loss=loss))
    gain = -test.difference if loss else test.difference
    size = f"{gain:+.3f}" if loss else f"{100 * gain:+.1f} points"
    over_seeds = compare_seeds(_scores(first, loss=loss), _scores(second, loss=loss))
    direction = 0 if test.p >= SIGNIFICANT else 1 if gain > 0 else -1
    return judge(text, over_seeds, direction, f"{size}, {p_text(test.p)} on these test examples")


def judge(text: str, over_seeds: SeedComparison | None, over_examples: int, evidence: str) -> Claim:
    """Return a claim with its verdict, which is decided only if seeds and test examples agree.

    Args:
        text: The claim.
        over_seeds: Comparison over seeds, positive if the claim holds; None if there are too few seeds.
        over_examples: Result over test examples: 1 if the claim holds, -1 if it does not, 0 if it is not significant.
        evidence: The numbers found on the test examples.
    """
    if over_seeds is None:
        return Claim(text, "is not decided", f"one seed; {evidence}")
    agreed = over_seeds.verdict if over_seeds.verdict == over_examples else 0
    verdicts: Mapping[int, Verdict] = {1: "holds", -1: "does not hold", 0: "is not decided"}
    seeds = f"ahead in {over_seeds.ahead} of {over_seeds.pairs} {over_seeds.unit}, {p_text(over_seeds.p)} over seeds"
    return Claim(text, verdicts[agreed], f"{seeds}; {evidence}")


def p_text(p: float) -> str:
    """Return a p-value as an equation or inequality.

    Example:
        >>> p_text(0.25), p_text(1e-5)
        ('p = 0.250', 'p < 0.001')
    """
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def is_best(text: str, name: str, found: dict[str, Found | None], *, loss: bool = False) -> Claim:
    """Return a verdict on the claim that one result is the best of several, by comparing it with the best other one."""
    others = {other: one for other, one in found.items() if one is not None and other != name}
    own = found.get(name)
    if not others or own is None:
        return Claim(text, "is not decided", "not run")
    own, *rest = shared(own, *others.values())
    others = dict(zip(others, rest, strict=True))

    def score(one: Found) -> float:
        return -one.loss.value if loss else one.accuracy.value

    rival = max(others, key=lambda other: score(others[other]))
    claim = compare(text, own, others[rival], loss=loss)
    return claim._replace(evidence=f"against {label(rival)}: {claim.evidence}")


def _scores(found: Found, *, loss: bool) -> dict[int, float]:
    """Return a score for each seed; higher is better."""
    return found.named([-value for value in found.loss.by_seed] if loss else found.by_seed)
