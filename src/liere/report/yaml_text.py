"""Nested data as indented YAML text."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["yaml_text"]


def yaml_text(value: dict[str, Any], indent: int = 0) -> str:
    """Return nested data as YAML, with one line per value.

    Example:
        >>> print(yaml_text({"model": {"depth": 4, "sizes": [108, 168]}, "seed": None}))
        model:
          depth: 4
          sizes: [108, 168]
        seed: null
    """
    lines = []
    for name, part in value.items():
        head = " " * indent + f"{name}:"
        if isinstance(part, dict) and part:
            lines += [head, yaml_text(part, indent + 2)]
        else:
            lines.append(f"{head} {_inline(part)}")
    return "\n".join(lines)


def _inline(value: Any) -> str:
    """Return words and paths unquoted, and everything else as JSON, which is valid YAML."""
    plain = isinstance(value, str) and value.replace("/", "").replace("_", "").replace(".", "").isalpha()
    return str(value) if plain else json.dumps(value, ensure_ascii=False, default=str)
