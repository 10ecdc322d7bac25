"""Frames of a video by number, robust to wrong headers and truncated files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from PIL import Image

from liere.data.reading.decoded_files import UnreadableError
from liere.files.reading import open_regular, stored_bytes
from liere.files.writing import is_system_error

__all__ = ["import_av", "read_frames"]

MAX_PIXELS = 40_000_000
"""Largest frame (8K has 33 million pixels), for FFmpeg: a small file can claim any size."""
MAX_FRAME_BYTES = 50_000_000
"""Largest decoded frame (8K with 8 bits and halved colors just fits): a decoder can keep more than 30 of them."""
DECODER_OPTIONS = {"max_pixels": str(MAX_PIXELS)}  # a frame may be larger than its header says
OPEN_OPTIONS = {
    "format_whitelist": "avi,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm",
    "protocol_whitelist": "file",
    **DECODER_OPTIONS,  # frames are decoded to find out their format
}
"""Containers of the known suffixes, whatever the file name; others, such as playlists, open more files."""
CONTAINERS = frozenset(
    b"clip edts free hoov mdia meta minf moof moov mvex schi sinf stbl tapt traf trak tref udta wave wide".split()
)
"""Boxes of an MP4 file that contain other boxes."""
EDITS = b"elst"
COUNTS = {b"stsz": 8, b"stz2": 8, b"trun": 4, EDITS: 4}
"""Boxes of an MP4 file that contain a number of samples or of edits, with the offset of that number."""
FEW_EDITS, MOST_REPEATED = 4, 50_000_000
"""Each edit may play all samples again: with more than a few edits, this many samples in all edits are allowed."""
MOST_BOXES = 1_000_000
LARGE, LEAST_STORED = 10_000_000, 0.1
"""Files of more bytes than this are decoded only if this fraction of them is on disk."""
SAMPLE_BYTES, SOUND_BYTES = 8, 1
"""Least bytes per sample with its entry in a table; samples of uncompressed sound may have one byte and no entry."""
MOST_FRAMES = 1_000_000  # nine hours
SHARE_OF_WHOLE = 0.9
"""A video with at least this fraction of its announced frames counts as complete."""


def import_av() -> Any:
    """Return PyAV.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import av
    except ImportError:
        raise ImportError("videos need PyAV: pip install 'liere[video]'") from None
    return av


def read_frames(
    path: Path,
    choose: Callable[[int], Sequence[int]],
    change: Callable[[Image.Image], Image.Image] = Image.Image.copy,
    *,
    least: int = 1,
) -> list[Image.Image]:
    """Return frames of a video in 8-bit RGB.

    Frames are counted in the file; its header is not trusted. Only what is needed is decoded: from the key frame before
    a wanted frame to the frame itself. If that does not find all of them, the video is decoded from its start, and
    `choose` is called again with the number of frames that could be decoded.

    Args:
        path: The video.
        choose: Function that takes the number of frames (at least 1) and returns the numbers of the wanted frames.
        change: Function applied to each frame as soon as it is decoded, because many large frames do not fit in memory.
        least: Minimum number of frames of a truncated video; a complete video may be shorter.

    Raises:
        UnreadableError: If the file is not a video, has no frames, or is truncated and has too few.
    """
    content = _scan(path)
    _check(content.count, content.announced, least)
    wanted = choose(content.count)
    found = _decode(path, content, set(wanted), change)
    if len(found) < len(set(wanted)):
        count = sum(1 for _ in _frames(path))
        _check(count, max(content.announced, content.count), least)
        wanted = choose(count)
        keep = set(wanted)
        found = {number: change(frame.to_image()) for number, frame in enumerate(_frames(path)) if number in keep}
    return [found[number] for number in wanted]


@dataclass(frozen=True)
class _Content:
    """The packets of a video.

    Attributes:
        times: Time of the frame of each packet, in file order; None if the file does not give it.
        keys: Which packets can be decoded without earlier ones.
        announced: Number of frames according to the header; 0 if it does not give one.
    """

    times: list[int | None]
    keys: list[bool]
    announced: int

    @property
    def count(self) -> int:
        return len(self.times)

    def order(self) -> dict[int, int] | None:
        """Return the frame number for each time; None if times are missing or not unique."""
        times = sorted(time for time in self.times if time is not None)
        return {time: number for number, time in enumerate(times)} if len(set(times)) == self.count else None


