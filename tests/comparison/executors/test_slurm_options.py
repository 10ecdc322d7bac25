"""Options of sbatch."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.executors.slurm import SlurmExecutor
from liere.comparison.executors.slurm_options import parse_minutes


@pytest.mark.parametrize(("time", "minutes"), [(5, 5), ("5", 5), ("0:00:30", 1), ("4:00:00", 240), ("2-0:10:0", 2890)])
def test_time_limits_are_minutes(time, minutes):
    assert parse_minutes(time) == minutes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "soon"}, r"--time must be minutes or a time such as 4:00:00 or 2-00:00:00, got 'soon'"),
        ({"time": "0"}, "--time must be"),
        ({"time": "25:99:99"}, "--time must be .* got '25:99:99'"),
        ({"time": "25:00:60"}, "--time must be"),
        ({"time": 2}, "--time is '2', but jobs are asked to save 120 seconds before .*: allow more than 2 minutes"),
        ({"time": "0:01:01"}, "allow more than 2 minutes"),
        ({"cluster": "moon"}, "--cluster must be slurm or local, got 'moon'"),
        ({"options": {"Mem": "1G"}}, "--slurm-option 'Mem' is not a long option of sbatch, for example mem=32G"),
        ({"options": {"array": "1-3"}}, "--slurm-option array cannot be changed"),
        (
            {"options": {"partition": "cpu"}, "partition": "gpu"},
            "partition has a flag of its own: use --partition instead",
        ),
        ({"options": {"time": "1"}}, "--slurm-option time has a flag of its own: use --time instead"),
        ({"options": {"cpus-per-task": "1"}}, "use --cpus-per-run instead"),
        ({"options": {"gpus-per-node": "1"}}, "use --gpus-per-run instead"),
        (
            {"options": {"mem": "1G\nrm -rf x"}},
            r"--slurm-option mem must not contain line breaks or control characters",
        ),
        ({"account": "me\x1b[2J"}, r"--account must not contain line breaks or control characters, got 'me\\x1b"),
        ({"gpus_per_run": 0.5}, "--gpus-per-run must be a whole number for SLURM, got 0.5"),
    ],
)
def test_wrong_options_are_told(options, message):
    with pytest.raises(ValueError, match=message):
        SlurmExecutor(**options)


def test_short_times_are_for_trying_jobs_here_and_three_minutes_for_slurm():
    assert SlurmExecutor(time=1, cluster="local").time == 1
    assert SlurmExecutor(time="0:02:01").time == "0:02:01"
