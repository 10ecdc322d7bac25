"""Fields and loading that data sets of image and video files share: files are decoded when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from liere.config_fields import CountOrZero, Few, FewOrZero, Share, Switch
from liere.data.facts import DataFacts
from liere.data.section import FileSection
from liere.errors import InputError

if TYPE_CHECKING:
    from liere.data.reading.decoded_files import DecodedFiles
    from liere.data.reading.file_table import FileTable

__all__ = ["ClipSection", "DecodedSection", "ImageFileSection"]

USUAL_SIZE = 224
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class DecodedSection(FileSection):
    """A data set of files with one example each.

    A subclass gives the names of its classes and its files; this class makes a data set of them.

    Attributes:
        known_classes: How many classes a well-known data set has, so that a model can be made without its files.
        suffixes: How the names of files end, in small letters.
    """

    usual_size: ClassVar[int | None] = USUAL_SIZE
    known_classes: ClassVar[int | None] = None
    suffixes: ClassVar[tuple[str, ...]] = ()

    flip: Switch = False
    """whether to mirror every other training image"""
    rand_augment: tuple[Few, FewOrZero] | None = None
    """RandAugment with so many operations of this magnitude (of 30), like [2, 9]; null: none"""
    min_area: Share = 0.08
    """least share of a decoded image that a random crop takes; 1: the whole"""
    max_unreadable: CountOrZero = 10
    """files that may be skipped, each with a warning, because they cannot be decoded"""

    @abstractmethod
    def read_classes(self) -> tuple[str, ...]:
        """Return the names of the classes, in order of their labels.

        Raises:
            FileNotFoundError: If the data set is not there.
            ValueError: If it is damaged.
        """

    @abstractmethod
    def list_files(self, split: str, classes: tuple[str, ...]) -> FileTable:
        """Return all files that a split is made of."""

    @abstractmethod
    def decode(self, files: FileTable, facts: DataFacts) -> DecodedFiles:
        """Return the examples in files."""

    @abstractmethod
    def image_size(self, side: int) -> tuple[int, ...]:
        """Return the length of each axis of an example."""

    def is_there(self) -> bool:
        """Return whether files tell the classes of a data set whose number of classes is known."""
        return True

    def find_facts(self) -> DataFacts:
        """Return what a model has to know of it; the classes of a well-known data set that is not there are numbers."""
        if self.known_classes is not None and not self.is_there():
            return self._facts(tuple(map(str, range(self.known_classes))), self.size)
        return self._facts(self._checked_classes(), self.size)

    def load_split(self, split: str, size: int | None, length: int | None) -> DecodedFiles:
        """Return a split."""
        facts = self._facts(self._checked_classes(), size)
        files = self.list_files(split, facts.classes)
        return self.decode(files.select(self.choose(split, files.labels, length)), facts)

    def indifferent_fields(self) -> set[str]:
        """Return the fields that do not decide what is learned."""
        return super().indifferent_fields() | {"max_unreadable"}

    def _facts(self, classes: tuple[str, ...], size: int | None) -> DataFacts:
        return DataFacts(classes, 3, self.image_size(size or USUAL_SIZE), IMAGENET_MEAN, IMAGENET_STD)

    def _checked_classes(self) -> tuple[str, ...]:
        classes = self.read_classes()
        if len(classes) < 2:
            named = f"a single class, {classes[0]!r}" if classes else "no classes"
            raise InputError(f"{self.path} has {named}: there is nothing to learn; sort its files into two or more")
        return classes


class ImageFileSection(DecodedSection):
    """A data set of image files."""

    suffixes: ClassVar[tuple[str, ...]] = (
        ".jpg",
        ".jpeg",
        ".png",
        ".ppm",
        ".bmp",
        ".pgm",
        ".tif",
        ".tiff",
        ".webp",
    )

    def image_size(self, side: int) -> tuple[int, ...]:
        """Return height and width."""
        return side, side

    def decode(self, files: FileTable, facts: DataFacts) -> DecodedFiles:
        """Return the images in files."""
        from liere.data.reading.image_files import ImageFiles

        return ImageFiles(
            files,
            facts,
            min_area=self.min_area,
            flip=self.flip,
            rand_augment=self.rand_augment,
            max_unreadable=self.max_unreadable,
        )


class ClipSection(DecodedSection):
    """A data set of video files, of which a model sees clips."""

    suffixes: ClassVar[tuple[str, ...]] = (".avi", ".mp4", ".mkv", ".webm", ".mov")

    frames: Few = 8
    """frames of a clip"""
    frame_stride: Few = 4
    """from one frame of a clip to the next"""
    test_clips: Few = 5
    """clips of a video that a test averages"""

    @property
    def test_views(self) -> int:
        """How many clips of an example a test looks at."""
        return self.test_clips

    def image_size(self, side: int) -> tuple[int, ...]:
        """Return frames, height and width."""
        return self.frames, side, side

    def decode(self, files: FileTable, facts: DataFacts) -> DecodedFiles:
        """Return the clips in files."""
        from liere.data.reading.video_files import VideoFiles

        return VideoFiles(
            files,
            facts,
            frame_stride=self.frame_stride,
            test_clips=self.test_clips,
            min_area=self.min_area,
            flip=self.flip,
            rand_augment=self.rand_augment,
            max_unreadable=self.max_unreadable,
        )
