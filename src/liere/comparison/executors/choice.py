"""Executors by name, with the options that belong to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from liere.comparison.executors.contract import Executor
from liere.comparison.executors.local import LocalExecutor
from liere.comparison.executors.ray_tasks import RayExecutor
from liere.comparison.executors.slurm import SlurmExecutor
from liere.errors import InputError, InputTypeError, suggest

__all__ = ["EXECUTORS", "choose_executor"]

EXECUTORS: dict[str, type[Any]] = {one.name: one for one in (LocalExecutor, RayExecutor, SlurmExecutor)}
FLAGS = {"options": "--slurm-option"}
"""Flags of the command line that differ from the attribute."""


def choose_executor(chosen: str | Executor | None, options: Mapping[str, Any] | None = None) -> Executor:
    """Return an executor.

    Args:
        chosen: An executor, its name, or None for this machine.
        options: Options of the executor, by attribute; those that are None were not given.

    Raises:
        ValueError: If there is no such executor, or it has no such option.
        TypeError: If it is something else.

    Example:
        >>> choose_executor("ray", {"address": "auto", "partition": None})
        RayExecutor(address='auto', gpus_per_run=None, cpus_per_run=None, retries=8)
        >>> choose_executor("local", {"partition": "gpu"})
        Traceback (most recent call last):
            ...
        liere.errors.InputError: --partition is not an option of --executor local: remove it, or use --executor slurm
    """
    if isinstance(chosen, Executor):
        return chosen
    if chosen is not None and not isinstance(chosen, str):
        raise InputTypeError(f"executor must be local, ray, slurm or an executor object, got {chosen!r}")
    name = chosen or LocalExecutor.name
    if name not in EXECUTORS:
        raise InputError(f"unknown executor {name!r}: {suggest(name, EXECUTORS)}")
    given = {option: value for option, value in (options or {}).items() if value is not None}
    for option in given:
        owners = [other for other, cls in EXECUTORS.items() if option in _options(cls)]
        if name not in owners:
            flag = FLAGS.get(option, f"--{option.replace('_', '-')}")
            raise InputError(
                f"{flag} is not an option of --executor {name}: remove it, or use --executor {' or '.join(owners)}"
            )
    made: Executor = EXECUTORS[name](**given)
    return made


def _options(cls: type[Any]) -> set[str]:
    return {one.name for one in fields(cls)}
