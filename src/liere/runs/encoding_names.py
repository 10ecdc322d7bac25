"""Unambiguous names for the encodings of several runs."""

from __future__ import annotations

from collections.abc import Sequence

from liere.runs.config import RunConfig

__all__ = ["encoding_names"]


def encoding_names(configs: Sequence[RunConfig]) -> list[str]:
    """Return the names of the encodings of runs, with their options where needed to distinguish two of them."""
    variants: dict[str, set[str]] = {}
    for config in configs:
        variants.setdefault(config.model.encoding, set()).add(_with_options(config))
    return [
        config.model.encoding if len(variants[config.model.encoding]) == 1 else _with_options(config)
        for config in configs
    ]


def _with_options(config: RunConfig) -> str:
    options = ",".join(f"{name}={value}" for name, value in sorted(config.model.options.items()))
    return config.model.encoding + (f":{options}" if options else "")
