"""Creation and loading of the model of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from liere.data.facts import DataFacts
from liere.errors import InputError
from liere.files.reading import LONGEST_LIST, shorten
from liere.files.weights import check_size, load_weights
from liere.machine import memory_bytes
from liere.presets import least_parameters
from liere.runs.config import RunConfig
from liere.runs.run_weights import read_facts
from liere.vit import VisionTransformer

__all__ = ["build_model", "count_parameters", "load_model"]

FLOAT_BYTES = 4


def build_model(config: RunConfig, facts: DataFacts | None = None) -> VisionTransformer:
    """Return the model as initialized before the first step; torch's global generator is unchanged.

    Args:
        config: Configuration of the run.
        facts: Facts of its data; None to read them from the data.

    Raises:
        ValueError: If the configuration is inconsistent, or the weights do not fit in memory.
    """
    shape = _shape(config.data.facts if facts is None else facts)
    memory, least = memory_bytes(), least_parameters(config.model.arguments(**shape))
    if memory is not None and FLOAT_BYTES * least > memory:  # otherwise the system might end the process
        raise InputError(
            f"the model has at least {least:,} parameters, which need {FLOAT_BYTES * least / 1e9:,.0f} GB, but the "
            f"machine has {memory / 1e9:,.0f} GB of memory: reduce model.dim, model.depth or the image size"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        return config.model.build(**shape)


def _shape(facts: DataFacts) -> dict[str, Any]:
    return {"image_size": facts.image_size, "num_classes": len(facts.classes), "in_channels": facts.channels}


def count_parameters(module: nn.Module) -> int:
    """Return the number of trainable parameters of a module."""
    return sum(parameter.numel() for parameter in module.parameters())


def load_model(config: RunConfig, weights: Path, facts: DataFacts | None = None) -> VisionTransformer:
    """Return the model with weights from a file, ready for inference; the data are not needed.

    Args:
        config: Configuration of the run.
        weights: File of the weights.
        facts: Facts of the run's data; None for those in the file or, for files of earlier versions, in the data.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged or belongs to another model.
    """
    found = load_weights(weights)
    facts = facts or read_facts(weights) or config.data.facts
    check_size(weights, config.model.arguments(**_shape(facts)))
    model = build_model(config, facts)
    try:
        model.load_state_dict(found)
    except RuntimeError as error:
        what = shorten(" ".join(str(error).split()), LONGEST_LIST)
        raise InputError(f"{weights} does not fit the configuration: {what}") from None
    return model.eval()
