"""Runs that failed while others went on, and work that was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from liere.errors import UserError

__all__ = ["KEPT", "RunsFailedError"]

KEPT = "what is finished is kept: run the same command again to resume"


class RunsFailedError(UserError, RuntimeError):
    """Some runs failed. Those that did not are kept, and are not repeated.

    Attributes:
        result: What came out of the others; None where nothing did.
    """

    def __init__(self, what: str, failures: Sequence[str], result: Any = None) -> None:
        super().__init__(f"{what}: {'; '.join(failures)}")
        self.result = result
