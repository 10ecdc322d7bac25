"""Attack: damage files of a run; every command must report that in one line, or work without the file."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.attacks.arena import Arena
from tools.attacks.contract import Attack, Verdict
from tools.attacks.hostile import TEXTS, special_files
from tools.attacks.mutations import damage
from tools.attacks.runs import finished_run

__all__ = ["ATTACK", "change_entry"]

FILES = (
    "config.yaml",
    "facts.json",
    "metrics.csv",
    "result.json",
    "evaluation.json",
    "final.safetensors",
    "best.safetensors",
    "predictions/final-test-36.csv",
    "checkpoints/last.ckpt",
)
COMMANDS = {
    "resume": ["train", "--resume", "RUN", "--steps", "1"],
    "train longer": ["train", "--resume", "RUN", "--training.examples", "416", "--steps", "1"],
    "eval": ["eval", "RUN", "--examples", "20"],
    "best": ["eval", "RUN", "--examples", "20", "--best"],
    "predict": ["predict", "RUN", "PICTURE"],
    "inspect": ["inspect", "RUN", "--json"],
    "report": ["report", "RUN", "--out", "REPORT"],
}
VALUES: list[Any] = [
    *(-1, 0, 1, 2**31, 10**15, 10**30, 1e308, float("nan"), float("inf"), 0.5, True, None, [], {}, [[[]]], "", "x"),
    *("<script>alert(1)</script>", "../../../etc/passwd", "/dev/zero", "a\0b", "\ud800", "\x1b[2J\n", "a" * 100_000),
    *([10**6, 10**6], [36, 36, 36], ["a"] * 200_000),
]
"""Values for entries of JSON files."""


def change_entry(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Replace or remove a random entry of a JSON file, and return a description and the new file."""
    content = json.loads(data)
    place, path = content, "it"
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = chance.choice(keys)
        path += f"[{key!r}]"
        if not (isinstance(place[key], dict | list) and place[key] and chance.random() < 0.7):
            break
        place = place[key]
    if chance.random() < 0.2:
        del place[key]
        return f"without {path}", json.dumps(content).encode()
    place[key] = chance.choice(VALUES)
    return f"with {path} = {str(place[key])[:30]!r}", json.dumps(content).encode()


def prepare(arena: Arena, folder: Path) -> Callable[[random.Random, int], Verdict]:
    """Train and test one run, stop another one halfway, and return the function that tries a case."""
    finished = finished_run(arena, folder)
    arena.run("eval", finished, "--examples", "20")
    stopped, mine = folder / "stopped", folder / "mine.txt"
    arena.run("train", "--config", folder / "config.yaml", "--out", stopped, "--steps", "10")
    (folder / "picture.ppm").write_bytes(b"P6\n36 36\n255\n" + bytes(3 * 36 * 36))

    def try_case(chance: random.Random, number: int) -> Verdict:
        source = stopped if chance.random() < 0.3 else finished
        names = [name for name in FILES if (source / name).exists()]
        name, command = names[number % len(names)], chance.choice(list(COMMANDS))
        run, report = folder / "damaged", folder / "report"
        shutil.copytree(source, run)
        mine.write_text("mine")
        what = _attack(run / name, mine, chance)
        places = {"RUN": run, "REPORT": report, "PICTURE": folder / "picture.ppm"}
        losses = arena.run(*(places.get(word, word) for word in COMMANDS[command])).losses(0, 2)
        losses += [] if mine.read_text() == "mine" else ["a file outside the run was changed"]
        if report.exists():
            pages = [page for page in report.glob("*.html") if "<script>alert" in page.read_text(errors="replace")]
            losses += [f"{page.name} contains a script from a file" for page in pages]
        for path in (run, report):
            shutil.rmtree(path, ignore_errors=True)
        return Verdict(f"{name} of a {source.name} run {what}, then {command}", losses)

    return try_case


def _attack(path: Path, mine: Path, chance: random.Random) -> str:
    """Damage or replace a file, and return a description."""
    kind, data = chance.random(), path.read_bytes()
    if kind < 0.15:
        makers = special_files() | {"leads to a file outside": lambda path: path.symlink_to(mine)}
        what = chance.choice(list(makers))
        path.unlink()
        makers[what](path)
        return what
    if kind < 0.35:
        what, data = chance.choice(list(TEXTS.items()))
    elif path.suffix == ".json" and kind < 0.8:
        what, data = change_entry(data, chance)
    else:
        what, data = damage(data, chance)
    path.write_bytes(data)
    return what


ATTACK = Attack(
    "run-files",
    "damage a file of a run: commands that read it work, or fail with a one-line error, and change nothing outside it",
    1.5,
    prepare,
)
