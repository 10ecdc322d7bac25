from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from tests.data.file_archives import WNIDS, write_imagenet
from tests.data.imagenet_files import load_imagenet
from tests.data.sections import open_data


def test_a_single_class_is_reported(tmp_path):
    write_imagenet(tmp_path, WNIDS[:1])
    config = open_data("images", root=str(tmp_path), size=16)
    for load in (lambda: config.facts, lambda: config.load("train")):
        with pytest.raises(ValueError, match=f"has only one class, '{WNIDS[0]}': sort its files"):
            load()


def test_what_a_model_has_to_know_of_imagenet_is_known_without_it():
    facts = open_data("imagenet", root="nowhere").facts
    assert (len(facts.classes), facts.image_size, facts.mean) == (1000, (224, 224), (0.485, 0.456, 0.406))
    with pytest.raises(FileNotFoundError, match=r"nowhere.train"):
        _ = open_data("images", root="nowhere").facts


def test_held_out_examples_fractions_and_lengths(imagenet):
    def paths(split, **fields):
        data = load_imagenet(imagenet, split, **fields)
        assert [WNIDS[label] for label in data.labels] == [data.files[i].parent.name for i in range(len(data))]
        return [data.files[index] for index in range(len(data))]

    kept, held_out = paths("train", holdout=0.4), paths("val", holdout=0.4)
    assert (len(kept), len(held_out)) == (9, 6)
    assert sorted(kept + held_out) == paths("train")
    assert len(paths("train", fraction=0.4)) == 6
    assert set(paths("train", fraction=0.4, holdout=0.4)) < set(kept)
    assert paths("train", length=4) == paths("train")[:4]
    assert paths("test", length=3) == paths("test")[::5]


def test_a_clip_has_frames_and_a_picture_has_none():
    video = open_data("videos", root="x", frames=4, test_clips=3)
    image = open_data("images", root="x")
    assert (video.image_size(32), image.image_size(32)) == ((4, 32, 32), (32, 32))
    assert (video.test_views, image.test_views) == (3, 1)


def test_fields_reach_the_files(imagenet):
    data = load_imagenet(imagenet, size=32, flip=True, rand_augment=(2, 9), min_area=0.5, max_unreadable=4)
    assert (data.facts.image_size, data.facts.classes) == ((32, 32), WNIDS)
    found = data.flip, data.rand_augment, data.min_area, data.max_unreadable
    assert found == (True, (2, 9), 0.5, 4)


def test_how_many_files_may_be_unreadable_does_not_decide_what_is_learned():
    one, other = (open_data("imagenet", max_unreadable=number).decisive_fields() for number in (3, 30))
    assert one == other == {"name": "imagenet"}
    assert open_data("imagenet", min_area=0.5).decisive_fields() == {"name": "imagenet", "min_area": 0.5}
