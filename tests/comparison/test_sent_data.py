"""Data that were passed from Python reach processes of other machines."""

from __future__ import annotations

import pickle
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")
import torch
import yaml

from liere.comparison.executors.contract import Task
from liere.comparison.executors.storage import for_other_machines
from liere.comparison.executors.work import receive
from liere.comparison.sent_data import DataStore, SentData, given_data
from liere.data import torch_datasets
from liere.data.torch_datasets import from_datasets
from tests.comparison.plans import plan
from tests.training.tiny import CONFIG


def test_tasks_for_other_machines_have_absolute_paths_and_data_in_one_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = from_datasets(torch.utils.data.TensorDataset(torch.rand(20, 3, 24, 24), torch.arange(20) % 2))
    made = plan(Path("out"), seeds=[0, 1], text=yaml.safe_dump(yaml.safe_load(CONFIG) | {"data": data.as_config()}))
    Path("out").mkdir()
    tasks = [Task(run, None, given_data(run.config)) for run in made.runs]
    store = DataStore(Path("out"))
    sent = for_other_machines(tasks, store)
    assert {task.planned.folder.parent for task in sent} == {tmp_path / "out" / "runs"}
    assert {task.cwd for task in sent} == {tmp_path}
    assert len({task.data for task in sent}) == 1
    assert len(list(Path("out").iterdir())) == 1
    assert all(isinstance(task.data, SentData) and len(pickle.dumps(task)) < 50_000 for task in sent)

    monkeypatch.setattr(torch_datasets, "_GIVEN", {})  # as in another process
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.chdir("/")
    receive(sent[0])
    assert given_data(sent[0].planned.config).digest == data.digest
    assert Path.cwd() == tmp_path
    assert sys.path == list(sent[0].paths)
    store.remove()
    assert list((tmp_path / "out").iterdir()) == []


class Trap:
    """An object whose pickle creates a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_a_file_of_somebody_else_is_never_unpickled(tmp_path):
    trap, trapped = pickle.dumps(Trap(tmp_path / "trapped")), tmp_path / "trapped"
    data = from_datasets(torch.utils.data.TensorDataset(torch.rand(20, 3, 24, 24), torch.arange(20) % 2))
    out = tmp_path / "out"
    out.mkdir()
    (out / f".data-{data.digest[:16]}.pickle").write_bytes(trap)
    sent = DataStore(out).send(data)
    sent.receive()
    sent.file.write_bytes(trap)
    with pytest.raises(ValueError, match=r"\.data-.* was changed after the data were written to it, so it is not read"):
        sent.receive()
    assert not trapped.exists()
    assert DataStore(out).send(data).file != sent.file


class Stuck(torch.utils.data.Dataset):
    """A data set with a part that belongs to its process."""

    def __init__(self):
        self.lock = threading.Lock()

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.full((3, 24, 24), index / 20), index % 2


def test_data_that_cannot_be_sent_is_told_before_anything_is_submitted(tmp_path):
    data = from_datasets(Stuck())
    made = plan(tmp_path, text=yaml.safe_dump(yaml.safe_load(CONFIG) | {"data": data.as_config()}))
    with pytest.raises(TypeError, match="the data set train cannot be sent to another process"):
        for_other_machines([Task(made.runs[0], None, data)], DataStore(tmp_path))
