"""`liere predict`: classify images or videos with a trained run."""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from liere.commands.arguments import positive_number, side_number
from liere.errors import visible
from liere.files.writing import check_replaceable, prepare_folder, write_atomically
from liere.terminal.messages import say, warn

if TYPE_CHECKING:
    from liere.toolkit import Prediction

__all__ = ["HELP", "add_arguments", "run"]

HELP = "classify image or video files with a trained run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="folder of the run; its data set is not needed")
    parser.add_argument("images", type=Path, nargs="+", metavar="IMAGES", help="files, or folders of files")
    parser.add_argument("--size", type=side_number, metavar="N", help="image size in pixels (default: as trained)")
    parser.add_argument("--top", type=positive_number, default=5, metavar="N", help="classes per file (default: 5)")
    parser.add_argument(
        "--best", action="store_true", help="use the weights with the best validation score, not the final ones"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the predictions to a JSON file")
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write the predictions to a CSV file, one line per class"
    )


def run(args: argparse.Namespace) -> None:
    """Classify files, and print and write the predictions."""
    from liere import toolkit

    for path in (args.json, args.csv):
        if path is not None:
            check_replaceable(path)
    found = toolkit.predict(args.run_folder, args.images, size=args.size, top=args.top, best=args.best, say=warn)
    for prediction in found:
        shares = zip(prediction.classes, prediction.probabilities, strict=True)
        listed = ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares)
        say(visible(f"{prediction.source}: {listed}"))  # names may contain line breaks, at which `say` starts a line
    for path, text in ((args.json, _as_json(found)), (args.csv, _as_csv(found))):
        if path is not None:
            prepare_folder(path.parent, "the folder of the output")
            write_atomically(path, text)
            warn(f"wrote {path}")


def _as_json(found: list[Prediction]) -> str:
    return json.dumps([prediction.as_dict() for prediction in found], indent=1) + "\n"


def _as_csv(found: list[Prediction]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("file", "rank", "class", "probability"))
    for prediction in found:
        shares = zip(prediction.classes, prediction.probabilities, strict=True)
        writer.writerows(
            (prediction.source, rank, name, f"{share:.6g}") for rank, (name, share) in enumerate(shares, 1)
        )
    return text.getvalue()
