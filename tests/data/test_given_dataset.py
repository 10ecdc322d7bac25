from __future__ import annotations

import pickle
import random

import pytest
import torch
from torch.utils.data import TensorDataset

pytest.importorskip("tests.training.requirements")
import numpy as np
from PIL import Image

from liere.data import from_datasets
from liere.data.batches import ExampleOrder, TrainingBatches
from liere.data.given_dataset import GivenDataset, describe, sample_places
from liere.data.loader import make_loader
from tests.data.own_sets import Patches, section


class Pictures(Patches):
    def __getitem__(self, place):
        image, label = super().__getitem__(place)
        return Image.fromarray(image.permute(1, 2, 0).numpy()), np.int64(label)


def shift(image):
    return image.roll(int(torch.randint(8, ())), -1)


def jitter(image):
    return image + int(np.random.randint(10)) + random.randrange(10)


OWN = random.Random(0)


def restless(image):
    return image + OWN.randrange(50)


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
        with pytest.raises(ValueError, match=r"images of train change each time .* give mean and std"):
            from_datasets(Patches(40, change=restless))
        one, other = (from_datasets(Patches(40, change=restless), mean=[0.5] * 3, std=[0.5] * 3) for _ in range(2))
        assert one.digest == other.digest


def test_places_are_spread_evenly_and_never_twice():
    assert sample_places(10, 5) == [0, 2, 4, 6, 8]
    assert sample_places(100, 2) == [0, 50]
    assert sample_places(3, 5) == [0, 1, 2]


def test_the_digest_tells_pixels_labels_and_shapes_apart():
    image = torch.arange(16, dtype=torch.uint8).view(1, 4, 4)
    variants = [(image, 0), (image.flip(1), 0), (image, 1), (image.view(1, 2, 8), 0), (image.float(), 0)]
    digests = [GivenDataset([example], "train").digest([0]) for example in variants]
    assert len(set(digests)) == len(variants)
    assert GivenDataset([(image.clone(), 0)], "test").digest([0]) == digests[0]


def test_an_image_is_described_in_words():
    assert describe(torch.zeros(1, 4, 5)) == "float32 of shape (1, 4, 5)"


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3), ("P", 3), ("RGBA", 3), ("1", 3)])
def test_pictures_of_any_mode_are_gray_or_in_color(mode, channels):
    picture = Image.new("RGB", (6, 4), (10, 20, 30)).convert(mode)
    ((image, label),) = GivenDataset([(picture, 1)], "train").read([0], [0])
    assert (image.dtype, tuple(image.shape), label) == (torch.uint8, (channels, 4, 6), 1)
    if mode in ("RGB", "RGBA"):
        assert image[:, 0, 0].tolist() == [10, 20, 30]


def test_pictures_of_16_bits_keep_their_upper_bits():
    levels = np.arange(256, dtype=np.uint16).reshape(16, 16) << 8
    ((image, _),) = GivenDataset([(Image.fromarray(levels + 7), 0)], "train").read([0], [0])
    assert (image.dtype, image.shape) == (torch.uint8, (3, 16, 16))
    assert (image == torch.arange(256).view(16, 16)).all()
    for dtype in (np.int32, np.float32):
        with pytest.raises(TypeError, match=r"image 0 of train has pixels of 32 bits .*: convert it to 8 or 16 bits"):
            GivenDataset([(Image.fromarray(levels.astype(dtype)), 0)], "train").read([0], [0])


def test_it_is_named_where_it_cannot_be_sent_to_another_process(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TypeError, match=r"the data set train cannot be sent .* pip install cloudpickle"):
        pickle.dumps(GivenDataset(Patches(4, change=lambda image: image), "train"))
