"""`data.name: images`, your own images in one folder per class, with or without folders for splits."""

from __future__ import annotations

from typing import ClassVar, Literal

from liere.data.decoded_section import ImageFileSection
from liere.data.folder_section import ClassFolderSection
from liere.data.section import OwnFileSection

__all__ = ["ImagesData"]


class ImagesData(OwnFileSection, ClassFolderSection, ImageFileSection):
    """Your own images."""

    may_lack_splits: ClassVar[bool] = True

    name: Literal["images"] = "images"
