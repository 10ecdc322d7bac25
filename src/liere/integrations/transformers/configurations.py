"""Configuration classes of converted models.

A conversion of a model with the configuration `ViTConfig` of type "vit" has the configuration `LiereViTConfig` of type
"liere_vit": the same, with the recipe of the conversion.
"""

from __future__ import annotations

from typing import Any

import transformers

from liere.integrations.transformers.recipe import Recipe

__all__ = ["CONFIGS", "config_class", "write_recipe"]

CONFIGS: dict[type, type] = {}
"""The configuration class of conversions, by that of the original."""


def config_class(original: type[Any]) -> type[Any]:
    """Return the configuration class of conversions, known to `AutoConfig`.

    Args:
        original: The configuration class of the original.
    """
    if original not in CONFIGS:
        name, kind = f"Liere{original.__name__}", f"liere_{original.model_type}"
        cls = type(name, (original,), {"model_type": kind, "liere": None, "__module__": __name__})
        globals()[name] = CONFIGS[original] = cls  # where pickle finds it
        transformers.AutoConfig.register(kind, cls)
    return CONFIGS[original]


def write_recipe(config: Any, recipe: Recipe) -> None:
    """Make a configuration that of a conversion, in place.

    Args:
        config: The configuration of the original, or of a conversion.
        recipe: What it will hold.
    """
    config.__class__ = next(CONFIGS[cls] for cls in type(config).__mro__ if cls in CONFIGS)
    recipe.write(config)
