"""What is in a folder, to see that a command leaves it as it was."""

from __future__ import annotations

from pathlib import Path

__all__ = ["everything"]


def everything(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
