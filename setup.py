"""Add files from outside `src` to the wheel: recipes and committed runs. Everything else is in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SHIPPED = ("experiments/**/*.yaml", "results/reproduce/*/runs/*.tar.xz")


class BuildWithShippedFiles(build_py):
    """Copy these files into the package; an editable install reads them in place."""

    def run(self) -> None:
        """Build the package and copy the files."""
        super().run()
        if not self.editable_mode:
            for source, target in self._shipped().items():
                target.parent.mkdir(parents=True, exist_ok=True)
                self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return all files of the build."""
        shipped = [] if self.editable_mode else [*map(str, self._shipped().values())]
        return [*super().get_outputs(include_bytecode), *shipped]

    def _shipped(self) -> dict[Path, Path]:
        package = Path(self.build_lib) / "liere"
        files = sorted(file for pattern in SHIPPED for file in ROOT.glob(pattern))
        return {file: package / file.relative_to(ROOT) for file in files}


setup(cmdclass={"build_py": BuildWithShippedFiles})
