"""The demo: absolute positions fail at the spatial task, learned rotations solve it, also on larger images."""

from __future__ import annotations

from pathlib import Path

from liere.comparison.plan import Plan, make_plan
from liere.files.shipped import experiments_folder
from liere.runs.config_file import read_config

__all__ = ["ENCODINGS", "EXAMPLES", "HARDWARE", "QUICK_RECIPE", "RECIPE", "SIZES", "demo_plan", "describe_demo"]

RECIPE = "spatial/placement.yaml"  # below experiments/
HARDWARE = {"hardware.accelerator": "cpu"}  # the figures that the demo promises are of a CPU
SIZES = (108, 168, 276, 372)
EXAMPLES = 500
# Generators of blocks of b start in [0, 2 pi sqrt(2 / b)), which was chosen in trials: docs/results/spatial.md.
ENCODINGS = (
    "absolute",
    "visionllama",
    "rope_mixed",
    "liere8:init_scale=3.1416",
    "liere:init_scale=2.2214",
)
QUICK_RECIPE = "spatial/demo-quick.yaml"
QUICK_ENCODINGS = ("absolute", "liere:init_scale=0.3927")
QUICK_SIZES = (60, 84)


def demo_plan(folder: Path, *, quick: bool, seed: int, slots: int | None) -> Plan:
    """Return the runs of the demo.

    Args:
        folder: Where to keep them.
        quick: Whether to compare two encodings on a small grid, in under two minutes.
        seed: Seed of all runs.
        slots: Processes at a time; None for one per GPU, or else one per core.
    """
    name = QUICK_RECIPE if quick else RECIPE
    return make_plan(
        read_config(experiments_folder() / name),
        HARDWARE,
        encodings=QUICK_ENCODINGS if quick else ENCODINGS,
        seeds=[seed],
        sizes=QUICK_SIZES if quick else SIZES,
        examples=EXAMPLES,
        folder=folder / "quick" if quick else folder,
        slots=slots,
        source=name,
    )


def describe_demo(plan: Plan, *, quick: bool) -> str:
    """Return what the demo is about, in two lines."""
    config = plan.runs[0].config
    chance = "Guessing gives 25 %." if quick else "Counting arrows alone gives 44 %."
    return (
        f"The Y's base points at an arrow: which way does it point? {len(plan.runs)} models learn to answer from\n"
        f"{config.training.examples:,} images of {config.data.side} px each, then see larger ones for the first time. "
        f"{chance}"
    )
