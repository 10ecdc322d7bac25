"""Who started the processes of a run: torchrun, SLURM, or Lightning, which starts them itself."""

from __future__ import annotations

import os
from typing import Literal

from liere.errors import InputError
from liere_command.processes import LAUNCHER, is_under_torchrun

__all__ = ["Launcher", "check_launcher", "find_launcher"]

Launcher = Literal["torchrun", "slurm", "lightning"]
INTERACTIVE = ("bash", "interactive")  # names of SLURM jobs that are a shell, whose variables are not those of srun


def find_launcher(devices: int, nodes: int) -> Launcher:
    """Return who starts the processes of a run.

    The variables of torchrun and SLURM mean the processes of one run only if the run has several.

    Args:
        devices: Devices of the run on each node.
        nodes: Nodes of the run.
    """
    if devices * nodes == 1:
        return "lightning"
    if is_under_torchrun():
        return "torchrun"
    is_task = _count("SLURM_NTASKS") == devices * nodes and not _is_started_by_liere()
    return "slurm" if is_task and os.environ.get("SLURM_JOB_NAME") not in INTERACTIVE else "lightning"


def check_launcher(devices: int, nodes: int, *, dry: bool = False) -> None:
    """Raise `ValueError` if this process is one of another number of processes, or others would never be started.

    Args:
        devices: Devices of the run on each node.
        nodes: Nodes of the run.
        dry: Whether nothing is going to be started, so that it does not matter who would start the others.
    """
    world = devices * nodes
    has_rank = "RANK" in os.environ or "LOCAL_RANK" in os.environ
    if has_rank and _count("WORLD_SIZE") not in (None, world):
        raise InputError(
            f"WORLD_SIZE={os.environ['WORLD_SIZE']} in the environment, as set by torchrun, does not match "
            f"{_product(devices, nodes)}: change these, or start liere with env -u RANK -u LOCAL_RANK -u WORLD_SIZE"
        )
    launcher = find_launcher(devices, nodes)
    if launcher == "torchrun" and _count("LOCAL_WORLD_SIZE") not in (None, devices):
        raise InputError(
            f"torchrun started {os.environ['LOCAL_WORLD_SIZE']} processes on this node, but hardware.devices is "
            f"{devices}: use --nproc-per-node {devices}"
        )
    if world > 1 and not is_under_torchrun() and not _is_started_by_liere():
        _check_slurm(devices, nodes, launcher)
    if nodes > 1 and not dry and launcher == "lightning" and "MASTER_ADDR" not in os.environ:
        raise InputError(  # this process would wait for the other nodes, on which nothing was started
            f"hardware.nodes is {nodes}, but neither torchrun nor srun started this process: run torchrun --nnodes "
            f"{nodes} --nproc-per-node {devices} --rdzv-backend c10d --rdzv-endpoint HOST:29500 -m liere_command train "
            f"... on each node, or srun --nodes {nodes} --ntasks-per-node {devices} liere train ..."
        )


def _check_slurm(devices: int, nodes: int, launcher: Launcher) -> None:
    tasks, is_shell = _count("SLURM_NTASKS"), os.environ.get("SLURM_JOB_NAME") in INTERACTIVE
    if tasks is None or is_shell or (tasks == nodes == 1):
        return
    remedy = f"use srun --nodes {nodes} --ntasks-per-node {devices} liere train ..."
    if launcher != "slurm":
        raise InputError(f"SLURM_NTASKS={tasks} does not match {_product(devices, nodes)}: {remedy}")
    for name, expected in (("SLURM_NTASKS_PER_NODE", devices), ("SLURM_NNODES", nodes)):
        if _count(name) not in (None, expected):
            raise InputError(f"{name}={os.environ[name]} does not match {_product(devices, nodes)}: {remedy}")
    if "SLURM_STEP_ID" not in os.environ:
        raise InputError(f"this SLURM job has {tasks} tasks, but srun did not start this process: {remedy}")


def _is_started_by_liere() -> bool:
    return LAUNCHER in os.environ and os.environ.get("LOCAL_RANK", "0") != "0"


def _product(devices: int, nodes: int) -> str:
    return f"hardware.devices {devices} x hardware.nodes {nodes}"


def _count(name: str) -> int | None:
    """Return the number in an environment variable; None if there is none."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None
