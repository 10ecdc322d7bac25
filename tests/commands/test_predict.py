"""`liere predict`."""

from __future__ import annotations

import csv
import json
import os

import pytest
from PIL import Image

pytest.importorskip("tests.training.requirements")
from liere import toolkit
from liere.cli import main
from liere.evaluation.predict import Prediction
from liere.toolkit import predict
from tests.training.tiny import quiet

pytestmark = quiet


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Three images in a folder below the working directory of the commands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    for number in range(3):
        Image.new("RGB", (40, 36), (80 * number, 20, 20)).save(tmp_path / "pictures" / f"{number}.png")
    return tmp_path / "pictures"


def test_it_prints_and_writes(finished, pictures, tmp_path, capsys):
    outputs = ["--json", "out/found.json", "--csv", "found.csv", "--top", "3"]
    assert main(["predict", str(finished.folder), "pictures", *outputs]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"pictures/{number}.png" for number in range(3)]
    assert all(line.count(" %") == 3 for line in lines)
    assert printed.err == "wrote out/found.json\nwrote found.csv\n"
    content = json.loads((tmp_path / "out" / "found.json").read_text())
    assert [record["file"] for record in content] == [line.partition(": ")[0] for line in lines]
    rows = list(csv.DictReader((tmp_path / "found.csv").read_text().splitlines()))
    assert [row["rank"] for row in rows] == ["1", "2", "3"] * 3
    for row, one in zip(rows, [one for record in content for one in record["classes"]], strict=True):
        assert row["class"] == one["class"]
        assert float(row["probability"]) == pytest.approx(one["probability"], abs=1e-5)


def test_what_cannot_be_read_is_told(finished, pictures, capsys):
    (pictures / "bad.png").write_text("nothing")
    assert main(["predict", str(finished.folder), "pictures", "--best"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert printed.err.startswith("warning: cannot read pictures/bad.png")
    assert main(["predict", str(finished.folder), "gone.png"]) == 2
    assert "there is no image gone.png: check the path" in capsys.readouterr().err
    assert main(["predict", "nowhere", "pictures"]) == 2
    assert "no run at nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_a_pipe_is_not_replaced_and_nothing_is_computed(finished, pictures, tmp_path, capsys, option):
    os.mkfifo(tmp_path / "pipe")
    assert main(["predict", str(finished.folder), "pictures", option, "pipe"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "pipe could not be written (it is a device, pipe or socket, not a regular file)" in printed.err
    assert (tmp_path / "pipe").is_fifo()


def test_a_size_has_a_limit(finished, pictures, capsys):
    with pytest.raises(SystemExit):
        main(["predict", str(finished.folder), "pictures", "--size", "1000000"])
    assert "--size: must be at most 10,000, got 1000000" in capsys.readouterr().err
    with pytest.raises(ValueError, match="size must be at most 10,000, got 1000000"):
        predict(finished, "pictures", size=10**6)


def test_each_prediction_is_one_line(pictures, monkeypatch, capsys):
    found = [Prediction("a\nb.png", ("cat\n\x1b[2Jdog", "bird"), (0.75, 0.25))]
    monkeypatch.setattr(toolkit, "predict", lambda *_, **__: found)
    assert main(["predict", "run", "pictures"]) == 0
    assert capsys.readouterr().out == "a\\nb.png: cat\\n\\x1b[2Jdog 75.0 %, bird 25.0 %\n"
