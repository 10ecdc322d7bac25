"""Functions on a single run: train, resume, evaluate, predict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from liere.errors import InputError, whole_number
from liere.evaluation.predict import Prediction, Source
from liere.evaluation.predict import predict as predict_with
from liere.evaluation.requested_tests import make_conditions, on_devices
from liere.evaluation.scores import Scores
from liere.runs.config_file import parse_config
from liere.runs.longer import is_longer
from liere.runs.recipe import encoding_fields, field_texts, read_recipe
from liere.runs.run import Run, open_run
from liere.toolkit.calls import Encoding, Place, count_of, folder_of, path_of, several, teller, warner
from liere.training.start import begin_run, check_again, train_run
from liere_command.processes import is_first_process

__all__ = ["evaluate", "predict", "resume", "train"]


def train(
    recipe: Place | Mapping[str, Any],
    *,
    encoding: Encoding | None = None,
    out: Place | None = None,
    overrides: Mapping[str, Any] | None = None,
    data: Any = None,
    logger: Any = None,
    steps: int | None = None,
    resume: bool = True,
    dry: bool = False,
    progress: bool = True,
) -> Run:
    """Train a run and return it; an unfinished run is resumed, and a finished one is not repeated.

    A run is trained further if `training.examples` is larger than before.

    Args:
        recipe: A YAML file like those in `experiments/`, or a dict with the same sections.
        encoding: Replaces the recipe's position encoding: a name with options, like `"liere8:init_scale=3.14"`, or a
            class, which the run stores as `package.module:Class`.
        out: Folder of the run; None for `runs/<recipe>-seed<seed>`.
        overrides: Fields to override, like `{"training.seed": 1}`; strings are parsed as on the command line.
        data: Replaces the recipe's data: a torch data set of images and labels, a tuple of two (training and test),
            the result of `liere.data.from_datasets`, or a section like `{"name": "images", "root": ...}`.
        logger: Any Lightning logger, instead of the recipe's.
        steps: Maximum number of steps to take now; the same call continues later. None for no limit.
        resume: Whether to resume a run that already exists in `out`; if False, an existing run is an error.
        dry: Whether to check everything and print the estimated cost without training.
        progress: Whether to print the estimated cost and the progress.

    Returns:
        The run, finished unless `steps` or `dry` stopped it.

    Raises:
        ValueError: If an argument is invalid, or `out` contains a run of another recipe.
        OSError: If data is missing, or files cannot be written.
        SignalStop: If Ctrl-C or another signal stopped training. The run is saved, and the same call resumes it.
    """
    found = read_recipe(recipe, data)
    fields = field_texts(overrides) | encoding_fields(encoding)
    config = parse_config(found.content, fields, source=found.source)
    folder = path_of("out", out) if out is not None else Path("runs") / f"{found.name}-seed{config.training.seed}"
    if resume and (folder / "config.yaml").exists():
        there = open_run(folder)
        examples = max(there.config.training.examples, config.training.examples)
        training = there.config.training.model_copy(update={"examples": examples})  # a run can be trained longer
        if there.config.model_copy(update={"training": training}).fingerprint != config.fingerprint:
            raise InputError(
                f"--out {folder} contains a run of a different recipe: choose another folder, or delete it"
            )
        return _train(replace(there, config=config), steps=steps, logger=logger, dry=dry, progress=progress)
    run = begin_run(config, folder, teller(progress), dry=dry)
    if run is None:
        return Run(folder, config)
    return _train(run, steps=steps, logger=logger, is_checked=True, progress=progress)


def resume(
    run: Run | Place,
    *,
    overrides: Mapping[str, Any] | None = None,
    logger: Any = None,
    steps: int | None = None,
    dry: bool = False,
    progress: bool = True,
) -> Run:
    """Resume a run from its newest checkpoint, and return it.

    Args:
        run: The run, or its folder.
        overrides: Fields to override. Only `hardware.*`, `logger.*`, `data.root` and, to train longer,
            `training.examples` may change.
        logger: Any Lightning logger, instead of the configuration's.
        steps: Maximum number of steps to take now; None for no limit.
        dry: Whether to check everything and print the estimated cost without training.
        progress: Whether to print the estimated cost and the progress.

    Raises:
        ValueError: If a field must not change.
        OSError: If the run does not exist, data is missing, or files cannot be written.
        SignalStop: If Ctrl-C or another signal stopped training. The run is saved.
    """
    opened = run if isinstance(run, Run) and not overrides else open_run(folder_of(run), field_texts(overrides))
    return _train(opened, steps=steps, logger=logger, dry=dry, progress=progress)


def _train(
    run: Run, *, steps: int | None, logger: Any, progress: bool, dry: bool = False, is_checked: bool = False
) -> Run:
    say, steps = teller(progress), count_of("steps", steps)
    if run.is_finished and not is_longer(run):
        if is_first_process(run.config.hardware.world_size):
            say(f"{run.folder} is finished: its weights are in {run.final_weights}")
        return run
    if not is_checked:
        check_again(run, say, dry=dry)
    if not dry:
        train_run(run, tell=say, warn=warner(progress), steps=steps, logger=logger, progress=progress)
    return run


def evaluate(
    run: Run | Place,
    *,
    sizes: Sequence[int] | None = None,
    policies: Sequence[str] = ("",),
    shuffle: Sequence[str] = (),
    attention_scales: Sequence[str] = ("",),
    placements: Sequence[str] = ("",),
    examples: int | None = None,
    batch_size: int | None = None,
    best: bool = False,
    devices: int = 1,
    accelerator: str | None = None,
    root: Place | None = None,
    say: Callable[[str], None] | None = None,
    progress: bool = True,
) -> Scores:
    """Evaluate a finished run, write predictions and `evaluation.json` to its folder, and return the scores.

    Args:
        run: The run, or its folder.
        sizes: Image sizes; None for the training size.
        policies: Position policies: `"extend"`, `"rescale"` or `"reference"`; `""` for the policy used in training.
        shuffle: Also test with these in random order: `"patches"`, `"frames"`.
        attention_scales: Scales of the attention scores: `"constant"` or `"log"`; `""` for the one used in training.
        placements: Offsets of the grid in token steps, like `"8"` or `"0,8"`; `""` for no offset.
        examples: Number of test examples; None for all.
        batch_size: Examples per batch; None for 100 images or clips.
        best: Whether to use the weights with the best validation accuracy instead of the final ones.
        devices: Number of devices, or of processes on the CPU.
        accelerator: `"auto"`, `"cpu"` or `"gpu"`; None for the one used in training.
        root: Folder of the data; None for the one used in training.
        say: Called with one line per condition; None to print to standard output.
        progress: Whether to produce these lines.

    Raises:
        ValueError: If the run is not finished, or an argument is invalid.
        OSError: If the run does not exist, or data is missing.
    """
    moved = {} if root is None else {"data.root": str(root)}
    opened = run if isinstance(run, Run) and not moved else open_run(folder_of(run), moved)
    examples, batch_size = count_of("examples", examples), count_of("batch_size", batch_size)
    opened = on_devices(opened, devices, accelerator)
    opened.result()  # fails early for unfinished runs, before the slow import
    from liere.evaluation.evaluate import evaluate as evaluate_run
    from liere.evaluation.placements import describe_placements

    conditions = make_conditions(
        [opened.data.side] if sizes is None else several("sizes", sizes, one=(int,)),
        policies=several("policies", policies, one=(str,)),
        shuffle=several("shuffle", shuffle, one=(str,)),
        attention_scales=several("attention_scales", attention_scales, one=(str,)),
        placements=several("placements", placements, one=(str,)),
    )
    line = say if say and progress else teller(progress)
    records = evaluate_run(opened, conditions, examples=examples, batch_size=batch_size, best=best, say=line)
    for text in describe_placements(opened, records):
        line(text)
    return Scores(tuple(records))


def predict(
    run: Run | Place,
    images: Source | Iterable[Source],
    *,
    size: int | None = None,
    top: int = 5,
    best: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[Prediction]:
    """Return the most likely classes of images, which are resized and cropped like the run's test images.

    The data set is not needed: a run stores its classes, image size and normalization.

    Args:
        run: The run, or its folder.
        images: Files, folders of files, tensors `[channels, *size]` or batches of these; tensors are uint8 from 0 to
            255 or floats, like the run's data set.
        size: Side of the images; None for that of the training images.
        top: Number of classes to return per image.
        best: Whether to use the weights with the best validation accuracy instead of the final ones.
        say: Called with one line for each file that cannot be read and is skipped; None for `warnings.warn`.

    Returns:
        One prediction per image, in order: its `source`, and its `classes` and `probabilities`, most likely first.

    Raises:
        OSError: If the run does not exist, or its weights are missing.
        ValueError: If no image can be read, or tensors do not match the run.
    """
    opened = run if isinstance(run, Run) else open_run(folder_of(run))
    size, top = count_of("size", size), whole_number("top", top)
    return predict_with(opened, images, size=size, weights="best" if best else "final", top=top, say=say)
