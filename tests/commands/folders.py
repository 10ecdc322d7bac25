"""The contents of a folder, to check that a command does not change it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["everything"]


def everything(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
