"""Swap the position encoding of timm models: keep their weights, and fine-tune.

Importing this package imports timm, and registers `liere_vit_*` models with `timm.create_model`.
"""

from liere.optional.extras import explain_missing
from liere.optional.torchvision_ops import import_with_torchvision

try:
    import_with_torchvision("timm")
except ImportError as error:
    raise ImportError(f"liere.integrations.timm needs timm ({explain_missing(error)})") from None

from liere.integrations.conversion import widen
from liere.integrations.timm import scratch  # noqa: F401  (registers its models)
from liere.integrations.timm.convert import convert

__all__ = ["convert", "widen"]
