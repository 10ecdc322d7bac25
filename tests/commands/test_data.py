"""`liere data`."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("tests.training.requirements")
from liere.cli import main

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_preview_without_matplotlib_leaves_nothing(config, fail, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = fail("data preview spatial --out new/p.png")
    assert error == "liere: error: pictures need matplotlib: pip install 'liere[plot]'\n"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("spatal", ["unknown data set 'spatal'", "did you mean 'spatial'?"]),
        ("spatial --size 100", ["size must be a multiple of 12 px", "100"]),
        ("spatial --split tran", ["unknown split 'tran'", "did you mean 'train'?"]),
        ("spatial --distance [1,2,3]", ["data.distance must be", "[1, 2, 3]"]),
        ("spatial --colors red", ["data.colors must be 'black' or 'random', got 'red'"]),
        ("spatial --distractor-arrows -1", ["data.distractor_arrows must be greater than or equal to 0", "-1"]),
        ("cifar10 --root nowhere", ["no cifar10 in nowhere", "--data.root"]),
        ("cifar10 --data.root nowhere", ["no cifar10 in nowhere", "--data.root"]),  # the option that is named
        ("spatial --root here", ["data.root does not apply to spatial"]),
        ("spatial --out new/p.exe", ["--out new/p.exe is not a picture: use one of .png, .jpg"]),
        ("spatial --out .", ["--out . is a folder: name a file in it, for example picture.png"]),
        (
            "spatial --size 9996",
            ["--count 24 at --size 9996 is 7,194,241,152 pixel values", "reduce --count or --size"],
        ),
        ("spatial --out file/below.png", ["file/below.png", "choose another"]),
    ],
)
def test_what_is_wrong_is_told(config, tmp_path, fail, arguments, parts):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    error = fail("data preview", arguments)
    for part in parts:
        assert part in error


def test_a_sheet_of_examples_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = "--size 48 --split val --count 5 --colors random --distance [1,3]"
    assert main(["data", "preview", "spatial", *arguments.split()]) == 0
    assert capsys.readouterr().out == "wrote spatial-val-48.png\n"
    assert (tmp_path / "spatial-val-48.png").read_bytes().startswith(PNG)


def test_the_number_of_examples_has_a_limit(capsys):
    with pytest.raises(SystemExit):
        main(["data", "preview", "spatial", "--count", "1000000000"])
    assert "--count: must be at most 1,000, got 1000000000" in capsys.readouterr().err
