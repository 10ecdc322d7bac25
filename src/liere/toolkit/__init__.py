"""The commands as Python functions: the same checks and files, with results as objects.

    from liere import toolkit
    run = toolkit.train("recipe.yaml", encoding="liere8", out="runs/a", overrides={"training.seed": 1})
    scores = toolkit.evaluate(run, sizes=[108, 276])
    toolkit.predict(run, "photo.png")[0].classes
    result = toolkit.compare("recipe.yaml", encodings=["rope_mixed", MyEncoding], seeds=range(3), out="runs/b")
    result.table()
    toolkit.reproduce("main", scale="small").claims

Invalid input raises `ValueError`, `TypeError` or `OSError` with the message that the command line prints.
"""

from __future__ import annotations

from liere.comparison.executors.local import LocalExecutor
from liere.comparison.executors.ray_tasks import RayExecutor
from liere.comparison.executors.slurm import SlurmExecutor
from liere.comparison.failures import RunsFailedError
from liere.comparison.result import ComparisonResult
from liere.evaluation.predict import Prediction
from liere.evaluation.scores import Scores
from liere.reproduce.making import Made
from liere.runs.run import Run
from liere.toolkit.comparisons import compare, demo, plan_comparison, report
from liere.toolkit.paper import reproduce
from liere.toolkit.single_runs import evaluate, predict, resume, train
from liere.training.start import SignalStop

__all__ = [
    "ComparisonResult",
    "LocalExecutor",
    "Made",
    "Prediction",
    "RayExecutor",
    "Run",
    "RunsFailedError",
    "Scores",
    "SignalStop",
    "SlurmExecutor",
    "compare",
    "demo",
    "evaluate",
    "plan_comparison",
    "predict",
    "report",
    "reproduce",
    "resume",
    "train",
]
