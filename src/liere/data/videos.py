"""`data.name: videos`, videos of one's own in a folder per class, with or without folders for splits."""

from __future__ import annotations

from typing import ClassVar, Literal

from liere.data.decoded_section import ClipSection
from liere.data.folder_section import ClassFolderSection
from liere.data.section import OwnFileSection

__all__ = ["VideosData"]


class VideosData(OwnFileSection, ClassFolderSection, ClipSection):
    """Videos of one's own."""

    may_lack_splits: ClassVar[bool] = True

    name: Literal["videos"] = "videos"
