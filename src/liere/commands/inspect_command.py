"""`liere inspect`: show what a model's position encoding does."""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from liere.commands.arguments import add_model_arguments, dimensions, model_input, seed_number
from liere.errors import InputError
from liere.files.reading import reason
from liere.files.writing import prepare_folder, write_atomically
from liere.presets import SIZES
from liere.report.json_text import json_text
from liere.terminal.messages import say
from liere.terminal.text_table import text_table

if TYPE_CHECKING:
    from liere.inspection.measures import Inspection
    from liere.vit import VisionTransformer

__all__ = ["HELP", "add_arguments", "run"]

HELP = "show what a model's position encoding does, in numbers and a figure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help=f"folder of a run; or a size ({', '.join(SIZES)}), for a newly initialized model; or a weights file (.pt, "
        ".ckpt, .safetensors), either of the published code, or a state dict of this library together with --size",
    )
    parser.add_argument("--encoding", default="liere8", help="name of the encoding (default: liere8)")
    parser.add_argument("--size", help="model size, if MODEL is a weights file of this library")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("liere-inspect"),
        metavar="DIR",
        help="folder for the results (default: ./liere-inspect)",
    )
    parser.add_argument(
        "--seed", type=seed_number, default=0, metavar="N", help="seed of weights and inputs (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table, without writing files")
    add_model_arguments(parser, "options of create_model or the encoding, such as pool=mean or share_heads=true")


def run(args: argparse.Namespace) -> None:
    """Inspect a model, print the numbers and draw a figure."""
    import torch

    from liere.inspection.measures import inspect_model
    from liere.report.drawing import require_matplotlib

    if not args.json:
        require_matplotlib()
    torch.manual_seed(args.seed)
    model, name = _load(args)
    numbers = inspect_model(model, seed=args.seed)
    if args.json:
        say(json_text(numbers.as_dict()).rstrip())
        return
    _print(numbers)
    prepare_folder(args.out, "--out")
    write_atomically(args.out / "inspect.json", json_text(numbers.as_dict()))
    say()
    say(f"wrote {args.out / 'inspect.json'}")
    from liere.inspection.overview_figure import draw_inspection

    picture = args.out / "inspect.png"
    draw_inspection(model, numbers, name, picture)
    say(f"wrote {picture}")


def _load(args: argparse.Namespace) -> tuple[VisionTransformer, str]:
    """Return the model and a title for it."""
    path = Path(args.model)
    if args.model not in SIZES and path.is_dir():
        from liere.runs.model import load_model
        from liere.runs.run import open_run

        run = open_run(path)
        name = f"{path.resolve().name}, {run.config.model.encoding}"
        return load_model(run.config, run.final_weights, run.facts), name
    return _load_described(args, path), f"{path.name}, {args.encoding}"


def _load_described(args: argparse.Namespace, path: Path) -> VisionTransformer:
    """Return the model that the arguments describe, newly initialized or with weights from a file."""
    from liere.integrations.reference import from_reference, is_reference
    from liere.presets import create_model

    given = model_input(args)
    own = given | dimensions(args) | dict(args.options) | {"encoding": args.encoding}
    if args.model in SIZES or not (path.suffix or path.exists()):
        if args.size is not None:
            raise InputError(f"--size {args.size} is for weights files only, but MODEL is {args.model}: leave it out")
        return create_model(args.model, **own)
    from liere.files.weights import load_weights

    weights = load_weights(path)
    if is_reference(weights):
        shape = {name: given[name] for name in ("image_size", "patch_size", "in_channels")}
        return from_reference(weights, encoding=args.encoding, **shape)
    if args.size is None:
        raise InputError(f"{path} does not have weights of the published code: give the size of its model with --size")
    model = create_model(args.size, **own)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(f"{path} does not match the size, encoding and options: {reason(error)}") from None
    return model


def _print(numbers: Inspection) -> None:
    share = 100 * numbers.encoding_parameters / numbers.parameters
    say(f"{numbers.encoding}: {numbers.encoding_parameters:,} of {numbers.parameters:,} parameters ({share:.2f} %)")
    say(f"rotates {numbers.rotated_dims} of the {numbers.head_dim} dimensions of a head")
    say()
    header = ["layer", "angles", "commutator", "relativity error", "|grad generators|", "|grad qkv|"]
    rows = [
        [
            str(index),
            "-" if layer.angles is None else _range([angle for axis in layer.angles for angle in axis]),
            "-" if layer.commutator is None else f"{statistics.fmean(layer.commutator):.3f}",
            "-" if layer.relativity is None else f"{layer.relativity:.1e}",
            "-" if layer.generator_gradient is None else f"{layer.generator_gradient:.2e}",
            "-" if layer.qkv_gradient is None else f"{layer.qkv_gradient:.2e}",
        ]
        for index, layer in enumerate(numbers.layers)
    ]
    for line in text_table(header, rows):
        say(line)
    say()
    if numbers.rotated_dims:
        say("angles: minimum / median / maximum rotation of a plane across the training grid, in radians")
    gradients = [layer.generator_gradient for layer in numbers.layers]
    if 0 in gradients and any(gradients):
        say("warning: the generators of some layers receive no gradient")


def _range(angles: list[Any]) -> str:
    turning = [angle for angle in angles if angle > 0]
    if not turning:
        return "0"
    return f"{min(turning):.2g} / {statistics.median(turning):.2g} / {max(turning):.3g}"
