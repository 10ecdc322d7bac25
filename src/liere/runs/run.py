"""A run: a folder with its configuration, checkpoints, logs and, once it has finished, its result."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from liere.runs.killed_starts import remove_killed_starts, remove_unfinished_files
from liere.runs.locking import file_lock, lock_folder
from liere.runs.records import read_curve, read_evaluations, read_metrics, read_result
from liere.runs.stored_data import StoredData, at_root, read_stored_data, with_facts
from liere_command.signals import hold_signals

__all__ = ["Run", "check_new", "create_run", "open_run"]

FACTS = "facts.json"
CHANGEABLE = ("hardware", "logger", "data.root", "training.examples")
"""What may change when a run is resumed: the hardware, the logger, the location of the data, and the length."""


@dataclass(frozen=True)
class Run:
    """The folder of a run.

    `config.yaml` exists from the start, `result.json` once the run has finished; in between there are `facts.json`,
    `checkpoints/`, `metrics.csv` and `tensorboard/`. Evaluations add `predictions/` and `evaluation.json`.

    Attributes:
        folder: Folder of the run.
        config: Configuration of the run.
        data_root: Location of the data; None for their location in training.
        is_new: Whether this command created the folder.
    """

    folder: Path
    config: RunConfig
    data_root: Path | None = None
    is_new: bool = field(default=False, compare=False)

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.folder / "checkpoints"

    @property
    def best_weights(self) -> Path:
        """File of the weights with the best validation accuracy."""
        return self.folder / "best.safetensors"

    @property
    def final_weights(self) -> Path:
        """File of the weights after the last step."""
        return self.folder / "final.safetensors"

    @property
    def metrics(self) -> Path:
        """Log file of training and validation."""
        return self.folder / "metrics.csv"

    @property
    def result_file(self) -> Path:
        """File of the result, which exists once the run has finished."""
        return self.folder / "result.json"

    @property
    def evaluation_file(self) -> Path:
        """File of the evaluations, one record per condition."""
        return self.folder / "evaluation.json"

    @property
    def facts_file(self) -> Path:
        """File of the facts of the run's data."""
        return self.folder / FACTS

    @cached_property
    def stored_data(self) -> StoredData | None:
        """Stored facts of the data; None before training starts and in runs of earlier versions."""
        return read_stored_data(self.facts_file)

    @property
    def facts(self) -> DataFacts:
        """Classes, channels, image size and normalization: the stored ones, or else those of the data."""
        return self.data.facts

    @cached_property
    def data(self) -> DataConfig:
        """The data section with the stored facts, and with `root` at the current location of the data, if found."""
        stored = self.stored_data
        data = self.config.data if stored is None else with_facts(self.config.data, stored.facts)
        if self.data_root is not None:
            return at_root(data, self.data_root)
        found = (place for place in (stored.places(self.folder) if stored else ()) if place.exists())
        place = next(found, None)
        return data if place is None else at_root(data, place)

    @property
    def is_finished(self) -> bool:
        """Whether the run has finished; a damaged result does not count."""
        return self.result_file.exists() and self.damage() is None

    def damage(self) -> str | None:
        """Return what is wrong with the result; None if it is fine or does not exist yet.

        Missing weights count as damage if a checkpoint is left to restore them from.
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
        """Return the run in `training.start_from`, if any: a path, or the name of a run next to this one.

        Raises:
            FileNotFoundError: If it does not exist.
        """
        name = self.config.training.start_from
        if name is None:
            return None
        beside = self.folder.parent / name
        return open_run(beside if (beside / "config.yaml").exists() else Path(name))

    def result(self) -> dict[str, Any]:
        """Return the result of the run.

        Raises:
            ValueError: If the run is not finished, or the file is damaged.
        """
        try:
            return read_result(self.result_file)
        except FileNotFoundError:
            raise InputError(f"run {self.folder} is not finished: run liere train --resume {self.folder}") from None
        except DamagedError as error:
            raise InputError(f"{error}: restore it with liere train --resume {self.folder}") from None

    def evaluations(self, weights: str | None = None) -> list[dict[str, Any]]:
        """Return the evaluations so far; optionally only those of `"final"` or `"best"` weights."""
        try:
            records = read_evaluations(self.evaluation_file)
        except FileNotFoundError:
            return []
        except DamagedError as error:
            raise InputError(f"{error}: delete it and evaluate again") from None
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
        except (OSError, ValueError):  # the name is not a valid file name
            is_fit = False
        if not is_fit:
            raise InputError(
                f"{self.evaluation_file} refers to {shorten(name)!r}, which is not a predictions file of the run: "
                "delete the former and evaluate again"
            )
        return path

    def curve(self) -> list[dict[str, float]]:
        """Return the validation results so far: examples, accuracy and loss."""
        return read_curve(self.metrics)

    def metric_rows(self) -> Iterator[dict[str, str]]:
        """Yield the complete lines of the log; damaged lines are skipped."""
        return read_metrics(self.metrics)

    def remove_unfinished(self) -> None:
        """Remove unfinished files of processes that were killed; requires the lock."""
        remove_unfinished_files(self.folder, self.checkpoints)

    @contextmanager
    def lock(self, patience: float = 0, check: Callable[[], object] | None = None) -> Iterator[None]:
        """Keep other processes from changing the run; the lock is released when the process ends for any reason.

        Args:
            patience: Seconds to wait for another process.
            check: Called while waiting; whatever it raises ends the waiting. None for nothing.

        Raises:
            ValueError: If another process has the lock, or a link would cause writes outside the run.
        """
        with lock_folder(self.folder, patience, check):
            yield


def check_new(folder: Path, config: RunConfig) -> None:
    """Raise `ValueError` if the folder of a new run exists, unless it contains only the unsaved start of that run."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not _is_unsaved_start(folder, config):
        hint = f"resume it with liere train --resume {folder}, or " if (folder / "config.yaml").exists() else ""
        raise InputError(f"--out {folder} already exists: {hint}choose another folder")


