"""Arguments that several commands have: what model they are about."""

from __future__ import annotations

import argparse
from typing import Any

from liere.presets import image_and_patch

__all__ = ["add_input_arguments", "model_input", "size_on_axes"]


def size_on_axes(text: str) -> int | tuple[int, ...]:
    """Read `224` (an int), `8x224x224` (a tuple) or `1024x` (a tuple of one).

    Example:
        >>> size_on_axes("32"), size_on_axes("8x224x224"), size_on_axes("1024x")
        (32, (8, 224, 224), (1024,))
    """
    try:
        sizes = tuple(int(part) for part in text.removesuffix("x").split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size: write 224 for a square image, 8x224x224 for three axes, 1024x for one"
        ) from None
    return sizes[0] if "x" not in text else sizes


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe a model's input and output."""
    group = parser.add_argument_group("input", "CIFAR-100, as in the paper, by default")
    group.add_argument(
        "--image-size",
        type=size_on_axes,
        default=32,
        metavar="N",
        help="224, or 8x224x224, or 1024x (default: 32)",
    )
    group.add_argument("--patch-size", type=size_on_axes, default=4, metavar="N", help="the same (default: 4)")
    group.add_argument("--in-channels", type=int, default=3, metavar="N", help="channels (default: 3)")
    group.add_argument("--num-classes", type=int, default=100, metavar="N", help="logits (default: 100)")


def model_input(args: argparse.Namespace) -> dict[str, Any]:
    """Return what `add_input_arguments` read, as `create_model` takes it."""
    image, patch = image_and_patch(args.image_size, args.patch_size)
    return {
        "image_size": image,
        "patch_size": patch,
        "in_channels": args.in_channels,
        "num_classes": args.num_classes,
    }
