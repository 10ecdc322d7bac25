from __future__ import annotations

import pickle

import pytest
import torch

pytest.importorskip("tests.training.requirements")
from liere.data.batches import EvaluationBatches, ExampleOrder, TrainingBatches
from liere.data.loader import make_loader
from liere.data.reading.decoded_files import UnreadableError
from tests.data.file_archives import WNIDS
from tests.data.imagenet_files import damage, load_imagenet


def test_workers_do_not_matter(imagenet):
    data = pickle.loads(pickle.dumps(load_imagenet(imagenet, size=32, flip=True, rand_augment=(1, 5))))
    batches = TrainingBatches(ExampleOrder(len(data), 3), range(4), 6)
    one, other = (list(make_loader(data, batches, workers=workers)) for workers in (0, 2))
    assert len(one) == 4
    for first, second in zip(one, other, strict=True):
        assert all(map(torch.equal, first, second))


def test_a_damaged_file_is_left_out_and_named_once(imagenet_copy, capsys):
    (path,) = damage(imagenet_copy, [2])
    data = load_imagenet(imagenet_copy, size=32)
    for words in (None, torch.arange(4)):
        batch = data.load([0, 2, 3, 7], words)
        assert batch.ids.tolist() == [0, 3, 7]
        assert batch.labels.tolist() == [0, 0, 1]
        assert batch.images.shape == (3, 3, 32, 32)
    whole = data.load([0, 3, 7], torch.tensor([0, 2, 3]))
    assert torch.equal(batch.images, whole.images)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"liere: warning: cannot read {path} (")
    assert line.endswith("): skipped (1 of at most 10)")


def test_a_batch_is_never_empty(imagenet_copy, capsys):
    damage(imagenet_copy, [1, 2, 3])
    data = load_imagenet(imagenet_copy, size=32)
    batch = data.load([1, 2], torch.tensor([5, 6]))
    assert batch.ids.tolist() == [4]
    assert torch.equal(batch.images, data.load([4], torch.tensor([6])).images)
    image, label = load_imagenet(imagenet_copy, size=32)[1]
    assert label == 0
    assert torch.equal(image, data[4][0])
    damage(imagenet_copy, range(5), wnid=WNIDS[2])
    assert load_imagenet(imagenet_copy, size=32).load([14]).ids.tolist() == [0]


def test_no_readable_file_at_all(imagenet_copy):
    for wnid in WNIDS:
        damage(imagenet_copy, range(5), wnid=wnid)
    with pytest.raises(ValueError, match=r"none of the 15 files of .*train can be read"):
        load_imagenet(imagenet_copy, size=32, max_unreadable=15).load([3, 4])


@pytest.mark.parametrize("workers", [0, 2])
def test_too_many_damaged_files_end_it(imagenet_copy, capfd, workers):
    damage(imagenet_copy, [0, 1, 3])
    data = load_imagenet(imagenet_copy, size=32, max_unreadable=2)
    batches = EvaluationBatches(len(data), 1)
    with pytest.raises(ValueError, match=r"data.max_unreadable is 2") as raised:
        list(make_loader(data, batches, workers=workers))
    assert "\n" not in str(raised.value)
    assert str(imagenet_copy / "train" / WNIDS[0]) in str(raised.value)
    lines = capfd.readouterr().err.splitlines()
    assert len([line for line in lines if "warning: cannot read" in line]) == 2


def test_workers_count_together(imagenet_copy, capfd):
    paths = damage(imagenet_copy, [0, 1, 3])
    data = load_imagenet(imagenet_copy, size=32, max_unreadable=3)
    for _ in range(2):
        ids = [batch.ids for batch in make_loader(data, EvaluationBatches(len(data), 3), workers=2)]
    assert torch.cat(ids).tolist() == [2, *range(4, 15)]
    lines = [line for line in capfd.readouterr().err.splitlines() if "cannot read" in line]
    assert len(lines) == 3
    assert all(sum(str(path) in line for line in lines) == 1 for path in paths)


@pytest.mark.parametrize("allowed", [0, 1])
def test_the_limit_is_exact(imagenet_copy, allowed, capsys):
    damage(imagenet_copy, range(allowed))
    load_imagenet(imagenet_copy, size=32, max_unreadable=allowed).load(range(15))
    damage(imagenet_copy, [4])
    with pytest.raises(ValueError, match=rf"{WNIDS[0]}_4.JPEG .*data.max_unreadable is {allowed}"):
        load_imagenet(imagenet_copy, size=32, max_unreadable=allowed).load(range(15))


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("a\nb.png is a folder", r"a\nb.png is a folder"),
        (ValueError("first\n\x1b[2Jsecond\n"), r"first\n\x1b[2Jsecond"),
        (ValueError("\n"), "ValueError"),
        (OSError(2, "No such file"), "No such file"),
    ],
)
def test_a_reason_is_one_line_and_whole(reason, message):
    assert str(UnreadableError(reason)) == message
