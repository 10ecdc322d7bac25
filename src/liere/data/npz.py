"""Arrays of one's own: `.npz` files of images, volumes or videos with a label each."""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from liere.data.counter_random import combine
from liere.data.examples import DataFacts
from liere.errors import InputError, nearest, suggest
from liere.files.reading import check_regular, memory_limit, open_regular, reason, shorten
from liere.files.writing import is_machine_trouble
from liere.shapes import Int

__all__ = ["NpzData", "divide", "read_npz"]

KINDS = ("images", "volumes", "videos")
SPLITS = ("train", "val", "test")
MOST_CHANNELS = 4
ALLOWANCE = 256 * 2**20
"""Bytes of memory that the arrays of a file may take, however small the file; see `liere.files.reading`."""
COUNTED_AT_ONCE = 2**22  # pixels
RESIZED_PIXELS = 2**23
"""Pixels that any example may be resized to; others to 8 times as many as they have."""
EXAMPLE_BYTES = 256  # that an example takes besides its pixels: its label, its place, a word to divide it by
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
READ = {
    prefix + name
    for prefix in ("", *(f"{split}_" for split in SPLITS))
    for name in (*KINDS, "labels", "groups", "classes")
}
"""Arrays that are read; a file may hold others."""
SHARE = 0.1  # of the examples of a class, to validate, and again to test
FORMS = (
    "it must hold 'images' (or 'volumes', 'videos') and 'labels', or 'train_images', 'train_labels', 'test_images', "
    "'test_labels'"
)

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class NpzData:
    """What is in the files.

    Attributes:
        root: The file, or the folder of files.
        splits: Images `[examples, channels, *axes]`, uint8 or float32, and labels, of `"train"`, `"test"` and, if there
            is such a split, `"val"`.
        facts: Of the arrays as they are; mean and deviation of the training split.
        is_video: Whether the first axis is time.
        has_groups: Whether examples belong together in groups that a split must not tear apart.
    """

    root: Path
    splits: dict[str, tuple[Tensor, Tensor]]
    facts: DataFacts
    is_video: bool
    has_groups: bool

    def part(self, split: str, *, holdout: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return the images and labels that a split is drawn from.

        Args:
            split: `"train"`, `"val"` or `"test"`.
            holdout: Share of the training examples to validate with; with 0, `"val"` is the split of that name, or
                `"test"` where there is none.

        Raises:
            ValueError: If examples were to be held out one by one, but belong together in groups.
        """
        if holdout and self.has_groups:
            raise InputError(
                f"data.holdout {holdout} would tear the groups of {self.root} apart: leave it out, and give a "
                "validation split of its own if there is none"
            )
        if split == "val":
            split = "train" if holdout else "val" if "val" in self.splits else "test"
        return self.splits[split]

    @cached_property
    def sha256(self) -> str:
        """Digest of the arrays, which does not depend on how they are packed."""
        digest = hashlib.sha256()
        for split in sorted(self.splits):
            for array in self.splits[split]:
                digest.update(f"{split} {tuple(array.shape)} {array.dtype}".encode())
                digest.update(array.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def size_at(self, side: int | None) -> tuple[int, ...]:
        """Return the length of each axis where the last one is `side`: the others in proportion, but all frames.

        Raises:
            ValueError: If that is a lot, as it is where the last axis of the arrays is by far the shortest.
        """
        size = self.facts.image_size
        if side is None:
            return size
        scaled = tuple(max(round(side * length / size[-1]), 1) for length in size)
        scaled = (size[0], *scaled[1:]) if self.is_video else scaled
        if math.prod(scaled) > max(8 * math.prod(size), RESIZED_PIXELS):
            raise InputError(
                f"the examples of {self.root} have axes {size} and would have {scaled} where the last one is {side}: "
                "choose a smaller size"
            )
        return scaled

    def check_rand_augment(self) -> None:
        """Raise `ValueError` if these are not the images that RandAugment is made for."""
        images, _ = self.splits["train"]
        if images.dtype != torch.uint8 or images.ndim != 4 or self.facts.channels != 3:
            kind = str(images.dtype).removeprefix("torch.")
            raise InputError(
                f"data.rand_augment is for flat uint8 images with 3 channels, but {self.root} has {kind} with "
                f"{self.facts.channels} and axes {self.facts.image_size}: leave it out"
            )


def read_npz(root: Path, seed: int = 0) -> NpzData:
    """Return what a file, or a folder with `train.npz`, `test.npz` and maybe `val.npz`, holds.

    A file is read once as long as it does not change. One without splits of its own is divided by `divide`.

    Args:
        root: The file or folder.
        seed: Decides who goes where in a file without splits.

    Raises:
        FileNotFoundError: If it is not there.
        ValueError: If it is damaged, or does not hold what it should.
    """
    files = _find_files(root)
    stamps = tuple((str(file.resolve()), file.stat().st_mtime_ns, file.stat().st_size) for file in files.values())
    return _read(root, seed, stamps)


def divide(labels: Int[Tensor, "units"], words: Int[Tensor, "units"], seed: int = 0) -> dict[str, Tensor]:
    """Return who is in which split, class by class: a tenth to `"val"`, a tenth to `"test"`, at least one to each.

    Of a class with two, one is for training and one for tests; a class with one is for training.

    Args:
        labels: Class of each example or group.
        words: A number that tells each from others, wherever it stands.
        seed: Of the order.

    Example:
        >>> parts = divide(torch.tensor([0] * 20 + [1] * 10), torch.arange(30))
        >>> {split: len(members) for split, members in parts.items()}
        {'train': 24, 'val': 3, 'test': 3}
    """
    order = combine(torch.tensor(seed), words).argsort(stable=True)
    parts: dict[str, list[Tensor]] = {split: [] for split in SPLITS}
    by_class = order[labels[order].argsort(stable=True)]
    for members in by_class.split(labels.unique(return_counts=True)[1].tolist()):
        share = max(round(SHARE * len(members)), 1)
        num_test = min(share, len(members) - 1)
        num_val = min(share, len(members) - 1 - num_test)
        sizes = [len(members) - num_val - num_test, num_val, num_test]
        for split, part in zip(SPLITS, members.split(sizes), strict=True):
            parts[split].append(part)
    return {split: torch.cat(members).sort().values for split, members in parts.items()}


class _Part(NamedTuple):
    """The arrays of a split, or of a file without splits."""

    name: str
    images: Array  # [examples, channels, *axes]
    labels: Array
    groups: Array | None


def _find_files(root: Path) -> dict[str, Path]:
    """Return the file, or the files of the splits in a folder."""
    if root.exists() and not root.is_dir():
        check_regular(root)
        return {"": root}
    if not root.exists():
        written = root.with_name(f"{root.name}.npz")  # `np.savez` adds the ending
        hint = f"did you mean {written}?" if written.is_file() else "give a .npz file, or a folder with train.npz"
        raise FileNotFoundError(f"no data at --data.root {root}: {hint}")
    _check_split_names(root, (file.stem for file in sorted(root.glob("*.npz"))))
    files = {split: root / f"{split}.npz" for split in SPLITS}
    for split in ("train", "test"):
        if not files[split].exists():
            raise FileNotFoundError(f"{files[split]} is missing: put it there, or give one file with --data.root")
    found = {split: file for split, file in files.items() if file.exists()}
    for file in found.values():
        check_regular(file)
    return found


@lru_cache(maxsize=1)
def _read(root: Path, seed: int, stamps: tuple[tuple[str, int, int], ...]) -> NpzData:
    """Read files; `stamps` are here to tell those that have changed."""
    files = _find_files(root)
    if "" in files:
        kind, parts, classes = _read_file(root)
    else:
        kind, parts, classes = _read_folder(files)
    names, labels = _number_labels(parts, classes)
    if list(parts) == [""]:
        _, images, _, groups = parts[""]
        chosen = _divide_part(root, images, labels[""], groups, seed)
        splits = {split: (torch.from_numpy(images[i]), torch.from_numpy(labels[""][i])) for split, i in chosen.items()}
    else:
        _check_alike(parts)
        splits = {
            split: (torch.from_numpy(part.images), torch.from_numpy(labels[split])) for split, part in parts.items()
        }
    _check_classes(root, splits, names)
    images = splits["train"][0].numpy()
    mean, std = _statistics(images)
    has_groups = any(part.groups is not None for part in parts.values())
    return NpzData(
        root, splits, DataFacts(names, images.shape[1], images.shape[2:], mean, std), kind == "videos", has_groups
    )


def _read_file(path: Path) -> tuple[str, dict[str, _Part], Array | None]:
    """Read a file with splits, `train_images`, or without, `images`."""
    keys = _keys(path)
    found = [kind for kind in KINDS if {kind, f"train_{kind}"} & keys]
    if len(found) != 1 or {found[0], f"train_{found[0]}"} <= keys:
        listed = [key for key in sorted(keys) if key.removeprefix("train_") in KINDS]
        if listed:
            raise InputError(f"{path} holds {_listed(listed)}: keep one of them")
        near = nearest("images", keys) or nearest("train_images", keys)
        hint = f"; rename {near!r}" if near else ""
        raise InputError(f"{path} holds {_listed(sorted(keys))}: {FORMS}{hint}")
    kind = found[0]
    if kind in keys:
        parts = {"": _read_part(path, kind, keys)}
    else:
        _check_split_names(path, (key.removesuffix(f"_{kind}") for key in sorted(keys) if key.endswith(f"_{kind}")))
        splits = [split for split in SPLITS if split != "val" or f"val_{kind}" in keys]
        parts = {split: _read_part(path, kind, keys, f"{split}_") for split in splits}
    return kind, parts, _load(path, "classes") if "classes" in keys else None


def _read_folder(files: dict[str, Path]) -> tuple[str, dict[str, _Part], Array | None]:
    kinds: dict[str, str] = {}
    parts: dict[str, _Part] = {}
    classes: Array | None = None
    for split, file in files.items():
        keys = _keys(file)
        found = [kind for kind in KINDS if kind in keys]
        if len(found) > 1:
            raise InputError(f"{file} holds {_listed(found)}: keep one of them")
        kinds[split] = found[0] if found else "images"
        if kinds[split] != kinds["train"]:
            raise InputError(f"{file} holds {kinds[split]}, but {files['train']} holds {kinds['train']}: use one name")
        parts[split] = _read_part(file, kinds[split], keys)
        if "classes" in keys:
            names = _load(file, "classes")
            if classes is not None and names.tolist() != classes.tolist():
                raise InputError(f"{file} has other 'classes' than the files before it: give them once, in train.npz")
            classes = names
    return kinds["train"], parts, classes


def _read_part(path: Path, kind: str, keys: set[str], prefix: str = "") -> _Part:
    wanted = {name: prefix + name for name in (kind, "labels")}
    for key in wanted.values():
        if key not in keys:
            near = nearest(key, keys - set(wanted.values()))
            raise InputError(
                f"{path} has no {key!r}: " + (f"rename {near!r}" if near else f"it holds {_listed(sorted(keys))}")
            )
    name = f"{path}: {wanted[kind]}"
    raw = _load(path, wanted[kind])
    if not len(raw):
        raise InputError(f"{name} is empty: give at least one example")
    images = _finite(name, _as_pixels(name, _channels_first(name, kind, raw)))
    groups = _column(path, prefix + "groups", len(images), wanted[kind]) if prefix + "groups" in keys else None
    return _Part(name, images, _column(path, wanted["labels"], len(images), wanted[kind]), groups)


def _keys(path: Path) -> set[str]:
    """Return the names of the arrays, once it is certain that those that matter fit in memory."""
    with _opened(path) as archive:
        keys = {name.removesuffix(".npy") for name in archive.namelist()}
    _check_memory(path, sorted(keys & READ))
    return keys


def _load(path: Path, key: str) -> Array:
    with _opened(path) as archive:
        try:
            with archive.open(_member(archive, key)) as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
        except Exception as error:
            if is_machine_trouble(error):
                raise
            if "Object arrays" in str(error):
                raise InputError(
                    f"{path}: {key} holds Python objects, not numbers (are they of several shapes?): give all one shape"
                ) from None
            raise _unreadable(path, error) from None
    if array.ndim == 0:
        raise InputError(f"{path}: {key} is not an array with an entry for each example: write it with np.savez")
    return array


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    with open_regular(path) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            raise InputError(f"{path} is a single array: write images and labels into one file with np.savez")
        try:
            archive = zipfile.ZipFile(stream)
        except Exception as error:
            if is_machine_trouble(error):
                raise
            raise _unreadable(path, error) from None
        with archive:
            yield archive


def _member(archive: zipfile.ZipFile, key: str) -> str:
    return key if key in archive.namelist() else f"{key}.npy"


def _check_memory(path: Path, keys: Iterable[str]) -> None:
    """Raise `ValueError` if arrays claim more than they hold, or would take much more memory than the file's size.

    Nothing is unpacked for that but the headers of the arrays.
    """
    limit = memory_limit(path.stat().st_size, ALLOWANCE)
    needed = 0
    with _opened(path) as archive:
        for key in keys:
            try:
                needed += _claimed_memory(archive, _member(archive, key))
            except Exception as error:
                if is_machine_trouble(error):
                    raise
                raise _unreadable(path, error) from None
    if needed > limit:
        raise InputError(
            f"{path} would take {needed:,} bytes of memory, but at most {limit:,} are allowed for a file of its size: "
            "write it with np.savez instead of np.savez_compressed"
        )


def _claimed_memory(archive: zipfile.ZipFile, name: str) -> int:
    """Return how much memory the header of an array asks for: its pixels as they are kept, and a bit per example."""
    member = archive.getinfo(name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others expand by any factor
        raise InputError(f"{name} is compressed in a way that numpy does not use")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in HEADERS:
            raise InputError(f"{name} has format {version}")
        shape, _, dtype = HEADERS[version](stream)
        held = member.file_size - stream.tell()
    if dtype.hasobject:
        return 0  # is refused when it is read
    values = math.prod(shape)
    if min(shape, default=0) < 0 or values * dtype.itemsize != held:
        raise InputError(f"{name} has shape {shape} and {dtype}, but {held:,} bytes")
    itemsize = dtype.itemsize if dtype in (np.uint8, np.bool_) else max(dtype.itemsize, np.dtype(np.float32).itemsize)
    return values * itemsize + (shape[0] if shape else 1) * EXAMPLE_BYTES


def _unreadable(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is damaged, or no .npz file ({reason(error)}): write it again with np.savez")


def _channels_first(name: str, kind: str, images: Array) -> Array:
    """Return `[examples, channels, *axes]` of arrays whose channels, if any, are last."""
    shape = images.shape
    few = 1 <= shape[-1] <= MOST_CHANNELS
    if 0 in shape:
        raise InputError(f"{name} has shape {shape}: an axis without pixels")
    if few and (images.ndim == 5 or (images.ndim == 4 and kind == "images")):
        return np.moveaxis(images, -1, 1)
    if kind == "images" and images.ndim == 4 and shape[1] <= MOST_CHANNELS:
        raise InputError(
            f"{name} has shape {shape}: put channels last with np.moveaxis(images, 1, -1), or name it 'volumes' if "
            f"these are {shape[1]} slices"
        )
    if images.ndim == 4 or (kind == "images" and images.ndim == 3):
        return images[:, None]
    axes = "height, width" if kind == "images" else "depth, height, width"
    axes = axes.replace("depth", "frames") if kind == "videos" else axes
    raise InputError(
        f"{name} must be [examples, {axes}] or [examples, {axes}, channels] with at most {MOST_CHANNELS} channels, got "
        f"shape {shape}"
    )


def _as_pixels(name: str, images: Array) -> Array:
    """Return bytes as they are, bools as black and white, and other numbers as float32."""
    if images.dtype == np.uint8:
        return np.ascontiguousarray(images)
    if images.dtype == np.bool_:
        return np.ascontiguousarray(images).astype(np.uint8) * np.uint8(255)
    if images.dtype.kind not in "iuf":
        raise InputError(f"{name} must hold numbers, got {images.dtype}: convert them, to float32 say")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(images.astype(np.float32))


def _finite(name: str, images: Array) -> Array:
    if images.dtype == np.float32:
        bad = sum(not np.isfinite(image).all() for image in images)
        if bad:
            raise InputError(
                f"{name} has NaN or infinity in {bad} of {len(images)} examples: mend them or leave them out"
            )
    return images


def _column(path: Path, key: str, length: int, images: str) -> Array:
    """Return labels or groups, `[examples]`."""
    column = _load(path, key)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(f"{path}: {key} must be one an example, [examples] or [examples, 1], got shape {column.shape}")
    if column.dtype.kind not in "iubU":
        raise InputError(f"{path}: {key} must be integers or strings, got {column.dtype}: convert them")
    if len(column) != length:
        raise InputError(f"{path} has {length} {images}, but {len(column)} {key}: give one for each")
    return column


def _number_labels(parts: dict[str, _Part], classes: Array | None) -> tuple[tuple[str, ...], dict[str, Array]]:
    """Return names of classes, and labels that count from 0."""
    kinds = {part.labels.dtype.kind == "U" for part in parts.values()}
    where = next(iter(parts.values())).name
    if len(kinds) > 1:
        raise InputError(f"{where}: labels are integers in one split and strings in another: use one of them")
    if classes is None:
        values = np.unique(np.concatenate([part.labels for part in parts.values()]))
        return tuple(map(str, values.tolist())), {
            split: np.searchsorted(values, part.labels).astype(np.int64) for split, part in parts.items()
        }
    if classes.ndim != 1 or classes.dtype.kind not in "iuU" or len(set(classes.tolist())) < len(classes):
        raise InputError(f"{where}: classes must be different names, one a class, got {shorten(str(classes.tolist()))}")
    names = tuple(map(str, classes.tolist()))
    places = {name: place for place, name in enumerate(names)}
    numbered = {}
    for split, part in parts.items():
        if kinds == {True}:
            for label in sorted({*part.labels.tolist()} - places.keys()):
                raise InputError(
                    f"{part.name}: label {shorten(label)!r} is not one of classes: {shorten(suggest(label, names))}"
                )
            numbered[split] = np.array([places[label] for label in part.labels.tolist()], dtype=np.int64)
        else:
            numbered[split] = part.labels.astype(np.int64)
            for label in sorted({*numbered[split].tolist()} - {*range(len(names))}):
                raise InputError(f"{part.name}: label {label} is not a place in classes, 0 to {len(names) - 1}")
    return names, numbered


def _divide_part(
    root: Path, images: Array, labels: Array, groups: Array | None, seed: int
) -> dict[str, NDArray[np.int64]]:
    """Divide the examples of a file, whatever their order in it; those of a group stay together."""
    if groups is None:
        units = np.arange(len(labels))
        words = [_word(memoryview(image)) for image in images]
        classes = labels
    else:
        distinct, units = np.unique(groups, return_inverse=True)
        words = [_word(str(group).encode()) for group in distinct.tolist()]
        classes = _main_classes(units, labels)
    parts = divide(torch.from_numpy(classes), torch.tensor(words), seed)
    for split, members in parts.items():
        if not len(members):
            what = "examples" if groups is None else "groups"
            raise InputError(
                f"{root} has too few {what} to divide, {len(classes)}, so that nothing is left for {split!r}: give at "
                f"least 3 {what} of a class, or files for train and test"
            )
    return {split: np.flatnonzero(np.isin(units, members.numpy())) for split, members in parts.items()}


def _main_classes(units: NDArray[np.int64], labels: Array) -> NDArray[np.int64]:
    """Return for each group the class that most of it has, the lowest of several; linear in the examples."""
    pairs, counts = np.unique(np.stack([units.ravel(), labels]), axis=1, return_counts=True)
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    _, first = np.unique(pairs[0][order], return_index=True)
    return pairs[1][order][first]


def _word(content: bytes | memoryview) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little", signed=True)


def _check_split_names(where: Path, names: Iterable[str]) -> None:
    """Raise `ValueError` for a split that would be passed over, like `valid`."""
    for name in names:
        if name not in SPLITS and name.startswith("val"):
            raise InputError(f"{where} has a split {name!r}: call it 'val'")


def _check_alike(parts: dict[str, _Part]) -> None:
    """Raise `ValueError` if splits differ in what they hold, or share a group."""
    train = parts["train"]
    for part in parts.values():
        for one, other, what in (
            (train.images.shape[1:], part.images.shape[1:], "channels and axes"),
            (train.images.dtype, part.images.dtype, "pixels"),
        ):
            if one != other:
                raise InputError(f"{part.name} has {what} {other}, but {train.name} has {one}: make them alike")
    seen: dict[Any, str] = {}
    for part in parts.values():
        for group in sorted(set([] if part.groups is None else part.groups.tolist())):
            if seen.setdefault(group, part.name) != part.name:
                raise InputError(
                    f"group {shorten(repr(group))} is in {seen[group]} and in {part.name}: keep it in one split"
                )


def _check_classes(root: Path, splits: dict[str, tuple[Tensor, Tensor]], names: tuple[str, ...]) -> None:
    known = set(splits["train"][1].tolist())
    for split, (_, labels) in splits.items():
        for label in sorted(set(labels.tolist()) - known):
            raise InputError(
                f"{root}: label {shorten(names[label])!r} is in {split!r}, but not in 'train': take it out, or divide "
                "the examples in another way (data.seed)"
            )
    if len(known) < 2:
        raise InputError(
            f"{root}: all training examples have label {shorten(names[min(known)])!r}: there is nothing to learn"
        )


def _statistics(images: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of each channel, of bytes in [0, 1]; a channel that is constant gets deviation 1."""
    means, deviations = [], []
    for channel in range(images.shape[1]):
        values = images[:, channel]
        if values.dtype == np.uint8:
            levels, counts = np.arange(256) / 255, _count_levels(values)
            mean = np.average(levels, weights=counts)
            deviation = np.sqrt(np.average((levels - mean) ** 2, weights=counts))
        else:
            mean, deviation = values.mean(dtype=np.float64), values.std(dtype=np.float64)
        means.append(float(mean))
        deviations.append(float(deviation) if values.min() < values.max() else 1.0)
    return tuple(means), tuple(deviations)


def _count_levels(values: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how often each byte occurs; in parts, because counting takes eight bytes for each."""
    step = max(COUNTED_AT_ONCE // max(values[0].size, 1), 1)
    parts = (values[start : start + step] for start in range(0, len(values), step))
    return np.sum([np.bincount(part.ravel(), minlength=256) for part in parts], axis=0)


def _listed(names: Iterable[str]) -> str:
    return shorten(", ".join(map(repr, names))) or "nothing"
