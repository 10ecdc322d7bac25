"""`data.name: imagenet`, the 1,000 classes of ImageNet: `root/train/<class>/<file>` and `root/val/<class>/<file>`."""

from __future__ import annotations

from typing import ClassVar, Literal

from liere.data.decoded_section import ImageFileSection
from liere.data.folder_section import ClassFolderSection

__all__ = ["ImageNetData"]


class ImageNetData(ClassFolderSection, ImageFileSection):
    """ImageNet or a part of it, with one class per folder."""

    known_classes: ClassVar[int | None] = 1000

    name: Literal["imagenet"] = "imagenet"
