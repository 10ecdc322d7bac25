"""Printing the result of a comparison or a reproduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from liere.terminal.messages import say

if TYPE_CHECKING:
    from liere.toolkit import ComparisonResult, Made

__all__ = ["show_result"]


def show_result(work: Callable[[], ComparisonResult | Made]) -> None:
    """Call a function and print its result; if some runs failed, print the result of the others.

    Raises:
        RunsFailedError: If some runs failed.
    """
    from liere.toolkit import RunsFailedError

    try:
        result = work()
    except RunsFailedError as error:
        if error.result is not None:
            _show(error.result)
        raise
    _show(result)


def _show(result: ComparisonResult | Made) -> None:
    say()
    say(repr(result))
    for page in result.pages:
        say(f"report: {page}")