def _check(count: int, announced: int, least: int) -> None:
    if count == 0:
        raise UnreadableError("it has no frame that can be decoded")
    if count < least and count < SHARE_OF_WHOLE * announced:
        raise UnreadableError(f"it ends after {count} of {announced} frames, but a clip needs {least}")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open a video, and turn errors of the decoder into `UnreadableError`."""
    av = import_av()
    try:
        _check_claims(path)
        # Without "file:", a name that starts with a word and a colon would be an address.
        with av.open(f"file:{path}", options=OPEN_OPTIONS) as container:
            if not container.streams.video:
                raise UnreadableError("it has no video stream")
            stream = container.streams.video[0]
            _check_format(stream.codec_context.format)
            stream.codec_context.options = DECODER_OPTIONS
            stream.codec_context.thread_count = 1  # worker processes already use the other cores
            yield container, stream
    except (av.FFmpegError, OSError, ValueError) as error:
        # FFmpeg reports more memory or streams than it allows to a file as a lack of memory.
        if is_system_error(error, with_access=False) and not isinstance(error, av.error.MemoryError):
            raise
        raise UnreadableError(error) from None


def _check_format(frame: Any) -> None:
    """Raise `UnreadableError` if decoded frames are too large; None is a format that FFmpeg does not know either."""
    planes = () if frame is None else frame.components
    size = sum(plane.width * plane.height * -(-plane.bits // 8) for plane in planes)
    if size > MAX_FRAME_BYTES:
        raise UnreadableError(
            f"its frames of {frame.width} x {frame.height} pixels ({frame.name}) take {size:,} bytes, more than "
            f"{MAX_FRAME_BYTES:,}: scale it down"
        )


def _check_claims(path: Path) -> None:
    """Raise `UnreadableError` if a file is mostly holes, or an MP4 file claims or repeats too many samples.

    FFmpeg would read holes, even a terabyte of them, as zeros, and allocate a table of all samples of all edits.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGE and (stored := stored_bytes(file)) < LEAST_STORED * size:
            raise UnreadableError(f"only {stored:,} of its {size:,} bytes are on disk: copy it again")
        claims = list(_claims(file, size))
    samples = [(count, least) for kind, count, least in claims if kind != EDITS]
    claimed = sum(count for count, _ in samples)
    if sum(count * least for count, least in samples) > size:
        raise UnreadableError(f"it claims {claimed:,} samples but has only {size:,} bytes")
    edits = max((count for kind, count, _ in claims if kind == EDITS), default=0)
    if edits > FEW_EDITS and edits * claimed > MOST_REPEATED:
        raise UnreadableError(f"it has {edits:,} edits of {claimed:,} samples: convert it")


def _claims(file: BinaryIO, size: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the boxes of an MP4 file with a number of samples or edits, that number, and the least bytes of a sample.

    Other files have no such boxes.
    """
    parts, least = [(0, size)], SAMPLE_BYTES
    for _ in range(MOST_BOXES):
        if not parts:
            return
        start, end = parts.pop()
        file.seek(start)
        head = file.read(16)
        length, kind, header = int.from_bytes(head[:4], "big"), head[4:8], 8
        if length == 1:
            length, header = int.from_bytes(head[8:], "big"), 16
        stop = min(start + length, end) if length else end
        if stop < start + header:
            continue  # not a valid box
        parts.append((stop, end))
        if kind == b"cmov":
            raise UnreadableError("its header is compressed: convert it")
        if kind in CONTAINERS:
            parts.append((start + header + 4 * (kind == b"meta"), stop))
            least = SAMPLE_BYTES if kind in (b"trak", b"moof") else least
        elif kind == b"hdlr":  # of a track, before its samples
            file.seek(start + header + 8)
            least = SOUND_BYTES if file.read(4) == b"soun" else least
        elif kind in COUNTS:
            file.seek(start + header + COUNTS[kind])
            yield kind, int.from_bytes(file.read(4), "big"), least
    raise UnreadableError(f"it has more than {MOST_BOXES:,} boxes")


def _packets(container: Any, stream: Any) -> Iterator[Any]:
    """Yield complete packets until the file ends or is damaged."""
    av = import_av()
    try:
        for packet in container.demux(stream):
            if packet.size and not packet.is_corrupt:
                yield packet
    except av.FFmpegError:
        return


def _scan(path: Path) -> _Content:
    with _opened(path) as (container, stream):
        found = islice(_packets(container, stream), MOST_FRAMES + 1)
        packets = [(packet.pts, packet.is_keyframe) for packet in found]
        if len(packets) > MOST_FRAMES:
            raise UnreadableError(f"it has more than {MOST_FRAMES:,} frames: cut it into several files")
        return _Content([time for time, _ in packets], [is_key for _, is_key in packets], stream.frames)


def _decode(
    path: Path, content: _Content, wanted: set[int], change: Callable[[Image.Image], Image.Image]
) -> dict[int, Image.Image]:
    """Return the wanted frames by number, as far as they are found without decoding the whole video."""
    order = content.order()
    if order is None:
        return {}
    needed = _needed_packets(content, order, wanted)
    found = {}
    for frame in _frames(path, needed):
        number = order.get(frame.pts)
        if number in wanted:
            found[number] = change(frame.to_image())
    return found


def _needed_packets(content: _Content, order: dict[int, int], wanted: set[int]) -> set[int]:
    """Return the packets to decode: from the last key frame before each wanted frame to the frame itself."""
    numbers = [order[time] for time in content.times if time is not None]
    places = {number: place for place, number in enumerate(numbers)}
    keys = [place for place, is_key in enumerate(content.keys) if is_key]
    needed: set[int] = set()
    for number in wanted:
        start = max((place for place in keys if numbers[place] <= number and place <= places[number]), default=0)
        needed.update(range(start, places[number] + 1))
    return needed


def _frames(path: Path, needed: set[int] | None = None) -> Iterator[Any]:
    """Yield the frames of the needed packets in display order; None for all packets.

    Packets that cannot be decoded are skipped.
    """
    av = import_av()
    with _opened(path) as (container, stream):
        last = None if needed is None else max(needed)
        for place, packet in enumerate(_packets(container, stream)):
            if needed is None or place in needed:
                try:
                    frames = stream.codec_context.decode(packet)
                except av.FFmpegError:
                    continue
                for frame in frames:
                    _check_format(frame.format)  # may differ from that of the first frame
                    yield frame
            if place == last:
                break
        yield from stream.codec_context.decode(None)
