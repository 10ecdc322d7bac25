"""The data of a run: loading them from their current location, and storing their facts with the run."""

from __future__ import annotations

from liere.data.examples import ExampleSet
from liere.data.facts import DataFacts
from liere.errors import InputError
from liere.files.reading import shorten
from liere.runs.run import Run
from liere.runs.stored_data import StoredData, without_facts

__all__ = ["check_same_task", "load_data", "remember_data"]


def load_data(run: Run, split: str, *, size: int | None = None, length: int | None = None) -> ExampleSet:
    """Return a split of a run's data; see `DataConfig.load`.

    Raises:
        FileNotFoundError: If the data are neither at their location in training nor at that in the configuration.
        ValueError: If they are damaged, or belong to another task than the run was trained on.
    """
    try:
        examples = run.data.load(split, size=size, length=length)
    except FileNotFoundError as error:
        places = [] if run.data_root is not None or run.stored_data is None else run.stored_data.places(run.folder)
        if not places:
            raise
        tried = ", ".join(map(str, dict.fromkeys(places)))
        raise FileNotFoundError(
            f"{error}; the data of the run were not found at {tried} either: set their location with --data.root"
        ) from None
    check_same_task(run, examples.facts)
    return examples


def check_same_task(run: Run, facts: DataFacts) -> None:
    """Raise `ValueError` if data have other classes or channels than the training data of a run."""
    mine = run.facts
    for what, given, trained in (
        ("classes", facts.classes, mine.classes),
        ("channels", facts.channels, mine.channels),
        ("axes", len(facts.image_size), len(mine.image_size)),
    ):
        if given != trained:
            raise InputError(
                f"the data of {run.folder} have the {what} {shorten(str(given))}, but it was trained with "
                f"{shorten(str(trained))}: use data of the same task, for example --data.root my-data"
            )


def remember_data(run: Run) -> None:
    """Write `facts.json` if it is missing or out of date.

    Raises:
        ValueError: If the run was started with other data.
        OSError: If it cannot be written.
    """
    check_same_task(run, without_facts(run.data).facts)
    now = StoredData.of(run.data, run.folder)
    if now != run.stored_data:
        now.write(run.facts_file)
