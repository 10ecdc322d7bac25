from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

pytest.importorskip("tests.training.requirements")
import numpy as np

from liere.cli import main
from liere.evaluation.evaluate import evaluate
from liere.files.reading import DamagedError
from liere.runs.data_of_run import load_data
from liere.runs.model import load_model
from liere.runs.run import open_run
from liere.runs.stored_data import StoredData, read_stored_data
from liere.training.fit import train
from tests.training.tiny import quiet

pytestmark = quiet
CONFIG = """\
data: {name: npz, root: data/mine.npz}
model: {encoding: liere8, patch_size: 4, dim: 16, depth: 1, heads: 2, mlp_dim: 16}
training: {examples: 32, batch_size: 8, validate_every: 4}
hardware: {accelerator: cpu, threads: 1}
"""


def write_arrays(path: Path, classes: tuple[str, ...] = ("left", "right"), seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    images = np.random.default_rng(seed).integers(0, 256, (60, 12, 8), dtype=np.uint8)
    np.savez(path, images=images, labels=np.arange(60) % 2, classes=list(classes))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with data, and a run that was trained on them from within it."""
    work = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(work)
        write_arrays(Path("data/mine.npz"))
        Path("mine.yaml").write_text(CONFIG)
        assert main(["train", "--config", "mine.yaml", "--out", "runs/a"]) == 0
    return work


@pytest.fixture
def work(trained, tmp_path):
    """A copy of the run elsewhere, with the original hidden."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(trained, copy)
    facts = copy / "runs" / "a" / "facts.json"
    content = json.loads(facts.read_text())
    assert content["root"] == str(trained / "data" / "mine.npz")
    facts.write_text(json.dumps(content | {"root": str(tmp_path / "gone.npz")}))
    return copy


def logits(run):
    torch.manual_seed(0)
    return load_model(run.config, run.final_weights)(torch.randn(2, 1, 12, 8))


def test_a_run_works_without_its_data(trained, work, monkeypatch):
    monkeypatch.chdir(trained)
    before = open_run(Path("runs/a"))
    expected = logits(before)
    shutil.rmtree(work / "data")
    monkeypatch.chdir(work / "runs")
    run = open_run(Path("a"))
    assert torch.equal(logits(run), expected)
    assert run.facts == run.config.data.facts == before.facts
    assert (run.facts.classes, run.facts.image_size) == (("left", "right"), (12, 8))
    assert run.config.fingerprint == before.config.fingerprint == run.result()["fingerprint"]


def test_the_weights_alone_tell_the_facts(work):
    shutil.rmtree(work / "data")
    (work / "runs" / "a" / "facts.json").unlink()
    run = open_run(work / "runs" / "a")
    assert logits(run).shape == (2, 2)
    with pytest.raises(FileNotFoundError, match=r"data/mine\.npz"):
        _ = run.facts


def test_data_are_found_from_any_folder(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = open_run(trained / "runs" / "a")
    assert run.data.path == trained / "data" / "mine.npz"
    assert len(load_data(run, "test")) == 6


def test_data_that_were_moved_with_the_run_are_found(work, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["eval", str(work / "runs" / "a")]) == 0
    assert open_run(work / "runs" / "a").data.path == work / "data" / "mine.npz"


def test_where_data_were_looked_for_is_reported(work, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (work / "data").rename(tmp_path / "other")
    capsys.readouterr()
    assert main(["eval", str(work / "runs" / "a")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for part in ("data/mine.npz", str(tmp_path / "gone.npz"), str(work / "data" / "mine.npz"), "--data.root"):
        assert part in error
    assert main(["eval", str(work / "runs" / "a"), "--data.root", "other/mine.npz"]) == 0


def test_another_place_does_not_make_it_another_run(work, tmp_path):
    write_arrays(tmp_path / "new.npz", seed=1)
    run = open_run(work / "runs" / "a", {"data.root": str(tmp_path / "new.npz")})
    assert run.config.fingerprint == run.result()["fingerprint"]
    assert run.facts == read_stored_data(run.facts_file).facts  # the normalization from training
    (record,) = evaluate(run, [8], say=print)
    assert record["examples"] == 6


def test_data_of_another_task_are_refused(work, tmp_path):
    write_arrays(tmp_path / "new.npz", classes=("up", "down"))
    run = open_run(work / "runs" / "a", {"data.root": str(tmp_path / "new.npz")})
    with pytest.raises(
        ValueError, match=r"have the classes \('up', 'down'\), but it was trained with \('left', 'right'\)"
    ):
        evaluate(run, [8], say=print)
    run.result_file.unlink()
    with pytest.raises(ValueError, match="have the classes"):
        train(run, say=print)


def test_a_run_of_an_earlier_version_asks_its_data(work, monkeypatch):
    monkeypatch.chdir(work)
    (work / "runs" / "a" / "facts.json").unlink()
    run = open_run(Path("runs/a"))
    assert run.stored_data is None
    assert run.facts.classes == ("left", "right")
    assert evaluate(run, [8], say=print)[0]["examples"] == 6


def test_only_data_in_files_have_another_place(tmp_path, work):
    file = work / "runs" / "a" / "config.yaml"
    file.write_text("data: {name: spatial}\n")
    with pytest.raises(ValueError, match=r"data\.root"):
        open_run(work / "runs" / "a", {"data.root": "x"})


@pytest.mark.parametrize("text", ["[]", "{}", "nothing", '{"classes": ["a"], "root": 3}'])
def test_damaged_facts_are_reported(work, text):
    (work / "runs" / "a" / "facts.json").write_text(text)
    with pytest.raises(DamagedError, match=r"facts\.json is damaged"):
        open_run(work / "runs" / "a")


def test_what_is_written_is_read(trained, tmp_path):
    stored = StoredData(open_run(trained / "runs" / "a").facts, "/somewhere", "../x")
    stored.write(tmp_path / "facts.json")
    assert read_stored_data(tmp_path / "facts.json") == stored
    assert read_stored_data(tmp_path / "none.json") is None
