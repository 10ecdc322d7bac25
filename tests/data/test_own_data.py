"""The page docs/tutorials/compare-on-your-data.md, followed step by step, and what it promises."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import torch

pytest.importorskip("tests.training.requirements")
import numpy as np
import yaml
from PIL import Image

from liere.cli import main
from liere.data import from_datasets, torch_datasets
from liere.evaluation.evaluate import evaluate
from liere.runs.conditions import Condition
from liere.runs.config_file import parse_config
from liere.runs.run import create_run, open_run
from liere.training.fit import train
from tests.training.tiny import differences, quiet, stop_after

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "compare-on-your-data.md"

pytestmark = [quiet, pytest.mark.skipif(not PAGE.exists(), reason="the page is not beside the tests")]


def blocks() -> list[tuple[str, str]]:
    """Language and text of each block of the page, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    """Words of the commands of a block, after `liere`."""
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    assert all(words[0] == "liere" for words in lines)
    return [words[1:] for words in lines]


def follow(language: str, text: str) -> None:
    """Do what a reader does with a block, in the current folder; comparisons have a separate test."""
    if language == "python":
        exec(compile(text, PAGE.name, "exec"), {})
    elif language == "yaml":
        name = re.match(r"# (\S+\.yaml)\n", text)
        assert name, "a configuration begins with the name of its file"
        Path(name[1]).write_text(text)
    else:
        assert language == "bash"
        for words in commands(text):
            assert words[0] == "compare" or main(words) == 0, words


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """Return a folder in which the page was followed."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for language, text in blocks():
            follow(language, text)
    return folder


@pytest.mark.parametrize(("name", "examples"), [("my-images", 30), ("my-scans", 12)])
def test_what_can_be_learned_is_learned(followed, name, examples):
    run = open_run(followed / "runs" / name)
    (record,) = run.evaluations()
    assert record["examples"] == examples
    assert record["accuracy"]["value"] > 0.8
    assert run.is_finished


def comparison() -> list[str]:
    """Return the page's comparison, as words after `liere`."""
    (words,) = [
        words for language, text in blocks() if language == "bash" for words in commands(text) if words[0] == "compare"
    ]
    return words


