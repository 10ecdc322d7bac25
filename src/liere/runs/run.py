"""A run: a folder with its configuration, checkpoints, logs and, once it is finished, its result."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from liere.data.facts import DataFacts
from liere.data.registry import DataConfig
from liere.errors import InputError
from liere.files.reading import DamagedError, shorten
from liere.files.writing import prepare_folder, write_atomically
from liere.runs.config import RunConfig
from liere.runs.config_file import parse_config, read_config
from liere.runs.killed_starts import remove_killed_starts
from liere.runs.locking import file_lock, lock_folder
from liere.runs.records import read_evaluations, read_metrics, read_result
from liere.runs.stored_data import StoredData, at_root, read_stored_data, with_facts
from liere_command.signals import hold_signals

__all__ = ["Run", "check_new", "create_run", "open_run"]

FACTS = "facts.json"
CHANGEABLE = ("hardware", "logger", "data.root", "training.examples")
"""What may be other when a run is resumed: the machine, the log, where the data are, and how long to train."""


@dataclass(frozen=True)
class Run:
    """The folder of a run.

    `config.yaml` is there from the first moment, `result.json` from the last; in between there are `facts.json`,
    `checkpoints/`, `metrics.csv` and `tensorboard/`. Evaluations add `predictions/` and `evaluation.json`.

    Attributes:
        folder: Where it is.
        config: As it was given.
        data_root: Where the data are; None to look where they were in training.
    """

    folder: Path
    config: RunConfig
    data_root: Path | None = None

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.folder / "checkpoints"

    @property
    def best_weights(self) -> Path:
        """Weights with the best validation accuracy."""
        return self.folder / "best.safetensors"

    @property
    def final_weights(self) -> Path:
        """Weights after the last step."""
        return self.folder / "final.safetensors"

    @property
    def metrics(self) -> Path:
        """Log of training and validation."""
        return self.folder / "metrics.csv"

    @property
    def result_file(self) -> Path:
        """What came out; it is there once the run is finished."""
        return self.folder / "result.json"

    @property
    def evaluation_file(self) -> Path:
        """What evaluations found, size by size."""
        return self.folder / "evaluation.json"

    @property
    def facts_file(self) -> Path:
        """What the run remembers of its data."""
        return self.folder / FACTS

    @cached_property
    def stored_data(self) -> StoredData | None:
        """What the run remembers of its data, once its training has begun; None in runs of earlier versions."""
        return read_stored_data(self.facts_file)

    @property
    def facts(self) -> DataFacts:
        """Classes, channels, image size and normalization: remembered ones, otherwise those of the data."""
        return self.data.facts

    @cached_property
    def data(self) -> DataConfig:
        """The data section with the remembered facts, and with `root` where the data are now, if they can be found."""
        stored = self.stored_data
        data = self.config.data if stored is None else with_facts(self.config.data, stored.facts)
        if self.data_root is not None:
            return at_root(data, self.data_root)
        found = (place for place in (stored.places(self.folder) if stored else ()) if place.exists())
        place = next(found, None)
        return data if place is None else at_root(data, place)

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to train; a damaged result does not count."""
        return self.result_file.exists() and self.damage() is None

    def damage(self) -> str | None:
        """Return what is wrong with the result; None if nothing is, or it is not there yet.

        Weights that are gone are wrong where a checkpoint is left to make them from.
        """
        try:
            read_result(self.result_file)
        except DamagedError as error:
            return str(error)
        except FileNotFoundError:
            return None
        is_lost = not self.final_weights.exists() and any(self.checkpoints.glob("*.ckpt"))
        return f"{self.final_weights} is missing" if is_lost else None

    def source(self) -> Run | None:
        """Return the run that this one starts from, if any: `training.start_from` is a path, or a run beside this one.

        Raises:
            FileNotFoundError: If there is none.
        """
        name = self.config.training.start_from
        if name is None:
            return None
        beside = self.folder.parent / name
        return open_run(beside if (beside / "config.yaml").exists() else Path(name))

    def result(self) -> dict[str, Any]:
        """Return what came out.

        Raises:
            ValueError: If the run is not finished, or the file is damaged.
        """
        try:
            return read_result(self.result_file)
        except FileNotFoundError:
            raise InputError(f"run {self.folder} is not finished: liere train --resume {self.folder}") from None
        except DamagedError as error:
            raise InputError(f"{error}: make it again with liere train --resume {self.folder}") from None

    def evaluations(self, weights: str | None = None) -> list[dict[str, Any]]:
        """Return what evaluations found so far; of `"final"` or `"best"` weights only, if asked for."""
        try:
            records = read_evaluations(self.evaluation_file)
        except FileNotFoundError:
            return []
        except DamagedError as error:
            raise InputError(f"{error}: delete it, and evaluate again") from None
        return [record for record in records if weights in (None, record["weights"])]

    def predictions_file(self, record: dict[str, Any]) -> Path:
        """Return the file with the predictions of an evaluation.

        Raises:
            ValueError: If the record names a file outside the run, or something that is not a file.
        """
        name = str(record.get("predictions"))
        try:
            path = (self.folder / name).resolve()
            is_fit = path.is_relative_to(self.folder.resolve() / "predictions") and (
                path.is_file() or not path.exists()
            )
        except (OSError, ValueError):  # of a name that no file can have
            is_fit = False
        if not is_fit:
            raise InputError(
                f"{self.evaluation_file} names {shorten(name)!r}, which is no file of predictions in the run: delete "
                "it, and evaluate again"
            )
        return path

    def curve(self) -> list[dict[str, float]]:
        """Return the validations so far: examples, accuracy and loss."""
        return [
            {"examples": int(row["examples"]), "accuracy": float(row["val_accuracy"]), "loss": float(row["val_loss"])}
            for row in self.metric_rows()
            if row["val_accuracy"]
        ]

    def metric_rows(self) -> list[dict[str, str]]:
        """Return the whole lines of the log; one that is being written is left out, and so are damaged ones."""
        return read_metrics(self.metrics)

    def remove_unfinished(self) -> None:
        """Remove what processes that were killed while they wrote have left; only for who holds the lock."""
        for left in self.folder.rglob(".*.tmp"):
            with contextlib.suppress(IsADirectoryError):
                left.unlink(missing_ok=True)

    @contextmanager
    def lock(self, patience: float = 0) -> Iterator[None]:
        """Keep other processes from changing the same run; the lock ends with the process, however it ends.

        Args:
            patience: Seconds to wait for another process.

        Raises:
            ValueError: If one is at it, or a link would have it written outside of the run.
        """
        with lock_folder(self.folder, patience):
            yield


