"""What a comparison would do: its runs, their cost, and how they would be executed."""

from __future__ import annotations

from liere.comparison.plan import Plan
from liere.runs.cost import duration, estimate_seconds, scaled

__all__ = ["describe_execution", "describe_plan"]


def describe_plan(plan: Plan) -> list[str]:
    """Return lines on the runs of a plan, their cost, and how they would be executed; creates nothing."""
    untested = [run for run in plan.runs if not run.is_done()]
    untrained = [run for run in untested if not run.is_trained()]
    lines = [f"{plan.folder}: {len(plan.runs) - len(untested)} of {_runs(len(plan.runs))} finished"]
    for run in untested:
        state = "to train" if run in untrained else "to test"
        lines.append(f"  {run.folder.name}: {state}, {scaled(run.operations)} operations")
    if untrained:
        operations = sum(run.operations for run in untrained)
        lines.append(
            f"{_runs(len(untrained))} to train, {scaled(operations)} operations: at least about "
            f"{duration(estimate_seconds(operations))} on the cores of this machine"
        )
    return [*lines, *describe_execution(plan)]


def describe_execution(plan: Plan) -> list[str]:
    """Return lines on how the missing runs of a plan would be executed."""
    missing = [run.config for run in plan.runs if not run.is_done()]
    return plan.executor.describe(plan.folder, missing, plan.slots) if missing else []


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
