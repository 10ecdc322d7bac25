"""Arguments shared by several commands."""

from __future__ import annotations

import argparse
import json
import reprlib
import shlex
import sys
from typing import Any

from liere.files.reading import shorten
from liere.presets import LARGEST_SIDE, ViTSize, image_and_patch

__all__ = [
    "add_model_arguments",
    "dimensions",
    "model_input",
    "positive_number",
    "seed_number",
    "side_number",
    "size_on_axes",
    "this_command",
]


LARGEST_SEED = 2**63 - 1  # torch seeds have 64 bits
MOST = 10**15
"""Upper limit for numbers, as for counts in configurations."""
DIMENSIONS = {
    "dim": "width of a token",
    "depth": "number of layers",
    "heads": "number of attention heads per layer",
    "mlp_dim": "hidden width of the MLPs",
}


def positive_number(text: str, most: int = MOST) -> int:
    """Parse a positive integer of at most `most`.

    Example:
        >>> positive_number("7")
        7
    """
    digits = text.lstrip("0")
    if not (text.isascii() and text.isdecimal() and digits):
        raise argparse.ArgumentTypeError(f"must be a positive integer, for example 7, got {text!r}")
    if len(digits) > len(str(most)) or int(digits) > most:
        raise argparse.ArgumentTypeError(f"must be at most {most:,}, got {shorten(digits)}")
    return int(digits)


def side_number(text: str) -> int:
    """Parse an image size in pixels.

    Example:
        >>> side_number("224")
        224
    """
    return positive_number(text, LARGEST_SIDE)


def size_on_axes(text: str) -> int | tuple[int, ...]:
    """Parse `224` (an int), `8x224x224` (a tuple) or `1024x` (a tuple with one entry).

    Example:
        >>> size_on_axes("32"), size_on_axes("8x224x224"), size_on_axes("1024x")
        (32, (8, 224, 224), (1024,))
    """
    try:
        sizes = tuple(int(part) for part in text.removesuffix("x").split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid size {text!r}: write 224 for a square image, 8x224x224 for three axes, or 1024x for one"
        ) from None
    return sizes[0] if "x" not in text else sizes


def option(text: str) -> tuple[str, Any]:
    """Parse `name=value`, where the value is a number, true, false or a string.

    Example:
        >>> option("share_heads=true"), option("init_std=1"), option("pool=mean")
        (('share_heads', True), ('init_std', 1), ('pool', 'mean'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"invalid option {text!r}: write name=value, for example share_heads=true")
    try:
        return name, json.loads(value.lower())
    except json.JSONDecodeError:
        return name, value
    except (RecursionError, ValueError) as error:  # too many brackets or digits
        raise argparse.ArgumentTypeError(f"invalid option {reprlib.repr(text)}: {error}") from None


def add_model_arguments(parser: argparse.ArgumentParser, options: str) -> None:
    """Add the arguments that describe a model's input, output, dimensions and options."""
    group = parser.add_argument_group("input", "the defaults are those of CIFAR-100 in the paper")
    group.add_argument(
        "--image-size",
        type=size_on_axes,
        default=32,
        metavar="N",
        help="image size: 224 (square image), 8x224x224 (three axes) or 1024x (one axis) (default: 32)",
    )
    group.add_argument(
        "--patch-size", type=size_on_axes, default=4, metavar="N", help="patch size, in the same format (default: 4)"
    )
    group.add_argument("--in-channels", type=int, default=3, metavar="N", help="number of channels (default: 3)")
    group.add_argument("--num-classes", type=int, default=100, metavar="N", help="number of classes (default: 100)")
    group = parser.add_argument_group("model", "override single dimensions of the model size, or set options")
    for field in ViTSize._fields:
        group.add_argument(f"--{field.replace('_', '-')}", type=int, metavar="N", help=DIMENSIONS[field])
    group.add_argument(
        "--option",
        type=option,
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        dest="options",
        help=options,
    )


def model_input(args: argparse.Namespace) -> dict[str, Any]:
    """Return image size, patch size, channels and classes as arguments of `create_model`."""
    image, patch = image_and_patch(args.image_size, args.patch_size)
    return {
        "image_size": image,
        "patch_size": patch,
        "in_channels": args.in_channels,
        "num_classes": args.num_classes,
    }


def dimensions(args: argparse.Namespace) -> dict[str, int]:
    """Return the dimensions that were given."""
    return {field: getattr(args, field) for field in ViTSize._fields if getattr(args, field) is not None}


def seed_number(text: str) -> int:
    """Parse a seed."""
    digits = text.lstrip("0")
    is_number = text.isascii() and text.isdecimal() and len(digits) <= len(str(LARGEST_SEED))
    if not is_number or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(
            f"must be a non-negative integer below 2**63, for example 0, got {reprlib.repr(text)}"
        )
    return int(text)


def this_command(without: str | None = None) -> str:
    """Return the command line as typed, for a report, without the option `without` and its value."""
    kept, texts = [], sys.argv[1:]
    while texts:
        text, *texts = texts
        if text == without:
            texts = texts[1:]
        elif without is None or not text.startswith(f"{without}="):
            kept.append(text)
    return "liere " + shlex.join(kept)
