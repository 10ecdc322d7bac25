"""How much training a method needs to reach the final accuracy of a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from liere.errors import InputError, suggest

__all__ = ["ComputeSaving", "Curve", "compute_savings", "examples_to_reach", "mean_curve", "monotone"]

Curve = Sequence[Mapping[str, float]]

ROUNDING = 1e-9


@dataclass(frozen=True)
class ComputeSaving:
    """Training that a method needs to reach the baseline's final accuracy; None if it never does.

    Attributes:
        target: The baseline's final accuracy.
        examples: Training examples needed.
        operations: Examples times the cost per example.
        fewer_examples: Examples of the baseline divided by those of the method; above 1, the method saves some.
        fewer_operations: Operations of the baseline divided by those of the method.
    """

    target: float
    examples: float | None
    operations: float | None
    fewer_examples: float | None
    fewer_operations: float | None


def compute_savings(
    curves: Mapping[str, Sequence[Curve]], cost: Mapping[str, float], baseline: str = "absolute"
) -> dict[str, ComputeSaving]:
    """Return, for each method, the training needed to reach the baseline's final accuracy.

    The same rule applies to all methods: curves are averaged over seeds (`mean_curve`) and then made monotone
    (`monotone`). The target is the end of the baseline's curve. A method reaches it where its curve, linear between
    validations, is first as high. This includes the baseline: if its curve is flat at the end, the examples after it
    first reached the target do not count, so its own ratio is 1.

    Args:
        curves: For each method, the learning curve of each seed: validations with `examples` and `accuracy`.
        cost: For each method, the cost of training on one example, in any unit, such as operations or seconds.
        baseline: The method to compare with.

    Raises:
        ValueError: If the baseline has no curve, or a method has no positive cost.

    Example:
        >>> rising = [{"examples": 100 * n, "accuracy": n / 10} for n in range(1, 9)]
        >>> faster = [{"examples": 100 * n, "accuracy": n / 5} for n in range(1, 6)]
        >>> found = compute_savings({"absolute": [rising], "liere8": [faster]}, {"absolute": 4.0, "liere8": 5.0})
        >>> found["liere8"]
        ComputeSaving(target=0.8, examples=400.0, operations=2000.0, fewer_examples=2.0, fewer_operations=1.6)
    """
    if baseline not in curves:
        raise InputError(f"baseline {baseline!r} has no curve: {suggest(baseline, curves)}")
    for method in curves:
        if not cost.get(method, 0) > 0:
            raise InputError(
                f"cost of {method!r} must be above 0, got {cost.get(method)}: pass the cost of one example"
            )
    means = {method: mean_curve(seeds) for method, seeds in curves.items()}
    target = monotone([point["accuracy"] for point in means[baseline]])[-1]
    reached = {method: examples_to_reach(curve, target) for method, curve in means.items()}
    base = reached[baseline]
    assert base is not None  # the baseline's curve ends at the target
    return {
        method: ComputeSaving(target, None, None, None, None)
        if examples is None
        else ComputeSaving(
            target,
            examples,
            examples * cost[method],
            base / examples,
            base * cost[baseline] / (examples * cost[method]),
        )
        for method, examples in reached.items()
    }


def mean_curve(curves: Sequence[Curve]) -> list[dict[str, float]]:
    """Return the mean accuracy over seeds at the numbers of examples where all seeds were validated.

    The mean ends where the first seed stopped, because the mean of the other seeds would be a different quantity.

    Raises:
        ValueError: If there is no such number of examples, or an accuracy is not finite.

    Example:
        >>> one = [{"examples": 10, "accuracy": 0.25}, {"examples": 20, "accuracy": 0.5}]
        >>> mean_curve([one, [{"examples": 10, "accuracy": 0.75}]])
        [{'examples': 10, 'accuracy': 0.5}]
    """
    by_examples = [{point["examples"]: point["accuracy"] for point in curve} for curve in curves]
    common = sorted(set(by_examples[0]).intersection(*by_examples[1:])) if by_examples else []
    if not common or common[0] <= 0:
        raise InputError(
            f"learning curves of {[len(curve) for curve in curves]} validations have none at the same number of "
            "examples above 0: validate all seeds equally often"
        )
    means = [
        {"examples": examples, "accuracy": math.fsum(curve[examples] for curve in by_examples) / len(curves)}
        for examples in common
    ]
    if not all(math.isfinite(point["accuracy"]) for point in means):
        raise InputError("a learning curve has accuracies that are infinite or NaN: remove them")
    return means


def monotone(values: Sequence[float]) -> list[float]:
    """Return the closest non-decreasing values in the least-squares sense (isotonic regression).

    The running maximum is also non-decreasing, but it picks the luckiest of noisy validations: it is too high, the more
    so the more often one validates, and reaches any target too early. Here a lucky validation is averaged with the
    worse ones after it, and the end of a flat curve is the mean of its last validations.

    Example:
        >>> monotone([0.25, 0.75, 0.25, 0.5, 1.0])
        [0.25, 0.5, 0.5, 0.5, 1.0]
    """
    from scipy.optimize import isotonic_regression

    return isotonic_regression(values).x.tolist()


def examples_to_reach(curve: Curve, target: float) -> float | None:
    """Return the number of examples at which a curve, made monotone and interpolated linearly, reaches a target.

    Returns:
        Examples; those of the first validation if it is at the target already, and None if the curve never is.

    Example:
        >>> curve = [{"examples": 100, "accuracy": 0.25}, {"examples": 200, "accuracy": 0.75}]
        >>> examples_to_reach(curve, 0.5), examples_to_reach(curve, 0.1), examples_to_reach(curve, 0.8)
        (150.0, 100.0, None)
    """
    heights = monotone([point["accuracy"] for point in curve])
    place = next((place for place, height in enumerate(heights) if height >= target - ROUNDING), None)
    if place is None:
        return None
    here = float(curve[place]["examples"])
    if place == 0 or heights[place] <= target:
        return here
    before = curve[place - 1]["examples"]
    share = (target - heights[place - 1]) / (heights[place] - heights[place - 1])
    return before + share * (here - before)
