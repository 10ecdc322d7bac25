"""Check that this commit can be released, build its packages, and print the commands that upload them.

    python tools/release_check.py            # or: make release-check
    python tools/release_check.py --no-tests

Nothing is uploaded, tagged or pushed. In order: the version is the same everywhere, the tag is free or points to this
commit, the tree is clean, the packages are built and pass twine's checks, and the wheel passes the tests where torch is
all that is installed. All quick problems are reported together; exit code 1 if there are any.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = [
    "check_changelog",
    "check_citation",
    "check_packages",
    "check_tag",
    "check_tree",
    "main",
    "read_version",
    "upload_commands",
]

ROOT = Path(__file__).parents[1]
VERSION_FILE = "src/liere/version.py"


def read_version(text: str) -> str:
    """Return the version that the text of version.py assigns.

    Raises:
        ValueError: If there is none, or it is not of the form X.Y.Z.

    Example:
        >>> read_version('__version__ = "0.1.0"')
        '0.1.0'
    """
    found = re.findall(r'^__version__ = "([^"]*)"$', text, flags=re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f'{VERSION_FILE} must have one line like __version__ = "1.2.3", got {len(found)}')
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.post|\.dev)\d+)?", found[0]):
        raise ValueError(f"{VERSION_FILE} has the version {found[0]!r}: use a version such as 1.2.3 or 1.2.3rc1")
    return found[0]


def check_changelog(text: str, version: str) -> str:
    """Return what is wrong with a changelog for a release; "" if it describes the version.

    The newest section must be that of the version, or an Unreleased one that has entries.

    Example:
        >>> check_changelog("## [Unreleased]\\n\\n### Added\\n\\n- One thing.\\n", "0.1.0")
        ''
        >>> check_changelog("## [0.0.9] - 2026-01-01\\n\\n- One thing.\\n", "0.1.0")
        'CHANGELOG.md has no section for 0.1.0 and none for Unreleased: add one that says what changes'
    """
    parts = re.split(r"^## \[?([^\]\s]+)\]?.*$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = [sections[name] for name in (version, "Unreleased") if name in sections]
    if not found:
        return f"CHANGELOG.md has no section for {version} and none for Unreleased: add one that says what changes"
    if not any(re.search(r"^- \S", section, flags=re.MULTILINE) for section in found):
        return f"CHANGELOG.md says nothing about {version}: add a line for each change"
    return ""


def check_citation(text: str, version: str) -> str:
    """Return what is wrong with CITATION.cff; "" if it names this version.

    Example:
        >>> check_citation("cff-version: 1.2.0\\nversion: 0.1.0\\n", "0.1.0")
        ''
        >>> check_citation("cff-version: 1.2.0\\nversion: 0.0.9\\n", "0.1.0")
        'CITATION.cff has version 0.0.9, but src/liere/version.py has 0.1.0: make them equal'
    """
    found = re.search(r"^version:\s*[\"']?([^\s\"']+)", text, flags=re.MULTILINE)
    if found is None:
        return f"CITATION.cff has no version: add the line version: {version}"
    if found[1] != version:
        return f"CITATION.cff has version {found[1]}, but {VERSION_FILE} has {version}: make them equal"
    return ""


def check_tag(version: str, tagged: str | None, head: str) -> str:
    """Return what is wrong with the tag of a version; "" if it does not exist yet or points to the commit.

    Args:
        version: The version.
        tagged: Commit of its tag; None if there is no such tag.
        head: The commit to release.

    Example:
        >>> check_tag("0.1.0", None, "a1b2c3d4e5"), check_tag("0.1.0", "a1b2c3d4e5", "a1b2c3d4e5")
        ('', '')
    """
    if tagged in (None, head):
        return ""
    return f"the tag v{version} points to {str(tagged)[:9]}, not to this commit {head[:9]}: raise the version"


def check_tree(status: str) -> str:
    """Return what is wrong with the working tree, given the output of `git status --porcelain`; "" if it is clean.

    Example:
        >>> check_tree("")
        ''
        >>> check_tree(" M README.md\\n?? notes.txt\\n")
        'the tree is not clean (README.md, notes.txt): commit or remove these files'
    """
    files = [line[3:] for line in status.splitlines() if line.strip()]
    if not files:
        return ""
    named = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    return f"the tree is not clean ({named}): commit or remove these files"


def check_packages(names: list[str], version: str) -> str:
    """Return what is wrong with the names of built packages; "" if they are one sdist and one wheel of the version.

    Example:
        >>> check_packages(["liere-0.1.0.tar.gz", "liere-0.1.0-py3-none-any.whl"], "0.1.0")
        ''
    """
    wanted = {f"liere-{version}.tar.gz", f"liere-{version}-py3-none-any.whl"}
    if set(names) == wanted:
        return ""
    return f"the build made {', '.join(sorted(names)) or 'nothing'}, not {', '.join(sorted(wanted))}"


def upload_commands(version: str, names: list[str], *, has_tag: bool) -> list[str]:
    """Return the commands that release what has been checked; they are printed, not run.

    Example:
        >>> upload_commands("0.1.0", ["liere-0.1.0.tar.gz"], has_tag=True)
        ['git push origin v0.1.0', 'twine upload dist/liere-0.1.0.tar.gz']
    """
    tag = [] if has_tag else [f'git tag --annotate v{version} --message "liere {version}"']
    return [*tag, f"git push origin v{version}", f"twine upload {' '.join(f'dist/{name}' for name in sorted(names))}"]


def _git(*arguments: str) -> str | None:
    """Return what git prints; None if it fails."""
    found = subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=False)
    return found.stdout if found.returncode == 0 else None


def _run(*command: str | Path) -> bool:
    words = [str(word) for word in command]
    print(f"+ {' '.join(words)}", flush=True)
    return subprocess.run(words, cwd=ROOT, check=False).returncode == 0


def _stop(*problems: str) -> int:
    for problem in problems:
        print(f"release-check: {problem}", file=sys.stderr)
    return 1


def _build(version: str, dist: Path) -> str:
    """Build the packages into `dist`, which replaces an older one, and return what is wrong; "" if nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        if not _run(sys.executable, "-m", "build", "--outdir", folder, "."):
            return "the packages cannot be built: see above"
        built = sorted(Path(folder).iterdir())
        problem = check_packages([path.name for path in built], version)
        if problem:
            return problem
        if not _run(sys.executable, "-m", "twine", "check", "--strict", *built):
            return "twine does not accept the packages: see above"
        dist.mkdir(exist_ok=True)
        for old in dist.glob("liere-*"):
            old.unlink()
        for path in built:
            shutil.move(path, dist / path.name)
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Check, build, test and print; return 0 if this commit can be released."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-tests", action="store_true", help="skip the tests of the wheel, which take long")
    args = parser.parse_args(arguments)
    try:
        version = read_version((ROOT / VERSION_FILE).read_text())
    except ValueError as error:
        return _stop(str(error))
    head, status = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    if head is None or status is None:
        return _stop("this is not a git repository with a commit: run it in a clone")
    tag = _git("rev-parse", "--verify", "--quiet", f"refs/tags/v{version}^{{commit}}")
    problems = [
        check_changelog((ROOT / "CHANGELOG.md").read_text(), version),
        check_citation((ROOT / "CITATION.cff").read_text(), version),
        check_tag(version, tag and tag.strip(), head.strip()),
        check_tree(status),
    ]
    if any(problems):
        return _stop(*filter(None, problems))
    print(f"liere {version}: version, changelog, citation, tag and tree are fine", flush=True)
    if problem := _build(version, ROOT / "dist"):
        return _stop(problem)
    names = [path.name for path in (ROOT / "dist").glob("liere-*")]
    (wheel,) = (name for name in names if name.endswith(".whl"))
    if not args.no_tests and not _run(sys.executable, "tests/wheel.py", Path("dist", wheel)):
        return _stop("the wheel does not pass its tests: see above")
    tested = "has not been tested" if args.no_tests else "can be released"
    print(f"\nliere {version} is built and {tested}. Nothing has been uploaded. To release it:\n")
    print("\n".join(f"    {command}" for command in upload_commands(version, names, has_tag=bool(tag))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
