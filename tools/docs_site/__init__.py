"""The Sphinx extension of the documentation site: tables and numbers come from `results/`, references from the code.

In a page:

    ```{result-table} spatial
    ```
    ```{claims} main
    ```
    ```{made-by} spatial.json
    ```
    {result}`demo_robustness.json rows[encoding=liere,size=372].worst %`
    ```{command} train
    ```
    ```{config-fields} model
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["setup"]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, the role and the renderer of formulas."""
    from tools.docs_site import directives, mathml, reference, signatures

    for module in (directives, reference, mathml, signatures):
        module.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
