"""Creation and loading of the model of a run."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from liere.data.facts import DataFacts
from liere.errors import InputError
from liere.files.weights import load_weights
from liere.runs.config import RunConfig
from liere.runs.run_weights import read_facts
from liere.vit import VisionTransformer

__all__ = ["build_model", "count_parameters", "load_model"]


def build_model(config: RunConfig, facts: DataFacts | None = None) -> VisionTransformer:
    """Return the model as initialized before the first step; torch's global generator is unchanged.

    Args:
        config: Configuration of the run.
        facts: Facts of its data; None to read them from the data.
    """
    facts = config.data.facts if facts is None else facts
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        return config.model.build(
            image_size=facts.image_size, num_classes=len(facts.classes), in_channels=facts.channels
        )


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
    model = build_model(config, read_facts(weights) if facts is None else facts)
    try:
        model.load_state_dict(found)
    except RuntimeError as error:
        raise InputError(f"{weights} does not fit the configuration: {' '.join(str(error).split())}") from None
    return model.eval()
