"""Configuration of the documentation site: `make docs` builds it into `docs/_build/html`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from liere.version import __version__  # noqa: E402

project = "liere"
author = "The liere developers"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "tools.docs_site",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]

# Pages: Markdown with links to headings of three levels; notebooks are shown as committed.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_update_mathjax = False
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # no scripts from elsewhere
html_math_renderer = "mathml"  # by tools.docs_site: formulas need no script either

# Docstrings: single backticks are code, as in Markdown.
default_role = "code"
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
nitpick_ignore_regex = [
    (
        "py:.*",
        r"liere\..*\.(Drawing|Entry|Executor|GivenDataset|Model|Plan|RunConfig|StoredData|Table)",
    ),  # parts of results that are not for users
    ("py:.*", r"(?!liere\b).*"),  # names of torch and of the standard library: their pages are elsewhere
]

html_theme = "furo"
html_title = f"liere {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
