"""Files that come with the project and are installed with the package: recipes, and the runs behind the tables."""

from __future__ import annotations

from pathlib import Path

__all__ = ["experiments_folder", "find_recipe", "shipped_folder"]

PACKAGE = Path(__file__).resolve().parents[1]


def shipped_folder(name: str) -> Path | None:
    """Return a top-level folder of the project: its copy in the installed package, or that of the checkout, if any."""
    folders = [PACKAGE / name]
    if PACKAGE.parent.name == "src":  # elsewhere, two folders up is nothing of the project's
        folders.append(PACKAGE.parents[1] / name)
    return next((folder for folder in folders if folder.is_dir()), None)


def experiments_folder() -> Path:
    """Return the folder of the recipes.

    Raises:
        FileNotFoundError: If there is none.
    """
    folder = shipped_folder("experiments")
    if folder is None:
        raise FileNotFoundError("the experiments are not installed: take them from the project's folder experiments/")
    return folder


def find_recipe(path: Path) -> Path | None:
    """Return the shipped file that a path like `experiments/spatial/small.yaml` names, wherever one is; None if none.

    Example:
        >>> find_recipe(Path("experiments/spatial/small.yaml")).name, find_recipe(Path("experiments/../README.md"))
        ('small.yaml', None)
    """
    folder = shipped_folder("experiments")
    if folder is None or path.parts[:1] != ("experiments",) or ".." in path.parts:
        return None
    file = folder.joinpath(*path.parts[1:])
    return file if file.is_file() else None
