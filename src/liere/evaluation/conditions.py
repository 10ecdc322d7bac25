"""Under which conditions a run is tested: at which size, with which positions, with patches in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from liere.errors import suggest

__all__ = ["POLICIES", "SHUFFLES", "Condition"]

POLICIES = ("extend", "rescale", "reference")
SHUFFLES = ("patches", "frames")


@dataclass(frozen=True, order=True)
class Condition:
    """A way to test a run.

    Attributes:
        size: Side of the images.
        policy: Positions at this size, `"extend"`, `"rescale"` or `"reference"`; `""`: as the model has them.
        shuffle: What is put in random order, `"patches"` or `"frames"`; `""`: nothing.

    Example:
        >>> Condition(48, policy="rescale").name, Condition(32).name
        ('48-rescale', '32')
    """

    size: int
    policy: str = ""
    shuffle: str = ""

    def __post_init__(self) -> None:
        for name, value, known in (("policy", self.policy, POLICIES), ("shuffle", self.shuffle, SHUFFLES)):
            if value and value not in known:
                raise ValueError(f"unknown {name} {value!r}: {suggest(value, known)}")

    @property
    def name(self) -> str:
        """What to call its files."""
        return "-".join(
            [str(self.size), *filter(None, [self.policy]), *([f"shuffled-{self.shuffle}"] if self.shuffle else [])]
        )

    @property
    def is_plain(self) -> bool:
        """Whether only the size is other than in training, if anything."""
        return not self.policy and not self.shuffle

    def describe(self) -> str:
        """Say it in words.

        Example:
            >>> Condition(32, shuffle="patches").describe()
            '32 px, shuffled patches'
        """
        parts = [f"{self.size} px"]
        parts += [f"positions {self.policy}"] if self.policy else []
        parts += [f"shuffled {self.shuffle}"] if self.shuffle else []
        return ", ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return what `evaluation.json` holds of it: what is as usual is left out."""
        fields: dict[str, Any] = {"size": self.size, "policy": self.policy, "shuffle": self.shuffle}
        return {name: value for name, value in fields.items() if value}

    @classmethod
    def of(cls, record: dict[str, Any]) -> Condition:
        """Return the condition of a record of `evaluation.json`."""
        return cls(record["size"], record.get("policy", ""), record.get("shuffle", ""))
