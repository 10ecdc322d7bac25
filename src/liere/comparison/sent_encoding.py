"""Send user-defined encodings to other processes, where they are not yet defined or registered."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from liere.encodings import PositionEncoding, find_encoding, register_encoding
from liere.encodings.registry import encoding_name, is_built_in

__all__ = ["SentEncoding", "send_encoding"]


@dataclass(frozen=True)
class SentEncoding:
    """A user-defined encoding class, pickled.

    Attributes:
        content: The pickled class: a reference to its module or, without one, its code.
        is_registered: Whether the configuration refers to it by its registered `name`.
    """

    content: bytes
    is_registered: bool

    def receive(self) -> None:
        """Make the class available in this process."""
        cls = pickle.loads(self.content)
        if self.is_registered:
            register_encoding(cls)
        else:
            encoding_name(cls)


def send_encoding(name: str) -> SentEncoding | None:
    """Return a user-defined encoding in a form that can be sent to another process; None for built-in encodings.

    Raises:
        ImportError: If it is defined in a script or notebook and cloudpickle is not installed.
    """
    cls, _ = find_encoding(name)
    if is_built_in(cls):
        return None
    return SentEncoding(_pickled(cls, name), is_registered=":" not in name)


def _pickled(cls: type[PositionEncoding], name: str) -> bytes:
    if cls.__module__ != "__main__":  # `__main__` is a different module in each process
        try:
            return pickle.dumps(cls)
        except (pickle.PicklingError, AttributeError):  # defined in a function, or replaced in its module
            pass
    try:
        import cloudpickle
    except ImportError:
        raise ImportError(
            f"encoding {name!r} is defined in a script or notebook and needs cloudpickle to reach other processes: "
            "pip install cloudpickle, or move the class to a module"
        ) from None
    return bytes(cloudpickle.dumps(cls))
