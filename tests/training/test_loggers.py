from __future__ import annotations

import csv
import sys
from types import ModuleType

import pytest

pytest.importorskip("tests.training.requirements")

from liere.optional.torchvision_ops import import_with_torchvision
from liere.runs.logger_config import LoggerConfig
from liere.runs.run import open_run
from liere.training.fit import train
from liere.training.loggers import make_logger
from tests.training.tiny import make_run, quiet, stop_after

CSVLogger = import_with_torchvision("lightning.pytorch.loggers").CSVLogger
Logger = import_with_torchvision("lightning.pytorch.loggers.logger").Logger
pytestmark = quiet
CSV = "lightning.pytorch.loggers.CSVLogger"


class Recorder(Logger):
    """A logger that records everything, and may fail."""

    def __init__(self, *, failing: str = "") -> None:
        super().__init__()
        self.failing, self.metrics, self.settings, self.ends = failing, [], None, []

    name, version = "recorder", 0

    @property
    def experiment(self):
        if self.failing == "experiment":
            raise RuntimeError("not logged in")
        return self

    def log_metrics(self, metrics, step=None):
        self.metrics.append((step, metrics))

    def log_hyperparams(self, params, *arguments, **options):
        self.settings = params

    def finalize(self, status):
        self.ends.append(status)


def test_a_logger_of_the_caller_gets_what_the_log_has(tmp_path):
    run, logger = make_run(tmp_path / "run"), Recorder()
    train(run, say=print, logger=logger)
    assert logger.settings["training"]["examples"] == 72
    assert logger.ends == ["success"]
    rows = [(int(row["step"]), row["train_loss"], row["val_accuracy"]) for row in run.metric_rows()]
    assert [(step, "train_loss" in values) for step, values in logger.metrics] == [
        (step, bool(loss)) for step, loss, _ in rows
    ]
    assert not (run.folder / "tensorboard").exists()


def test_a_logger_is_named_in_the_configuration(tmp_path):
    run = make_run(
        tmp_path / "run", logger={"class_path": CSV, "init_args": {"name": "own", "flush_logs_every_n_steps": 1}}
    )
    train(run, say=print)
    (file,) = (run.folder / "own").rglob("metrics.csv")
    with file.open() as lines:
        steps = {int(row["step"]) for row in csv.DictReader(lines)}
    assert steps == {int(row["step"]) for row in run.metric_rows()}
    assert run.config.fingerprint == make_run(tmp_path / "plain").config.fingerprint


def test_a_run_that_fails_tells_its_logger(tmp_path, monkeypatch):
    run, logger = make_run(tmp_path / "run"), Recorder()
    monkeypatch.setattr(Recorder, "log_metrics", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(run, say=print, logger=logger)
    assert logger.ends == ["failed"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"class_path": "nowhere.Logger"},
            r"logger\.class_path 'nowhere\.Logger' cannot be imported \(No module named",
        ),
        ({"class_path": "Logger"}, r"logger\.class_path 'Logger' is not a Lightning logger"),
        ({"class_path": ".."}, r"logger\.class_path '\.\.' is not a Lightning logger"),
        ({"class_path": ".relative.Logger"}, "is not a Lightning logger: use for example"),
        ({"class_path": "os..Logger"}, "is not a Lightning logger: use for example"),
        ({"class_path": "os.system"}, "is not a Lightning logger: use for example"),
        ({"class_path": f"{CSV}s"}, "cannot be imported"),
        ({"class_path": CSV, "init_args": {"project": "x"}}, rf"logger {CSV} cannot be created: .*project"),
        ({"init_args": {"project": "x"}}, "needs logger.class_path"),
    ],
)
def test_what_is_wrong_is_reported_before_training(tmp_path, monkeypatch, config, message):
    run = make_run(tmp_path / "run", logger=config)
    with pytest.raises(ValueError, match=message):
        train(run, say=print)
    assert not run.metrics.exists()


def test_a_logger_that_cannot_begin_is_reported_before_training(tmp_path):
    run = make_run(tmp_path / "run")
    with pytest.raises(ValueError, match=r"logger Recorder cannot start: not logged in \(RuntimeError\)"):
        train(run, say=print, logger=Recorder(failing="experiment"))
    with pytest.raises(ValueError, match="logger must be a Lightning logger, got 'wandb'"):
        train(run, say=print, logger="wandb")
    assert not run.metrics.exists()


def test_a_run_may_be_resumed_with_another_logger(tmp_path):
    run = make_run(tmp_path / "run")
    stop_after(run, 3)
    module = ModuleType("own_loggers")
    module.Recorder = Recorder
    sys.modules["own_loggers"] = module
    try:
        train(open_run(run.folder, {"logger.class_path": "own_loggers.Recorder"}), say=print)
    finally:
        del sys.modules["own_loggers"]
    assert run.is_finished


def test_loggers_are_saved_in_the_run_unless_told_otherwise(tmp_path):
    assert make_logger(LoggerConfig(), tmp_path) is None
    logger = make_logger(LoggerConfig(class_path=CSV), tmp_path)
    assert isinstance(logger, CSVLogger)
    assert logger.save_dir == str(tmp_path)
    other = make_logger(LoggerConfig(class_path=CSV, init_args={"save_dir": str(tmp_path / "x")}), tmp_path)
    assert other.save_dir == str(tmp_path / "x")
