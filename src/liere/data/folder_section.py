"""Loading shared by data sets with one folder per class: `root/<split>/<class>/<file>`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from liere.data.decoded_section import DecodedSection

if TYPE_CHECKING:
    from liere.data.reading.file_table import FileTable

__all__ = ["ClassFolderSection"]


class ClassFolderSection(DecodedSection):
    """A data set with one folder per class.

    Attributes:
        may_lack_splits: Whether class folders may be in `root` itself; their files are then split by `seed`.
    """

    may_lack_splits: ClassVar[bool] = False

    def is_there(self) -> bool:
        """Return whether the class folders exist."""
        return (self.path / "train").is_dir()

    def read_classes(self) -> tuple[str, ...]:
        """Return the names of the class folders."""
        from liere.data.reading.class_folders import find_classes

        return find_classes(self.path, self.suffixes, may_lack_splits=self.may_lack_splits)

    def list_files(self, split: str, classes: tuple[str, ...]) -> FileTable:
        """Return the files of a split."""
        from liere.data.reading.class_folders import list_split

        source = "train" if self.is_made_of_training(split) else split
        return list_split(self.path, source, classes, self.suffixes, seed=self.seed)
