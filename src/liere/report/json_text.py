"""Numbers as JSON that every program can read."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["json_text"]


def json_text(value: Any) -> str:
    """Return data as JSON, with null in place of infinities and NaN, for which JSON has no words.

    Example:
        >>> json_text({"loss": [0.5, math.inf, math.nan]}).split()
        ['{', '"loss":', '[', '0.5,', 'null,', 'null', ']', '}']
    """
    return json.dumps(_finite(value), indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
