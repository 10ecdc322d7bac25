"""`liere demo`: absolute positions fail at the spatial task, learned rotations solve it, also on larger images."""

from __future__ import annotations

import argparse
from pathlib import Path

from liere.commands.arguments import positive_number
from liere.commands.compare import run_comparison
from liere.terminal.messages import say

__all__ = ["HELP", "add_arguments", "run"]

HELP = "train each encoding on the paper's spatial task and show which of them learn it"
RECIPE = "spatial/placement.yaml"  # below experiments/
QUICK_RECIPE = "spatial/demo-quick.yaml"
HARDWARE = {"hardware.accelerator": "cpu"}  # the figures that the demo promises are of a CPU
SIZES = (108, 168, 276, 372)
EXAMPLES = 500
# Generators of blocks of b start in [0, 2 pi sqrt(2 / b)), which was chosen in trials: docs/spatial.md.
ENCODINGS = (
    "absolute",
    "visionllama",
    "rope_mixed",
    "liere8:init_scale=3.1416",
    "liere:init_scale=2.2214",
)
QUICK_ENCODINGS = ("absolute", "liere:init_scale=0.3927")
QUICK_SIZES = (60, 84)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("liere-demo"),
        metavar="DIR",
        help="folder of runs and report; what is finished there is not run again (default: ./liere-demo)",
    )
    parser.add_argument("--quick", action="store_true", help="two encodings on a small grid: under two minutes")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of weights and order (default: 0)")
    parser.add_argument("--jobs", type=positive_number, metavar="N", help="processes (default: one per GPU or core)")


def run(args: argparse.Namespace) -> None:
    """Compare the encodings."""
    from liere.comparison.plan import make_plan
    from liere.files.shipped import experiments_folder
    from liere.runs.config_file import read_config

    name = QUICK_RECIPE if args.quick else RECIPE
    plan = make_plan(
        read_config(experiments_folder() / name),
        HARDWARE,
        encodings=QUICK_ENCODINGS if args.quick else ENCODINGS,
        seeds=[args.seed],
        sizes=QUICK_SIZES if args.quick else SIZES,
        examples=EXAMPLES,
        folder=args.out / "quick" if args.quick else args.out,
        slots=args.jobs,
        source=name,
    )
    config = plan.runs[0].config
    examples, size = f"{config.training.examples:,}", config.data.side
    say(f"The Y's base points at an arrow: which way does it point? {len(plan.runs)} models learn to answer from")
    chance = "Guessing gives 25 %." if args.quick else "Counting arrows alone gives 44 %."
    say(f"{examples} images of {size} px each, then see larger ones for the first time. {chance}")
    say()
    run_comparison(plan)
