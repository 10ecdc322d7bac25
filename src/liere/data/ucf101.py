"""`data.name: ucf101`, videos of 101 human actions with the official training and test lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from liere.data.decoded_section import ClipSection

if TYPE_CHECKING:
    from liere.data.reading.file_table import FileTable

__all__ = ["Ucf101Data"]


class Ucf101Data(ClipSection):
    """UCF101."""

    known_classes: ClassVar[int | None] = 101

    name: Literal["ucf101"] = "ucf101"
    fold: Literal[1, 2, 3] = 1
    """which of the three official training and test splits"""

    def is_there(self) -> bool:
        """Return whether the official list of classes exists."""
        from liere.data.reading.ucf101_lists import LISTS

        return (self.path / LISTS).is_dir()

    def read_classes(self) -> tuple[str, ...]:
        """Return the names of the classes, in the order of the official list."""
        from liere.data.reading.ucf101_lists import read_classes

        return read_classes(self.path)

    def list_files(self, split: str, classes: tuple[str, ...]) -> FileTable:
        """Return the videos of a split."""
        from liere.data.reading.ucf101_lists import list_videos

        return list_videos(self.path, "train" if self.is_made_of_training(split) else "test", self.fold)
