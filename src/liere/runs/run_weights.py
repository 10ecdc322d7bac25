"""Weight files of a run, with the facts of its data in the metadata."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from liere.data.facts import DataFacts
from liere.files.reading import DamagedError
from liere.files.separate_tensors import separate_tensors
from liere.files.writing import write_atomically

__all__ = ["read_facts", "save_weights"]

KEY = "liere.facts"


def save_weights(
    weights: dict[str, Tensor],
    path: Path,
    facts: DataFacts | None = None,
    confirm: Callable[[], None] | None = None,
) -> None:
    """Write weights atomically as safetensors.

    Args:
        weights: State dict of a model.
        path: The file.
        facts: Facts of the training data, for the metadata of the file.
        confirm: Called right before the file is replaced; if it raises, the old file is not changed.

    Raises:
        OSError: If it cannot be written.
    """
    from safetensors.torch import save

    metadata = None if facts is None else {KEY: json.dumps(facts.as_dict())}
    write_atomically(path, save(separate_tensors(weights), metadata), confirm)


def read_facts(path: Path) -> DataFacts | None:
    """Return the facts of the training data of weights; None if the file does not contain them.

    Raises:
        DamagedError: If they are invalid.
    """
    from safetensors import SafetensorError, safe_open

    if path.suffix != ".safetensors":
        return None
    try:
        with safe_open(path, "pt") as file:
            text = (file.metadata() or {}).get(KEY)
        return None if text is None else DataFacts.from_dict(json.loads(text))
    except (SafetensorError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged (its {KEY}: {error}): train the run again") from None
