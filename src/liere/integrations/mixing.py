"""Classes of other libraries with a class of this library before them, for models that are converted in place."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["Mixed", "mix_in"]


class Mixed:
    """Base of mixins that are put before a class of another library when a model is converted."""

    _mixin: type
    _base: type

    def __reduce__(self) -> tuple[Any, ...]:
        """Save the two classes: their mixture has no name that could be imported."""
        return _restore, (self._mixin, self._base), self.__dict__


@functools.cache
def mix_in(mixin: type, base: type) -> type:
    """Return a class with a mixin before it; the same one for the same arguments."""
    return type(f"Rotated{base.__name__}", (mixin, base), {"_mixin": mixin, "_base": base, "__module__": __name__})


def _restore(mixin: type, base: type) -> Any:
    cls: Any = mix_in(mixin, base)
    return cls.__new__(cls)
