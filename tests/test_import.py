from __future__ import annotations

import subprocess
import sys


def test_importing_liere_imports_torch_alone():
    """Extras are imported where they are used: with all of them absent, `import liere` works."""
    extras = [
        "lightning",
        "torchvision",
        "timm",
        "matplotlib",
        "scipy",
        "safetensors",
        "av",
        "jsonargparse",
        "numpy",
    ]
    block = "".join(f"sys.modules[{name!r}] = None\n" for name in [*extras, "jaxtyping", "beartype"])
    code = (
        f"import sys\nimport warnings\nwarnings.simplefilter('ignore')\n{block}import liere\nprint(liere.LieRE(2, 8))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("LieRE(ndim=2, head_dim=8")


def test_importing_liere_loads_no_extra_by_itself():
    code = "import sys, torch; before = set(sys.modules); import liere; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    of_torch = {"torch", "sympy", "mpmath", "triton"}  # some builds of torch load what they require late
    third_party = loaded - set(sys.stdlib_module_names) - {"liere", "liere_command"} - of_torch
    assert not third_party
