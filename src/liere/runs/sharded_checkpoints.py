"""Checkpoints of sharded models: a folder with the shards of each process, and an index of them.

`torch.distributed.checkpoint` writes the shards and reassembles them for any number of processes. Its usual format
describes them in a pickle, which executes code when it is read; here they are safetensors, which describe themselves,
and the index is JSON. It is written last and has the checksums of the shards and its own.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from liere.files.reading import check_stored, open_regular, read_json
from liere.files.torch_archives import ALLOWANCE
from liere.files.writing import write_atomically
from liere.runs.checkpoint_content import Checkpoint, CheckpointError, ForeignCheckpointError

__all__ = ["INDEX", "read_shards", "write_shards"]

FORMAT = "liere-sharded-checkpoint-1"
INDEX = "index.json"
SHARD = re.compile(r"[A-Za-z0-9_-]{1,100}\.safetensors")
CHUNK = 2**20  # bytes read at a time
MODEL, OPTIMIZER = "model", "optimizer"
CHECKSUM = "checksum"  # of all other fields of the index
FIELDS = ("fingerprint", "step", "seconds", "journal")  # in the index; the others are tensors


def write_shards(checkpoint: Checkpoint, folder: Path) -> bool:
    """Write the shards of all processes to a new folder, and return whether this is the first process.

    The first process also writes the index, which completes the folder.

    Args:
        checkpoint: Checkpoint whose tensors are shards (`DTensor`), or the same in all processes.
        folder: The folder, which must not exist.

    Raises:
        OSError: If the folder cannot be written.
    """
    import torch.distributed as dist

    distributed_checkpoint = _distributed_checkpoint()
    writer = distributed_checkpoint.HuggingFaceStorageWriter(str(folder), save_distributed=True)
    try:
        distributed_checkpoint.save(_flat(checkpoint), storage_writer=writer)
    except distributed_checkpoint.CheckpointException as error:
        failure = _first_failure(error)
        if not isinstance(failure, OSError):
            raise failure from None
        raise OSError(
            f"{folder} could not be written ({failure.strerror}): free some space or choose another folder"
        ) from failure
    rank, world = dist.get_rank(), dist.get_world_size()
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    mine = {name: _digest(folder / name) for name in names[rank::world]}
    gathered: list[Any] | None = [None] * world if rank == 0 else None
    dist.gather_object(mine, gathered)
    if gathered is None:
        return False
    shards = {name: digest for part in gathered for name, digest in part.items()}
    index = {"format": FORMAT} | {name: getattr(checkpoint, name) for name in FIELDS} | {"shards": shards}
    write_atomically(folder / INDEX, json.dumps(index | {CHECKSUM: _index_digest(index)}, indent=1) + "\n")
    return True


def read_shards(folder: Path) -> dict[str, Any]:
    """Return the fields of a checkpoint with whole tensors, whatever the number of processes that wrote it.

    Raises:
        CheckpointError: If a shard is missing or damaged, or this is not such a folder.
        OSError: If the system cannot read it.
        Exception: If it is damaged in a way that only another library notices.
    """
    index = read_json(folder / INDEX)
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise ForeignCheckpointError(f"{folder} is not a liere checkpoint: it is not used")
    checksum = index.pop(CHECKSUM, None)
    if checksum is not None and checksum != _index_digest(index):  # earlier versions wrote none
        raise CheckpointError(f"{folder / INDEX} is damaged (wrong checksum): the checkpoint is not used")
    shards = index.get("shards")
    if (
        not isinstance(shards, dict)
        or not all(map(SHARD.fullmatch, shards))
        or not all(map(index.__contains__, FIELDS))
    ):
        raise CheckpointError(f"{folder / INDEX} is damaged: the checkpoint is not used")
    found = {path.name for path in folder.glob("*.safetensors") if path.exists()}  # it could be a link to nothing
    for name in sorted(found ^ shards.keys()):
        what = "is missing" if name in shards else "is not one of the shards in its index"
        raise CheckpointError(f"{folder / name} {what}: the checkpoint is not used")
    for name, digest in shards.items():
        if _digest(folder / name) != digest:
            raise CheckpointError(f"{folder / name} is damaged (wrong checksum): the checkpoint is not used")
    content: dict[str, Any] = {name: index[name] for name in FIELDS}
    content["state_dict"] = {}
    states: dict[int, dict[str, Tensor]] = {}
    for key, tensor in _read_tensors(folder).items():
        part, _, name = key.partition(".")
        if part == MODEL:
            content["state_dict"][name] = tensor
        else:
            number, _, entry = name.partition(".")
            states.setdefault(int(number), {})[entry] = tensor.squeeze(0) if entry == "step" else tensor
    return content | {"optimizer": {"state": states, "param_groups": []}}


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    distributed_checkpoint = _distributed_checkpoint()
    reader = distributed_checkpoint.HuggingFaceStorageReader(str(folder))
    described = reader.read_metadata().state_dict_metadata
    claimed = sum(math.prod(one.size) * one.properties.dtype.itemsize for one in described.values())
    stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if claimed > stored:  # a part is missing, or the memory for the tensors would exceed what the files justify
        raise CheckpointError(f"{folder} has {stored:,} bytes, but claims {claimed:,}: it is not used")
    tensors = {name: torch.empty(one.size, dtype=one.properties.dtype) for name, one in described.items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # on purpose: each process reads everything
        try:
            distributed_checkpoint.load(tensors, storage_reader=reader, no_dist=True)
        except distributed_checkpoint.CheckpointException as error:
            raise _first_failure(error) from None
    return tensors


def _distributed_checkpoint() -> Any:
    """Return torch's package, which takes a moment to import."""
    return importlib.import_module("torch.distributed.checkpoint")


def _first_failure(error: Any) -> Exception:
    """Return the first error in a `CheckpointException`, which is not itself an `Exception`."""
    failure: Exception = next(iter(error.failures.values()))[0]
    return failure


def _flat(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint under flat names, as safetensors have; each has at least one axis."""
    tensors = {f"{MODEL}.{name}": tensor for name, tensor in checkpoint.state_dict.items()}
    for number, state in checkpoint.optimizer["state"].items():
        for name, value in state.items():
            tensors[f"{OPTIMIZER}.{number}.{name}"] = value.reshape(1) if value.ndim == 0 else value
    return tensors


def _index_digest(index: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(index, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open_regular(path) as file:
        check_stored(path, file, ALLOWANCE)
        while part := file.read(CHUNK):
            digest.update(part)
    return digest.hexdigest()
