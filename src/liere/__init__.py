"""liere: learned rotary position encodings for transformers over images, video, volumes and points."""

from liere import data
from liere.encodings import (
    PositionEncoding,
    RotaryEncoding,
    TransformerShape,
    create_encoding,
    list_encodings,
    register_encoding,
)
from liere.encodings.liere import LieRE
from liere.fold import fold_1d
from liere.integrations.reference import from_reference
from liere.packing import PackedPositions, packed_positions
from liere.position_augmentation import augment_positions
from liere.positions import grid_positions
from liere.presets import create_model
from liere.rotations import apply_rotations, exp_skew
from liere.version import __version__
from liere.vit import VisionTransformer

__all__ = [
    "LieRE",
    "PackedPositions",
    "PositionEncoding",
    "RotaryEncoding",
    "TransformerShape",
    "VisionTransformer",
    "__version__",
    "apply_rotations",
    "augment_positions",
    "create_encoding",
    "create_model",
    "data",
    "exp_skew",
    "fold_1d",
    "from_reference",
    "grid_positions",
    "list_encodings",
    "packed_positions",
    "register_encoding",
]