def test_the_page_compares_both_starts_of_absolute_positions_and_says_what_came_out():
    kept = json.loads((PAGE.parents[2] / "results" / "own_data.json").read_text())
    assert kept["command"] == "liere " + " ".join(comparison())
    found = {row["encoding"]: row["evaluations"][0]["accuracy"]["value"] for row in kept["encodings"]}
    assert list(found) == ["absolute:init_std=1", "absolute", "rope_mixed", "liere8"]
    table = PAGE.read_text().split("one seed |\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [line.split("|")[2].strip() for line in table] == [f"{100 * value:.1f} %" for value in found.values()]
    assert found["absolute"] < 0.5 < found["liere8"] <= found["absolute:init_std=1"]


@pytest.mark.slow
def test_the_comparison_comes_out_as_the_page_says(followed, monkeypatch):
    monkeypatch.chdir(followed)
    assert main(comparison()) == 0
    report = json.loads((followed / "my-comparison" / "report.json").read_text())
    found = {row["encoding"]: row["evaluations"][0] for row in report["encodings"]}
    assert all(record["examples"] == 30 for record in found.values())
    for encoding in ("absolute:init_std=1", "rope_mixed", "liere8"):
        assert found[encoding]["accuracy"]["value"] > 0.9
    assert found["absolute"]["accuracy"]["value"] < 0.5


def test_no_patient_is_in_two_splits(followed, monkeypatch):
    monkeypatch.chdir(followed)
    arrays = np.load("data/my-scans.npz")
    patient_of = dict(zip(map(bytes, arrays["volumes"]), arrays["groups"].tolist(), strict=True))
    data = open_run(followed / "runs" / "my-scans").config.data
    found = [
        {patient_of[image.numpy().tobytes()] for image in data.load(split).images} for split in ("train", "val", "test")
    ]
    assert [len(part) for part in found] == [32, 4, 4]
    assert len(set.union(*found)) == 40


def test_names_of_classes_are_in_the_run(followed, monkeypatch):
    monkeypatch.chdir(followed)
    facts = [open_run(followed / "runs" / name).config.data.facts for name in ("my-images", "my-scans")]
    assert [each.classes for each in facts] == [("left", "middle", "right"), ("high", "low")]
    assert [each.image_size for each in facts] == [(24, 24), (8, 16, 16)]


def test_what_is_wrong_is_reported_in_a_line_before_there_is_a_run(followed, monkeypatch, capsys):
    monkeypatch.chdir(followed)
    np.savez("data/wrong.npz", images=np.zeros((9, 4, 4), np.uint8), lables=np.arange(9) % 3)
    for fields, message in (
        ("--data.root data/wrong.npz", "has no 'labels': rename 'lables'"),
        ("--data.root data/none.npz", "no data at --data.root data/none.npz"),
        ("--model.patch_size 7", "is not divisible by patch_size"),
        ("--data.verify false", "data.verify does not apply to npz"),
    ):
        capsys.readouterr()
        assert main(["train", "--config", "my-images.yaml", "--out", "runs/wrong", *fields.split()]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not Path("runs/wrong").exists()


# Volumes are also called images: 28 slices are too many to be channels.
@pytest.mark.parametrize(("shape", "patch"), [((8, 8), "4"), ((8, 8, 3), "4"), ((28, 8, 8), "[14, 4, 4]")], ids=str)
def test_files_of_medmnist_work_as_they_are(tmp_path, monkeypatch, shape, patch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    arrays = {}
    for split, count in {"train": 32, "val": 8, "test": 8}.items():
        arrays[f"{split}_labels"] = np.arange(count, dtype=np.uint8)[:, None] % 2
        arrays[f"{split}_images"] = random.integers(0, 256, (count, *shape), dtype=np.uint8)
    np.savez("med.npz", **arrays)
    Path("med.yaml").write_text(
        f"data: {{name: npz, root: med.npz}}\nmodel: {{patch_size: {patch}, dim: 8, depth: 1, heads: 1, mlp_dim: 8}}\n"
        "training: {examples: 16, batch_size: 8}\nhardware: {accelerator: cpu, threads: 1}\n"
    )
    assert main(["train", "--config", "med.yaml", "--out", "run"]) == 0
    assert main(["eval", "run"]) == 0
    (record,) = json.loads(Path("run/evaluation.json").read_text())
    assert record["examples"] == 8


RECIPE = {
    "model": {"encoding": "liere8", "patch_size": 8, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 32},
    "optimizer": {"learning_rate": 3e-3},
    "training": {"examples": 400, "batch_size": 40, "validate_every": 5},
    "hardware": {"accelerator": "cpu", "threads": 1},
}


class TestFromPython:
    """Data sets from Python are trained and tested like those in files."""

    @staticmethod
    def patches(seed=0):
        labels = torch.arange(300) % 3
        images = torch.randint(0, 100, (300, 3, 24, 24), generator=torch.Generator().manual_seed(seed)).byte()
        for image, label in zip(images, labels, strict=True):
            image[:, 4:12, 8 * label : 8 * label + 8] += 120
        return torch.utils.data.TensorDataset(images, labels)

    def test_a_run_is_trained_stopped_resumed_and_tested(self, tmp_path, monkeypatch):
        data = from_datasets(self.patches(), description="bright patches")
        config = parse_config(RECIPE | {"data": data.as_config()})
        whole = create_run(tmp_path / "whole", config)
        train(whole, say=print)
        stopped = create_run(tmp_path / "stopped", config)
        stop_after(stopped, 4)
        monkeypatch.setattr(torch_datasets, "_GIVEN", {})
        with pytest.raises(
            ValueError, match=r"passed from Python \(bright patches: 300 all examples\) and are not available"
        ):
            train(open_run(tmp_path / "stopped"), say=print)
        from_datasets(self.patches(seed=1))
        with pytest.raises(ValueError, match="not available, only GivenData"):
            train(open_run(tmp_path / "stopped"), say=print)
        from_datasets(self.patches())
        resumed = open_run(tmp_path / "stopped")
        train(resumed, say=print)
        assert not differences(whole, resumed)
        (record,) = evaluate(resumed, [Condition(24)], say=print)
        assert record["examples"] == 30

    def test_a_run_of_folders_without_splits(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        for name, level in (("cats", 30), ("dogs", 200)):
            (tmp_path / "pets" / name).mkdir(parents=True)
            for number in range(20):
                Image.new("RGB", (20, 20), (level + number, level, level)).save(f"pets/{name}/{number}.png")
        recipe = RECIPE | {"data": {"name": "images", "root": "pets", "size": 16}}
        Path("pets.yaml").write_text(yaml.safe_dump(recipe))
        assert main(["train", "--config", "pets.yaml", "--out", "run"]) == 0
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "no folder 'train'" in line]
        assert "32 for training, 4 for validation and 4 for testing" in line
        assert main(["eval", "run"]) == 0
        assert open_run(Path("run")).evaluations()[0]["examples"] == 4
