"""What turns an original into a conversion, as it is written to config.json."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import Any

from liere.encodings.liere import LieRE
from liere.encodings.rope_mixed import RoPEMixed
from liere.errors import InputError, InputTypeError
from liere.integrations.conversion import check_start, describe

__all__ = ["Recipe", "encoding_options"]

OPTIONS = (
    *("ndim", "head_dim", "num_heads", "depth", "block_size"),
    *("init_scale", "share_heads", "share_layers", "recompute"),
)


@dataclass(frozen=True)
class Recipe:
    """The arguments of a conversion.

    Attributes:
        encoding: Arguments of `LieRE`.
        start: `"identity"` or `"rope"`.
        keep_absolute: Whether the model keeps its absolute position embedding.
        keep_rope: Whether it keeps its RoPE.

    Raises:
        TypeError: If `keep_absolute` or `keep_rope` is not a bool.
    """

    encoding: dict[str, Any]
    start: str = "identity"
    keep_absolute: bool = True
    keep_rope: bool = True

    def __post_init__(self) -> None:
        for name in ("keep_absolute", "keep_rope"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise InputTypeError(f"{name} must be a bool, got {value!r}: use True or False")

    @classmethod
    def from_config(cls, config: Any) -> Recipe:
        """Read the recipe of a configuration.

        Raises:
            ValueError: If there is none, or it is damaged.
        """
        written = getattr(config, "liere", None)
        if written is None:
            raise InputError(f"{type(config).__name__} describes no conversion: make the model with convert")
        try:
            recipe = cls(**written)
            inspect.signature(LieRE).bind(**recipe.encoding)
            known = set(recipe.encoding) <= set(OPTIONS)
        except TypeError:
            known = False
        if not known:
            raise InputError(
                f"entry 'liere' of the configuration is damaged, got {written!r}: save the converted model again"
            )
        check_start(recipe.start)
        return recipe

    def check_rope(self, model: Any, rope: str | None) -> None:
        """Check that a model has the RoPE to start from.

        Args:
            model: The model.
            rope: Name of the module that computes the RoPE of its tower, if it has one.

        Raises:
            ValueError: If it has none, and the recipe starts from it.
        """
        if self.start == "rope" and rope is None:
            raise InputError(
                f"start='rope' needs a model with RoPE, but {describe(model)} has none: use start='identity'"
            )

    def write(self, config: Any) -> None:
        """Store the recipe in a configuration."""
        config.liere = asdict(self)


def encoding_options(encoding: LieRE) -> dict[str, Any]:
    """Return the arguments that build an encoding.

    Raises:
        ValueError: If it is of a class that is not this library's, whose arguments are unknown.

    Example:
        >>> encoding_options(LieRE(2, 64, num_heads=3))["block_size"]
        8
    """
    if type(encoding) not in (LieRE, RoPEMixed):
        raise InputError(f"only LieRE encodings can be saved with a model, got {type(encoding).__name__}: use LieRE")
    return {name: getattr(encoding, name) for name in OPTIONS}
