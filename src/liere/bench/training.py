"""How much time does training spend on anything but the model? `liere train` against a bare loop, and its parts.

Each turn trains the demo's recipe from its first step to its first validation: through `liere train`, and in a bare
loop with the same model, examples, random draws and optimizer, or with another optimizer or a compiled model. A large
matrix product in the same rounds gives the speed that the processor could reach.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from liere.bench.race import Race, race, spread
from liere.bench.record import Answer, Row, Settings
from liere.data.batches import ExampleOrder, TrainingBatches, seed_of
from liere.files.shipped import experiments_folder
from liere.optional.extras import TRAINING, require
from liere.runs.config import RunConfig
from liere.runs.config_file import parse_config, read_config
from liere.runs.cost import PASSES, forward_operations
from liere.runs.image_classifier import ImageClassifier
from liere.runs.model import build_model
from liere.runs.run import create_run
from liere_command.signals import SignalInterrupt, calling_on_leaving

__all__ = ["BARE", "ENCODINGS", "TRAIN", "measure"]

RECIPE = "spatial/placement.yaml"  # the demo's
ENCODINGS: dict[str, dict[str, str]] = {
    "absolute": {"model.encoding": "absolute"},
    "liere": {"model.encoding": "liere", "model.options": "{init_scale: 2.2214}"},
}
# Like the recipe, but everything is small.
QUICK = {
    "data.size": "48",
    "data.distractor_arrows": "2",
    "data.distractor_letters": "1",
    "training.batch_size": "8",
    "training.validate_every": "4",
    "training.checkpoint_every": "4",
    "training.validation_examples": "8",
    "training.examples": "64",
}
PRODUCT, QUICK_PRODUCT = 1024, 256  # rows of the matrices
BARE, TRAIN, LIMIT = "bare loop", "liere train", "matrix product"

MakeOptimizer = Callable[[Any, RunConfig], torch.optim.Optimizer]


def measure(settings: Settings) -> Answer:
    """Time `liere train` and bare loops for every encoding.

    Raises:
        ImportError: If a package for training is missing.
    """
    require(*TRAINING)
    rounds = settings.choose_rounds(full=5, quick=2)
    rows: list[Row] = []
    notes: list[str] = []
    for encoding, fields in ENCODINGS.items():
        config = _config(fields | (QUICK if settings.quick else {}))
        row, note = _measure_encoding(encoding, config, rounds, settings)
        rows.append(row)
        notes += [note] if note else []
    training = config.training
    notes.append(
        f"{RECIPE}, {training.validate_every} steps of {training.batch_size} examples per turn. Shares are those of a "
        f"run of all {training.steps} steps."
    )
    return Answer(rounds, rows, list(dict.fromkeys(notes)))


def _config(fields: Mapping[str, str]) -> RunConfig:
    content, texts = read_config(experiments_folder() / RECIPE), {"hardware.accelerator": "cpu", **fields}
    texts |= parse_config(content, texts).model.unsupported_fields()
    return parse_config(content, texts)


def _measure_encoding(encoding: str, config: RunConfig, rounds: int, settings: Settings) -> tuple[Row, str]:
    from liere.training.optimizer import make_optimizer

    def own(model: Any, config: RunConfig) -> torch.optim.Optimizer:
        return make_optimizer(model, config.optimizer)

    parts: list[dict[str, float]] = []
    contestants: dict[str, Callable[[], object]] = {
        BARE: _bare_loop(config, own),
        TRAIN: lambda: parts.append(_train(config)),
        f"{BARE}, AdamW": _bare_loop(config, partial(_adam, fused=False)),
        f"{BARE}, fused AdamW": _bare_loop(config, partial(_adam, fused=True)),
    }
    note = "torch.compile is left out of a quick run."
    if not settings.quick:
        compiled = _bare_loop(config, own, compiled=True)
        note = _why_not(compiled)
        contestants |= {} if note else {f"{BARE}, compiled": compiled}
    size = QUICK_PRODUCT if settings.quick else PRODUCT
    matrix = torch.ones(size, size)
    contestants[LIMIT] = lambda: matrix @ matrix
    result = race(contestants, rounds, name=f"training with {encoding}", watch=settings.watch)
    return _row(encoding, config, result, parts[-rounds:], 2 * size**3), note


def _row(encoding: str, config: RunConfig, result: Race, parts: list[dict[str, float]], operations: int) -> Row:
    """Return what was measured, with the time of `liere train` without start, validations and checkpoints."""
    from liere.bench.training_parts import PARTS, WORK

    own = [*WORK, "loader", "logging", "loop"]
    seconds = result.seconds | {TRAIN: [sum(found[part] for part in own) for found in parts]}
    result = Race(BARE, seconds)
    training = config.training
    examples = training.validate_every * training.batch_size
    work = 2 * PASSES * forward_operations(config) * examples
    whole = [_whole_run(found, training.steps / training.validate_every) for found in parts]
    rest = [1 - sum(found[part] for part in WORK) / _counted(found) for found in whole]
    return {
        "encoding": encoding,
        "examples": examples,
        "operations_per_example": work / examples,
        "product_speed": spread([operations / one for one in seconds[LIMIT]]).as_dict(),
        "loops": {
            name: {
                "examples_per_second": spread([examples / one for one in seconds[name]]).as_dict(),
                "ratio": result.ratio(name).as_dict(),
                "share_of_limit": spread(
                    [work / one / (operations / limit) for one, limit in zip(times, seconds[LIMIT], strict=True)]
                ).as_dict(),
            }
            for name, times in seconds.items()
            if name != LIMIT
        },
        "shares": {part: spread([run[part] / sum(run.values()) for run in whole]).as_dict() for part in PARTS},
        "not_the_model": spread(rest).as_dict(),
    }


def _whole_run(found: dict[str, float], turns: float) -> dict[str, float]:
    """Return the parts of a run of several times as many steps: it starts and ends once."""
    return {part: seconds if part == "start and end" else turns * seconds for part, seconds in found.items()}


def _counted(run: dict[str, float]) -> float:
    """Return the seconds of a run without its validations and checkpoints."""
    return sum(seconds for part, seconds in run.items() if part not in ("validation", "checkpoints"))


def _train(config: RunConfig) -> dict[str, float]:
    """Train a run up to its first validation, as `liere train` does, and return the seconds of its parts."""
    from liere.bench.training_parts import RunParts
    from liere.training.fit import train
    from liere.training.stop_requests import StoppedError, StopRequest

    short = config.training.model_copy(update={"examples": config.training.validate_every * config.training.batch_size})
    place = tempfile.TemporaryDirectory()
    with place as folder, calling_on_leaving(place.cleanup):
        parts, request = RunParts(), StopRequest()
        run = create_run(Path(folder) / "run", config.model_copy(update={"training": short}))
        try:
            train(run, say=lambda line: None, request=request, progress=False, profiler=parts)
        except StoppedError:
            raise SignalInterrupt(request.signal or signal.SIGINT) from None
        return parts.finish()


def _bare_loop(config: RunConfig, make: MakeOptimizer, *, compiled: bool = False) -> Callable[[], None]:
    """Return a function that trains the same model on the same batches without Lightning, logs and checkpoints."""
    model, training = build_model(config), config.training
    classifier = ImageClassifier(model, config.data.facts).train()
    network: Callable[[Tensor], Tensor] = torch.compile(classifier) if compiled else classifier
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    data = config.data.load("train")
    order = ExampleOrder(len(data), training.seed)

    def loop() -> None:
        model.load_state_dict(start)
        optimizer = make(model, config)
        for step, draw in enumerate(TrainingBatches(order, range(training.validate_every), training.batch_size)):
            batch = data.load(draw.indices, draw.bits)
            torch.manual_seed(seed_of(training.seed, step, 0, 0))  # the random placement of `liere train`
            optimizer.zero_grad()
            F.cross_entropy(network(batch.images), batch.labels).backward()
            if config.optimizer.clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.clip)
            optimizer.step()

    return loop


def _adam(model: Any, config: RunConfig, *, fused: bool) -> torch.optim.Optimizer:
    """Return AdamW for all parameters."""
    optimizer = config.optimizer
    return torch.optim.AdamW(
        model.parameters(), optimizer.learning_rate, optimizer.betas, optimizer.eps, 0, fused=fused
    )


def _why_not(compiled: Callable[[], None]) -> str:
    """Compile, and return why it is impossible; `""` if it is possible."""
    try:
        compiled()
    except Exception as error:  # compilers and their absence raise many kinds of errors
        return f"torch.compile is left out, because it fails here: {type(error).__name__}."
    return ""
