"""Sharing models of this library: a folder or a repository of the Hugging Face Hub with weights, config and card.

Reading executes no code: weights are safetensors, and the configuration can only name encodings of this library, or
ones that were registered before.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from liere.encodings.registry import find_encoding, is_built_in, list_encodings
from liere.errors import InputError, UserError
from liere.files.reading import LONGEST_LIST, read_json, shorten
from liere.files.separate_tensors import separate_tensors
from liere.files.weights import check_size, load_weights
from liere.files.writing import prepare_folder, write_atomically
from liere.integrations.hub_description import check_described, describe
from liere.optional.extras import require
from liere.presets import create_model
from liere.version import __version__
from liere.vit import VisionTransformer

__all__ = ["from_pretrained", "push_to_hub", "save_pretrained"]

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
LIBRARY = "liere"
EXTRA = "_extra_state"  # torch's key for the training grid, which is not a weight
TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def save_pretrained(model: VisionTransformer, folder: str | Path) -> Path:
    """Write a model to a folder, from which `from_pretrained` builds it again: weights, configuration and model card.

    An existing model card is kept.

    Args:
        model: A model made by `liere.create_model`.
        folder: The folder, which is created if necessary.

    Returns:
        The folder.

    Raises:
        TypeError: If it is not such a model.
        ValueError: If its encoding, or another part that was replaced, cannot be described in a file. A classifier that
            was replaced by an `nn.Linear` of another size can.
        ImportError: If safetensors is not installed.

    Example:
        >>> size = {"dim": 16, "depth": 1, "heads": 1, "mlp_dim": 16}
        >>> model = create_model(encoding="liere8", image_size=8, patch_size=4, num_classes=2, **size)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sorted(path.name for path in save_pretrained(model, folder).iterdir())
        ...     from_pretrained(folder).encoding.block_size
        ['README.md', 'config.json', 'model.safetensors']
        8
    """
    require("safetensors", extra="hub")
    from safetensors.torch import save

    described = describe(model)
    check_described(model, described)
    config: dict[str, Any] = {"library": LIBRARY, "version": __version__, "model": described}
    folder = Path(folder)
    prepare_folder(folder, "folder")
    write_atomically(folder / WEIGHTS, save(separate_tensors(model.state_dict()), {"format": "pt"}))
    write_atomically(folder / CONFIG, json.dumps(config, indent=2) + "\n")
    if not (folder / CARD).exists():
        write_atomically(folder / CARD, _card(model, config["model"]))
    return folder


def from_pretrained(folder_or_repo: str | Path, *, revision: str | None = None) -> VisionTransformer:
    """Build a model from a folder, or from a repository of the Hub, in eval mode on the CPU. No code is executed.

    Weights keep the data type that they were saved in.

    Args:
        folder_or_repo: A folder that `save_pretrained` wrote, or the name of a repository, such as `"user/model"`.
        revision: Branch, tag or commit of a repository.

    Raises:
        FileNotFoundError: If there is no such folder, and the name is not that of a repository.
        ImportError: If huggingface_hub or safetensors is not installed.
        ValueError: If files are missing or damaged, or the model has an encoding that is not known.
    """
    require("safetensors", extra="hub")
    folder = Path(folder_or_repo)
    if not folder.is_dir():
        folder = _download(str(folder_or_repo), revision)
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).exists():
            raise InputError(f"{folder} has no {name}: pass a folder that liere's save_pretrained wrote")
    weights = load_weights(folder / WEIGHTS)
    _check_types(folder / WEIGHTS, weights)
    model = _build(folder / CONFIG, folder / WEIGHTS)
    try:
        for name, parameter in model.named_parameters():
            parameter.data = parameter.data.to(weights[name].dtype if name in weights else parameter.dtype)
        model.load_state_dict(weights)
    except RuntimeError as error:
        what = shorten(" ".join(str(error).split()), LONGEST_LIST)
        raise InputError(f"the weights in {folder} do not fit its {CONFIG}: save the model again ({what})") from None
    return model.eval()


def push_to_hub(model: VisionTransformer, repo_id: str, *, private: bool = False, message: str | None = None) -> str:
    """Upload a model to a repository of the Hugging Face Hub, which is created if necessary.

    Log in first with `hf auth login`.

    Args:
        model: A model made by `liere.create_model`.
        repo_id: Name of the repository, such as `"user/model"`.
        private: Whether a new repository is private.
        message: Commit message.

    Returns:
        The address of the commit.
    """
    require("huggingface_hub", "safetensors", extra="hub")
    import huggingface_hub

    huggingface_hub.create_repo(repo_id, private=private, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(model, folder)
        done = huggingface_hub.upload_folder(
            repo_id=repo_id, folder_path=folder, commit_message=message or f"Upload a model of liere {__version__}"
        )
    return str(done.commit_url)


def _download(repo: str, revision: str | None) -> Path:
    if repo.count("/") != 1 or repo.startswith((".", "/", "~")):
        raise FileNotFoundError(f"there is no folder {repo}: check the path, or name a repository like 'user/model'")
    require("huggingface_hub")
    import huggingface_hub

    return Path(huggingface_hub.snapshot_download(repo, revision=revision, allow_patterns=[CONFIG, WEIGHTS]))


def _check_types(path: Path, weights: dict[str, torch.Tensor]) -> None:
    """Raise `ValueError` if weights are no real numbers of a type that models compute in."""
    for name, value in weights.items():
        is_fine = not value.is_complex() if name == EXTRA else value.dtype in TYPES
        if not is_fine:
            raise InputError(
                f"{path} has the weight {name} of type {value.dtype}, but weights must be float16, bfloat16, float32 "
                "or float64: save the model again"
            )


def _build(path: Path, weights: Path) -> VisionTransformer:
    content = read_json(path)
    arguments = content.get("model") if isinstance(content, dict) and content.get("library") == LIBRARY else None
    if not isinstance(arguments, dict):
        raise InputError(f"{path} is not the configuration of a model of liere: pass a folder of its save_pretrained")
    arguments = dict(arguments)
    options, encoding = arguments.pop("encoding_options", {}), arguments.get("encoding")
    if not isinstance(encoding, str) or ":" in encoding:  # would be imported
        known = ", ".join(list_encodings())
        raise InputError(f"{path} names the encoding {shorten(repr(encoding))}: choose from {known}")
    try:
        if not is_built_in(find_encoding(encoding)[0]):
            raise InputError(f"encoding {encoding!r} is not part of this library")
        check_size(weights, arguments)
        return create_model(**arguments, **options)
    except (UserError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise InputError(f"{path} is damaged: save the model again ({shorten(str(error), LONGEST_LIST)})") from error


def _card(model: VisionTransformer, config: dict[str, Any]) -> str:
    size = " × ".join(str(side) for side in config["image_size"])
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return f"""---
library_name: {LIBRARY}
tags:
- {LIBRARY}
- position-encoding
---

# Vision transformer with {config["encoding"]} positions

| | |
|---|---|
| encoding | `{config["encoding"]}` {json.dumps(config["encoding_options"])} |
| training size | {size}, patches of {" × ".join(str(side) for side in config["patch_size"])} |
| layers, width, heads | {config["depth"]}, {config["dim"]}, {config["heads"]} |
| classes | {config["num_classes"]} |
| parameters | {parameters:,} |

```python
from liere.integrations.hub import from_pretrained

model = from_pretrained("user/model")  # this repository, or a folder with its files
```

Describe here what the model was trained on, how well it does, and what it should not be used for.
"""
