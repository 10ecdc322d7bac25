from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import pytest

pytest.importorskip("tests.training.requirements")
import yaml

from liere.runs.config_file import parse_config
from liere.runs.run import open_run
from liere.training import start
from liere.training.start import SignalStop, begin_run, check_again, check_run, train_run
from tests.training.tiny import CONFIG, make_run, quiet

pytestmark = quiet


def config(**fields):
    return parse_config(yaml.safe_load(CONFIG), {name.replace("__", "."): value for name, value in fields.items()})


@pytest.fixture
def lines():
    return []


class TestChecks:
    def test_what_a_run_will_cost_is_reported_in_two_lines(self, tmp_path, lines):
        check_run(config(), tmp_path / "mine", lines.append)
        assert lines[0] == "mine: liere8, 72 examples in 9 steps"
        assert "parameters" in lines[1]
        assert lines[1].endswith("for the computation alone; startup, data loading and checkpoints take extra time")
        assert not (tmp_path / "mine").exists()

    def test_a_full_disk_is_reported(self, tmp_path, lines, monkeypatch):
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1_000))
        with pytest.raises(OSError, match=r"has 0 MB free, but checkpoints need .* choose another folder with --out"):
            check_run(config(), tmp_path / "a" / "b", lines.append)

    def test_data_that_are_missing_are_reported_before_there_is_a_folder(self, tmp_path, lines):
        missing = parse_config({"data": {"name": "npz", "root": str(tmp_path / "none.npz")}})
        with pytest.raises(FileNotFoundError, match=r"no data at --data\.root"):
            begin_run(missing, tmp_path / "run", lines.append)
        assert not (tmp_path / "run").exists()

    def test_a_name_that_is_not_text_is_reported_before_anything_is_computed(self, tmp_path, lines):
        with pytest.raises(ValueError, match="is not valid UTF-8 text"):
            begin_run(config(), tmp_path / os.fsdecode(b"\xff"), lines.append)
        assert lines == list(tmp_path.iterdir()) == []


class TestBeginning:
    def test_a_dry_run_makes_nothing(self, tmp_path, lines):
        assert begin_run(config(), tmp_path / "run", lines.append, dry=True) is None
        assert len(lines) == 2
        assert not (tmp_path / "run").exists()

    def test_a_new_run_has_its_configuration(self, tmp_path, lines):
        run = begin_run(config(), tmp_path / "run", lines.append)
        assert run.config == config() == open_run(tmp_path / "run").config

    def test_something_in_the_way_is_reported_before_anything_is_computed(self, tmp_path, lines):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "file").touch()
        with pytest.raises(ValueError, match="exists: choose another folder"):
            begin_run(config(), tmp_path / "run", lines.append)
        assert lines == []

    def test_further_processes_open_what_the_first_one_has_made(self, tmp_path, lines, monkeypatch):
        make_run(tmp_path / "run")
        two = config(hardware__devices="2")
        monkeypatch.setenv("LOCAL_RANK", "1")
        assert begin_run(two, tmp_path / "run", lines.append).folder == tmp_path / "run"
        assert begin_run(two, tmp_path / "run", lines.append, dry=True) is None
        monkeypatch.setattr(start, "PATIENCE", 0.0)
        with pytest.raises(FileNotFoundError, match=r"the first process did not create .*: use a shared folder"):
            begin_run(two, tmp_path / "other", lines.append)
        assert lines == []

    def test_another_task_of_slurm_with_one_device_makes_its_own_run(self, tmp_path, lines, monkeypatch):
        monkeypatch.setenv("SLURM_PROCID", "1")
        monkeypatch.setenv("SLURM_NTASKS", "2")
        assert begin_run(config(), tmp_path / "run", lines.append).folder == tmp_path / "run"
        assert lines

    def test_another_number_of_processes_is_reported_before_there_is_a_folder(self, tmp_path, lines, monkeypatch):
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")
        with pytest.raises(ValueError, match="WORLD_SIZE=2 in the environment"):
            begin_run(config(), tmp_path / "run", lines.append)
        run = make_run(tmp_path / "other")
        with pytest.raises(ValueError, match="WORLD_SIZE=2 in the environment"):
            check_again(run, lines.append)
        assert not (tmp_path / "run").exists()
        assert lines == []


class TestTraining:
    def test_how_it_ended_is_reported(self, tmp_path, lines):
        run = make_run(tmp_path / "run")
        train_run(run, tell=lines.append, warn=print, steps=1, progress=False)
        assert lines[-1].startswith("run: stopped ")
        assert lines[-1].endswith(f"; resume with: liere train --resume {run.folder}")
        train_run(open_run(run.folder), tell=lines.append, warn=print, progress=False)
        assert lines[-2].startswith("run: finished after 72 examples and ")
        assert lines[-1] == f"evaluate it with: liere eval {run.folder}"

    def test_a_run_that_fails_before_its_first_step_leaves_no_folder(self, tmp_path, lines):
        wrong = config(logger__class_path="nowhere.Logger")
        run = begin_run(wrong, tmp_path / "run", lines.append)
        with pytest.raises(ValueError, match="cannot be imported"):
            train_run(run, tell=lines.append, warn=print, progress=False)
        assert list(tmp_path.iterdir()) == []
        train_run(begin_run(config(), run.folder, lines.append), tell=lines.append, warn=print, steps=1, progress=False)

    def test_a_run_whose_logger_fails_after_it_was_started_leaves_no_folder(self, tmp_path, lines):
        run = begin_run(config(), tmp_path / "run", lines.append)
        with pytest.raises(ValueError, match="logger must be a Lightning logger"):
            train_run(run, tell=lines.append, warn=print, logger="wandb", progress=False)
        assert list(tmp_path.iterdir()) == []

    def test_a_signal_is_an_interruption_with_its_number(self):
        stop = SignalStop("stopped", 15)
        assert isinstance(stop, KeyboardInterrupt)
        assert (str(stop), stop.signal) == ("stopped", 15)

    def test_before_the_first_checkpoint_there_is_nothing_to_resume(self, tmp_path):
        run = make_run(tmp_path / "run")
        assert start._how_to_resume(run) == " before its first checkpoint: nothing to save, run the same command again"
