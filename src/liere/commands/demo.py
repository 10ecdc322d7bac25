"""`liere demo`: the rotations of a grid as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from liere.commands.output import say

__all__ = ["HELP", "add_arguments", "run"]

HELP = "draw what each rotary encoding makes of a grid of positions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--out", type=Path, default=Path("liere-demo"), help="folder (default: ./liere-demo)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the generators (default: 0)")


def run(args: argparse.Namespace) -> None:
    """Run the demo."""
    from liere.demo import run_demo

    run_demo(args.out, say, seed=args.seed)