def _is_unsaved_start(folder: Path, config: RunConfig) -> bool:
    """Return whether a folder contains the start of the same run, stopped before anything was saved."""
    try:
        run = open_run(folder)
    except (OSError, ValueError):
        return False
    kept = (run.result_file, run.final_weights, run.best_weights, *run.checkpoints.glob("*.ckpt"))
    return run.config == config and not any(path.exists() for path in kept)


def create_run(folder: Path, config: RunConfig) -> Run:
    """Create the folder of a new run, or return the same run if it was started but has not saved anything yet.

    Raises:
        ValueError: If the folder exists and contains something else.
        OSError: If it cannot be created.
    """
    check_new(folder, config)
    prepare_folder(folder.parent, "--out")
    remove_killed_starts(folder)
    if (folder / "config.yaml").exists():
        return Run(folder, config)
    # The folder is renamed into place together with its configuration.
    prefix = f".{folder.name}.{os.getpid()}-"
    with hold_signals(), tempfile.TemporaryDirectory(dir=folder.parent, prefix=prefix) as temporary:
        new = Path(temporary) / "new"
        with file_lock(Path(temporary) / ".lock"):  # shows others that this process is alive
            (new / "checkpoints").mkdir(parents=True)
            write_atomically(new / "config.yaml", config.to_yaml())
            try:
                os.replace(new, folder)
            except OSError:
                check_new(folder, config)
                if (folder / "config.yaml").exists():
                    return Run(folder, config)  # another process was faster
                raise
    return Run(folder, config, is_new=True)


def open_run(folder: Path, overrides: dict[str, str] | None = None) -> Run:
    """Return an existing run.

    Args:
        folder: Its folder.
        overrides: Fields to override: those of `hardware` and `logger`, `data.root` if the data were moved, and
            `training.examples` to train longer.

    Raises:
        FileNotFoundError: If there is no run.
        ValueError: If its configuration is damaged, or fields may not be overridden.
    """
    file = folder / "config.yaml"
    if not file.exists():
        raise FileNotFoundError(
            f"no run at {folder}, since there is no {file}: start one with liere train --config ... --out {folder}"
        )
    overrides = dict(overrides or {})
    for name in overrides:
        if name not in CHANGEABLE and name.partition(".")[0] not in CHANGEABLE:
            raise InputError(
                f"--{name} cannot change when a run is resumed, only {', '.join(CHANGEABLE)} can: start a new run"
            )
    content = read_config(file)
    if not content:
        raise InputError(f"{file} is empty, so the configuration of the run is lost: start it again")
    parse_config(content, overrides, source=str(file))  # before `root` is removed, to check it as well
    root = overrides.pop("data.root", None)
    config = parse_config(content, overrides, source=str(file))
    if "training.examples" in overrides:
        before = parse_config(content, source=str(file)).training.examples
        if config.training.examples < before:
            raise InputError(
                f"--training.examples {config.training.examples} is less than the {before} of {folder}: a run can only "
                "be trained longer; start a new run"
            )
    stored = read_stored_data(folder / FACTS)
    if stored is not None:  # also for code that only sees the configuration
        config = config.model_copy(update={"data": with_facts(config.data, stored.facts)})
    return Run(folder, config, None if root is None else Path(root))
