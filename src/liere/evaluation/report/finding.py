"""What a comparison found, in a sentence that claims no more than its numbers."""

from __future__ import annotations

from typing import Any

from liere.evaluation.report.cells import p_value, percent
from liere.evaluation.report.names import plain_label
from liere.evaluation.report.tables import SIGNIFICANT, evaluation_at

__all__ = ["finding"]


def finding(comparison: dict[str, Any]) -> str:
    """Return who is best at the largest size, by how much, and whether that may be chance."""
    sizes = {found["size"] for row in comparison["encodings"] for found in row["evaluations"]}
    if not sizes:
        return "Nothing has been evaluated yet."
    size = max(sizes)
    values = {
        row["encoding"]: found["accuracy"]["value"]
        for row in comparison["encodings"]
        if (found := evaluation_at(row, size))
    }
    ranked = sorted(values, key=lambda name: -values[name])
    best = percent(values[ranked[0]])
    level = [name for name in ranked if percent(values[name]) == best]
    others = ranked[len(level) :]
    unseen = "" if size == comparison["train_size"] else f", after training at {comparison['train_size']} px"
    at = f"At {size} px{unseen},"
    if len(level) > 1:
        rest = f"; next is {plain_label(others[0])} with {percent(values[others[0]])} %" if others else ""
        return f"{at} {_listed(level)} are level at {best} %{rest}.{_one_seed(comparison)}"
    if not others:
        return f"{at} {plain_label(ranked[0])} answers {best} % correctly.{_one_seed(comparison)}"
    second = others[0]
    verdict = _verdict(comparison, size, ranked[0], second)
    return (
        f"{at} {plain_label(ranked[0])} is most accurate with {best} %, ahead of {plain_label(second)} with "
        f"{percent(values[second])} %; {verdict}.{_one_seed(comparison)}"
    )


def _verdict(comparison: dict[str, Any], size: int, first: str, second: str) -> str:
    for pair in comparison["pairs"]:
        if pair["size"] == size and {pair["first"], pair["second"]} == {first, second}:
            p = p_value(pair["p"])
            p = f"p {p}" if p.startswith("<") else f"p = {p}"
            if pair["p"] < SIGNIFICANT:
                return f"other test examples would say the same ({p}){_seeds_agree(comparison, size, first, second)}"
            return f"the difference may be chance ({p})"
    return "whether the difference is chance was not tested"


def _seeds_agree(comparison: dict[str, Any], size: int, first: str, second: str) -> str:
    """Say in how many seeds the first is ahead, where both have several."""
    values = {}
    for row in comparison["encodings"]:
        if row["encoding"] in (first, second) and (found := evaluation_at(row, size)):
            values[row["encoding"]] = dict(zip(row["seeds"], found["by_seed"], strict=True))
    common = sorted(values[first].keys() & values[second].keys())
    if len(common) < 2:
        return ""
    ahead = sum(values[first][seed] > values[second][seed] for seed in common)
    return f", and so do {ahead} of {len(common)} seeds"


def _one_seed(comparison: dict[str, Any]) -> str:
    if any(len(row["seeds"]) > 1 for row in comparison["encodings"]):
        return ""
    return " With one seed each, nothing is known of how much runs differ."


def _listed(names: list[str]) -> str:
    labels = [plain_label(name) for name in names]
    return f"{', '.join(labels[:-1])} and {labels[-1]}"
