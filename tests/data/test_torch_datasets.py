from __future__ import annotations

import multiprocessing

import pytest
import torch
from torch.utils.data import IterableDataset, Subset, TensorDataset

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.data import from_datasets
from liere.runs.config_file import parse_config
from tests.data.own_sets import Patches, section


def test_subsets_and_tensors():
    patches = Patches(60)
    tensors = TensorDataset(patches.images, torch.tensor(patches.labels))
    data = from_datasets(Subset(tensors, range(10, 50)))
    assert len(section(data).load("train")) == 32
    assert data.facts.classes == ("0", "1")


def test_given_facts_are_taken():
    data = from_datasets(Patches(40), classes=["left", "right"], mean=(0.1, 0.2, 0.3), std=[1, 2, 3])
    assert data.facts.classes == ("left", "right")
    assert data.facts.mean == (0.1, 0.2, 0.3)
    assert data.facts.std == (1.0, 2.0, 3.0)


def count_in_child(data, config, queue):
    images, labels = parse_config(config).data.load("test").batch(range(4))
    queue.put((images.sum().item(), labels.tolist(), repr(data)))


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_data_are_known_where_they_are_unpickled(method):
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


class Stream(IterableDataset):
    def __iter__(self):
        yield torch.zeros(1, 4, 4), 0


class CountedStream(Stream):
    def __len__(self):
        return 1


ZEROS = torch.zeros(1, 4, 4)


@pytest.mark.parametrize(
    ("sets", "options", "error", "message"),
    [
        ([Stream()], {}, TypeError, "train must be a data set with __len__"),
        ([CountedStream()], {}, TypeError, "train must be a data set .* read a stream into a list"),
        ([3], {}, TypeError, "train must be a data set .* got int"),
        ([[]], {}, ValueError, "train has no examples"),
        ([[(ZEROS, 0), (ZEROS, 1)], []], {}, ValueError, "test has no examples"),
        ([[ZEROS]], {}, TypeError, "example 0 of train must be an image and a label, got Tensor"),
        ([[(ZEROS, 0, 1)]], {}, TypeError, "example 0 of train must be an image and a label"),
        ([[(ZEROS, 0.5)]], {}, TypeError, r"label 0 of train must be an integer, got 0\.5 of type float"),
        ([[(ZEROS, "cat")]], {}, TypeError, "label 0 of train must be an integer, got 'cat'"),
        ([[(ZEROS, 0), (ZEROS, -1)]], {}, ValueError, "label 1 of train must be from 0 to 999999, got -1"),
        ([[(ZEROS, 0), (ZEROS, 10**9)]], {}, ValueError, "label 1 of train must be from 0 to 999999, got 1000000000"),
        ([[(ZEROS, 0), (ZEROS, 2**70)]], {}, ValueError, "label 1 of train must be from 0 to 999999"),
        ([[(ZEROS, 0), (ZEROS / 0, 1)]], {}, ValueError, "image 1 of train has NaN or infinity"),
        ([[(ZEROS, 0), (ZEROS, 0)]], {}, ValueError, "there must be at least two classes"),
        ([[(ZEROS.numpy(), 0)]], {}, TypeError, "image 0 of train must be a tensor .* got ndarray"),
        ([[(ZEROS.long(), 0)]], {}, TypeError, "image 0 of train must be uint8 or float, got int64"),
        ([[(ZEROS[0], 0)]], {}, ValueError, r"images of train must be \[channels, height, width\]"),
        ([[(ZEROS, 0), (ZEROS[:, 1:], 1)]], {}, ValueError, "image 1 of train is float32 of shape"),
        ([[(ZEROS, 0), (ZEROS, 1)], [(ZEROS.byte(), 1)]], {}, ValueError, "image 0 of test is uint8"),
        ([[(ZEROS, 0), (ZEROS, 1)]], {"mean": [0.5, 0.5]}, ValueError, "mean must be a list of 1 finite numbers"),
        ([[(ZEROS, 0), (ZEROS, 1)]], {"std": [0.0]}, ValueError, "std must be a list of 1 positive numbers"),
        ([[(ZEROS, 0), (ZEROS, 1)]], {"classes": ["a", "a"]}, ValueError, "classes must be unique names"),
        ([[(ZEROS, 0), (ZEROS, 1)]], {"val": [(ZEROS, 0)]}, ValueError, "val is given without test"),
    ],
)
def test_what_is_wrong_is_named(sets, options, error, message):
    with pytest.raises(error, match=message) as raised:
        from_datasets(*sets, **options)
    assert "\n" not in str(raised.value)
