"""`liere flops`: the paper's FLOPs table, and the full cost."""

from __future__ import annotations

import argparse
import json
from typing import Any

from liere.commands.arguments import add_model_arguments, dimensions, model_input
from liere.errors import InputError
from liere.flops import FlopCount, PaperFigure, count_flops, paper_figure
from liere.presets import SIZES, resolve_size
from liere.terminal.messages import say
from liere.terminal.text_table import text_table

__all__ = ["HELP", "add_arguments", "run"]

HELP = "count multiply-adds: the paper's table, and the full cost including the matrix exponential"
PAPER_SIZES = ["vit_tiny", "vit_base", "vit_large"]
PAPER_ENCODINGS = ["absolute", "visionllama", "rope_mixed", "liere8", "liere64"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--size",
        nargs="+",
        default=PAPER_SIZES,
        help=f"model sizes, from {', '.join(SIZES)} (default: {' '.join(PAPER_SIZES)})",
    )
    parser.add_argument(
        "--encoding", nargs="+", default=PAPER_ENCODINGS, help=f"encodings (default: {' '.join(PAPER_ENCODINGS)})"
    )
    parser.add_argument(
        "--batch-size", type=int, default=1, metavar="N", help="number of images that share the rotations (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, including every part of the count")
    add_model_arguments(parser, "options of the encodings, such as share_heads=true")


def run(args: argparse.Namespace) -> None:
    """Count multiply-adds and print them."""
    given = model_input(args)
    rows = [_row(name, encoding, given, args) for name in args.size for encoding in args.encoding]
    if args.json:
        say(json.dumps({"input": given, "batch_size": args.batch_size, "rows": rows}, indent=1))
    else:
        _print_table(rows, args.batch_size)


def _row(name: str, encoding: str, given: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    overrides, options = dimensions(args), dict(args.options)
    size = resolve_size(name, overrides)
    for option in options:
        if option in ("size", "encoding", "batch_size", *given):
            raise InputError(f"--option {option} is not an option of an encoding: use --{option.replace('_', '-')}")
    count = count_flops(size, encoding, batch_size=args.batch_size, **given, **options)
    absolute = count_flops(size, "absolute", **given)
    printed = None if overrides or options else paper_figure(name, encoding, given)
    return {
        "size": name,
        "dimensions": size._asdict(),
        "encoding": encoding,
        "printed": _printed(printed, count, absolute),
        "paper_increase_percent": 100 * (count.paper / absolute.paper - 1),
        "true_increase_percent": 100 * (count.true / absolute.true - 1),
        **count.as_dict(),
    }


def _printed(figure: PaperFigure | None, count: FlopCount, absolute: FlopCount) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {
        "giga": figure.giga,
        "increase_percent": figure.increase,
        "slip": figure.is_slip(count.paper / 1e9, absolute.paper / 1e9),
    }


def _print_table(rows: list[dict[str, Any]], batch_size: int) -> None:
    def cell(giga: float, increase: float | None, *, digits: int = 3) -> str:
        return f"{giga:.3f} G" + ("" if increase is None else f" (+{increase:.{digits}f} %)")

    def printed(row: dict[str, Any]) -> str:
        figure = row["printed"]
        if figure is None:
            return "-"
        return cell(figure["giga"], figure["increase_percent"]) + (" *" if figure["slip"] else "  ")

    lines = [
        [
            row["size"],
            row["encoding"],
            printed(row),
            cell(row["paper"] / 1e9, row["paper_increase_percent"]),
            cell(row["true"] / 1e9, row["true_increase_percent"], digits=1),
        ]
        for row in rows
    ]
    header = [
        "size",
        "encoding",
        "printed in the paper  ",
        "as the paper counts",
        f"full cost, batch {batch_size}",
    ]
    for line in text_table(header, lines, left=2):
        say(line)
    say()
    say("G: 1e9 multiply-adds per image in a forward pass. In parentheses: increase over absolute positions.")
    say("As the paper counts: without the matrix exponential. Full cost: with it, computed once per batch.")
    if any(row["printed"] and row["printed"]["slip"] for row in rows):
        say("* Error in the paper: its own formula gives the number to the right.")
