"""The model of a run."""

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
    """Return the model as it is before the first step; torch's global generator is left as it was.

    Args:
        config: The run.
        facts: Of its data; None to ask the data.
    """
    facts = config.data.facts if facts is None else facts
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        return config.model.build(
            image_size=facts.image_size, num_classes=len(facts.classes), in_channels=facts.channels
        )


def count_parameters(module: nn.Module) -> int:
    """Return how many numbers a module learns."""
    return sum(parameter.numel() for parameter in module.parameters())


def load_model(config: RunConfig, weights: Path, facts: DataFacts | None = None) -> VisionTransformer:
    """Return the model with weights from a file, ready for inference; the data need not be there.

    Args:
        config: The run.
        weights: The file.
        facts: Of the run's data; None for those in the file, or else, as in files of earlier versions, of the data.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or of another model.
    """
    found = load_weights(weights)
    model = build_model(config, read_facts(weights) if facts is None else facts)
    try:
        model.load_state_dict(found)
    except RuntimeError as error:
        raise InputError(f"{weights} does not fit the configuration: {' '.join(str(error).split())}") from None
    return model.eval()
