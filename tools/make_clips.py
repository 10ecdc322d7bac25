"""Render labelled clips of the Atari game Boxing: which way does the white boxer go?

    pip install ale-py==0.12.1
    python tools/make_clips.py --out data/atari-clips.npz

From a moment of random play one clip starts for each direction, in which the player holds the joystick. Every clip is
there twice, forwards and backwards, with opposite labels: without the order of the frames nobody can be right in more
than half of the cases. Splits come from different matches; all classes are equally frequent. The same seed gives the
same arrays. See docs/how-to/data-sets.md.
"""

from __future__ import annotations

import argparse
import io
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from liere.files.writing import prepare_folder, write_atomically

GAME = "boxing"
RING = (slice(32, 182), slice(28, 132))  # the rows and columns of the screen that show the ring: no score, no clock
DIRECTIONS = ("up", "right", "down", "left")  # opposites are two apart
LABELS = np.array([0, 1, 2, 3, 2, 3, 0, 1])  # of the clips of a moment: forwards, then the same backwards
SPLITS = {"train": 10_000, "val": 1_000, "test": 2_000}
FRAMES, EVERY, SIDE = 8, 4, 32  # a frame of a clip is every fourth of the game, which shows 60 a second
MOMENTS_PER_MATCH = 20
VISIBLE = 12  # grey levels by which some pixel has to differ between two frames that are told apart
VERSION = "0.12.1"

Clips = npt.NDArray[np.uint8]


def main() -> int:
    """Make the file, or say in one line why not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("data/atari-clips.npz"), help="default: data/atari-clips.npz")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another data set (default: 0)")
    for split, count in SPLITS.items():
        parser.add_argument(f"--{split}", type=int, default=count, help=f"number of clips (default: {count})")
    args = parser.parse_args()
    try:
        prepare_folder(args.out.parent, "--out")
        arrays = make_splits({split: getattr(args, split) for split in SPLITS}, args.seed)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_atomically(args.out, buffer.getbuffer())
    except (ImportError, OSError, ValueError) as error:
        print(f"make_clips: {error}", file=sys.stderr)
        return 1
    print(f"{args.out}: {buffer.getbuffer().nbytes / 1e6:.1f} MB")
    return 0


def make_splits(counts: dict[str, int], seed: int, *, quiet: bool = False) -> dict[str, npt.NDArray[Any]]:
    """Return what the file holds, by name.

    Args:
        counts: The number of clips of each split: multiples of 8, since a moment gives so many.
        seed: Any whole number from 0.
        quiet: Whether to say nothing of the progress.

    Raises:
        ImportError: Without ale-py.
        ValueError: If a number of clips is not such a multiple.
    """
    for split, count in counts.items():
        if count <= 0 or count % len(LABELS):
            raise ValueError(f"--{split} must be a multiple of {len(LABELS)}, the clips of a moment, got {count}")
    arrays: dict[str, npt.NDArray[Any]] = {}
    seen: set[bytes] = set()
    for number, (split, count) in enumerate(counts.items()):
        fresh = (clips for clips in play((seed, number)) if is_new(clips, seen))
        found = []
        for clips in itertools.islice(fresh, count // len(LABELS)):
            found += [clips, clips[:, ::-1]]
            if not quiet and len(found) % 100 == 0:
                print(f"{split}: {len(found) * len(DIRECTIONS)} of {count} clips", flush=True)
        order = np.random.default_rng((seed, number)).permutation(count)
        arrays[f"{split}_videos"] = np.concatenate(found)[order]
        arrays[f"{split}_labels"] = np.tile(LABELS, count // len(LABELS))[order]
    return {**arrays, "classes": np.array(DIRECTIONS)}


def is_new(clips: Clips, seen: set[bytes]) -> bool:
    """Say whether no clip of these has come before, in any split, and remember them."""
    keys = {clip.tobytes() for clip in clips}
    new = seen.isdisjoint(keys)
    seen |= keys
    return new


def play(stream: tuple[int, ...]) -> Iterator[Clips]:
    """Yield the clips `[directions, frames, side, side]` of one moment after another, from random play."""
    console = Console()
    for match in itertools.count():
        random = np.random.default_rng((*stream, match))
        console.begin()
        console.act_randomly(random, int(random.integers(60, 1_000)))
        for _ in range(MOMENTS_PER_MATCH):
            console.act_randomly(random, int(random.integers(30, 90)))
            clips = console.branch()
            if clips is not None:
                yield clips


class Console:
    """An Atari with the game in it."""

    def __init__(self) -> None:
        try:
            from ale_py import Action, ALEInterface, LoggerMode, roms
        except ImportError:
            raise ImportError(
                f"clips are rendered by ale-py, which is missing: pip install ale-py=={VERSION}"
            ) from None
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale = ALEInterface()
        self.ale.setInt("random_seed", 0)
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.loadROM(roms.get_rom_path(GAME))
        self.actions = [Action.NOOP, *(getattr(Action, name.upper()) for name in DIRECTIONS)]
        self.all_actions = self.ale.getMinimalActionSet()

    def begin(self) -> None:
        """Start a new match."""
        self.ale.reset_game()

    def act_randomly(self, random: np.random.Generator, frames: int) -> None:
        """Play for some frames or a few more, any action for 4 to 16 of them; a match that is over starts anew."""
        while frames > 0:
            action = self.all_actions[random.integers(len(self.all_actions))]
            for _ in range(random.integers(4, 17)):
                self.ale.act(action)
                frames -= 1
            if self.ale.game_over():
                self.ale.reset_game()

    def branch(self) -> Clips | None:
        """Return a clip for each direction from here on, then come back.

        None if any two end alike or like a clip of no action: by the ropes, or while the boxer is stunned.
        """
        # A restored state leaves the screen as it was: the frame that the clips share has to be taken first.
        first, state = self.look(), self.ale.cloneState()
        clips, over = [], False
        for action in self.actions:
            self.ale.restoreState(state)
            clips.append([first, *(self.hold(action) for _ in range(FRAMES - 1))])
            over = over or self.ale.game_over()
        self.ale.restoreState(state)
        result = np.array(clips, dtype=np.uint8)
        return None if over or not end_differently(result) else result[1:]

    def hold(self, action: Any) -> Clips:
        """Hold an action until the next frame of the clip, and return it."""
        for _ in range(EVERY):
            self.ale.act(action)
        return self.look()

    def look(self) -> Clips:
        """Return the ring in grey, `[side, side]`, every pixel the mean of those it stands for."""
        ring = Image.fromarray(np.ascontiguousarray(self.ale.getScreenGrayscale()[RING]))
        return np.asarray(ring.resize((SIDE, SIDE), Image.Resampling.BOX))


def end_differently(clips: Clips) -> bool:
    """Say whether the last frames of any two clips differ visibly."""
    last = clips[:, -1].astype(np.int16)
    return all(np.abs(one - other).max() > VISIBLE for one, other in itertools.combinations(last, 2))


if __name__ == "__main__":
    sys.exit(main())
