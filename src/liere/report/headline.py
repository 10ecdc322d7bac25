"""Summarize a comparison in a few sentences that claim no more than its seeds support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from liere.evaluation.seeds import SIGNIFICANT, SeedComparison
from liere.report.comparison_queries import (
    compare_at,
    evaluation_at,
    has_several_seeds,
    is_ahead,
    pair_at,
    seed_values,
    spread_at,
)
from liere.report.encoding_style import plain_label
from liere.report.table_cells import p_value, percent

__all__ = ["headline"]


def headline(comparison: dict[str, Any]) -> str:
    """Return which encodings reach the target at the training size and at the largest size, and which is best there.

    With one seed per encoding, the text says that it compares trained models, not encodings. With several seeds, it
    counts seeds, and it calls one encoding ahead of another only if every seed, a test over seeds and a test over
    examples agree.
    """
    rows = [row for row in comparison["encodings"] if row["evaluations"]]
    if not rows:
        return "Nothing has been evaluated yet."
    size = max(found["size"] for row in rows for found in row["evaluations"])
    sentences = _learned(comparison, rows, size)
    rank = _rank_over_seeds if has_several_seeds(comparison) else _rank_models
    at = "there," if sentences and f"at {size} px" in sentences[-1] else _at(comparison, size)
    sentences += rank(comparison, [row for row in rows if evaluation_at(row, size)], size, at)
    sentences = [sentence[0].upper() + sentence[1:] if place else sentence for place, sentence in enumerate(sentences)]
    return f"{_seeds_first(comparison)}: {' '.join(sentences)}"


def _seeds_first(comparison: dict[str, Any]) -> str:
    rows = comparison["encodings"]
    counts = sorted({len(row["seeds"]) for row in rows})
    if counts[-1] > 1:
        return f"With {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} seeds per encoding"
    if len(rows) == 1:
        return "With a single seed, this describes one trained model, not its encoding"
    return "With one seed per encoding, this compares trained models, not encodings"


def _learned(comparison: dict[str, Any], rows: list[dict[str, Any]], largest: int) -> list[str]:
    """Return which encodings reach the target at the training size and at the largest; empty if none does."""
    train, target = comparison["train_size"], comparison["target_accuracy"]
    reached = _reached(rows, train, target)
    learned = [row for row in rows if reached.get(row["encoding"], 0)]
    if not learned:
        return []
    goal = f"{100 * target:g} %"
    tested = [row for row in rows if row["encoding"] in reached]
    verbs = (f"reach {goal} accuracy", f"reaches {goal} accuracy")
    sentence = f"at {train} px (the training size), {_shares(tested, reached, *verbs)}."
    if largest == train:
        return [sentence]
    kept = _reached(learned, largest, target)
    if not kept:
        return [sentence]
    tested = [row for row in learned if row["encoding"] in kept]
    if not any(kept.values()):
        return [sentence, f"at {largest} px, {'no seed' if has_several_seeds(comparison) else 'no model'} does."]
    return [sentence, f"at {largest} px, {_shares(tested, kept, 'still do', 'still does')}."]


def _reached(rows: list[dict[str, Any]], size: int, target: float) -> dict[str, int]:
    """Return how many seeds reach the target, for each encoding that was tested at an image size."""
    values = {row["encoding"]: seed_values(row, size) for row in rows}
    return {name: sum(value >= target for value in found.values()) for name, found in values.items() if found}


def _shares(rows: list[dict[str, Any]], reached: dict[str, int], plural: str, singular: str) -> str:
    """Return in how many seeds each encoding succeeds: those that always do first, those that never do last."""
    several = any(len(row["seeds"]) > 1 for row in rows)
    labels = {
        row["encoding"]: plain_label(row["encoding"]) + (" (one seed)" if several and len(row["seeds"]) == 1 else "")
        for row in rows
    }
    always = [labels[row["encoding"]] for row in rows if reached[row["encoding"]] == len(row["seeds"])]
    never = [labels[row["encoding"]] for row in rows if not reached[row["encoding"]]]
    parts = []
    if always:
        parts.append(f"{_listed(always)} {_verb(always, plural, singular)}" + (" in every seed" if several else ""))
    for row in rows:
        label, count = labels[row["encoding"]], reached[row["encoding"]]
        if label not in (*always, *never):
            parts.append(f"{label}{'' if parts else f' {singular}'} in {count} of {len(row['seeds'])}")
    if never:
        parts.append(f"{_listed(never)} {'in none' if several else _verb(never, 'do not', 'does not')}")
    return ", ".join(parts)


def _rank_over_seeds(comparison: dict[str, Any], rows: list[dict[str, Any]], size: int, at: str) -> list[str]:
    """Return which encoding is best on average, and whether seeds and test examples support that."""
    spreads = {row["encoding"]: spread for row in rows if (spread := spread_at(row, size))}
    ranked = sorted(spreads, key=lambda name: -spreads[name].mean)
    means = {
        name: f"{percent(one.mean)} % on average ({percent(one.least)} to {percent(one.most)})"
        for name, one in spreads.items()
    }
    if len(ranked) == 1:
        return [f"{at} {plain_label(ranked[0])} scores {means[ranked[0]]}."]
    first, second = ranked[:2]
    target = comparison["target_accuracy"]
    over_seeds, pair = compare_at(comparison, size, first, second), pair_at(comparison, size, first, second)
    p = pair["p"] if pair else None
    behind = [name for name in ranked[2:] if is_ahead(comparison, size, first, name)]
    if is_ahead(comparison, size, first, second):
        sentence = (
            f"{at} {plain_label(first)}, {means[first]}, is ahead of {plain_label(second)}, {means[second]}, "
            f"in every seed ({_test(over_seeds)})."
        )
    elif min(spreads[first].least, spreads[second].least) >= target:
        return []  # both have learned the task, so a small difference does not matter
    else:
        order = _undecided(plain_label(first), means[first], plain_label(second), means[second], over_seeds, p)
        sentence = f"{at} the order of the top two is undecided: {order}."
    if not behind:
        return [sentence]
    return [
        sentence,
        f"{plain_label(first)} is ahead of {_listed([*map(plain_label, behind)])} in every seed, with p < "
        f"{SIGNIFICANT:g} over seeds.",
    ]


def _undecided(
    first: str, mean: str, second: str, other_mean: str, over_seeds: SeedComparison | None, p: float | None
) -> str:
    if over_seeds is None:
        return f"{first}, {mean}, and {second}, {other_mean}, have too few seeds for a test"
    examples = f", but p = {p_value(p)} over test examples" if over_seeds.verdict and p is not None else ""
    return (
        f"{first}, {mean}, is ahead of {second}, {other_mean}, in {over_seeds.ahead} of {over_seeds.pairs} "
        f"{over_seeds.unit} ({_test(over_seeds)}{examples})"
    )


def _test(over_seeds: SeedComparison | None) -> str:
    return f"{_p(over_seeds.p)}, {over_seeds.test} over seeds" if over_seeds else ""


def _rank_models(comparison: dict[str, Any], rows: list[dict[str, Any]], size: int, at: str) -> list[str]:
    """Return which model is best, and whether that is significant on the test examples."""
    values = {row["encoding"]: next(iter(seed_values(row, size).values())) for row in rows}
    ranked = sorted(values, key=lambda name: -values[name])
    best = percent(values[ranked[0]])
    level = [name for name in ranked if percent(values[name]) == best]
    others = ranked[len(level) :]
    if len(level) > 1:
        rest = f", followed by {plain_label(others[0])} with {percent(values[others[0]])} %" if others else ""
        return [f"{at} {_listed([*map(plain_label, level)])} are tied at {best} %{rest}."]
    if not others:
        return [f"{at} {plain_label(ranked[0])} scores {best} %."]
    first, second = ranked[:2]
    return [
        f"{at} {plain_label(first)} is the most accurate with {best} %, ahead of {plain_label(second)} with "
        f"{percent(values[second])} %: {_verdict_on_examples(pair_at(comparison, size, first, second))}."
    ]


def _verdict_on_examples(pair: dict[str, Any] | None) -> str:
    if pair is None:
        return "not tested; other seeds may differ"
    how = "significant" if pair["p"] < SIGNIFICANT else "not significant"
    return f"{how} on these test examples ({_p(pair['p'])}); other seeds may differ"


def _at(comparison: dict[str, Any], size: int) -> str:
    unseen = "" if size == comparison["train_size"] else f", after training at {comparison['train_size']} px"
    return f"at {size} px{unseen},"


def _p(p: float) -> str:
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _verb(names: Sequence[str], plural: str, singular: str) -> str:
    return singular if len(names) == 1 else plural


def _listed(labels: Sequence[str]) -> str:
    *others, last = labels
    return f"{', '.join(others)} and {last}" if others else last
