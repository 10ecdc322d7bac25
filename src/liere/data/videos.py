"""`data.name: videos`, your own videos in one folder per class, with or without folders for splits."""

from __future__ import annotations

from typing import ClassVar, Literal

from liere.data.decoded_section import ClipSection
from liere.data.folder_section import ClassFolderSection
from liere.data.section import OwnFileSection

__all__ = ["VideosData"]


class VideosData(OwnFileSection, ClassFolderSection, ClipSection):
    """Your own videos."""

    may_lack_splits: ClassVar[bool] = True

    name: Literal["videos"] = "videos"
