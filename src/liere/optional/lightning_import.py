"""Lightning, imported only when it is used: it takes seconds, and needs a working torchvision."""

from __future__ import annotations

import logging
import warnings
from types import ModuleType

from liere.optional.extras import explain_missing
from liere.optional.torchvision_ops import import_with_torchvision

__all__ = ["import_lightning"]

# Warnings of Lightning about deliberate choices of this library.
EXPECTED = (
    ".*does not have many workers.*",
    ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ".*GPU available but not used.*",
    ".*is smaller than the logging interval.*",
)


def import_lightning() -> ModuleType:
    """Return `lightning.pytorch`, with expected warnings and log messages silenced.

    Raises:
        ImportError: If it is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations in Lightning and its dependencies
        try:
            pl = import_with_torchvision("lightning.pytorch")
        except ModuleNotFoundError as error:  # of Lightning, or of a package that it needs
            raise ImportError(explain_missing(error)) from None
        except ImportError as error:
            raise ImportError(f"training needs Lightning ({error}): pip install 'liere[train]'") from None
    for message in EXPECTED:
        warnings.filterwarnings("ignore", message)
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return pl
