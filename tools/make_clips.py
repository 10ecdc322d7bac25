"""Render labeled clips of the Atari game Boxing: which way does the white boxer go?

    pip install ale-py==0.12.1
    python tools/make_clips.py --out data/atari-clips.npz

From a moment of random play, one clip starts for each direction in which the player holds the joystick. Every clip
appears twice, forward and backward, with opposite labels, so that without the order of the frames no model can exceed
50 % accuracy. Splits come from different matches; all classes are equally frequent. The same seed gives the same
arrays. See docs/how-to/data-sets.md.
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
RING = (slice(32, 182), slice(28, 132))  # rows and columns of the screen that show the ring, without score and clock
DIRECTIONS = ("up", "right", "down", "left")  # opposites are two apart
LABELS = np.array([0, 1, 2, 3, 2, 3, 0, 1])  # of the clips of one moment: forward, then the same clips backward
SPLITS = {"train": 10_000, "val": 1_000, "test": 2_000}
FRAMES, EVERY, SIDE = 8, 4, 32  # clips take every fourth frame of the game, which runs at 60 frames per second
MOMENTS_PER_MATCH = 20
VISIBLE = 12  # gray levels by which some pixel must differ for two frames to count as different
VERSION = "0.12.1"

Clips = npt.NDArray[np.uint8]


def main() -> int:
    """Write the file, or print one line on why that failed."""
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
    """Return the arrays of the file, by name.

    Args:
        counts: Number of clips in each split, a multiple of 8 because each moment gives 8 clips.
        seed: A non-negative integer.
        quiet: Whether to print no progress.

    Raises:
        ImportError: If ale-py is not installed.
        ValueError: If a number of clips is not a positive multiple of 8.
    """
    for split, count in counts.items():
        if count <= 0 or count % len(LABELS):
            raise ValueError(
                f"--{split} must be a multiple of {len(LABELS)}, the number of clips per moment, got {count}"
            )
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
    """Return whether none of these clips has appeared before in any split, and remember them."""
    keys = {clip.tobytes() for clip in clips}
    new = seen.isdisjoint(keys)
    seen |= keys
    return new


def play(stream: tuple[int, ...]) -> Iterator[Clips]:
    """Yield the clips `[directions, frames, side, side]` of successive moments of random play."""
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
    """An Atari emulator with the game loaded."""

    def __init__(self) -> None:
        try:
            from ale_py import Action, ALEInterface, LoggerMode, roms
        except ImportError:
            raise ImportError(
                f"rendering clips needs ale-py, which is not installed: pip install ale-py=={VERSION}"
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
        """Play for at least this many frames, with random actions of 4 to 16 frames each; restart a finished match."""
        while frames > 0:
            action = self.all_actions[random.integers(len(self.all_actions))]
            for _ in range(random.integers(4, 17)):
                self.ale.act(action)
                frames -= 1
            if self.ale.game_over():
                self.ale.reset_game()

    def branch(self) -> Clips | None:
        """Return one clip per direction, starting from the current state, and restore that state.

        Returns None if any two clips, or a clip and one without action, end alike: at the ropes, or while the boxer is
        stunned.
        """
        # Restoring a state does not redraw the screen, so the shared first frame must be captured first.
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
        """Hold an action until the next frame of the clip, and return that frame."""
        for _ in range(EVERY):
            self.ale.act(action)
        return self.look()

    def look(self) -> Clips:
        """Return the ring as a grayscale image `[side, side]`, downsampled by averaging."""
        ring = Image.fromarray(np.ascontiguousarray(self.ale.getScreenGrayscale()[RING]))
        return np.asarray(ring.resize((SIDE, SIDE), Image.Resampling.BOX))


def end_differently(clips: Clips) -> bool:
    """Return whether the last frames of all clips differ visibly from each other."""
    last = clips[:, -1].astype(np.int16)
    return all(np.abs(one - other).max() > VISIBLE for one, other in itertools.combinations(last, 2))


if __name__ == "__main__":
    sys.exit(main())
