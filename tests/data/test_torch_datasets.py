from __future__ import annotations

import multiprocessing
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.data import from_datasets, torch_datasets
from liere.data.batches import EvaluationBatches, ExampleOrder, TrainingBatches
from liere.data.loader import make_loader
from liere.runs.config_file import parse_config


class Patches(Dataset):
    """Images with a bright half; `change` is what a transform does."""

    def __init__(self, length=60, start=0, change=None, dtype=torch.uint8, side=8):
        generator = torch.Generator().manual_seed(start)
        self.images = torch.randint(0, 100, (length, 3, side, side), generator=generator).to(dtype)
        self.labels = [place % 2 for place in range(length)]
        for image, label in zip(self.images, self.labels, strict=True):
            image[:, :, (side // 2) * label : (side // 2) * (label + 1)] += 100
        self.change = change

    def __len__(self):
        return len(self.images)

    def __getitem__(self, place):
        image = self.images[place]
        return (image if self.change is None else self.change(image)), self.labels[place]


class Pictures(Patches):
    def __getitem__(self, place):
        from PIL import Image

        image, label = super().__getitem__(place)
        return Image.fromarray(image.permute(1, 2, 0).numpy()), np.int64(label)


class Counted(Dataset):
    """Examples that cannot be known without being read, which is counted."""

    def __init__(self, examples):
        self.examples, self.reads = examples, 0

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, place):
        self.reads += 1
        return self.examples[place]


def shift(image):
    return image.roll(int(torch.randint(8, ())), -1)


def jitter(image):
    return image + int(np.random.randint(10)) + random.randrange(10)


OWN = random.Random(0)


def restless(image):
    return image + OWN.randrange(50)


def section(data, **fields):
    return parse_config({"data": data.as_config() | fields}).data


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
            assert parts[2].batch(range(6))[1].bincount().tolist() == [3, 3]  # class by class
            places[seed] = parts[2].places.tolist()
        assert places[0] != places[1]
        assert section(data).load("test").places.tolist() == places[0]

    def test_a_fraction_or_a_holdout_is_of_every_class(self):
        config = section(from_datasets(Patches(40), Patches(20, start=1)), fraction=0.5, holdout=0.1)
        assert [len(config.load(split)) for split in ("train", "val", "test")] == [18, 4, 20]
        assert config.load("train").batch(range(18))[1].bincount().tolist() == [9, 9]

    def test_labels_are_read_from_examples_only_where_nothing_lists_them(self):
        counted = Counted([(image, label) for image, label in Patches(60)])
        data = from_datasets(counted, classes=["a", "b"])
        before = counted.reads
        assert len(section(data).load("test")) == 6
        assert counted.reads - before >= 60
        whole = Patches(400)
        half = Counted(whole)
        half.targets = [*whole.labels]
        data = from_datasets(half, mean=[0.5] * 3, std=[0.5] * 3)
        section(data).load("test")
        assert half.reads < 200

    def test_a_list_of_labels_that_examples_do_not_agree_with_is_not_believed(self):
        data = Counted([(image, 1 - label) for image, label in Patches(60)])
        data.targets = Patches(60).labels
        config = section(from_datasets(data))
        chosen = config.load("test")
        assert chosen.batch(range(6))[1].bincount().tolist() == [3, 3]

    def test_subsets_and_tensors(self):
        patches = Patches(60)
        tensors = TensorDataset(patches.images, torch.tensor(patches.labels))
        data = from_datasets(Subset(tensors, range(10, 50)))
        assert len(section(data).load("train")) == 32
        assert data.facts.classes == ("0", "1")


class TestImages:
    def test_pictures_become_tensors(self):
        images, labels = section(from_datasets(Pictures(40), Pictures(20))).load("test").batch(range(20))
        assert torch.equal(images, Patches(20).images)
        assert labels.tolist() == Patches(20).labels

    def test_mean_and_deviation_are_measured(self):
        train = Patches(40)
        facts = from_datasets(train, Patches(20)).facts
        pixels = train.images.double() / 255
        assert facts.mean == pytest.approx(pixels.mean((0, 2, 3)).tolist())
        assert facts.std == pytest.approx(pixels.std((0, 2, 3), correction=0).tolist())
        floats = from_datasets(Patches(40, dtype=torch.float64), Patches(20, dtype=torch.float64)).facts
        assert floats.mean == pytest.approx([255 * mean for mean in facts.mean])

    def test_a_constant_channel_is_left_as_it_is(self):
        data = TensorDataset(torch.full((10, 1, 4, 4), 7.0), torch.arange(10) % 2)
        assert from_datasets(data).facts.std == (1.0,)

    def test_given_facts_are_taken(self):
        data = from_datasets(Patches(40), classes=["left", "right"], mean=(0.1, 0.2, 0.3), std=[1, 2, 3])
        assert data.facts.classes == ("left", "right")
        assert data.facts.mean == (0.1, 0.2, 0.3)
        assert data.facts.std == (1.0, 2.0, 3.0)

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
        with pytest.raises(ValueError, match=r"data.rand_augment is for flat uint8 images .* float32"):
            section(floats, rand_augment=(2, 9)).load("train")


class TestRandomTransforms:
    @pytest.mark.parametrize("change", [shift, jitter])
    def test_they_are_the_same_for_any_number_of_workers_and_leave_generators_alone(self, change):
        data = section(from_datasets(Patches(40, change=change), Patches(20))).load("train")
        batches = TrainingBatches(ExampleOrder(40, 1), range(3), 8)
        one, other = (list(make_loader(data, batches, workers=workers)) for workers in (0, 2))
        assert all(torch.equal(a.images, b.images) for a, b in zip(one, other, strict=True))
        before = torch.get_rng_state(), np.random.get_state()[1].tolist()
        data.load(range(9), torch.arange(9))
        assert torch.equal(before[0], torch.get_rng_state())
        assert before[1] == np.random.get_state()[1].tolist()

    def test_each_time_is_another_one_in_training_and_the_same_in_tests(self):
        data = section(from_datasets(Patches(40, change=shift), Patches(20))).load("train")
        drawn = data.load([0] * 20, torch.arange(20) * 7919).images
        assert len({image.numpy().tobytes() for image in drawn}) > 4
        assert torch.equal(data.batch([0])[0], data.batch([0])[0])

    def test_the_digest_is_the_same_each_time(self):
        assert from_datasets(Patches(40, change=shift)).digest == from_datasets(Patches(40, change=shift)).digest

    def test_those_with_generators_of_their_own_need_mean_and_deviation(self):
        with pytest.raises(ValueError, match=r"images of train differ each time .* give mean and std"):
            from_datasets(Patches(40, change=restless))
        one, other = (from_datasets(Patches(40, change=restless), mean=[0.5] * 3, std=[0.5] * 3) for _ in range(2))
        assert one.digest == other.digest


class TestRuns:
    def test_a_configuration_tells_the_facts_and_a_digest(self):
        data = from_datasets(Patches(40), Patches(20), description="patches of noise")
        config = parse_config({"data": data.as_config()})
        again = parse_config(__import__("yaml").safe_load(config.to_yaml()))
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
        with pytest.raises(ValueError, match=r"mine: 40 train, 20 test examples\) and are not here; give them again"):
            config.load("train")
        assert config.facts == data.facts
        from_datasets(Patches(30), description="yours")
        with pytest.raises(ValueError, match=r"those given are others: GivenData\('yours': 30 all\); give them again"):
            config.load("train")
        from_datasets(Patches(40), Patches(20))
        assert len(config.load("train")) == 40


def count_in_child(data, config, queue):
    images, labels = parse_config(config).data.load("test").batch(range(4))
    queue.put((images.sum().item(), labels.tolist(), repr(data)))


class TestOtherProcesses:
    @pytest.mark.parametrize("method", ["forkserver", "spawn"])
    def test_data_are_known_where_they_are_unpickled(self, method):
        data = from_datasets(Patches(40), Patches(20), description="mine")
        config = {"data": data.as_config()}
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=count_in_child, args=(data, config, queue))
        process.start()
        found = queue.get(timeout=120)
        process.join()
        images, labels = section(data).load("test").batch(range(4))
        assert found == (images.sum().item(), labels.tolist(), repr(data))

    def test_what_cannot_be_sent_is_told(self, monkeypatch):
        data = from_datasets(Patches(40, change=lambda image: image))
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(TypeError, match=r"the data set train cannot be sent .* pip install cloudpickle"):
            pickle.dumps(data)

    def test_a_class_of_a_shell_is_told_without_cloudpickle(self):
        code = (
            "import importlib.util, pickle, sys, torch\n"
            "importlib.util.find_spec = lambda name: None\n"
            "from liere.data import from_datasets\n"
            "class Mine(torch.utils.data.Dataset):\n"
            "    def __len__(self): return 4\n"
            "    def __getitem__(self, place): return torch.rand(1, 4, 4), place % 2\n"
            "data = from_datasets(Mine())\n"
            "try: pickle.dumps(data)\n"
            "except TypeError as error: print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("the data set train is defined in a notebook or a shell")
        assert "pip install cloudpickle" in done.stdout

    def test_workers(self):
        data = section(from_datasets(Patches(40), Patches(20))).load("test")
        one, other = (list(make_loader(data, EvaluationBatches(20, 6), workers=workers)) for workers in (0, 2))
        assert all(torch.equal(a.images, b.images) for a, b in zip(one, other, strict=True))


class Stream(IterableDataset):
    def __iter__(self):
        yield torch.zeros(1, 4, 4), 0


ZEROS = torch.zeros(1, 4, 4)


@pytest.mark.parametrize(
    ("sets", "options", "error", "message"),
    [
        ([Stream()], {}, TypeError, "train must be a data set with __len__"),
        ([3], {}, TypeError, "train must be a data set .* got int"),
        ([[]], {}, ValueError, "train has no examples"),
        ([[(ZEROS, 0), (ZEROS, 1)], []], {}, ValueError, "test has no examples"),
        ([[ZEROS]], {}, TypeError, "example 0 of train must be an image and a label, got Tensor"),
        ([[(ZEROS, 0, 1)]], {}, TypeError, "example 0 of train must be an image and a label"),
        ([[(ZEROS, 0.5)]], {}, TypeError, r"label 0 of train must be an integer, got 0\.5 of type float"),
        ([[(ZEROS, "cat")]], {}, TypeError, "label 0 of train must be an integer, got 'cat'"),
        ([[(ZEROS, 0), (ZEROS, -1)]], {}, ValueError, "label 1 of train must be at least 0, got -1"),
        ([[(ZEROS, 0), (ZEROS, 0)]], {}, ValueError, "classes must be two or more"),
        ([[(ZEROS.numpy(), 0)]], {}, TypeError, "image 0 of train must be a tensor .* got ndarray"),
        ([[(ZEROS.long(), 0)]], {}, TypeError, "image 0 of train must be uint8 or float, got int64"),
        ([[(ZEROS[0], 0)]], {}, ValueError, r"images of train must be \[channels, height, width\]"),
        ([[(ZEROS, 0), (ZEROS[:, 1:], 1)]], {}, ValueError, "image 1 of train is float32 of shape"),
        ([[(ZEROS, 0), (ZEROS, 1)], [(ZEROS.byte(), 1)]], {}, ValueError, "image 0 of test is uint8"),
        ([[(ZEROS, 0), (ZEROS, 1)]], {"mean": [0.5, 0.5]}, ValueError, "mean must be a list of 1 finite numbers"),
        ([[(ZEROS, 0), (ZEROS, 1)]], {"std": [0.0]}, ValueError, "std must be a list of 1 positive numbers"),
        ([[(ZEROS, 0), (ZEROS, 1)]], {"classes": ["a", "a"]}, ValueError, "classes must be different names"),
        ([[(ZEROS, 0), (ZEROS, 1)]], {"val": [(ZEROS, 0)]}, ValueError, "val is given without test"),
    ],
)
def test_what_is_wrong_is_named(sets, options, error, message):
    with pytest.raises(error, match=message) as raised:
        from_datasets(*sets, **options)
    assert "\n" not in str(raised.value)


def test_labels_and_images_are_checked_when_they_are_loaded():
    examples = [(ZEROS, 0), (ZEROS, 1), (ZEROS, 2), (ZEROS, 1)]
    config = section(from_datasets(examples, examples, classes=["a", "b"]))
    with pytest.raises(ValueError, match="label 2 of train must be from 0 to 1, got 2"):
        config.load("train").batch([1, 2])
    odd = [(ZEROS, 0), (ZEROS, 1), (ZEROS, 1), (ZEROS, 1), (torch.zeros(1, 4, 5), 1), (ZEROS, 1)]
    config = section(from_datasets(odd, odd, classes=["a", "b"], mean=[0.0], std=[1.0]))
    with pytest.raises(ValueError, match=r"image 4 of train is .*\(1, 4, 5\).* make them alike"):
        config.load("train").batch([3, 4])
