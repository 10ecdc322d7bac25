"""How a result was made, in a few facts."""

from __future__ import annotations

from typing import Any

__all__ = ["describe"]


def describe(content: dict[str, Any]) -> dict[str, str]:
    """Return what a result file says of its command, cost and machine, by the name of the fact.

    Example:
        >>> describe({"command": "liere bench step", "machine": {"cpu": "EPYC", "cores": 2}, "date": "2026-11-18T05"})
        {'Command': 'liere bench step', 'Machine': 'EPYC, 2 cores, 2026-11-18'}
    """
    facts = {"Command": content["command"]} if "command" in content else {}
    if cost := _cost(content):
        facts["Cost"] = cost
    if machine := content.get("machine"):
        parts = [machine["cpu"], f"{machine['cores']} cores"]
        torch = content.get("versions", {}).get("torch")
        parts += [text for text in (torch and f"torch {torch}", content.get("date", "")[:10]) if text]
        facts["Machine"] = ", ".join(parts)
    return facts


def _cost(content: dict[str, Any]) -> str:
    """Return the time that training took, where the file says so."""
    if runs := content.get("runs"):
        return f"{_count(len(runs), 'run')}, {duration(sum(run['seconds'] for run in runs))} of training in total"
    if attacks := content.get("attacks"):
        return duration(sum(attack["seconds"] for attack in attacks.values()))
    return ""


def duration(seconds: float) -> str:
    """Return a time for a reader.

    Example:
        >>> duration(42), duration(1500), duration(16337)
        ('42 s', '25 minutes', '4.5 hours')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
