"""Predictions of a run's model for new images."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from liere.data.reading.decoded_files import UnreadableError
from liere.errors import InputError, InputTypeError
from liere.evaluation.new_examples import ExampleReader
from liere.runs.image_classifier import ImageClassifier
from liere.runs.model import load_model
from liere.runs.run import Run

__all__ = ["Prediction", "Source", "predict"]

WEIGHTS = ("final", "best")
BATCH = 32
MOST_VALUES = 50_000_000  # of a batch: large images are classified in smaller ones
Source = str | Path | Tensor


@dataclass(frozen=True)
class Prediction:
    """The prediction of a model for an example.

    Attributes:
        source: Path of the file, or `images[n]` for a tensor.
        classes: Names of the most likely classes, the most likely first.
        probabilities: Probabilities of these classes.
    """

    source: str
    classes: tuple[str, ...]
    probabilities: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the prediction as a dict."""
        found = zip(self.classes, self.probabilities, strict=True)
        return {"file": self.source, "classes": [{"class": name, "probability": share} for name, share in found]}


def predict(
    run: Run,
    images: Source | Iterable[Source],
    *,
    size: int | None = None,
    weights: str = "final",
    top: int = 5,
    say: Callable[[str], None] | None = None,
) -> list[Prediction]:
    """Return the most likely classes of images, preprocessed like the test images of the run.

    The data set is not needed: a run stores its classes, image size and normalization.

    Args:
        run: A trained run.
        images: Files, folders of files, tensors `[channels, *size]` or batches of these; uint8 from 0 to 255 or float,
            as in the run's data set.
        size: Side of the images; None for that of the training images.
        weights: `"final"`, or `"best"` for the best validation accuracy.
        top: Number of classes to return per image.
        say: Function called with a line per unreadable file, which is skipped; None for `warnings.warn`.

    Raises:
        FileNotFoundError: If the run has no such weights, or an image does not exist.
        TypeError: If an image has another type.
        ValueError: If nothing can be read, tensors do not fit the run, or a result is not finite.
    """
    if weights not in WEIGHTS:
        raise InputError(f"weights must be one of {', '.join(WEIGHTS)}, got {weights!r}")
    if top < 1:
        raise InputError(f"top must be a positive integer, got {top}")
    reader = ExampleReader(run, size)
    given: list[Any] = [images]
    if isinstance(images, Iterable) and not isinstance(images, str | Tensor):
        given = list(images)
    file = run.best_weights if weights == "best" else run.final_weights
    model = load_model(run.config, file, run.facts)
    device = "cuda" if torch.cuda.is_available() and run.config.hardware.accelerator != "cpu" else "cpu"
    classifier = ImageClassifier(model, run.facts).to(device).eval()
    examples = _readable(reader, given, say or _warn)
    found = [
        prediction
        for part in _batches(examples)
        for prediction in _classify(classifier, part, run.facts.classes, top, device, file)
    ]
    if not found:
        raise InputError(f"none of the {len(given)} given images can be read: pass files of the run's kind, or tensors")
    return found


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=3)


def _readable(reader: ExampleReader, given: Sequence[Any], say: Callable[[str], None]) -> Iterator[tuple[str, Tensor]]:
    """Yield the names and tensors of the examples that can be read."""
    tensors = 0
    for source in given:
        if isinstance(source, Tensor):
            for example in reader.examples(source):
                yield f"images[{tensors}]", example
                tensors += 1
            continue
        if not isinstance(source, str | Path):
            raise InputTypeError(
                f"images must be files, folders or tensors, got {type(source).__name__}: convert it to a tensor "
                "[channels, *size], or save it to a file"
            )
        files = reader.files(Path(source))
        if not Path(source).exists():
            raise FileNotFoundError(f"there is no image {source}: check the path")
        if not files:
            say(f"warning: {source} has no files with the suffix {', '.join(reader.suffixes)}: skipped")
        for file in files:
            try:
                example = reader.read(file)
            except UnreadableError as error:
                say(f"warning: cannot read {file} ({error}): skipped")
            else:
                yield str(file), example


def _batches(examples: Iterator[tuple[str, Tensor]]) -> Iterator[list[tuple[str, Tensor]]]:
    """Yield batches of one dtype: uint8 images stacked with floats would be normalized like floats."""
    for (_, shape), alike in groupby(examples, key=lambda example: (example[1].dtype, example[1].shape)):
        count = max(1, min(BATCH, MOST_VALUES // max(1, math.prod(shape))))
        while part := list(islice(alike, count)):
            yield part


@torch.inference_mode()
def _classify(
    classifier: ImageClassifier,
    part: Sequence[tuple[str, Tensor]],
    names: Sequence[str],
    top: int,
    device: str,
    weights: Path,
) -> Iterator[Prediction]:
    logits = classifier.example_logits(torch.stack([example for _, example in part]).to(device))
    are_finite = logits.isfinite().all(1).tolist()
    if not all(are_finite):
        raise _not_finite(*part[are_finite.index(False)], weights)
    shares, labels = logits.softmax(1).topk(min(top, len(names)), dim=1)
    for (source, _), own, found in zip(part, shares.tolist(), labels.tolist(), strict=True):
        yield Prediction(source, tuple(names[label] for label in found), tuple(own))


def _not_finite(source: str, example: Tensor, weights: Path) -> InputError:
    """Return the error for an example whose logits are not finite."""
    if not example.isfinite().all():
        return InputError(f"{source} has values that are not finite: remove them")
    return InputError(
        f"{weights} gives probabilities for {source} that are not finite, so it is damaged or training diverged: train "
        "the run again"
    )
