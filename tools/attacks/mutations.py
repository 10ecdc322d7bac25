"""Systematic damage to the bytes of a file."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["MUTATIONS", "damage"]


def _truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _cut_front(data: bytes, chance: random.Random) -> bytes:
    return data[chance.randint(1, len(data)) :]


def _cut_middle(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randint(1, max(len(data) // 4, 1)) :]


def _flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 8, 100))):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _zero_block(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    stop = min(start + chance.choice((1, 16, 512, 4096)), len(data))
    return data[:start] + bytes(stop - start) + data[stop:]


def _swap_blocks(data: bytes, chance: random.Random) -> bytes:
    one, two, three = sorted(chance.randrange(len(data) + 1) for _ in range(3))
    return data[:one] + data[two:three] + data[one:two] + data[three:]


def _insert(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + chance.randbytes(chance.choice((1, 100, 5000))) + data[start:]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    return data + data


def _empty(data: bytes, chance: random.Random) -> bytes:
    return b""


def _noise(data: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(len(data))


MUTATIONS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "truncated": _truncate,
    "cut from the front": _cut_front,
    "cut in the middle": _cut_middle,
    "flipped": _flip,
    "zeroed": _zero_block,
    "swapped": _swap_blocks,
    "inserted": _insert,
    "repeated": _repeat,
    "empty": _empty,
    "noise": _noise,
}


def damage(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Return the name of a random mutation and the mutated bytes."""
    name = chance.choice(list(MUTATIONS))
    return name, MUTATIONS[name](data, chance)
