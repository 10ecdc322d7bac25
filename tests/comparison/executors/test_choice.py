"""Executors by name, and the options that belong to them."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.executors.choice import choose_executor
from liere.comparison.executors.local import LocalExecutor
from liere.comparison.executors.ray_tasks import RayExecutor
from liere.comparison.executors.slurm import SlurmExecutor


def test_a_name_an_object_or_nothing():
    assert choose_executor(None) == choose_executor("local") == LocalExecutor()
    assert choose_executor("ray") == RayExecutor()
    mine = SlurmExecutor(partition="gpu")
    assert choose_executor(mine) is mine


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"unknown executor 'slrum': did you mean 'slurm'\?"):
        choose_executor("slrum")


def test_what_is_no_executor_is_refused(no_shape_checks):
    with pytest.raises(TypeError, match="executor must be local, ray, slurm or an executor object, got 3"):
        choose_executor(3)
