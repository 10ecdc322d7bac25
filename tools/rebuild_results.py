"""Rebuild the pages and figures in `results/` from the committed runs and numbers, and compare them.

    python tools/rebuild_results.py              # everything
    python tools/rebuild_results.py reproduce/small/main placement
    python tools/rebuild_results.py --write      # replace the committed files that differ

Prints one line per file: `same` if it is identical except for its date, otherwise where it differs. Tables and figures
of the paper are rebuilt from the runs in `results/reproduce`; reports, studies and benchmark figures from their JSON
files. Attention maps need weights, so they are copied from the committed page. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import io
import json
import os
import re
import shutil
import sys
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.side_by_side import PANELS  # noqa: E402
from tools.study import markdown  # noqa: E402

from liere.bench.figures import draw_record  # noqa: E402
from liere.cli import main as liere  # noqa: E402
from liere.files.reading import shorten  # noqa: E402
from liere.report.encoding_style import plain_label  # noqa: E402
from liere.report.picture_data import AttentionRow, Pictures, Sample  # noqa: E402
from liere.report.report_files import write_report  # noqa: E402
from liere.report.side_by_side import write_side_by_side  # noqa: E402
from liere.reproduce.catalog import CATALOGUE  # noqa: E402
from liere.terminal.messages import say  # noqa: E402

RESULTS = ROOT / "results"
TABLES = "reproduce/small/"
REPORTS = ("spatial", "placement")
MADE_ON = re.compile(r'^ "date": ".*",$|<time datetime="[^"]*">[^<]*</time>', re.MULTILINE)
IMAGE = re.compile(r'<img src="data:image/png;base64,([^"]*)" alt="([^"]*)">')
SAMPLE = "Image of the task: "
ATTENTION = re.compile(r"Attention map of (.*), layer \d+, (\d+) px")


def main() -> int:
    """Rebuild the results, and print or write the differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"(default: all of {', '.join(PARTS)})")
    parser.add_argument("--write", action="store_true", help="replace the committed files that differ")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in PARTS]
    if unknown:
        parser.error(f"{unknown[0]!r} is not one of {', '.join(PARTS)}")
    same = True
    for name in args.names or PARTS:
        for file, difference in rebuild(name, write=args.write).items():
            say(f"{file}: {difference or 'same'}")
            same &= not difference
    return int(not same)


def rebuild(name: str, *, write: bool = False) -> dict[str, str]:
    """Rebuild a part of the results, and return where each of its files differs; empty if it does not.

    Args:
        name: One of `PARTS`.
        write: Whether to replace the committed files that differ.
    """
    with tempfile.TemporaryDirectory() as folder, _working_in(Path(folder)):
        new = Path(folder) / "results"
        new.mkdir()
        PARTS[name](name, new)
        made = {path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file()}
        pictures = {path.relative_to(RESULTS).as_posix() for path in (RESULTS / name).glob("*.png")}
        found = {file: compare(RESULTS / file, new / file) for file in sorted(made | pictures)}
        for file in [file for file, difference in found.items() if difference and write and file in made]:
            shutil.copyfile(new / file, RESULTS / file)
        return found


def compare(old: Path, new: Path) -> str:
    """Return where two files differ; empty if they differ in the date at most."""
    for path, problem in ((old, "is not committed"), (new, "is no longer made")):
        if not path.is_file():
            return problem
    if old.read_bytes() == new.read_bytes():
        return ""
    if old.suffix == ".png":
        return f"differs: {_difference_of_pictures(old, new)}"
    before, after = (MADE_ON.sub("", path.read_text()).splitlines() for path in (old, new))
    for number, (first, second) in enumerate(zip(before, after, strict=False), start=1):
        if first != second:
            return f"differs in line {number}: {shorten(first.strip())!r} is now {shorten(second.strip())!r}"
    return "" if len(before) == len(after) else f"differs: line count was {len(before)}, is now {len(after)}"


def _difference_of_pictures(old: Path, new: Path) -> str:
    import numpy as np
    from PIL import Image

    before, after = (np.asarray(Image.open(path).convert("RGBA")) for path in (old, new))
    if before.shape != after.shape:
        return f"{before.shape[1]} x {before.shape[0]} pixels are now {after.shape[1]} x {after.shape[0]}"
    return f"{int((before != after).any(-1).sum()):,} of {before[..., 0].size:,} pixels"


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _print(*words: str) -> str:
    """Return the output of a command."""
    before, sys.argv = sys.argv, ["liere", *words]  # pages show the command that made them
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = liere(list(words))
    finally:
        sys.argv = before
    if code:
        raise RuntimeError(f"liere {' '.join(words)} failed with exit code {code}")
    return printed.getvalue()


def _table(name: str, folder: Path) -> None:
    _print("reproduce", name.removeprefix(TABLES), "--scale", "small")
    Path("liere-reproduce").rename(folder / "reproduce")


def _report(name: str, folder: Path) -> None:
    comparison = _numbers(f"{name}.json")
    write_report(comparison, _pictures(comparison, (RESULTS / f"{name}.html").read_text()), folder, name)


def _pictures(comparison: dict[str, Any], page: str) -> Pictures:
    """Return the pictures embedded in a page."""
    names = {plain_label(row["encoding"]): row["encoding"] for row in comparison["encodings"]}
    samples, rows = list[Sample](), dict[tuple[str, int], list[bytes]]()
    for data, alt in IMAGE.findall(page):
        text, png = html.unescape(alt), b64decode(data)
        if text.startswith(SAMPLE):
            samples.append(Sample(text.removeprefix(SAMPLE), png))
        elif found := ATTENTION.fullmatch(text):
            rows.setdefault((names[found[1]], int(found[2])), []).append(png)
    return Pictures(samples, [AttentionRow(name, size, layers) for (name, size), layers in rows.items()])


def _side_by_side(name: str, folder: Path) -> None:
    comparisons = {title: _numbers(f"{report}.json") for title, report in zip(PANELS, REPORTS, strict=True)}
    write_side_by_side(folder / f"{name}.png", comparisons)


def _study(name: str, folder: Path) -> None:
    (folder / "studies").mkdir()
    (folder / f"{name}.md").write_text(markdown(_numbers(f"{name}.json")))


def _bench(name: str, folder: Path) -> None:
    draw_record(_numbers(f"{name}.json"), folder / f"{name}.png")


def _flops(name: str, folder: Path) -> None:
    (folder / f"{name}.json").write_text(_print("flops", "--json"))


def _numbers(file: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RESULTS / file).read_text())
    return content


def _parts() -> dict[str, Callable[[str, Path], None]]:
    tables = [entry.name for entry in CATALOGUE.values() if not entry.needs_weights]
    return {
        **{f"{TABLES}{name}": _table for name in tables if (RESULTS / f"{TABLES}{name}.json").exists()},
        **dict.fromkeys(REPORTS, _report),
        "side_by_side": _side_by_side,
        **{f"studies/{file.stem}": _study for file in sorted((RESULTS / "studies").glob("*.json"))},
        **{file.stem: _bench for file in sorted(RESULTS.glob("bench_*.json"))},
        "flops": _flops,
    }


PARTS = _parts()
"""Functions that rebuild parts of the results, by the names of their files."""


if __name__ == "__main__":
    sys.exit(main())
