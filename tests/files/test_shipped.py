from __future__ import annotations

from pathlib import Path

import pytest

from liere.files import shipped
from liere.files.shipped import experiments_folder, find_recipe, shipped_folder


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package installed together with a recipe."""
    folder = tmp_path / "site-packages" / "liere"
    (folder / "experiments" / "spatial").mkdir(parents=True)
    (folder / "experiments" / "spatial" / "small.yaml").write_text("title: Small\n")
    monkeypatch.setattr(shipped, "PACKAGE", folder)
    return folder


def test_recipes_are_there_in_a_checkout_and_where_it_is_installed():
    assert (experiments_folder() / "spatial" / "small.yaml").is_file()
    assert (experiments_folder() / "tables" / "main" / "small.yaml").is_file()


def test_kept_runs_are_there_in_a_checkout_and_where_it_is_installed():
    folder = shipped_folder("results")
    assert folder is not None
    assert len(list(folder.glob("reproduce/small/runs/*.tar.xz"))) == 48


def test_an_installed_package_has_its_own(package):
    assert experiments_folder() == package / "experiments"
    assert shipped_folder("results") is None


def test_a_checkout_has_them_beside_src(tmp_path, monkeypatch):
    (tmp_path / "src" / "liere").mkdir(parents=True)
    (tmp_path / "experiments").mkdir()
    monkeypatch.setattr(shipped, "PACKAGE", tmp_path / "src" / "liere")
    assert experiments_folder() == tmp_path / "experiments"
    (tmp_path / "src").rename(tmp_path / "lib")  # folders of other projects are not ours
    monkeypatch.setattr(shipped, "PACKAGE", tmp_path / "lib" / "liere")
    with pytest.raises(FileNotFoundError, match="the experiments are not installed"):
        experiments_folder()


@pytest.mark.parametrize(
    ("path", "is_there"),
    [
        ("experiments/spatial/small.yaml", True),
        ("experiments/spatial/none.yaml", False),
        ("experiments/spatial", False),
        ("experiments", False),
        ("spatial/small.yaml", False),
        ("/experiments/spatial/small.yaml", False),
        ("experiments/../experiments/spatial/small.yaml", False),
        ("", False),
    ],
)
def test_a_recipe_is_found_by_the_path_that_docs_name(package, path, is_there):
    file = package / "experiments" / "spatial" / "small.yaml"
    assert find_recipe(Path(path)) == (file if is_there else None)


def test_without_experiments_no_recipe_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "PACKAGE", tmp_path)
    assert find_recipe(Path("experiments/spatial/small.yaml")) is None


def test_src_has_no_links():
    source = Path(shipped.__file__).parents[1]
    assert not [path for path in source.rglob("*") if path.is_symlink()]
