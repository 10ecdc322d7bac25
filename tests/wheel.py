"""Build the wheel, install it where there is nothing but torch, time its import and run the tests against it.

What is installed with it is used from an empty folder, with the packages of this environment: recipes, and kept runs.

Run by `make test-wheel`; `make release-check` gives it the wheel that was built before.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    environment = os.environ | variables
    words = list(map(str, command))
    return subprocess.run(words, cwd=cwd, check=True, text=True, stdout=subprocess.PIPE, env=environment).stdout


def import_seconds(python: Path, modules: str, cwd: Path) -> float:
    code = f"import time; start = time.perf_counter(); import {modules}; print(time.perf_counter() - start)"
    return float(run(python, "-W", "ignore", "-c", code, cwd=cwd))


def check_shipped_files(wheel: Path, work: Path) -> None:
    """Raise unless recipes and kept runs come with the wheel and are found where nothing of the project is."""
    site, empty = work / "site", work / "empty"
    empty.mkdir()
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel, cwd=work)
    for pattern in ("experiments/**/*.yaml", "results/reproduce/small/runs/*.tar.xz"):
        kept, installed = (
            sorted(file.relative_to(folder) for file in folder.glob(pattern)) for folder in (ROOT, site / "liere")
        )
        if not kept or kept != installed:
            raise SystemExit(f"{len(kept)} files of {pattern} are in the project, {len(installed)} in the wheel")
        print(f"{len(installed)} files of {pattern} are in the wheel")
    command = [sys.executable, "-W", "ignore", "-m", "liere_command"]
    recipe = ("train", "--config", "experiments/spatial/small.yaml", "--dry-run")
    for words, expected in ((("reproduce", "init"), "init: 4 of 4 runs are finished"), (recipe, "165,124 parameters")):
        printed = run(*command, *words, cwd=empty, PYTHONPATH=str(site))
        if expected not in printed:
            raise SystemExit(f"liere {' '.join(words)} does not print {expected!r}:\n{printed}")
        print(f"liere {' '.join(words)}: {expected}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if len(sys.argv) > 1:
            wheel = Path(sys.argv[1]).resolve()
        else:
            run(sys.executable, "-m", "build", "--wheel", "--outdir", work, ROOT, cwd=work)
            (wheel,) = work.glob("*.whl")
        check_shipped_files(wheel, work)
        run(sys.executable, "-m", "venv", "env", cwd=work)
        python = work / "env" / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run(*pip, "--constraint", ROOT / "constraints.txt", wheel, cwd=work)
        print("installed:", run(python, "-m", "pip", "freeze", "--disable-pip-version-check", cwd=work).split())

        for _ in range(2):  # fill the disk cache
            import_seconds(python, "liere", work)
        pairs = [(import_seconds(python, "torch", work), import_seconds(python, "liere", work)) for _ in range(7)]
        torch_seconds, liere_seconds = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = liere_seconds / torch_seconds
        print(
            f"import torch {torch_seconds:.2f} s, import liere {liere_seconds:.2f} s: {ratio:.2f} times (medians of 7)"
        )

        run(*pip, "--constraint", ROOT / "constraints.txt", "pytest", "pytest-xdist", "hypothesis", cwd=work)
        shutil.copytree(ROOT / "tests", work / "tests")
        for name in ("conftest.py", "pyproject.toml"):
            shutil.copy(ROOT / name, work / name)
        command = [python, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", "tests"]
        raise SystemExit(subprocess.run(list(map(str, command)), cwd=work, check=False).returncode)


if __name__ == "__main__":
    main()
