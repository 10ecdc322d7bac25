"""Smoke tests of every table and figure at the paper's scale, on tiny archives in the real format of the data sets."""

from __future__ import annotations

import html
import json
import shutil

import pytest

pytest.importorskip("tests.training.requirements")
pytest.importorskip("av")

from liere.cli import main
from liere.comparison.executors.local import LocalExecutor
from liere.comparison.executors.work import work
from liere.reproduce.catalog import CATALOGUE
from liere.training.stop_requests import StopRequest
from tests.comparison.executors.fakes import FakeExecutor, FakeSession
from tests.data.archives import write_cifar
from tests.data.file_archives import write_imagenet, write_ucf101
from tests.training.tiny import quiet

pytestmark = [quiet, pytest.mark.xdist_group("reproduce")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write tiny CIFAR-100, ImageNet and UCF101 archives, in the format of the downloads."""
    folder = tmp_path_factory.mktemp("data")
    write_cifar(folder, "cifar100")
    write_imagenet(folder / "imagenet")
    write_ucf101(folder / "ucf101")
    return folder


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Return one folder for all tables, because they share runs."""
    return tmp_path_factory.mktemp("out")


@pytest.fixture
def in_this_process(monkeypatch):
    """Execute runs one after another in this process, because starting processes would take longer than the runs."""

    def finish(task):
        assert work(task, StopRequest()) == 0, task.log.read_text()

    monkeypatch.setattr(LocalExecutor, "open", lambda *_: FakeSession(FakeExecutor(make=finish)))


FIELDS = {
    "main": "--data.verify false --data.frames 4 --data.test_clips 2",
    "block": "--data.verify false --data.frames 4 --data.test_clips 2",
    "shuffling": "--data.verify false --data.frames 4 --data.test_clips 2",
    "compute": "--data.verify false",
    "spatial": "",
    "resolution": "",
}


def reproduce(name, data, out, *more) -> int:
    fields = FIELDS.get(name, FIELDS.get(CATALOGUE[name].experiment, "--data.verify false")).split()
    fields += ["--hardware.accelerator", "cpu", "--hardware.workers", "0", "--hardware.threads", "1"]
    return main(
        ["reproduce", name, "--scale", "paper", "--smoke", "--data", str(data), "--out", str(out), *more, *fields]
    )


SLOW = ("main", "block", "fraction", "shuffling", "resolution")
"""Tables of several data sets or sizes."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CATALOGUE])
def test_it_runs_end_to_end(name, data, out, capsys, in_this_process):
    assert reproduce(name, data, out) == 0
    printed = capsys.readouterr().out
    found = json.loads((out / f"{name}.json").read_text())
    assert found["title"] in html.unescape((out / f"{name}.html").read_text())
    assert (out / f"{name}.md").exists()
    for claim in found["claims"]:
        assert claim["text"] in printed
    for caption in (out / name).glob("*.png") if (out / name).exists() else ():
        assert caption.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_it_runs_in_processes_of_its_own(data, tmp_path, capsys):
    assert reproduce("init", data, tmp_path, "--jobs", "2") == 0
    assert "init: 0 of 4 runs are finished" in capsys.readouterr().out
    assert reproduce("init", data, tmp_path) == 0
    assert "init: 4 of 4 runs are finished" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_that_fails_is_named_and_the_others_are_shown(data, tmp_path, capsys):
    fields = ("--encodings", "liere8", "rope_mixed", "--jobs", "1")
    assert reproduce("init", data, tmp_path, *fields, "--dry-run") == 0
    assert reproduce("init", data, tmp_path, *fields) == 0
    broken = next((tmp_path / "runs").glob("cifar-100-rope_mixed-seed0-*"))
    (broken / "evaluation.json").unlink()
    shutil.rmtree(broken / "predictions")
    (broken / "predictions").write_text("in the way")
    capsys.readouterr()
    assert reproduce("init", data, tmp_path, *fields) == 2
    printed = capsys.readouterr()
    assert "1 run failed, so the table is incomplete" in printed.err
    assert "LieRE₈" in printed.out
