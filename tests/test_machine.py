from __future__ import annotations

import torch

import liere
from liere.machine import available_cores, machine, versions


def test_the_machine_is_described():
    found = machine()
    assert found["cpu"]
    assert found["cores"] >= available_cores() >= 1
    assert found["threads"] == torch.get_num_threads()


def test_versions_are_those_installed_and_none_of_what_is_not():
    found = versions(["torch", "no-such-package"])
    assert found["no-such-package"] is None
    assert found["torch"] == torch.__version__.partition("+")[0] or found["torch"] == torch.__version__
    assert versions()["liere"] == liere.__version__
