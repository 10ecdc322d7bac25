"""Errors for failed runs and interrupted comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from liere.errors import UserError

__all__ = ["KEPT", "RunsFailedError"]

KEPT = "finished runs are kept: run the same command again to resume"


class RunsFailedError(UserError, RuntimeError):
    """Raised when some runs failed; finished runs are kept and will not be repeated.

    Attributes:
        result: The result of the other runs; None if there is none.
    """

    def __init__(self, what: str, failures: Sequence[str], result: Any = None) -> None:
        super().__init__(f"{what}: {'; '.join(failures)}")
        self.result = result
