"""Install the lowest versions that `pyproject.toml` declares into an environment of their own and run the tests there.

Run by `make test-lowest`; whatever else is given goes to pytest:

    python tests/lowest.py .venv-lowest tests/rotations -k exact

Versions of tools that only develop and test `liere` (the extras `dev` and `docs`) come from `constraints.txt`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = "dev,train,timm,transformers,video,hub,cluster"


def floors(project: dict) -> dict[str, str]:
    """Return the lowest version of each package that a user may be asked to install.

    Raises:
        ValueError: If a requirement has none.
    """
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name not in ("dev", "docs")}
    found = {}
    for line in [*project["dependencies"], *(line for lines in extras.values() for line in lines)]:
        if line.startswith(project["name"] + "["):
            continue
        match = re.fullmatch(r"([\w.-]+)>=([\w.]+)", line)
        if match is None:
            raise ValueError(f"pyproject.toml requires {line!r} without a lowest version: use 'torch>=2.7'")
        name, version = match[1].lower(), match[2]
        if found.setdefault(name, version) != version:
            raise ValueError(f"pyproject.toml requires {name} from {found[name]} and from {version}: choose one")
    return found


def constraints(lowest: dict[str, str], pinned: str) -> list[str]:
    """Return lines for pip: the floors, and the pins of everything else."""
    pins = [line for line in pinned.splitlines() if "==" in line]
    others = [line for line in pins if line.split("==")[0].lower() not in lowest]
    return [f"{name}=={version}" for name, version in lowest.items()] + others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path)
    options, pytest_arguments = parser.parse_known_args()
    environment: Path = options.environment.resolve()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = constraints(floors(project), (ROOT / "constraints.txt").read_text())
    python, written = environment / "bin" / "python", environment / "lowest.txt"
    if not written.exists() or written.read_text().splitlines() != lines:
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        wanted = environment / "wanted.txt"
        wanted.write_text("\n".join(lines) + "\n")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--constraint", wanted, "--editable", f"{ROOT}[{EXTRAS}]"], check=True)
        wanted.rename(written)
    command = [python, "-m", "pytest", *(pytest_arguments or ["-n", "2", "--dist", "loadgroup", "-m", "not slow"])]
    raise SystemExit(subprocess.run(command, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
