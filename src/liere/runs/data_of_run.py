"""The data of a run: read from where they are now, and remembered for when they are gone."""

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
        FileNotFoundError: If the data are neither where they were in training nor where the configuration says.
        ValueError: If they are damaged, or are not those of the task that the run learned.
    """
    try:
        examples = run.data.load(split, size=size, length=length)
    except FileNotFoundError as error:
        places = [] if run.data_root is not None or run.stored_data is None else run.stored_data.places(run.folder)
        if not places:
            raise
        tried = ", ".join(map(str, dict.fromkeys(places)))
        raise FileNotFoundError(
            f"{error}; the run's data were looked for at {tried}, too: say where they are with --data.root"
        ) from None
    check_same_task(run, examples.facts)
    return examples


def check_same_task(run: Run, facts: DataFacts) -> None:
    """Raise `ValueError` if data have other classes or channels than those that a run was trained on."""
    mine = run.facts
    for what, given, trained in (
        ("classes", facts.classes, mine.classes),
        ("channels", facts.channels, mine.channels),
        ("axes", len(facts.image_size), len(mine.image_size)),
    ):
        if given != trained:
            raise InputError(
                f"the data of {run.folder} have the {what} {shorten(str(given))}, but it was trained with "
                f"{shorten(str(trained))}: use data of the same task, like --data.root my-data"
            )


def remember_data(run: Run) -> None:
    """Write `facts.json`, unless it says already what is so.

    Raises:
        ValueError: If the data are not those that the run has begun with.
        OSError: If it cannot be written.
    """
    check_same_task(run, without_facts(run.data).facts)
    now = StoredData.of(run.data, run.folder)
    if now != run.stored_data:
        now.write(run.facts_file)
