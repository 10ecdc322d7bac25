"""Under which conditions a run is tested: size, positions, attention scale, order of patches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from liere.errors import InputError, suggest

__all__ = ["POLICIES", "SCALES", "SHUFFLES", "Condition"]

POLICIES = ("extend", "rescale", "reference")
SCALES = ("constant", "log")
SHUFFLES = ("patches", "frames")
FARTHEST = 1e6  # token steps; far beyond, rotations have no digits left


@dataclass(frozen=True, order=True)
class Condition:
    """A way to test a run.

    Attributes:
        size: Side of the images.
        policy: Positions at this size, `"extend"`, `"rescale"` or `"reference"`; `""`: as the model has them.
        shuffle: What is put in random order, `"patches"` or `"frames"`; `""`: nothing.
        attention_scale: Scale of the attention scores, `"constant"` or `"log"`; `""`: as the model has it.
        placement: Where the grid lies, in token steps: one number for all axes, or one per axis, like `"0,8"`; `""`: at
            the origin, as always.

    Example:
        >>> Condition(48, policy="rescale").name, Condition(32).name, Condition(32, placement="0,8").name
        ('48-rescale', '32', '32-placed-0,8')
    """

    size: int
    policy: str = ""
    shuffle: str = ""
    attention_scale: str = ""
    placement: str = ""

    def __post_init__(self) -> None:
        for name, value, known in (
            ("policy", self.policy, POLICIES),
            ("shuffle", self.shuffle, SHUFFLES),
            ("attention_scale", self.attention_scale, SCALES),
        ):
            if value and value not in known:
                raise InputError(f"unknown {name} {value!r}: {suggest(value, known)}")
        if self.placement:
            numbers = self.offsets(len(self.placement.split(",")))
            # One way to write each placement, so that it has one record.
            short = numbers[:1] if len(set(numbers)) == 1 else numbers
            object.__setattr__(self, "placement", ",".join(f"{number:g}" for number in short))

    def offsets(self, axes: int) -> tuple[float, ...]:
        """Return the placement with one number per axis.

        Raises:
            ValueError: If it is not made of numbers, or has another number of axes.

        Example:
            >>> Condition(32, placement="8").offsets(2), Condition(32, placement="0,8").offsets(2)
            ((8.0, 8.0), (0.0, 8.0))
        """
        try:
            numbers = tuple(float(part) for part in self.placement.split(","))
        except ValueError:
            numbers = ()
        if not numbers or not all(abs(number) <= FARTHEST for number in numbers) or len(numbers) not in (1, axes):
            raise InputError(
                f"placement {self.placement!r} must be a number of token steps for all axes, or one number per axis, "
                f"of at most {FARTHEST:,.0f}: write it like 8 or 0,8"
            )
        return numbers * axes if len(numbers) == 1 else numbers

    @property
    def name(self) -> str:
        """What to call its files."""
        parts = [
            self.policy,
            self.shuffle and f"shuffled-{self.shuffle}",
            self.attention_scale and f"scale-{self.attention_scale}",
            self.placement and f"placed-{self.placement}",
        ]
        return "-".join([str(self.size), *filter(None, parts)])

    @property
    def is_plain(self) -> bool:
        """Whether only the size is other than in training, if anything."""
        return self == Condition(self.size)

    def describe(self) -> str:
        """Say it in words.

        Example:
            >>> Condition(32, shuffle="patches").describe()
            '32 px, shuffled patches'
        """
        parts = [f"{self.size} px"]
        parts += [f"positions {self.policy}"] if self.policy else []
        parts += [f"shuffled {self.shuffle}"] if self.shuffle else []
        parts += [f"attention scale {self.attention_scale}"] if self.attention_scale else []
        parts += [f"placed at {self.placement}"] if self.placement else []
        return ", ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return what `evaluation.json` holds of it: what is as usual is left out."""
        return {name: value for name, value in vars(self).items() if value}

    @classmethod
    def of(cls, record: dict[str, Any]) -> Condition:
        """Return the condition of a record of `evaluation.json`."""
        return cls(**{field.name: record[field.name] for field in fields(cls) if field.name in record})
