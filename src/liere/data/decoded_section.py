"""Fields and loading shared by data sets of image and video files, which are decoded on demand."""

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
    """A data set with one example per file.

    A subclass lists the classes and the files; this class turns them into a data set.

    Attributes:
        known_classes: Number of classes of a well-known data set, so that a model can be created without its files.
        suffixes: Lowercase suffixes of the files.
    """

    usual_size: ClassVar[int | None] = USUAL_SIZE
    known_classes: ClassVar[int | None] = None
    suffixes: ClassVar[tuple[str, ...]] = ()

    flip: Switch = False
    """whether to mirror each training image with probability 1/2"""
    rand_augment: tuple[Few, FewOrZero] | None = None
    """RandAugment operations per image and their magnitude (0 to 30), for example [2, 9]; null: none"""
    min_area: Share = 0.08
    """minimum area of a random crop, as a fraction of the image; 1: the whole image"""
    max_unreadable: CountOrZero = 10
    """maximum number of files that are skipped with a warning because they cannot be decoded"""

    @abstractmethod
    def read_classes(self) -> tuple[str, ...]:
        """Return the names of the classes in the order of their labels.

        Raises:
            FileNotFoundError: If the data set does not exist.
            ValueError: If it is damaged.
        """

    @abstractmethod
    def list_files(self, split: str, classes: tuple[str, ...]) -> FileTable:
        """Return all files of a split."""

    @abstractmethod
    def decode(self, files: FileTable, facts: DataFacts) -> DecodedFiles:
        """Return the examples in these files."""

    @abstractmethod
    def image_size(self, side: int) -> tuple[int, ...]:
        """Return the length of each axis of an example."""

    def is_there(self) -> bool:
        """Return whether the class names can be read from files; only asked if `known_classes` is set."""
        return True

    def find_facts(self) -> DataFacts:
        """Return the properties that a model needs; classes of a well-known but missing data set are numbered."""
        if self.known_classes is not None and not self.is_there():
            return self._facts(tuple(map(str, range(self.known_classes))), self.size)
        return self._facts(self._checked_classes(), self.size)

    def load_split(self, split: str, size: int | None, length: int | None) -> DecodedFiles:
        """Return the examples of a split."""
        facts = self._facts(self._checked_classes(), size)
        files = self.list_files(split, facts.classes)
        return self.decode(files.select(self.choose(split, files.labels, length)), facts)

    def indifferent_fields(self) -> set[str]:
        """Return the names of the fields that do not affect what is learned."""
        return super().indifferent_fields() | {"max_unreadable"}

    def _facts(self, classes: tuple[str, ...], size: int | None) -> DataFacts:
        return DataFacts(classes, 3, self.image_size(size or USUAL_SIZE), IMAGENET_MEAN, IMAGENET_STD)

    def _checked_classes(self) -> tuple[str, ...]:
        classes = self.read_classes()
        if len(classes) < 2:
            named = f"only one class, {classes[0]!r}" if classes else "no classes"
            raise InputError(f"{self.path} has {named}: sort its files into two or more classes")
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
        """Return the height and width of an image."""
        return side, side

    def decode(self, files: FileTable, facts: DataFacts) -> DecodedFiles:
        """Return the images in these files."""
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
    """A data set of video files, from which a model sees clips."""

    suffixes: ClassVar[tuple[str, ...]] = (".avi", ".mp4", ".mkv", ".webm", ".mov")

    frames: Few = 8
    """frames per clip"""
    frame_stride: Few = 4
    """step from one frame of a clip to the next, in video frames"""
    test_clips: Few = 5
    """clips per video whose predictions are averaged in tests"""

    @property
    def test_views(self) -> int:
        """Number of clips per example in tests."""
        return self.test_clips

    def image_size(self, side: int) -> tuple[int, ...]:
        """Return the frames, height and width of a clip."""
        return self.frames, side, side

    def decode(self, files: FileTable, facts: DataFacts) -> DecodedFiles:
        """Return the clips in these files."""
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
