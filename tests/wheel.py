"""Build the wheel, install it where there is nothing but torch, time its import and run the tests against it.

Run by `make test-wheel`.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    return subprocess.run(list(map(str, command)), cwd=cwd, check=True, text=True, stdout=subprocess.PIPE).stdout


def import_seconds(python: Path, modules: str, cwd: Path) -> float:
    code = f"import time; start = time.perf_counter(); import {modules}; print(time.perf_counter() - start)"
    return float(run(python, "-W", "ignore", "-c", code, cwd=cwd))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", work, ROOT, cwd=work)
        (wheel,) = work.glob("*.whl")
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
