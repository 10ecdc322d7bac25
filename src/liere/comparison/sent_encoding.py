"""Classes of encodings for other processes, which do not know what this one has defined or registered."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from liere.encodings import PositionEncoding, find_encoding, register_encoding
from liere.encodings.registry import encoding_name, is_built_in

__all__ = ["SentEncoding", "send_encoding"]


@dataclass(frozen=True)
class SentEncoding:
    """A class that is not part of this library.

    Attributes:
        content: The class, pickled: its place in a module or, if it has none, its code.
        is_registered: Whether its own `name` is what the configuration has.
    """

    content: bytes
    is_registered: bool

    def receive(self) -> None:
        """Make the class known in this process."""
        cls = pickle.loads(self.content)
        if self.is_registered:
            register_encoding(cls)
        else:
            encoding_name(cls)


def send_encoding(name: str) -> SentEncoding | None:
    """Return the encoding of a name for another process; None if it is one that every process has.

    Raises:
        ImportError: If it is defined in a script or notebook, and cloudpickle is not installed.
    """
    cls, _ = find_encoding(name)
    if is_built_in(cls):
        return None
    return SentEncoding(_pickled(cls, name), is_registered=":" not in name)


def _pickled(cls: type[PositionEncoding], name: str) -> bytes:
    if cls.__module__ != "__main__":  # which is another module in another process
        try:
            return pickle.dumps(cls)
        except (pickle.PicklingError, AttributeError):  # defined in a function, or replaced in its module
            pass
    try:
        import cloudpickle
    except ImportError:
        raise ImportError(
            f"encoding {name!r} is defined in a script or notebook, and other processes get it by cloudpickle: "
            "pip install cloudpickle, or put the class in a module"
        ) from None
    return bytes(cloudpickle.dumps(cls))
