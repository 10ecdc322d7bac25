from __future__ import annotations

import pytest
import torch

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
import yaml

from liere.data import from_datasets, torch_datasets
from liere.runs.config_file import parse_config
from tests.data.own_sets import Patches, section


class TestSplits:
    def test_two_data_sets_are_training_and_test(self):
        train, test = Patches(40), Patches(20, start=1)
        config = section(from_datasets(train, test))
        assert [len(config.load(split)) for split in ("train", "val", "test")] == [40, 20, 20]
        images, labels = config.load("test").batch(range(20))
        assert torch.equal(images, test.images)
        assert labels.tolist() == test.labels
        assert len(config.load("test", length=5)) == 5

    def test_three_data_sets_have_one_to_validate_with(self):
        config = section(from_datasets(Patches(40), Patches(20, start=1), Patches(10, start=2)))
        assert [len(config.load(split)) for split in ("train", "val", "test")] == [40, 10, 20]

    def test_one_data_set_is_divided_by_the_seed(self):
        data = from_datasets(Patches(60))
        places = {}
        for seed in (0, 1):
            parts = [section(data, seed=seed).load(split) for split in ("train", "val", "test")]
            assert [len(part) for part in parts] == [48, 6, 6]
            assert sorted(place for part in parts for place in part.places.tolist()) == list(range(60))
            assert parts[2].batch(range(6))[1].bincount().tolist() == [3, 3]  # split class by class
            places[seed] = parts[2].places.tolist()
        assert places[0] != places[1]
        assert section(data).load("test").places.tolist() == places[0]

    def test_a_fraction_or_a_holdout_is_of_every_class(self):
        config = section(from_datasets(Patches(40), Patches(20, start=1)), fraction=0.5, holdout=0.1)
        assert [len(config.load(split)) for split in ("train", "val", "test")] == [18, 4, 20]
        assert config.load("train").batch(range(18))[1].bincount().tolist() == [9, 9]


class TestImages:
    def test_other_sizes(self):
        config = section(from_datasets(Patches(40), Patches(20)), size=16)
        assert config.facts.image_size == (16, 16)
        assert config.load("train").batch([0])[0].shape == (1, 3, 16, 16)
        assert config.load("test", size=4).batch([0])[0].shape == (1, 3, 4, 4)
        assert (config.side, section(from_datasets(Patches(40))).side) == (16, 8)

    def test_augmentation_of_configurations(self):
        config = section(from_datasets(Patches(40), Patches(20)), flip=True)
        batch = config.load("train").load(range(20), torch.arange(20) * 7919)
        same = [torch.equal(*pair) for pair in zip(batch.images, Patches(40).images[:20], strict=True)]
        assert 0 < sum(same) < 20
        floats = from_datasets(Patches(40, dtype=torch.float32))
        with pytest.raises(ValueError, match=r"data.rand_augment needs 2-D uint8 images .* float32"):
            section(floats, rand_augment=(2, 9)).load("train")


class TestRuns:
    def test_a_configuration_tells_the_facts_and_a_digest(self):
        data = from_datasets(Patches(40), Patches(20), description="patches of noise")
        config = parse_config({"data": data.as_config()})
        again = parse_config(yaml.safe_load(config.to_yaml()))
        assert again == config
        assert again.fingerprint == config.fingerprint
        assert again.data.facts == data.facts
        assert config.data.description == "patches of noise"
        assert config.data.examples == {"train": 40, "test": 20}

    def test_other_data_are_another_run(self):
        sets = [
            from_datasets(Patches(40), Patches(20)),
            from_datasets(Patches(40, start=1), Patches(20)),
            from_datasets(Patches(42), Patches(20)),
            from_datasets(Patches(40)),
        ]
        prints = {parse_config({"data": data.as_config()}).fingerprint for data in sets}
        assert len(prints) == 4
        renamed = from_datasets(Patches(40), Patches(20), description="another name").as_config()
        assert parse_config({"data": renamed}).fingerprint in prints

    def test_data_that_are_missing_or_different_are_asked_for(self, monkeypatch):
        data = from_datasets(Patches(40), Patches(20), description="mine")
        config = section(data)
        monkeypatch.setattr(torch_datasets, "_GIVEN", {})
        with pytest.raises(ValueError, match=r"mine: 40 train, 20 test examples\) and are not available: pass them"):
            config.load("train")
        assert config.facts == data.facts
        from_datasets(Patches(30), description="yours")
        with pytest.raises(ValueError, match=r"not available, only GivenData\('yours': 30 all\): pass them again"):
            config.load("train")
        from_datasets(Patches(40), Patches(20))
        assert len(config.load("train")) == 40
