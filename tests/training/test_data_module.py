from __future__ import annotations

from itertools import chain
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("tests.training.requirements")
from liere.data import from_datasets
from liere.runs.model import build_model
from liere.training.classifier import Classifier
from liere.training.data_module import TrainingData
from tests.training.tiny import STEPS, make_run


def make_data(run, *, step: int = 0, rank: int = 0, world: int = 1) -> TrainingData:
    """Return the data module of a run in one of its processes after some steps."""
    classifier = Classifier(build_model(run.config), run.config, run.facts, first_step=step)
    data = TrainingData(run, classifier)
    device = SimpleNamespace(root_device=torch.device("cpu"))
    data.trainer = SimpleNamespace(global_step=0, global_rank=rank, world_size=world, strategy=device)
    classifier._trainer = data.trainer
    return data


def ids(loader) -> list[list[int]]:
    return [batch.ids.tolist() for batch in loader]


def counted(loader) -> list[int]:
    """Return the examples of a loader without those of extra batches."""
    return [place for number, part in enumerate(ids(loader)) if not loader.sampler.is_extra(number) for place in part]


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


@pytest.mark.parametrize(("step", "steps"), [(0, 4), (3, 1), (4, 4), (8, STEPS - 8)])
def test_an_epoch_reaches_to_the_next_validation(run, step, steps):
    parts = ids(make_data(run, step=step).train_dataloader())
    assert [len(part) for part in parts] == [4] * (2 * steps)  # a batch of 8 consists of two parts


def test_steps_see_the_same_examples_wherever_training_resumes(run):
    whole = ids(make_data(run).train_dataloader())
    assert ids(make_data(run, step=3).train_dataloader()) == whole[6:]
    assert len({place for part in whole for place in part}) == 32  # none is repeated within an epoch


def test_processes_share_a_batch(run):
    whole = ids(make_data(run).train_dataloader())
    parts = [ids(make_data(run, rank=rank, world=2).train_dataloader()) for rank in (0, 1)]
    for both in zip(whole, *parts, strict=True):
        assert sorted(both[0]) == sorted(both[1] + both[2])


def test_every_validation_example_is_seen_once(run):
    assert list(chain(*ids(make_data(run).val_dataloader()))) == list(range(10))
    parts = [counted(make_data(run, rank=rank, world=2).val_dataloader()) for rank in (0, 1)]
    assert sorted(chain(*parts)) == list(range(10))


@pytest.mark.parametrize(("examples", "world"), [(1, 2), (4, 2), (5, 2), (9, 4)])
def test_every_process_has_as_many_batches_however_small_the_validation_set(tmp_path, examples, world):
    run = make_run(tmp_path / "run", training__validation_examples=examples)
    loaders = [make_data(run, rank=rank, world=world).val_dataloader() for rank in range(world)]
    assert len({len(loader) for loader in loaders}) == 1
    assert sorted(chain(*map(counted, loaders))) == list(range(examples))


def test_a_training_set_smaller_than_the_number_of_processes_is_repeated(tmp_path):
    examples = [(torch.rand(3, 24, 24), place % 2) for place in range(20)]
    run = make_run(tmp_path / "run", data=from_datasets(examples[:1], examples).as_config())
    for rank in range(4):
        assert ids(make_data(run, rank=rank, world=4).train_dataloader()) == [[0]] * 8
