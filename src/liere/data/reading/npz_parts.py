"""The splits in `.npz` files: by array names in one file, or by file names in a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from liere.data.reading.npz_archive import KINDS, Array, list_arrays, load_array
from liere.data.reading.npz_pixels import as_pixels, channels_first, check_finite
from liere.data.subsets import SPLITS
from liere.errors import InputError, nearest
from liere.files.reading import check_regular, shorten

__all__ = ["Part", "find_files", "read_file", "read_folder"]

FORMS = (
    "it must contain 'images' (or 'volumes', 'videos') and 'labels', or 'train_images', 'train_labels', 'test_images', "
    "'test_labels'"
)


class Part(NamedTuple):
    """The arrays of a split, or of a file without splits."""

    name: str
    images: Array  # [examples, channels, *axes]
    labels: Array
    groups: Array | None


def find_files(root: Path) -> dict[str, Path]:
    """Return the file itself, or the files of a folder by split."""
    if root.exists() and not root.is_dir():
        check_regular(root)
        return {"": root}
    if not root.exists():
        written = root.with_name(f"{root.name}.npz")  # `np.savez` adds the suffix
        hint = f"did you mean {written}?" if written.is_file() else "set it to a .npz file or a folder with train.npz"
        raise FileNotFoundError(f"no data at --data.root {root}: {hint}")
    _check_split_names(root, (file.stem for file in sorted(root.glob("*.npz"))))
    files = {split: root / f"{split}.npz" for split in SPLITS}
    for split in ("train", "test"):
        if not files[split].exists():
            raise FileNotFoundError(f"{files[split]} is missing: add it, or set --data.root to a single file")
    found = {split: file for split, file in files.items() if file.exists()}
    for file in found.values():
        check_regular(file)
    return found


def read_file(path: Path) -> tuple[str, dict[str, Part], Array | None]:
    """Return the kind, splits and classes of a file, with splits (`train_images`) or without (`images`)."""
    keys = list_arrays(path)
    found = [kind for kind in KINDS if {kind, f"train_{kind}"} & keys]
    if len(found) != 1 or {found[0], f"train_{found[0]}"} <= keys:
        listed = [key for key in sorted(keys) if key.removeprefix("train_") in KINDS]
        if listed:
            raise InputError(f"{path} contains {_listed(listed)}: keep only one of them")
        near = nearest("images", keys) or nearest("train_images", keys)
        hint = f"; rename {near!r}" if near else ""
        raise InputError(f"{path} contains {_listed(sorted(keys))}: {FORMS}{hint}")
    kind = found[0]
    if kind in keys:
        parts = {"": _read_part(path, kind, keys)}
    else:
        _check_split_names(path, (key.removesuffix(f"_{kind}") for key in sorted(keys) if key.endswith(f"_{kind}")))
        splits = [split for split in SPLITS if split != "val" or f"val_{kind}" in keys]
        parts = {split: _read_part(path, kind, keys, f"{split}_") for split in splits}
    return kind, parts, load_array(path, "classes") if "classes" in keys else None


def read_folder(files: dict[str, Path]) -> tuple[str, dict[str, Part], Array | None]:
    """Return the kind, splits and classes of the files of a folder."""
    kinds: dict[str, str] = {}
    parts: dict[str, Part] = {}
    classes: Array | None = None
    for split, file in files.items():
        keys = list_arrays(file)
        found = [kind for kind in KINDS if kind in keys]
        if len(found) > 1:
            raise InputError(f"{file} contains {_listed(found)}: keep only one of them")
        kinds[split] = found[0] if found else "images"
        if kinds[split] != kinds["train"]:
            raise InputError(
                f"{file} contains {kinds[split]}, but {files['train']} contains {kinds['train']}: use one name for both"
            )
        parts[split] = _read_part(file, kinds[split], keys)
        if "classes" in keys:
            names = load_array(file, "classes")
            if classes is not None and names.tolist() != classes.tolist():
                raise InputError(f"{file} has different 'classes' than the other files: store them once, in train.npz")
            classes = names
    return kinds["train"], parts, classes


def _read_part(path: Path, kind: str, keys: set[str], prefix: str = "") -> Part:
    wanted = {name: prefix + name for name in (kind, "labels")}
    for key in wanted.values():
        if key not in keys:
            near = nearest(key, keys - set(wanted.values()))
            raise InputError(
                f"{path} has no {key!r}: " + (f"rename {near!r}" if near else f"add it to {_listed(sorted(keys))}")
            )
    name = f"{path}: {wanted[kind]}"
    raw = load_array(path, wanted[kind])
    if not len(raw):
        raise InputError(f"{name} is empty: add at least one example")
    images = check_finite(name, as_pixels(name, channels_first(name, kind, raw)))
    groups = _column(path, prefix + "groups", len(images), wanted[kind]) if prefix + "groups" in keys else None
    return Part(name, images, _column(path, wanted["labels"], len(images), wanted[kind]), groups)


def _column(path: Path, key: str, length: int, images: str) -> Array:
    """Return the labels or groups, `[examples]`."""
    column = load_array(path, key)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(
            f"{path}: {key} must have one entry per example, [examples] or [examples, 1], got shape {column.shape}"
        )
    if column.dtype.kind not in "iubU":
        raise InputError(f"{path}: {key} must be integers or strings, got {column.dtype}: convert them")
    if len(column) != length:
        raise InputError(f"{path} has {length} {images} but {len(column)} {key}: both must have the same length")
    return column


def _check_split_names(where: Path, names: Iterable[str]) -> None:
    """Raise `ValueError` for a split name that would be ignored, such as `valid`."""
    for name in names:
        if name not in SPLITS and name.startswith("val"):
            raise InputError(f"{where} has an unknown split {name!r}: rename it to 'val'")


def _listed(names: Iterable[str]) -> str:
    return shorten(", ".join(map(repr, names))) or "nothing"
