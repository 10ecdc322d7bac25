"""The result of a comparison: rows for a notebook, a table for the terminal, and the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liere.errors import InputError
from liere.evaluation.data_frames import as_frame
from liere.files.writing import prepare_folder
from liere.report.headline import headline
from liere.report.report_files import write_report
from liere.report.result_table import result_table
from liere.report.task_pictures import make_pictures
from liere.runs.run import Run
from liere.terminal.text_table import text_table

__all__ = ["ComparisonResult"]

SPREAD = {"mean": "mean", "worst": "least", "best": "most", "low": "low", "high": "high"}


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """The results of the runs of a comparison.

    Attributes:
        runs: The finished and tested runs.
        summary: All results, as stored in `report.json`.
        pages: The HTML page of the report, once it is written.
    """

    runs: tuple[Run, ...]
    summary: dict[str, Any]
    pages: tuple[Path, ...] = ()

    @property
    def page(self) -> Path | None:
        """The HTML page of the report; None if it was not written."""
        return next(iter(self.pages), None)

    def table(self, *, pandas: bool | None = None) -> Any:
        """Return one row per encoding and image size.

        Columns: `encoding`; `size` in pixels; `mean`, `worst` and `best` accuracy over seeds; `low` and `high`, the
        95 % confidence interval of the mean over seeds (None with one seed); `seeds`, a list; `examples`, the number of
        test examples; `parameters`; `encoding_parameters`; `trained_examples`; `seconds` of training per seed.

        Args:
            pandas: True for a `DataFrame`, False for a list of dicts, None for a `DataFrame` if pandas is installed.

        Raises:
            ImportError: If `pandas` is True and pandas is not installed.
        """
        rows = [
            {"encoding": row["encoding"], "size": found["size"]}
            | {name: found["over_seeds"][key] for name, key in SPREAD.items()}
            | {"seeds": row["seeds"], "examples": found["examples"]}
            | {name: row[name] for name in ("parameters", "encoding_parameters")}
            | {"trained_examples": row["examples"], "seconds": row["seconds"]}
            for row in self.summary["encodings"]
            for found in row["evaluations"]
        ]
        return as_frame(rows, pandas)

    def report(self, file: str | Path) -> Path:
        """Write the report as HTML, with Markdown, JSON and pictures in the same folder, and return the HTML file.

        Args:
            file: The HTML file, for example `"report.html"`.

        Raises:
            ValueError: If the file name does not end with `.html`.
            OSError: If it cannot be written.
        """
        file = Path(file)
        if file.suffix != ".html" or file.name.startswith("."):
            raise InputError(f"file must be a name that ends with .html, for example report.html, got {str(file)!r}")
        prepare_folder(file.parent, "the folder of the report")
        sizes = [self.summary["train_size"], max(self.summary["sizes"])]
        return write_report(self.summary, make_pictures(self.runs, sizes), file.parent, file.stem)

    def __repr__(self) -> str:
        """Return the result table and the headline of the report."""
        content = result_table(self.summary)
        return "\n".join(
            [*text_table(content.header, content.texts), *content.notes, "", headline(self.summary)],
        )
