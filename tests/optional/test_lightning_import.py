from __future__ import annotations

import pytest

from liere.optional import lightning_import


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModuleNotFoundError("no", name="lightning"), r"^Lightning is not installed: pip install 'liere\[train\]'"),
        (ModuleNotFoundError("no", name="matplotlib.x"), r"^matplotlib is not installed: pip install 'liere\[plot\]'"),
        (ImportError("it is broken"), r"^training needs Lightning \(it is broken\): pip install 'liere\[train\]'"),
    ],
)
def test_the_package_that_is_missing_is_named(monkeypatch, error, message):
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(lightning_import, "import_with_torchvision", fail)
    with pytest.raises(ImportError, match=message):
        lightning_import.import_lightning()
