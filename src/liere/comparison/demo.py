"""The demo: absolute positions fail the spatial task, learned rotations solve it, even on larger images."""

from __future__ import annotations

from pathlib import Path

from liere.comparison.plan import Plan, make_plan
from liere.files.shipped import experiments_folder
from liere.runs.config_file import read_config

__all__ = ["ENCODINGS", "EXAMPLES", "HARDWARE", "QUICK_RECIPE", "RECIPE", "SIZES", "demo_plan", "describe_demo"]

RECIPE = "spatial/placement.yaml"  # in experiments/
HARDWARE = {"hardware.accelerator": "cpu"}  # the demo's expected numbers were measured on a CPU
SIZES = (108, 168, 276, 372)
EXAMPLES = 500  # per size, where several seeds are compared
DEMO_EXAMPLES = 300  # fewer, so that the demo ends sooner
# Generators of b x b blocks start in [0, 2 pi sqrt(2 / b)), the best range in trials: docs/results/spatial.md.
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
    """Return the plan of the demo.

    Args:
        folder: Folder of the runs.
        quick: Whether to compare only two encodings on a small grid, in under two minutes.
        seed: Seed of all runs.
        slots: Number of parallel processes; None for one per GPU, or one per core without a GPU.
    """
    name = QUICK_RECIPE if quick else RECIPE
    return make_plan(
        read_config(experiments_folder() / name),
        HARDWARE,
        encodings=QUICK_ENCODINGS if quick else ENCODINGS,
        seeds=[seed],
        sizes=QUICK_SIZES if quick else SIZES,
        examples=DEMO_EXAMPLES,
        folder=folder / "quick" if quick else folder,
        slots=slots,
        source=name,
    )


def describe_demo(plan: Plan, *, quick: bool) -> str:
    """Return a two-line description of the demo."""
    config = plan.runs[0].config
    chance = "Guessing gives 25 %." if quick else "Counting arrows alone gives 44 %."
    return (
        f"The base of a Y points at an arrow: which way does that arrow point? {len(plan.runs)} models train on\n"
        f"{config.training.examples:,} images of {config.data.side} px each, then are tested on larger, unseen sizes. "
        f"{chance}"
    )
