"""`liere train`."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")
from liere.cli import main
from liere.runs.run import open_run
from liere.training import fit
from liere.training.stop_requests import StoppedError
from tests.commands.folders import everything
from tests.training.tiny import STEPS, make_run, quiet

pytestmark = quiet


class TestBadFolders:
    def test_a_run_that_exists_is_not_begun_again(self, config, tmp_path, fail):
        (make_run(tmp_path / "run").checkpoints / "last.ckpt").touch()
        error = fail("train --config", config, "--out", tmp_path / "run")
        assert f"--out {tmp_path / 'run'} already exists" in error
        assert f"liere train --resume {tmp_path / 'run'}" in error

    def test_a_file_and_a_folder_of_other_things_are_left_alone(self, config, tmp_path, fail):
        (tmp_path / "file").write_text("mine")
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "mine").write_text("mine")
        for name in ("file", "folder"):
            error = fail("train --config", config, "--out", tmp_path / name)
            assert f"--out {tmp_path / name} already exists: choose another folder" in error

    def test_a_folder_that_cannot_be_made_is_told(self, config, tmp_path, fail):
        (tmp_path / "file").write_text("mine")
        for folder in (tmp_path / "file" / "run", tmp_path / "file" / "deep" / "run"):
            error = fail("train --config", config, "--out", folder)
            assert f"--out {folder.parent} cannot be written to" in error
            assert "choose another folder" in error

    def test_a_folder_that_may_not_be_written_to_is_told(self, config, tmp_path, fail, monkeypatch):
        def refuse(**_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)  # root may write anywhere
        (tmp_path / "others").mkdir()
        error = fail("train --config", config, "--out", tmp_path / "others" / "run")
        assert f"--out {tmp_path / 'others'} cannot be written to (Permission denied)" in error

    def test_a_disk_without_room_for_checkpoints_is_told(self, config, tmp_path, fail, monkeypatch):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 100_000, 100_000))
        error = fail("train --config", config, "--out new/run")
        assert "0 MB free" in error
        assert "checkpoints need 1 MB" in error
        assert "choose another folder with --out" in error

    def test_a_disk_without_room_stops_a_run_from_going_on(self, config, tmp_path, fail, monkeypatch):
        make_run(tmp_path / "run")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 0))
        assert "free some space" in fail("train --resume", tmp_path / "run")

    def test_a_dry_run_tells_that_the_folder_exists(self, config, tmp_path, fail):
        (make_run(tmp_path / "run").checkpoints / "last.ckpt").touch()
        assert f"--out {tmp_path / 'run'} already exists" in fail(
            "train --dry-run --config", config, "--out", tmp_path / "run"
        )

    def test_an_empty_folder_is_fine(self, config, tmp_path):
        (tmp_path / "run").mkdir()
        assert main(["train", "--config", str(config), "--out", str(tmp_path / "run"), "--steps", "1"]) == 0
        assert (tmp_path / "run" / "config.yaml").exists()


class TestBadResumes:
    def test_a_configuration_or_a_run_is_needed_but_not_both(self, config, tmp_path, fail):
        for arguments in ("train", f"train --config {config} --resume {tmp_path}"):
            assert "give either --config FILE for a new run or --resume RUN" in fail(arguments)

    def test_there_has_to_be_a_run(self, config, tmp_path, fail):
        for folder in (tmp_path, tmp_path / "none", config):
            assert f"no run at {folder}" in fail("train --resume", folder)

    def test_only_hardware_may_change(self, config, tmp_path, fail):
        run = make_run(tmp_path / "run")
        for field in ("--model.dim 32", "--training.seed 2", "--title new"):
            error = fail("train --resume", run.folder, field)
            assert f"{field.split()[0]} cannot change when a run is resumed" in error
        assert "hardware.threads must be" in fail("train --resume", run.folder, "--hardware.threads 0")

    def test_a_run_has_its_folder_already(self, config, tmp_path, fail):
        run = make_run(tmp_path / "run")
        assert "--out other is for new runs only" in fail("train --resume", run.folder, "--out other")

    def test_a_damaged_configuration_is_named(self, config, tmp_path, fail):
        run = make_run(tmp_path / "run")
        (run.folder / "config.yaml").write_text("model: {dimm: 8}")
        assert f"{run.folder / 'config.yaml'}: unknown field model.dimm" in fail("train --resume", run.folder)


class TestGoodRuns:
    def test_a_dry_run_tells_the_cost_and_leaves_nothing(self, config, tmp_path, capsys):
        before = everything(tmp_path)
        assert main(["train", "--dry-run", "--config", str(config)]) == 0
        first, second = capsys.readouterr().out.splitlines()
        assert first == f"tiny-seed1: liere8, {8 * STEPS} examples in {STEPS} steps"
        model = make_run(tmp_path / "run").config.model.build(image_size=36, num_classes=4)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        assert second.startswith(f"tiny-seed1: {parameters:,} parameters (")
        assert "multiply-adds per image" in second
        assert "on this machine for the computation alone; startup, data loading" in second
        shutil.rmtree(tmp_path / "run")
        assert everything(tmp_path) == before

    def test_the_cost_is_told_before_anything_else(self, config, tmp_path, capsys, monkeypatch):
        told = []

        def train(run, **_):
            told.extend(capsys.readouterr().out.splitlines())
            raise StoppedError("as requested")

        monkeypatch.setattr(fit, "train", train)
        assert main(["train", "--config", str(config), "--out", str(tmp_path / "run")]) == 0
        assert len(told) == 2
        assert "parameters" in told[1]

    def test_from_training_to_report(self, config, tmp_path, capsys):
        assert main(["train", "--config", str(config), "--steps", "2"]) == 0
        folder = Path("runs") / "tiny-seed1"
        assert f"stopped as requested; resume with: liere train --resume {folder}" in capsys.readouterr().out
        assert main(["train", "--resume", str(folder), "--hardware.threads", "1"]) == 0
        assert "finished after 72 examples" in capsys.readouterr().out
        before = everything(tmp_path)
        assert main(["train", "--resume", str(folder)]) == 0
        assert capsys.readouterr().out == f"{folder} is finished: its weights are in {folder / 'final.safetensors'}\n"
        assert everything(tmp_path) == before
        assert main(["eval", str(folder), "--sizes", "36", "48", "--examples", "30", "--json"]) == 0
        records = json.loads(capsys.readouterr().out)
        assert [(record["size"], record["examples"]) for record in records] == [(36, 30), (48, 30)]
        assert open_run(folder).evaluations() == records
        assert main(["report", str(folder), "--out", "report"]) == 0
        printed = capsys.readouterr().out
        assert "report: report/" in printed
        assert list((tmp_path / "report").glob("*.html"))

    def test_a_signal_is_told_by_the_exit_code(self, config, tmp_path, capsys, monkeypatch):
        def train(run, request, **_):
            request.signal = signal.SIGTERM
            raise StoppedError("by SIGTERM")

        monkeypatch.setattr(fit, "train", train)
        command = ["train", "--config", str(config), "--out", str(tmp_path / "run")]
        assert main(command) == 128 + signal.SIGTERM
        line = capsys.readouterr().out.splitlines()[-1]
        assert (
            line == "run: stopped by SIGTERM before its first checkpoint: nothing to save, run the same command again"
        )
        assert main(command) == 128 + signal.SIGTERM  # the folder exists, but nothing in it is lost
        (tmp_path / "run" / "checkpoints" / "last.ckpt").touch()
        assert main(["train", "--resume", str(tmp_path / "run")]) == 128 + signal.SIGTERM
        assert "stopped by SIGTERM; resume with: liere train --resume" in capsys.readouterr().out

    def test_what_is_said_after_a_signal_can_be_done(self, config, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(fit, "train", lambda run, **_: (_ for _ in ()).throw(StoppedError("by SIGTERM")))
        command = ["train", "--config", str(config), "--out", str(tmp_path / "run")]
        assert main(command) == 0
        (tmp_path / "run" / "checkpoints" / ".new-last.ckpt.1.tmp").touch()  # the first one was being written
        assert main(command) == 0
        assert "run the same command again" in capsys.readouterr().out
        (tmp_path / "run" / "best.safetensors").touch()  # the first one was about to be
        assert main(["train", "--resume", str(tmp_path / "run")]) == 0
        assert "resume with: liere train --resume" in capsys.readouterr().out

    def test_fields_of_the_command_line_are_kept_with_the_run(self, config, tmp_path, monkeypatch):
        monkeypatch.setattr(fit, "train", lambda run, **_: (_ for _ in ()).throw(StoppedError("as requested")))
        arguments = "--model.encoding absolute --training.seed 5 --data.distance [1,2] --optimizer.clip null"
        assert main(["train", "--config", str(config), *arguments.split()]) == 0
        kept = open_run(tmp_path / "runs" / "tiny-seed5").config
        assert (kept.model.encoding, kept.data.distance, kept.optimizer.clip) == ("absolute", (1, 2), None)
        assert kept.model.dim == 16