def check_new(folder: Path, config: RunConfig) -> None:
    """Raise `ValueError` if there is something already where a new run is to be, other than its own unsaved start."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not _is_unsaved_start(folder, config):
        hint = f"resume it with liere train --resume {folder}, or " if (folder / "config.yaml").exists() else ""
        raise InputError(f"--out {folder} exists: {hint}choose another folder")


def _is_unsaved_start(folder: Path, config: RunConfig) -> bool:
    """Return whether a folder holds the start of this very run, stopped before anything was saved."""
    try:
        run = open_run(folder)
    except (OSError, ValueError):
        return False
    kept = (run.result_file, run.final_weights, run.best_weights, *run.checkpoints.glob("*.ckpt"))
    return run.config == config and not any(path.exists() for path in kept)


def create_run(folder: Path, config: RunConfig) -> Run:
    """Make the folder of a new run, or return the run if it was started before but has not saved anything yet.

    Raises:
        ValueError: If there is something else already.
        OSError: If it cannot be made.
    """
    check_new(folder, config)
    prepare_folder(folder.parent, "--out")
    remove_killed_starts(folder)
    if (folder / "config.yaml").exists():
        return Run(folder, config)
    # The folder appears with its configuration in it, or not at all.
    prefix = f".{folder.name}.{os.getpid()}-"
    with hold_signals(), tempfile.TemporaryDirectory(dir=folder.parent, prefix=prefix) as temporary:
        new = Path(temporary) / "new"
        with file_lock(Path(temporary) / ".lock"):  # tells others that this process is alive
            (new / "checkpoints").mkdir(parents=True)
            write_atomically(new / "config.yaml", config.to_yaml())
            try:
                os.replace(new, folder)
            except OSError:
                check_new(folder, config)
                if not (folder / "config.yaml").exists():  # of another process that was faster
                    raise
    return Run(folder, config)


def open_run(folder: Path, overrides: dict[str, str] | None = None) -> Run:
    """Return a run that was begun before.

    Args:
        folder: Its folder.
        overrides: Fields to override: those of `hardware` and `logger`, `data.root` for data that were moved, and
            `training.examples` to train longer.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If its configuration is damaged, or fields may not be overridden.
    """
    file = folder / "config.yaml"
    if not file.exists():
        raise FileNotFoundError(
            f"no run at {folder}: there is no {file}; begin it with liere train --config ... --out {folder}"
        )
    overrides = dict(overrides or {})
    for name in overrides:
        if name not in CHANGEABLE and name.partition(".")[0] not in CHANGEABLE:
            raise InputError(
                f"--{name} cannot change when a run is resumed, only {', '.join(CHANGEABLE)}: begin another run for it"
            )
    content = read_config(file)
    if not content:
        raise InputError(f"{file} is empty: the run cannot be told any more; begin it again")
    parse_config(content, overrides, source=str(file))  # whether the data set has a root, too
    root = overrides.pop("data.root", None)
    config = parse_config(content, overrides, source=str(file))
    if "training.examples" in overrides:
        before = parse_config(content, source=str(file)).training.examples
        if config.training.examples < before:
            raise InputError(
                f"--training.examples {config.training.examples} is less than the {before} of {folder}: a run can only "
                "be trained longer; begin another run for it"
            )
    stored = read_stored_data(folder / FACTS)
    if stored is not None:  # who has only the configuration finds the facts in it
        config = config.model_copy(update={"data": with_facts(config.data, stored.facts)})
    return Run(folder, config, None if root is None else Path(root))
