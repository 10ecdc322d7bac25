"""The outcome of a reproduction: tables, figures and verdicts on the paper's claims."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from liere.report.drawing import Drawing
from liere.report.table_cells import NOTHING, Cell, Table
from liere.reproduce.measured import Measured
from liere.reproduce.paper_numbers import Printed

__all__ = ["Claim", "Outcome", "Verdict", "number", "printed"]

Verdict = Literal["holds", "does not hold", "is not decided"]


class Claim(NamedTuple):
    """A claim of the paper with a verdict.

    Attributes:
        text: The claim.
        verdict: Whether it holds here; not decided if the difference may be chance, there is only one seed, or runs
            are missing.
        evidence: The numbers behind the verdict.
    """

    text: str
    verdict: Verdict
    evidence: str

    @property
    def verdict_text(self) -> str:
        """The verdict as shown after the claim."""
        return self.verdict.removeprefix("is ")

    def __str__(self) -> str:
        return f"{self.text}: {self.verdict_text} ({self.evidence})"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a reproduction.

    Attributes:
        tables: Tables in the paper's layout, with the paper's numbers next to ours.
        claims: Claims of the paper, with verdicts.
        figures: Figures by caption.
        numbers: All numbers, as stored in the JSON file.
        notes: Sentences to show below the tables.
    """

    tables: list[Table]
    claims: list[Claim]
    figures: dict[str, Drawing] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def number(found: Measured | None, *, digits: int = 1, scale: float = 100, strong: bool = False) -> Cell:
    """Return a table cell with a mean and its range over seeds, or its interval if there is one seed.

    Values are in percent by default.

    Example:
        >>> from liere.evaluation.intervals import Interval
        >>> number(Measured(Interval(0.5, 0.45, 0.55, "Jeffreys"), [0.5])).text
        '50.0 (45.0-55.0)'
        >>> number(Measured(Interval(0.5, 0.45, 0.55, "bootstrap"), [0.3, 0.7])).text
        '50.0 (30.0-70.0)'
    """
    if found is None:
        return NOTHING
    value, low, high = (f"{scale * end:.{digits}f}" for end in (found.value, *found.ends))
    return Cell(value, f"{low}-{high}", strong)


def printed(figure: Printed | None, *, digits: int = 1) -> Cell:
    """Return a table cell with a number of the paper; an asterisk marks an error in the paper.

    Example:
        >>> printed(Printed(70.0, 69.1, 69.7, "the interval does not contain it")).text
        '70.0* (69.1-69.7)'
    """
    if figure is None:
        return NOTHING
    ends = "" if figure.low is None else f"{figure.low:.{digits}f}-{figure.high:.{digits}f}"
    return Cell(f"{figure.value:.{digits}f}" + ("*" if figure.slip else ""), ends)
