"""Files of weights, read without executing code."""

from __future__ import annotations

import functools
from pathlib import Path

import torch
from torch import Tensor

from liere.errors import InputError
from liere.files.reading import DamagedError, check_regular, memory_limit
from liere.files.torch_files import check_torch_file

__all__ = ["load_weights"]

ALLOWANCE = 256 * 2**20
"""Bytes that the weights of a file may have, however small the file; see `liere.files.reading`."""


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read a state dict from a `.safetensors` file, or from a torch file: a state dict or a Lightning checkpoint.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If it needs safetensors, which is not installed.
        ValueError: If it holds anything but tensors by name.
    """
    if not path.exists():
        raise FileNotFoundError(f"no file of weights at {path}")
    check_regular(path)
    if path.suffix == ".safetensors":
        try:
            from safetensors.torch import load_file
        except ImportError:
            raise ImportError(f"{path} needs safetensors: pip install 'liere[hub]'") from None
    else:
        load_file = functools.partial(torch.load, map_location="cpu", weights_only=True)
    try:
        if path.suffix != ".safetensors":
            check_torch_file(path)
        content = load_file(path)
    except DamagedError:
        raise
    except Exception as error:
        raise InputError(
            f"{path} is damaged, or not a file of weights that can be read without executing code "
            f"({type(error).__name__})"
        ) from error
    weights = content.get("state_dict", content) if isinstance(content, dict) else content
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in weights.items()
    ):
        raise InputError(f"{path} does not hold a state dict: save model.state_dict()")
    _check_memory(path, weights)
    return weights


def _check_memory(path: Path, weights: dict[str, Tensor]) -> None:
    """Raise `DamagedError` if tensors say that they are much larger than what is in the file, number by number."""
    limit = memory_limit(path.stat().st_size, ALLOWANCE)
    claimed = sum(value.numel() * value.element_size() for value in weights.values())
    if claimed > limit:
        raise DamagedError(
            f"{path} holds weights that claim {claimed:,} bytes, but at most {limit:,} are allowed for a file of its "
            "size: save model.state_dict()"
        )
