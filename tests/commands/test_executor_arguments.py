"""`--executor` and its options."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.cli import parse_arguments
from liere.commands.executor_arguments import given_executor
from liere.comparison.executors.local import LocalExecutor
from liere.comparison.executors.ray_tasks import RayExecutor
from liere.comparison.executors.slurm import SlurmExecutor


@pytest.mark.parametrize(
    ("line", "executor"),
    [
        ("", LocalExecutor()),
        ("--executor ray --address auto --gpus-per-run 0.5", RayExecutor("auto", gpus_per_run=0.5)),
        (
            "--executor slurm --partition gpu --time 60 --gpus-per-run 1 --slurm-option mem=1G --slurm-option x",
            SlurmExecutor("gpu", "60", 1, options={"mem": "1G", "x": True}),
        ),
        ("--executor slurm --cluster local --cpus-per-run 3", SlurmExecutor(cluster="local", cpus_per_run=3)),
    ],
)
@pytest.mark.parametrize("command", ["compare --config x.yaml", "reproduce main"])
def test_the_command_line_has_the_same_options(command, line, executor):
    assert given_executor(parse_arguments(f"{command} {line}".split())) == executor


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--partition gpu", "--partition is not an option of --executor local: remove it, or use --executor slurm"),
        (
            "--executor slurm --address auto",
            "--address is not an option of --executor slurm: remove it, or use --executor ray",
        ),
        (
            "--executor ray --slurm-option mem=1G",
            "--slurm-option is not an option of --executor ray: remove it, or use --executor slurm",
        ),
        (
            "--gpus-per-run 1",
            "--gpus-per-run is not an option of --executor local: remove it, or use --executor ray or slurm",
        ),
    ],
)
def test_options_of_another_executor_are_one_clear_error(line, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011  (compared as a whole)
        given_executor(parse_arguments(["compare", "--config", "x.yaml", *line.split()]))
    assert str(raised.value) == message


def test_numbers_of_gpus_are_numbers(capsys):
    with pytest.raises(SystemExit):
        parse_arguments(["compare", "--config", "x", "--gpus-per-run", "many"])
    assert "must be a number such as 1 or 0.5, got 'many'" in capsys.readouterr().err
