"""Files that are installed with the package: recipes, and the runs behind the tables."""

from __future__ import annotations

from pathlib import Path

__all__ = ["experiments_folder", "find_recipe", "shipped_folder"]

PACKAGE = Path(__file__).resolve().parents[1]


def shipped_folder(name: str) -> Path | None:
    """Return a top-level folder of the project, from the installed package or the checkout; None if there is none."""
    folders = [PACKAGE / name]
    if PACKAGE.parent.name == "src":  # only then is this a checkout
        folders.append(PACKAGE.parents[1] / name)
    return next((folder for folder in folders if folder.is_dir()), None)


def experiments_folder() -> Path:
    """Return the folder of the recipes.

    Raises:
        FileNotFoundError: If it is not installed.
    """
    folder = shipped_folder("experiments")
    if folder is None:
        raise FileNotFoundError("the experiments are not installed: copy the folder experiments/ from the project")
    return folder


def find_recipe(path: Path) -> Path | None:
    """Return the shipped file for a path like `experiments/spatial/small.yaml`, or None if there is none.

    Example:
        >>> find_recipe(Path("experiments/spatial/small.yaml")).name, find_recipe(Path("experiments/../README.md"))
        ('small.yaml', None)
    """
    folder = shipped_folder("experiments")
    if folder is None or path.parts[:1] != ("experiments",) or ".." in path.parts:
        return None
    file = folder.joinpath(*path.parts[1:])
    return file if file.is_file() else None
