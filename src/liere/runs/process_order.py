"""The order of processes that torchrun or SLURM start at the same time: the first one prepares what the others read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

from liere.runs.hardware_config import HardwareConfig
from liere.runs.launchers import find_launcher
from liere_command.processes import is_first_process

__all__ = ["first_process_first", "starts_together"]

PATIENCE = timedelta(minutes=30)  # for the other processes to start
POLL = 0.1  # seconds

_numbers = count()  # of the blocks, which all processes enter in the same order
_store: Any = None


def starts_together(hardware: HardwareConfig) -> bool:
    """Return whether all processes of a run start at the same time; otherwise the first one starts the others."""
    return find_launcher(hardware.devices, hardware.nodes) != "lightning"


@contextmanager
def first_process_first(hardware: HardwareConfig, check: Callable[[], None] | None = None) -> Iterator[None]:
    """Run a block in the first process of a run, and then in the others.

    Args:
        hardware: Hardware of the run.
        check: Function called now and then while waiting, which may raise an exception.

    Raises:
        ConnectionError: If the first process ended before its block did.
    """
    if not starts_together(hardware):
        yield
        return
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    key, is_first = f"liere/{attempt}/{next(_numbers)}", is_first_process(hardware.world_size)
    store = _connect(hardware)
    if not is_first:
        _wait_for(store, key, check)
    yield
    if is_first:
        store.set(key, "done")


def _wait_for(store: Any, key: str, check: Callable[[], None] | None) -> None:
    try:
        while not store.check([key]):
            time.sleep(POLL)
            if check is not None:
                check()
    except RuntimeError as error:
        raise ConnectionError("the first process of the run has ended: see its message") from error


def _connect(hardware: HardwareConfig) -> Any:
    """Return a store of keys and values that all processes share."""
    global _store
    if _store is None:
        from torch.distributed.rendezvous import rendezvous

        from liere.runs.trainer import make_environment

        environment = make_environment(hardware)
        os.environ["MASTER_ADDR"] = environment.main_address
        os.environ["MASTER_PORT"] = str(environment.main_port)
        found = rendezvous("env://", environment.global_rank(), environment.world_size(), timeout=PATIENCE)
        _store, _, _ = next(iter(found))
    return _store
