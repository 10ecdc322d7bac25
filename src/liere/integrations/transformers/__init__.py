"""Swap the position encoding of Hugging Face models: keep their weights, and fine-tune.

Importing this package imports transformers, and registers converted models with `AutoConfig` and `AutoModel`, so that
`from_pretrained` loads them without remote code.
"""

from liere.optional.extras import explain_missing
from liere.optional.torchvision_ops import import_with_torchvision

try:
    import_with_torchvision("transformers")
except ImportError as error:
    raise ImportError(f"liere.integrations.transformers needs transformers ({explain_missing(error)})") from None

from liere.integrations.conversion import widen
from liere.integrations.transformers import registration  # noqa: F401  (registers its models)
from liere.integrations.transformers.convert import convert

__all__ = ["convert", "widen"]
