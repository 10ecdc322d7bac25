"""The reference pages have every command, field and public name, and the extension shows them."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

pytest.importorskip("tests.training.requirements")
import liere
from liere import data, toolkit
from liere.cli import COMMANDS
from liere.runs.config import config_fields
from tests.docs.pages import DOCS, ROOT

if not (DOCS / "conf.py").exists():
    pytest.skip("the site is not beside the tests", allow_module_level=True)

from tools.docs_site.command_options import command_parsers, option_table, usage
from tools.docs_site.config_table import config_sections, config_table, type_text
from tools.docs_site.signatures import tidy


def test_the_page_of_commands_has_all_of_them():
    page = (DOCS / "reference" / "commands.md").read_text()
    parsers = command_parsers()
    assert set(parsers) >= {*COMMANDS, "data preview"}
    assert re.findall(r"^```{command} (.+)$", page, flags=re.MULTILINE) == list(parsers)
    assert re.findall(r"^###? `liere (.+)`$", page, flags=re.MULTILINE) == list(parsers)


@pytest.mark.parametrize("name", command_parsers())
def test_every_option_has_a_row_and_a_meaning(name):
    parser = command_parsers()[name]
    rows = dict(option_table(parser).texts)
    shown = " ".join(rows)
    for action in parser._actions:
        for option in action.option_strings:
            is_field = action.dest.startswith("field:")
            assert option in shown or is_field or option in ("-h", "--help"), option
    assert all(rows.values())
    assert usage(parser).startswith(f"liere {name}")


def test_fields_of_a_configuration_are_one_row():
    rows = dict(option_table(command_parsers()["train"]).texts)
    assert "--SECTION.FIELD X" in "".join(rows)
    assert not any("--model.dim X" in name for name in rows)
    assert "--model.dim" not in usage(command_parsers()["train"])


def test_the_page_of_the_configuration_has_all_fields():
    page = (DOCS / "reference" / "configuration.md").read_text()
    sections = [section or "top" for section in config_sections()]
    assert re.findall(r"^```{config-fields} (\w+)$", page, flags=re.MULTILINE) == sections
    names = [f"{section}.{row[0].strip('`')}" for section in sections for row in config_table(section).texts]
    assert names == [name if "." in name else f"top.{name}" for name, _ in config_fields()]
    with pytest.raises(ValueError, match="no section 'modle'"):
        config_table("modle")


def test_types_defaults_and_meanings():
    rows = {row[0]: row[1:] for row in config_table("model").texts}
    meaning = dict(config_fields())["model.dim"].description
    assert rows["`dim`"] == ["integer, at least 1 or null", "`null`", meaning]
    assert rows["`pool`"][:2] == ["`cls` or `mean`", "`cls`"]
    assert rows["`qk_norm`"][:2] == ["true or false", "`false`"]
    assert type_text(tuple[int, ...] | None) == "list of: integer or null"


@pytest.mark.parametrize("module", ["liere", "liere.toolkit", "liere.data"])
def test_the_api_has_every_public_name(module):
    text = "\n".join(page.read_text() for page in (DOCS / "reference" / "api").glob("*.md"))
    for name in {"liere": liere, "liere.toolkit": toolkit, "liere.data": data}[module].__all__:
        shown = re.search(rf"auto(function|class|exception):: ({re.escape(module)}\.)?{name}$", text, re.MULTILINE)
        assert shown or name in ("__version__", "data"), f"document {module}.{name} in docs/reference/api"


def test_shapes_stay_in_signatures():
    assert (
        tidy("(x: ~typing.Annotated[~torch.Tensor, 'a b']) -> Annotated[Tensor, 'c']")
        == "(x: Tensor['a b']) -> Tensor['c']"
    )


PAGE = """# Test

{result}`campaign.json cases ,` cases.

```{result-table} spatial
```

```{claims} main
```

```{made-by} bench_step.json
:cost: much
```

```{command} flops
```

```{config-fields} training
```

$e^{x}$
"""


@pytest.mark.slow
def test_directives_show_what_they_should(tmp_path):
    pytest.importorskip("myst_nb")
    (tmp_path / "index.md").write_text(PAGE)
    (tmp_path / "conf.py").write_text(
        'extensions = ["myst_nb", "tools.docs_site"]\nmyst_enable_extensions = ["dollarmath"]\n'
        'html_math_renderer = "mathml"\n'
        'suppress_warnings = ["myst.xref_missing"]\nhtml_theme = "basic"\n'
    )
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(tmp_path), str(tmp_path / "html")]
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(command, env=path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "html" / "index.html").read_text()
    cases = json.loads((ROOT / "results" / "campaign.json").read_text())["cases"]
    for text in (f"{cases:,} cases", "LieRE (dense)", "(88.4-100.0)", "not decided", "bench_step.json", "--batch-size"):
        assert text in html, text
    assert '<td class="number">' in html
    assert "<math" in html
    assert "mathjax.js" not in html.lower()
    assert "cdn." not in html
