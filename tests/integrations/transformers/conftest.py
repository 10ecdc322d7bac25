from __future__ import annotations

import importlib.util

from liere.optional.torchvision_ops import import_with_torchvision

if importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torchvision") is None:
    collect_ignore_glob = ["*.py"]
else:
    import_with_torchvision("transformers")
