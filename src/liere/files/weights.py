"""Reading weights files without executing code."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from liere.errors import InputError
from liere.files.reading import DamagedError, check_stored, memory_limit, open_regular, stored_bytes
from liere.files.torch_archives import ALLOWANCE
from liere.files.torch_files import check_torch_file
from liere.presets import least_parameters

__all__ = ["check_size", "load_weights"]


def load_weights(path: Path) -> dict[str, Tensor]:
    """Return the state dict in a `.safetensors` file, or in a torch file with a state dict or Lightning checkpoint.

    Raises:
        FileNotFoundError: If the file does not exist.
        ImportError: If it needs safetensors, which is not installed.
        ValueError: If it contains anything but named tensors.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no weights file {path}: check the path")
    with open_regular(path) as file:
        check_stored(path, file, ALLOWANCE)
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
            f"{path} is damaged, or not a weights file that can be read without executing code "
            f"({type(error).__name__}): save model.state_dict()"
        ) from error
    weights = content.get("state_dict", content) if isinstance(content, dict) else content
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in weights.items()
    ):
        raise InputError(f"{path} does not contain a state dict: save model.state_dict()")
    _check_memory(path, weights)
    return weights


def check_size(path: Path, arguments: Mapping[str, Any]) -> None:
    """Check that a file of weights is large enough for a model, before the model is created.

    Args:
        path: The file.
        arguments: Arguments of `liere.create_model`.

    Raises:
        ValueError: If it has fewer bytes than the model has parameters, or is sparse.
    """
    least = least_parameters(arguments)
    with open_regular(path) as file:
        check_stored(path, file, ALLOWANCE)
        stored = stored_bytes(file)
    if least > path.stat().st_size or torch.float32.itemsize * least > memory_limit(stored, ALLOWANCE):
        raise InputError(
            f"{path} has {stored:,} bytes on disk, but the configuration describes a model with at least {least:,} "
            "parameters: use the configuration that belongs to the weights"
        )


def _check_memory(path: Path, weights: dict[str, Tensor]) -> None:
    """Raise `DamagedError` if the tensors claim to be much larger than the contents of the file."""
    with open_regular(path) as file:
        limit = memory_limit(stored_bytes(file), ALLOWANCE)
    claimed = sum(value.numel() * value.element_size() for value in weights.values())
    if claimed > limit:
        raise DamagedError(
            f"{path} has weights that claim {claimed:,} bytes, but a file of its size may have at most {limit:,}: "
            "save model.state_dict()"
        )
