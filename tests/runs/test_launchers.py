"""Who started the processes of a run, as told by the environment."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.runs.launchers import check_launcher, find_launcher
from liere_command.processes import LAUNCHER, is_first_process

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "NODE_RANK", "GROUP_RANK")
MAIN = "MASTER_ADDR"
SLURM = ("NTASKS", "PROCID", "LOCALID", "NODEID", "STEP_ID", "JOB_NAME", "NTASKS_PER_NODE", "NNODES")


@pytest.fixture
def environment(monkeypatch):
    """Set environment variables, and no others about processes."""
    for name in (MAIN, *VARIABLES, *(f"SLURM_{name}" for name in SLURM), LAUNCHER):
        monkeypatch.delenv(name, raising=False)

    def set_variables(**values: str | int) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, str(value))

    return set_variables


def torchrun(rank: int = 0, world: int = 2) -> dict[str, str | int]:
    local = {"LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
    return {"TORCHELASTIC_RUN_ID": "none", "RANK": rank, "WORLD_SIZE": world, "GROUP_RANK": 0} | local


def srun(rank: int = 0, tasks: int = 2) -> dict[str, str | int]:
    return {"SLURM_NTASKS": tasks, "SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_STEP_ID": 0}


def test_without_variables_a_run_starts_its_own_processes(environment):
    environment()
    for shape in ((1, 1), (4, 1)):
        check_launcher(*shape)
        assert find_launcher(*shape) == "lightning"


@pytest.mark.parametrize("variables", [{}, {"SLURM_NTASKS": 1, "SLURM_JOB_NAME": "bash"}])
def test_several_nodes_are_refused_unless_something_starts_processes_on_each(environment, variables):
    environment(**variables)
    message = r"hardware.nodes is 2, .*: run torchrun --nnodes 2 --nproc-per-node 4 .*, or srun --nodes 2 --ntasks-per"
    with pytest.raises(ValueError, match=message):
        check_launcher(4, 2)
    check_launcher(4, 2, dry=True)  # nothing waits for the others
    environment(MASTER_ADDR="first-node", NODE_RANK=0)  # started by hand on each node
    check_launcher(4, 2)


@pytest.mark.parametrize("rank", [0, 1])
def test_torchrun_and_srun_are_recognized_if_the_run_has_as_many_processes(environment, rank):
    environment(**srun(rank))
    check_launcher(2, 1)
    assert find_launcher(2, 1) == "slurm"
    assert is_first_process(2) == (rank == 0)
    environment(**torchrun(rank))  # inside a job of SLURM
    check_launcher(2, 1)
    assert find_launcher(2, 1) == "torchrun"
    assert is_first_process(2) == (rank == 0)


def test_a_task_of_slurm_with_one_device_is_a_run_of_its_own(environment):
    environment(**srun(1))
    check_launcher(1, 1)
    assert find_launcher(1, 1) == "lightning"
    assert is_first_process(1)
    assert not is_first_process()  # as long as the configuration is not known


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (2, 2)])
def test_variables_of_another_torchrun_are_named(environment, shape):
    environment(**torchrun(1))
    message = rf"WORLD_SIZE=2 .* does not match hardware.devices {shape[0]} x hardware.nodes {shape[1]}: .* env -u RANK"
    with pytest.raises(ValueError, match=message):
        check_launcher(*shape)


def test_torchrun_with_another_number_of_processes_per_node_is_named(environment):
    environment(**torchrun(0, 4) | {"LOCAL_WORLD_SIZE": 2})
    check_launcher(2, 2)
    with pytest.raises(
        ValueError, match=r"2 processes on this node, but hardware.devices is 4: use --nproc-per-node 4"
    ):
        check_launcher(4, 1)


@pytest.mark.parametrize(
    ("change", "shape", "message"),
    [
        ({"SLURM_NTASKS": 3}, (2, 1), r"SLURM_NTASKS=3 does not match .*: use srun --nodes 1 --ntasks-per-node 2"),
        ({"SLURM_NTASKS": 1}, (2, 2), r"SLURM_NTASKS=1 does not match .*: use srun --nodes 2 --ntasks-per-node 2"),
        ({"SLURM_NTASKS_PER_NODE": 1}, (2, 1), r"SLURM_NTASKS_PER_NODE=1 does not match"),
        ({"SLURM_NNODES": 2}, (2, 1), r"SLURM_NNODES=2 does not match"),
    ],
)
def test_srun_with_another_number_of_tasks_is_named(environment, change, shape, message):
    environment(**srun() | change)
    with pytest.raises(ValueError, match=message):
        check_launcher(*shape)


def test_a_batch_script_without_srun_is_named(environment):
    environment(SLURM_NTASKS=2, SLURM_PROCID=0)
    with pytest.raises(ValueError, match=r"2 tasks, but srun did not start this process: use srun"):
        check_launcher(2, 1)


def test_in_one_task_or_a_shell_a_run_starts_its_own_processes(environment):
    environment(**srun(0, 1))
    check_launcher(4, 1)
    assert find_launcher(4, 1) == "lightning"
    environment(**srun(0, 4), SLURM_JOB_NAME="interactive")
    check_launcher(4, 1)
    assert find_launcher(4, 1) == "lightning"
    environment(**{LAUNCHER: "77", "LOCAL_RANK": 1, "WORLD_SIZE": 4})
    check_launcher(4, 1)
    assert find_launcher(4, 1) == "lightning"
