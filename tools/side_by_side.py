"""Draw two comparisons side by side, as shown in the README.

python tools/side_by_side.py results/spatial.json results/placement.json --out results/side_by_side.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from liere.report.side_by_side import write_side_by_side
from liere.terminal.messages import say

PANELS = ("as in the paper", "our recipe, with random placement")


def main() -> None:
    """Read both comparisons, draw them, and print the text alternative."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", type=Path, help="report.json of a comparison without position augmentation")
    parser.add_argument("placement", type=Path, help="report.json of a comparison with random placement")
    parser.add_argument("--out", type=Path, required=True, help="a .png or .svg file")
    args = parser.parse_args()
    files = zip(PANELS, (args.paper, args.placement), strict=True)
    say(write_side_by_side(args.out, {title: json.loads(file.read_text()) for title, file in files}))


if __name__ == "__main__":
    main()
