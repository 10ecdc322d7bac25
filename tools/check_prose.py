"""Find phrases in docs, docstrings, comments and messages that have a plainer wording.

    python tools/check_prose.py              # everything
    python tools/check_prose.py README.md src/liere/report

Prints one line per finding: file, line, phrase and a better wording. Exit code 1 if there are any. Spelling is checked
by codespell. To keep a phrase, for example in a quotation, write `prose: keep` on its line.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PLACES = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "conftest.py"),
    *("setup.py", "docs", "src", "tests", "tools", "experiments", "examples"),
)
SUFFIXES = {".py", ".md", ".rst", ".yaml", ".yml", ".toml", ".j2", ".css", ".txt", ""}
SKIPPED = {"check_prose.py", "test_tools_prose.py", "american.txt"}  # they contain the phrases
SKIPPED_FOLDERS = {"__pycache__", "_build", "generated"}
KEEP = "prose: keep"

COUNT = r"(?:an?|one|two|three|\d[\d,.]*(?: to \d+)?)"
THING = (
    r"(?:color|curve|dot|file|GB|generator|hour|line|map|matrix|MB|minute|ms|number|operation|panel|picture|point|"
    r"process|product|record|rotation|row|run|s|second|seed|sentence|step|table|token|value)(?:e?s)?"
)
UNIT = (
    r"(?:axis|batch|block|class|clip|column|core|device|encoding|epoch|example|GPU|head|image|layer|line|matrix|node|"
    r"pass|pixel|process|product|row|run|seed|size|step|token|worker)"
)
BE = "(?:is|are|was|were|be|being|been)"

PHRASES = {
    rf"{COUNT} (?:[\w-]+ )?{THING} an? {UNIT}": "per: one line per seed",
    rf"(?:one|two|three) an? {UNIT}": "per: one per GPU",
    rf"{BE} told(?! apart| from)": "is reported, gets an error",
    r"told (?:of|when|twice|once|about|before anything)": "called with, reported",
    r"unless told otherwise": "by default, unless set otherwise",
    r"anew": "again",
    r"mend(?:s|ed|ing)?": "fix",
    r"whoever": "anyone who, or name the user",
    r"(?:to be|can be|could be|be) had": "available",
    r"(?:is|are|was|were|be) other(?:[.,;:]| than| in)": "differs, is different",
    r"(?:what|that) (?:is|was|are) other": "what differs",
    r"to be other": "to override, to change",
    r"other than in": "different from",
    r"something else than": "something other than, not",
    r"bit by bit": "bit-for-bit",
    r"intervals? of 95 ?%": "95 % confidence intervals",
    r"in one go": "at once, in a single pass",
    r"as (?:it|they) stands?": "as is, unchanged",
    r"that is to say": "that is, or leave it out",
    r"(?:is|are|be) at it": "is running, is training",
    r"(?:go|goes|going|gone|went) on (?:with|from|after step|where|to these)": "resume, continue",
    r"(?:not|never) (?:made|run|trained|done) again": "not repeated",
    r"what is (?:missing|finished|saved|there|done|left|new|known|wrong) (?:is|are|was|stays?)": "missing files are",
    r"(?:by|at most|at least|after|takes?|only|with|gives?) so many": "a number: at most N",
    r"of one's own": "your own",
    r"of before": "from before",
    rf"{BE} asked for": "requested",
    r"where (?:it|they|the grid|the data) lies?": "where it is",
    r"\"\"\"Say (?:what|which|whether|how|why|who|where|in|if)": "start with Return",
    r"write it like": "for example",
    r"which way points": "which way does the arrow point",
    r"learned numbers": "parameters",
    r"lost by shuffled": "accuracy drop with shuffled",
    r"would say the same": "significant on these examples",
    r"of no interest": "does not matter",
    r"(?<![\d.,{}-])(?<![-+]\s)1 (?:runs|seeds|images|examples|files|processes|cases|steps|lines)": "singular: 1 run",
}


class Finding(NamedTuple):
    """A phrase with a plainer wording.

    Attributes:
        line: Line number, from 1.
        phrase: The phrase as written, on one line.
        better: The better wording.
    """

    line: int
    phrase: str
    better: str


def _compiled(phrase: str) -> re.Pattern[str]:
    """Return a pattern whose spaces also match line breaks in prose and comments."""
    spaces = r"(?:[ \t]+|[ \t]*\n[ \t]*(?:[#>][ \t]*)?)"
    start = "" if phrase.startswith(("\\", "(?<")) else r"(?<![\w-])"
    return re.compile(start + phrase.replace(" ", spaces) + r"(?!\w)", re.IGNORECASE)


PATTERNS = {_compiled(phrase): better for phrase, better in PHRASES.items()}


def find_phrases(text: str) -> list[Finding]:
    """Return the phrases in a text, by line.

    Example:
        >>> find_phrases("Plain text.\\nFast, with one line a seed.")
        [Finding(line=2, phrase='one line a seed', better='per: one line per seed')]
    """
    lines, found = text.splitlines(), []
    for pattern, better in PATTERNS.items():
        for match in pattern.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            if KEEP not in lines[number - 1]:
                phrase = " ".join(re.sub(r"\n[ \t]*[#>]?", " ", match[0]).split())
                found.append(Finding(number, phrase, better))
    return sorted(found)


def text_files(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the text files among files and folders, in order."""
    for place in places:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            is_skipped = path.name in SKIPPED or not SKIPPED_FOLDERS.isdisjoint(path.parts) or ".egg-info" in str(path)
            if path.is_file() and path.suffix in SUFFIXES and not is_skipped:
                yield path


def main(arguments: list[str] | None = None) -> int:
    """Check the files, and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", type=Path, metavar="PATH", help="files and folders (default: all)")
    args = parser.parse_args(arguments)
    for place in args.places:
        if not place.exists():
            parser.error(f"{place} does not exist")
    count = 0
    for path in text_files(args.places or [ROOT / place for place in PLACES if (ROOT / place).exists()]):
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for finding in find_phrases(path.read_text(encoding="utf-8", errors="replace")):
            print(f"{shown}:{finding.line}: {finding.phrase!r}: better {finding.better!r}")
            count += 1
    if count:
        print(f"{count} finding{'' if count == 1 else 's'}", file=sys.stderr)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
