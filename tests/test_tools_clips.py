"""Clips of `tools/make_clips.py` are balanced, reproducible and uninformative without the order of their frames."""

from __future__ import annotations

import itertools
import sys

import pytest

from tests.own_tools import import_tool

np = pytest.importorskip("numpy")
pytest.importorskip("PIL")
COUNTS = {"train": 16, "val": 8, "test": 8}


@pytest.fixture(scope="module")
def tool():
    pytest.importorskip("ale_py", reason="pip install ale-py to render clips")
    return import_tool("make_clips")


@pytest.fixture(scope="module")
def arrays(tool):
    return tool.make_splits(COUNTS, seed=3, quiet=True)


def test_the_file_holds_what_its_readers_expect(arrays):
    classes = len(arrays["classes"])
    assert sorted(arrays) == sorted(
        ["classes", *(f"{split}_{what}" for split in COUNTS for what in ("videos", "labels"))]
    )
    for split, count in COUNTS.items():
        videos, labels = arrays[f"{split}_videos"], arrays[f"{split}_labels"]
        assert (videos.dtype, videos.shape) == (np.uint8, (count, 8, 32, 32))
        assert labels.dtype == np.int64
        assert np.bincount(labels, minlength=classes).tolist() == [count // classes] * classes


def test_another_seed_gives_other_clips(tool, arrays):
    other = tool.make_splits({"train": 8}, seed=4, quiet=True)
    assert not np.array_equal(other["train_videos"], arrays["train_videos"])


def test_every_clip_comes_backwards_with_the_opposite_label_and_never_again(arrays):
    opposite = {"up": "down", "right": "left", "down": "up", "left": "right"}
    names, everything = arrays["classes"].tolist(), []
    for split in COUNTS:
        videos, labels = arrays[f"{split}_videos"], arrays[f"{split}_labels"]
        label_of = {video.tobytes(): names[label] for video, label in zip(videos, labels, strict=True)}
        assert all(label_of[video[::-1].tobytes()] == opposite[label_of[video.tobytes()]] for video in videos)
        everything += label_of
    assert len(set(everything)) == sum(COUNTS.values())


def test_the_first_frame_of_what_is_played_forwards_comes_with_every_label(tool):
    clips = next(tool.play((0,)))
    assert len({clip[0].tobytes() for clip in clips}) == 1
    assert len({clip[-1].tobytes() for clip in clips}) == len(tool.DIRECTIONS)


def test_a_held_direction_moves_the_boxer_that_way(tool):
    """The boxer is brighter than the floor; averages over many moments, because punches throw it back."""
    moves = []
    for clips in itertools.islice(tool.play((0,)), 8):
        ends = [[np.argwhere(frame[2:-2, 2:-2] > 170).mean(axis=0) for frame in clip[[0, -1]]] for clip in clips]
        moves.append([last - first for first, last in ends])
    up, right, down, left = np.mean(moves, axis=0)
    assert up[0] + 2 < min(left[0], right[0]) <= max(left[0], right[0]) < down[0] - 2
    assert left[1] + 2 < min(up[1], down[1]) <= max(up[1], down[1]) < right[1] - 2


def test_clips_that_end_alike_are_noticed(tool):
    clips = np.zeros((3, 8, 4, 4), dtype=np.uint8)
    clips[:, -1, 0, 0] = [0, 100, 200]
    assert tool.end_differently(clips)
    clips[2, -1] = clips[1, -1]
    assert not tool.end_differently(clips)


def test_clips_are_new_once(tool):
    one, other, seen = np.zeros((2, 8, 4, 4), np.uint8), np.ones((2, 8, 4, 4), np.uint8), set()
    assert [tool.is_new(clips, seen) for clips in (one, other, one)] == [True, True, False]


def test_counts_that_cannot_be_balanced_are_refused(tool):
    with pytest.raises(ValueError, match=r"--val must be a multiple of 8, .* got 12"):
        tool.make_splits({"train": 8, "val": 12}, seed=0)


def test_without_ale_py_the_message_says_what_to_install(tool, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    monkeypatch.setattr(sys, "argv", ["make_clips.py", "--out", str(tmp_path / "clips.npz")])
    assert tool.main() == 1
    assert "pip install ale-py==" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_the_same_arrays_again(tool, arrays, monkeypatch, tmp_path):
    words = ["make_clips.py", "--out", str(tmp_path / "new" / "clips.npz"), "--seed", "3"]
    monkeypatch.setattr(
        sys, "argv", words + [word for name, count in COUNTS.items() for word in (f"--{name}", str(count))]
    )
    assert tool.main() == 0
    with np.load(tmp_path / "new" / "clips.npz") as file:
        assert all(np.array_equal(file[name], array) for name, array in arrays.items())
