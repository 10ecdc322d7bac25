"""Attack: damage checkpoints; the newest intact one must be used."""

from __future__ import annotations

import io
import json
import math
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.mutations import MUTATIONS, damage
from tools.attacks.runs import compare, finished_run

__all__ = ["ATTACK", "damage_checkpoint", "same_content"]

BATCH = 50  # damaged files per case; the last one is also resumed to the end
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


def replace_checkpoint(path: Path, chance: random.Random) -> str:
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


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def damage_checkpoint(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Return a description of the damage and the damaged bytes; a third are intact files with wrong content."""
    kind = chance.randrange(6)
    if kind == 0:
        return _wrong_field(data, chance)
    if kind == 1:
        return _wrong_member(data, chance)
    return damage(data, chance)


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


def same_content(one: Any, other: Any) -> bool:
    """Return whether two checkpoints, or parts of them, are equal."""
    import torch

    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(same_content(one[key], other[key]) for key in one)
        )
    return type(one) is type(other) and one == other


class ReadDamaged:
    """Read damaged checkpoints of a run and report what went wrong; called in a separate process."""

    def __init__(self, run: Path, seeds: list[str], report: Path) -> None:
        self.run, self.seeds, self.report = run, seeds, report

    def __call__(self) -> None:
        """Read all of them."""
        from liere.runs.checkpoints import load_checkpoint, load_newest
        from liere.runs.model import build_model
        from liere.runs.run import open_run
        from liere.training.optimizer import kept_shapes, make_optimizer

        config, folder = open_run(self.run).config, self.run / "checkpoints"
        model = build_model(config)
        like, kept = model.state_dict(), kept_shapes(make_optimizer(model, config.optimizer))
        last = folder / "last.ckpt"
        whole = last.read_bytes()
        wanted = {one.step: one for one in map(load_checkpoint, (last, folder / "previous.ckpt"))}
        with self.report.open("w") as report:
            for seed in self.seeds:
                remove(last)
                what, data = damage_checkpoint(whole, random.Random(seed))
                last.write_bytes(data)
                if random.Random(f"{seed}/place").random() < 0.1:
                    what = replace_checkpoint(last, random.Random(seed))
                step = None
                try:
                    found, refused = load_newest(folder, config.fingerprint, config.training.steps, like, kept)
                except BaseException as error:  # any exception breaks the contract
                    loss = f"{type(error).__name__}: {error}"
                else:
                    loss, step = self._loss(found, refused, wanted), found and found.step
                report.write(json.dumps([what, loss, step]) + "\n")
                report.flush()

    @staticmethod
    def _loss(found: Any, refused: list[str], wanted: dict[int, Any]) -> str | None:
        if found is None:
            return "no checkpoint was found"
        if found.step not in wanted or not same_content(vars(found), vars(wanted[found.step])):
            return f"a checkpoint of step {found.step} was accepted that differs from what was saved"
        if any("\n" in line for line in refused):
            return "a warning of more than one line"
        return None if refused or found.step == max(wanted) else "the damage was not reported"


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train one run to the end and one to its second checkpoint, and return the function that tries a case."""
    reference = finished_run(arena, folder)
    stopped, report = folder / "stopped", folder / "report.jsonl"
    arena.run("train", "--config", folder / "config.yaml", "--out", stopped, "--steps", "10")

    def try_case(chance: random.Random, number: int) -> Verdict:
        seeds = [f"{chance.random()}" for _ in range(BATCH)]
        run = folder / "damaged"
        shutil.copytree(stopped, run)
        outcome = arena.run("--version", before=ReadDamaged(run, seeds, report))
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        losses = [f"{what}: {loss}" for what, loss, _ in lines if loss is not None] + outcome.losses(0)
        losses += [] if len(lines) == BATCH else [f"ended after {len(lines)} of {BATCH} damaged files"]
        # The last damaged file is still in place.
        resumed = arena.run("train", "--resume", run)
        losses += resumed.losses(0) or compare(reference, run)
        is_newest = f"resuming after step {lines[-1][2]} of" in resumed.output
        losses += [] if is_newest else [f"resumed, but not after step {lines[-1][2]}: {resumed.output[-300:]!r}"]
        shutil.rmtree(run)
        return Verdict(f"last.ckpt damaged {BATCH} times, the last one resumed ({lines[-1][0]})", losses, BATCH)

    return try_case


ATTACK = Attack(
    "damages",
    "damage last.ckpt at random: it is rejected in one line, and the run resumes from the newest intact checkpoint",
    1.5,
    prepare,
)
