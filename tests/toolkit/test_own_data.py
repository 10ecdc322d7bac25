"""Data passed from Python: training, testing, comparisons in other processes, and predictions."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import TensorDataset

pytest.importorskip("tests.training.requirements")
from liere import toolkit
from liere.data import torch_datasets
from tests.training.tiny import quiet

pytestmark = quiet
RECIPE = {
    "model": {"encoding": "liere8", "patch_size": 4, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 32},
    "optimizer": {"learning_rate": 3e-3},
    "training": {"examples": 480, "batch_size": 16, "validate_every": 15},
    "hardware": {"accelerator": "cpu", "threads": 1},
}


def corners(count: int, seed: int) -> TensorDataset:
    """Return images with a bright patch in one of three corners, which is the label."""
    labels = torch.arange(count) % 3
    images = torch.randint(0, 60, (count, 1, 8, 8), generator=torch.Generator().manual_seed(seed)).byte()
    for image, label in zip(images, labels.tolist(), strict=True):
        row, column = ((0, 0), (0, 4), (4, 0))[label]
        image[:, row : row + 4, column : column + 4] += 150
    return TensorDataset(images, labels)


def test_two_data_sets_are_compared_in_processes_of_their_own(tmp_path):
    result = toolkit.compare(
        RECIPE,
        encodings=["none", "absolute:init_std=1"],
        seeds=[0],
        data=(corners(48, seed=0), corners(12, seed=1)),
        out=tmp_path,
        jobs=2,
        progress=False,
    )
    rows = {row["encoding"]: row for row in result.table(pandas=False)}
    assert {row["examples"] for row in rows.values()} == {12}  # those of the second data set
    assert rows["absolute"]["mean"] > 0.9
    assert rows["none"]["mean"] < 0.7  # it cannot distinguish positions
    assert {run.config.data.name for run in result.runs} == {"python"}
    assert result.runs[0].config.data.examples == {"train": 48, "test": 12}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train a run on one data set, which is split automatically."""
    out = tmp_path_factory.mktemp("own") / "run"
    return toolkit.train(RECIPE, encoding="absolute:init_std=1", out=out, data=corners(60, seed=0), progress=False)


def test_one_data_set_is_divided_to_train_and_to_test(trained):
    scores = toolkit.evaluate(trained, progress=False)
    (row,) = scores.table(pandas=False)
    assert row["examples"] == 6  # a tenth of the data
    assert row["accuracy"] > 0.6
    assert trained.facts.classes == ("0", "1", "2")


def test_images_that_belong_to_no_data_set_are_predicted(trained):
    images, labels = corners(9, seed=5).tensors
    found = toolkit.predict(trained.folder, images, top=1)
    assert [one.source for one in found] == [f"images[{number}]" for number in range(9)]
    right = [one.classes == (str(label),) for one, label in zip(found, labels.tolist(), strict=True)]
    assert sum(right) >= 8
    assert toolkit.predict(trained, images, top=1) == found
    best = toolkit.predict(trained, images, top=3, best=True)
    assert [len(one.classes) for one in best] == [3] * 9


def test_a_run_whose_data_were_not_given_here_says_what_to_do(trained, monkeypatch):
    monkeypatch.setattr(torch_datasets, "_GIVEN", {})  # as in another process
    message = r"passed from Python \(TensorDataset: 60 all examples\) and are not available: pass them again with data="
    with pytest.raises(ValueError, match=message):
        toolkit.evaluate(trained.folder, progress=False)
    assert toolkit.predict(trained.folder, corners(3, seed=5).tensors[0])  # predictions need no data set


@pytest.mark.usefixtures("no_shape_checks")
def test_what_is_no_data_set_is_told(tmp_path):
    for data, message in (("data", "data must be a section, a torch data set"), ((1, 2, 3, 4), "up to three of them")):
        with pytest.raises(TypeError, match=message):
            toolkit.train(RECIPE, data=data, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
