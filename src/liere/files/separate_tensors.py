"""Weights as safetensors stores them: on the CPU, contiguous, and without shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

__all__ = ["separate_tensors"]


def separate_tensors(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights of which no two share memory, as tied weights and views of one buffer do.

    A model that ties its weights does so whenever it is created, so it loads the copies as one.
    """
    separate = {}
    taken = set[int]()
    for name, weight in weights.items():
        tensor = weight.detach().cpu().contiguous()
        memory = tensor.untyped_storage().data_ptr()
        separate[name] = tensor.clone() if memory in taken else tensor
        taken.add(memory)
    return separate
