from __future__ import annotations

import shutil

import pytest
import torch

pytest.importorskip("tests.training.requirements")
pytest.importorskip("av")
from liere.evaluation.evaluate import evaluate
from liere.evaluation.predictions import Predictions
from liere.training.fit import train
from tests.data.file_archives import ACTIONS, shown_numbers, truncate, write_ucf101
from tests.data.sections import open_data
from tests.training.tiny import make_run, quiet


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return write_ucf101(tmp_path_factory.mktemp("videos") / "ucf101")


@pytest.fixture
def root(archive, tmp_path):
    """A copy that may be damaged."""
    shutil.copytree(archive, tmp_path / "ucf101")
    return tmp_path / "ucf101"


def load(root, split="train", *, size=32, length=None, **fields):
    return open_data("ucf101", root=str(root), **fields).load(split, size=size, length=length)


def names(data):
    return [data.files[index].name for index in range(len(data))]


@pytest.mark.parametrize("fold", [1, 2, 3])
def test_the_lists_of_a_fold_are_followed(archive, fold):
    train, val, test = (load(archive, split, fold=fold) for split in ("train", "val", "test"))
    groups = [group for group in (1, 2, 3, 4) if group != fold]
    assert names(train) == [f"v_{name}_g{group:02}_c01.avi" for name in ACTIONS for group in groups]
    assert train.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert names(test) == names(val) == [f"v_{name}_g{fold:02}_c01.avi" for name in ACTIONS]
    assert test.labels.tolist() == [0, 1, 2]
    assert train.facts.classes == ACTIONS
    assert train.facts.image_size == (8, 32, 32)
    assert open_data("ucf101", root=str(archive)).facts.image_size == (8, 224, 224)


def test_clips(archive):
    images, labels = load(archive, "test").batch(range(3))
    assert images.shape == (3, 5, 3, 8, 32, 32)
    assert labels.tolist() == [0, 1, 2]
    for label, clips in zip(labels, images, strict=True):
        assert shown_numbers(clips[0] - label.to(torch.uint8)) == list(range(0, 29, 4))
        assert shown_numbers(clips[-1] - label.to(torch.uint8)) == list(range(1, 30, 4))
    batch = load(archive, frame_stride=2).load([0, 8], torch.tensor([1, 2]))
    assert batch.images.shape == (2, 3, 8, 32, 32)


def test_a_part_of_the_training_videos_can_be_held_out(archive):
    kept, held_out = load(archive, "train", holdout=0.34), load(archive, "val", holdout=0.34)
    assert (len(kept), len(held_out)) == (6, 3)
    assert sorted(names(kept) + names(held_out)) == sorted(names(load(archive)))
    assert len(load(archive, fraction=0.34)) == 3
    assert len(load(archive, "test", length=2)) == 2


def test_without_the_data_set():
    facts = open_data("ucf101", root="nowhere").facts
    assert (len(facts.classes), facts.image_size) == (101, (8, 224, 224))
    with pytest.raises(FileNotFoundError, match=r"nowhere.ucfTrainTestlist.classInd.txt is missing"):
        load("nowhere")


@quiet
def test_a_run_trains_and_is_tested(root, tmp_path, capsys):
    damaged = root / "UCF-101" / "Archery" / "v_Archery_g03_c01.avi"
    truncate(damaged)
    run = make_run(
        tmp_path / "run",
        data={"name": "ucf101", "root": str(root), "size": 32, "flip": True, "test_clips": 2},
        model__patch_size=[2, 16, 16],
        training__examples=16,
    )
    assert train(run, say=print)["step"] == 2
    errors = capsys.readouterr().err
    assert errors.count(str(damaged)) == 1
    (record,) = evaluate(run, [48], batch_size=2, say=print)
    assert record["examples"] == 3
    assert Predictions.read(run.folder / record["predictions"]).ids == [0, 1, 2]
