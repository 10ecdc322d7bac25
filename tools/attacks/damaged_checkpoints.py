"""Damaged checkpoints: broken bytes, wrong content in intact files, and things that are not files."""

from __future__ import annotations

import io
import math
import os
import random
import zipfile
from pathlib import Path
from typing import Any

from tools.attacks.mutations import MUTATIONS, damage

__all__ = ["damage_checkpoint"]

CRUDE = ("truncated", "cut from the front", "empty", "noise")  # subtler changes could be valid trained weights
WRONG: dict[str, list[Any]] = {
    "step": [-1, 0, 3, 10**9, 2.5, "3", None, True],
    "seconds": [-1.0, math.nan, math.inf, 10**400, "1", None],
    "state_dict": [{}, None, [], {"weight": 1.0}, "first tensor in another shape", "first tensor missing"],
    "optimizer": [
        *({}, None, {"state": {}, "param_groups": []}, {"state": {0: {"step": 3}}, "param_groups": []}),
        *("first tensor in another shape", "first tensor missing"),
    ],
    "journal": [
        *({}, None, [], {"losses": "many", "best": 3, "reached_target": None}),
        {"losses": [0.0, -1], "best": None, "reached_target": False},
        {"losses": [0.0, 1], "best": {"step": "3", "accuracy": None, "loss": []}, "reached_target": False},
    ],
    "fingerprint": ["another run", None, 3],
    "format": ["liere-checkpoint-2", None],
    "surplus": [1],
}


def damage_checkpoint(path: Path, chance: random.Random) -> str:
    """Damage a checkpoint in one of many ways, and return a description."""
    kind, data = chance.randrange(10), path.read_bytes()
    if kind == 0:
        return _replace(path, chance)
    damaged = {1: _wrong_field, 2: _wrong_field, 3: _wrong_member}.get(kind, damage)
    what, changed = damaged(data, chance)
    path.write_bytes(changed)
    return what


def _replace(path: Path, chance: random.Random) -> str:
    """Replace a checkpoint with something that is not a file, and return a description."""
    path.unlink()
    what = chance.choice(("a folder", "a folder with content", "a pipe", "a link to itself", "a link to nothing"))
    if what == "a pipe":
        os.mkfifo(path)
    elif "link" in what:
        path.symlink_to(path.name if "itself" in what else "nothing")
    else:
        path.mkdir()
        (path / "content").write_text("") if "content" in what else None
    return what


def _wrong_field(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    import torch

    content = torch.load(io.BytesIO(data), weights_only=True)
    field = chance.choice(list(WRONG))
    value = chance.choice(WRONG[field])
    if isinstance(value, str) and value.startswith("first tensor"):
        tensors = content["state_dict"] if field == "state_dict" else content["optimizer"]["state"][0]
        name = next(name for name, tensor in tensors.items() if tensor.ndim)
        if value.endswith("missing"):
            del tensors[name]
        else:
            tensors[name] = torch.zeros(3, 1, 4)
    else:
        content[field] = value
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return f"with {field} {str(value)[:40]}", buffer.getvalue()


def _wrong_member(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Replace a member of the archive, with a valid checksum."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as new:
        # Tensor values may be arbitrary, but their descriptions may not.
        names = [name for name in old.namelist() if "/data/" not in name]
        chosen = chance.choice(names)
        for name in old.namelist():
            content = old.read(name)
            is_chosen = name == chosen and bool(content)
            new.writestr(name, MUTATIONS[chance.choice(CRUDE)](content, chance) if is_chosen else content)
    return f"with another {chosen.rpartition('/')[2]}", buffer.getvalue()
