"""The notebooks of the documentation run from top to bottom, and are committed with what they show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
LARGEST = 200_000  # bytes

pytestmark = pytest.mark.skipif(not NOTEBOOKS, reason="the notebooks are not beside the tests")


def code_cells(notebook: Path) -> list[dict]:
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


def texts(output: dict) -> str:
    """Return what an output says, without pictures."""
    shown = [value for kind, value in output.get("data", {}).items() if kind.startswith("text/")]
    return "".join(map("".join, [*shown, output.get("text", "")]))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_outputs_are_committed(notebook):
    assert notebook.stat().st_size < LARGEST
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)], "run all cells, from the top"
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    for output in outputs:
        assert output["output_type"] != "error"
        assert output.get("name") != "stderr"
        assert not re.search(r"/(home|tmp|work|Users|root)/|[Ww]arning", texts(output)), texts(output)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_links_lead_somewhere(notebook):
    for target in re.findall(r"\]\(([^)#]+)", notebook.read_text()):
        assert (notebook.parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's packages
def test_it_runs(notebook, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    content = nbformat.read(notebook, as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(content, timeout=900, startup_timeout=300, resources=place).execute()
    outputs = [output for cell in content.cells for output in cell.get("outputs", ())]
    complaints = "".join(output.text for output in outputs if output.get("name") == "stderr")
    assert not complaints, f"{notebook.name} writes to stderr: {complaints}"
