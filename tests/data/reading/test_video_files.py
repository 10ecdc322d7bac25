from __future__ import annotations

import os
import pickle
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("tests.training.requirements")
pytest.importorskip("av")
import av
import numpy as np
from PIL import Image

from liere.data.batches import ExampleOrder, TrainingBatches
from liere.data.loader import make_loader
from liere.data.reading import video_frames
from liere.data.reading.decoded_files import UnreadableError
from liere.data.reading.video_files import spread_clips
from liere.data.reading.video_frames import read_frames
from tests.data.file_archives import gray_frames, middle_by_torchvision, shown_numbers, truncate, write_video
from tests.data.sections import open_data

FORMATS = {
    "still.avi": {"codec": "mjpeg"},
    "plain.avi": {"codec": "mpeg4"},
    "between.avi": {"codec": "mpeg4", "b_frames": 2},
    "one_key.avi": {"codec": "mpeg4", "key_frames": 300},
    "between.mp4": {"codec": "libx264", "b_frames": 2},
    "between.mkv": {"codec": "libx264", "b_frames": 3},
    "plain.webm": {"codec": "libvpx-vp9"},
    "between.mov": {"codec": "mpeg4", "b_frames": 1},
}
COUNT = 30


def maps(count: int = COUNT) -> list[np.ndarray]:
    """Return frames whose red is the column, green the row, and blue the number of the frame."""
    rows, columns = np.mgrid[:96, :128]
    return [
        np.stack([2 * columns, 2 * rows, np.full_like(rows, 8 * number)], axis=-1).astype(np.uint8)
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """A folder of videos in many formats, with gray frames."""
    folder = tmp_path_factory.mktemp("formats")
    for name, options in FORMATS.items():
        if options["codec"] in av.codecs_available:
            write_video(folder / name, gray_frames(COUNT, (64, 48)), **options)
    return folder


@pytest.fixture
def root(tmp_path, videos):
    """A data set of two classes."""
    for split in ("train", "val"):
        for name in ("a", "b"):
            (tmp_path / split / name).mkdir(parents=True)
            (tmp_path / split / name / ".DS_Store").write_bytes(b"?")
            shutil.copy(videos / "still.avi", tmp_path / split / name / "0.avi")
            shutil.copy(videos / "between.mov", tmp_path / split / name / "1.MOV")
    return tmp_path


def load(root, split="train", *, size=32, length=None, **fields):
    return open_data("videos", root=str(root), **fields).load(split, size=size, length=length)


def decoded(path) -> list[Image.Image]:
    """All frames, one after the other."""
    with av.open(str(path)) as container:
        return [frame.to_image() for frame in container.decode(video=0)]


def same(one: Image.Image, other: Image.Image) -> bool:
    return np.array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("name", FORMATS)
def test_any_frames_are_those_of_the_whole_video(videos, name):
    if not (videos / name).exists():
        pytest.skip(f"PyAV has no {FORMATS[name]['codec']} here")
    frames = decoded(videos / name)
    assert len(frames) == COUNT

    @settings(max_examples=15)
    @given(st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=6))
    def check(numbers):
        counts = []
        found = read_frames(videos / name, lambda count: counts.append(count) or numbers)
        assert counts == [COUNT]
        assert all(same(frame, frames[number]) for frame, number in zip(found, numbers, strict=True))

    check()


def test_only_what_is_needed_is_decoded(videos, monkeypatch):
    fed = []
    whole = video_frames._needed_packets
    monkeypatch.setattr(
        video_frames, "_needed_packets", lambda *arguments: fed.append(whole(*arguments)) or whole(*arguments)
    )
    read_frames(videos / "still.avi", lambda count: [3, 20])
    assert fed == [{3, 20}]
    read_frames(videos / "one_key.avi", lambda count: [3, 5])
    assert max(fed[1]) == 5


def test_times_that_do_not_tell_frames_apart(videos, monkeypatch):
    monkeypatch.setattr(video_frames._Content, "order", lambda content: None)
    frames = decoded(videos / "between.mp4")
    found = read_frames(videos / "between.mp4", lambda count: [29, 2])
    assert same(found[0], frames[29])
    assert same(found[1], frames[2])


def test_a_packet_that_cannot_be_decoded(videos, tmp_path):
    content = bytearray((videos / "still.avi").read_bytes())
    starts = [place for place in range(len(content)) if content[place : place + 3] == b"\xff\xd8\xff"]
    size = starts[8] - 8 - starts[7]  # each is preceded by eight bytes with its length
    content[starts[7] : starts[7] + size] = bytes(size)
    (tmp_path / "hole.avi").write_bytes(content)
    counts = []
    found = read_frames(tmp_path / "hole.avi", lambda count: counts.append(count) or [6, 7, count - 1])
    frames = decoded(videos / "still.avi")
    assert counts == [COUNT, COUNT - 1]
    assert same(found[0], frames[6])
    assert same(found[1], frames[8])
    assert same(found[2], frames[-1])


def test_videos_that_are_cut_off(videos, tmp_path):
    path = tmp_path / "half.avi"
    shutil.copy(videos / "still.avi", path)
    truncate(path)
    counts = []
    found = read_frames(path, lambda count: counts.append(count) or range(count))
    assert 10 <= counts[0] < 16
    frames = decoded(videos / "still.avi")
    assert all(same(one, other) for one, other in zip(found, frames[: counts[0]], strict=True))
    read_frames(path, lambda count: [0], least=counts[0])
    with pytest.raises(UnreadableError, match=f"ends after {counts[0]} of 30 frames, but a clip needs {counts[0] + 1}"):
        read_frames(path, lambda count: [0], least=counts[0] + 1)


@pytest.mark.parametrize("content", [b"", b"not a video at all", 100, 500])
def test_files_that_are_no_videos(videos, tmp_path, content):
    content = (videos / "plain.avi").read_bytes()[:content] if isinstance(content, int) else content
    (tmp_path / "no.avi").write_bytes(content)
    with pytest.raises(UnreadableError, match=r"Invalid data|no video stream|no frame"):
        read_frames(tmp_path / "no.avi", lambda count: [0])


def test_a_file_without_pictures(tmp_path):
    with av.open(str(tmp_path / "sound.avi"), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(UnreadableError, match="no video stream"):
        read_frames(tmp_path / "sound.avi", lambda count: [0])


def test_facts_and_shapes(root):
    config = open_data("videos", root=str(root), size=32, frames=4)
    assert config.facts.classes == ("a", "b")
    assert config.facts.image_size == (4, 32, 32)
    assert config.facts.mean == (0.485, 0.456, 0.406)
    data = config.load("train")
    assert len(data) == 4
    assert data.load([0, 3], torch.tensor([1, 2])).images.shape == (2, 3, 4, 32, 32)
    images, labels = config.load("val").batch([0, 3])
    assert images.shape == (2, 5, 3, 4, 32, 32)
    assert images.is_contiguous()
    assert labels.tolist() == [0, 1]
    one_clip = load(root, "test", test_clips=1, frames=4, size=48)
    assert one_clip.facts.image_size == (4, 48, 48)
    assert one_clip.batch([0])[0].shape == (1, 3, 4, 48, 48)


def test_training_clips_begin_anywhere(root):
    data = load(root, frames=4, frame_stride=5)
    images = data.load([0, 1] * 50, torch.arange(100)).images
    clips = [shown_numbers(clip) for clip in images]
    assert all(clip == list(range(clip[0], clip[0] + 16, 5)) for clip in clips)
    assert {clip[0] for clip in clips} == set(range(15))


def test_test_clips_are_evenly_spread(root):
    (clips,) = load(root, "test", frames=4, frame_stride=2, test_clips=4).batch([1])[0]
    assert [shown_numbers(clip) for clip in clips] == [
        [0, 2, 4, 6],
        [7, 9, 11, 13],
        [15, 17, 19, 21],
        [23, 25, 27, 29],
    ]
    (clip,) = load(root, "test", frames=4, frame_stride=2, test_clips=1).batch([1])[0]
    assert shown_numbers(clip) == [11, 13, 15, 17]


def test_pipes_playlists_and_giant_frames_are_refused(videos, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.mp4")
    shutil.copy(videos / "plain.avi", tmp_path / "other.avi")
    (tmp_path / "list.mp4").write_text("ffconcat version 1.0\nfile other.avi\n")
    (tmp_path / "playlist.avi").write_text("#EXTM3U\n#EXTINF:10,\nother.avi\n#EXT-X-ENDLIST\n")
    for name in ("pipe.mp4", "list.mp4", "playlist.avi"):
        with pytest.raises(UnreadableError):
            read_frames(tmp_path / name, lambda count: [0])
    monkeypatch.setattr(video_frames, "MAX_FRAME_BYTES", 3_000)
    with pytest.raises(
        UnreadableError, match=r"its frames of 64 x 48 pixels \(\w+\) take [\d,]+ bytes, more than 3,000"
    ):
        read_frames(tmp_path / "other.avi", lambda count: [0])


def test_frames_larger_than_their_header_are_not_decoded_to_find_out_their_format(tmp_path):
    Image.new("1", (8_000, 8_000)).save(tmp_path / "large.png")
    with av.open(str(tmp_path / "0.mov"), "w") as container:
        stream = container.add_stream("png", rate=25, width=32, height=32, pix_fmt="rgb24")
        packet = av.Packet((tmp_path / "large.png").read_bytes())
        packet.stream, packet.pts, packet.dts = stream, 0, 0
        container.mux(packet)
    with pytest.raises(UnreadableError, match="it has no frame that can be decoded"):
        read_frames(tmp_path / "0.mov", range)


@pytest.mark.parametrize(
    ("name", "side", "is_read"),
    [("yuv420p", 5_760, True), ("yuv420p10le", 5_760, False), ("yuv444p", 4_000, True), ("yuv444p10le", 4_000, False)],
)
def test_frames_are_limited_by_the_memory_that_they_take_when_they_are_decoded(name, side, is_read):
    with nullcontext() if is_read else pytest.raises(UnreadableError, match=rf"\({name}\).* more than 50,000,000"):
        video_frames._check_format(av.VideoFormat(name, side, side))


def test_frames_that_become_too_large_are_refused(tmp_path, monkeypatch):
    with av.open(str(tmp_path / "0.mov"), "w") as container:
        stream = container.add_stream("png", rate=25, width=32, height=32, pix_fmt="rgb24")
        for number, side in enumerate([32, 32, 64]):
            Image.new("RGB", (side, side)).save(tmp_path / "frame.png")
            packet = av.Packet((tmp_path / "frame.png").read_bytes())
            packet.stream, packet.pts, packet.dts = stream, 512 * number, 512 * number
            container.mux(packet)
    assert len(read_frames(tmp_path / "0.mov", range)) == 3
    monkeypatch.setattr(video_frames, "MAX_FRAME_BYTES", 32 * 32 * 3)
    with pytest.raises(UnreadableError, match=r"frames of 64 x 64 pixels \(rgb24\) take 12,288 bytes"):
        read_frames(tmp_path / "0.mov", range)


@pytest.mark.parametrize("name", ["12:30.mp4", "http:x.mp4", "file:x.mp4", "a%20b?c#d.mp4"])
def test_names_are_not_addresses(videos, tmp_path, monkeypatch, name):
    shutil.copy(videos / "between.mp4", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert len(read_frames(Path(name), range)) == COUNT


def test_more_streams_than_ffmpeg_allows_are_not_a_lack_of_memory(tmp_path):
    boxes = b"\0\0\0\x08trak" * 1_001
    (tmp_path / "0.mp4").write_bytes((8 + len(boxes)).to_bytes(4, "big") + b"moov" + boxes)
    with pytest.raises(UnreadableError):
        read_frames(tmp_path / "0.mp4", range)


@pytest.mark.parametrize("name", ["plain.avi", "plain.mp4"])
def test_a_file_of_holes_is_not_searched(videos, tmp_path, name):
    (tmp_path / name).write_bytes((videos / "plain.avi").read_bytes())
    for size in (10**8, 10**12):
        os.truncate(tmp_path / name, size)
        with pytest.raises(UnreadableError, match=rf"only [\d,]+ of its {size:,} bytes are on disk"):
            read_frames(tmp_path / name, lambda count: [0])


def test_large_frames_are_not_kept(videos):
    kept = read_frames(videos / "plain.avi", range, lambda frame: frame.resize((2, 2)))
    assert [frame.size for frame in kept] == [(2, 2)] * COUNT


@given(st.integers(1, 500), st.integers(1, 100), st.integers(1, 10))
def test_spread_clips_lie_in_the_video(count, span, clips):
    starts = spread_clips(count, span, clips)
    assert len(starts) == clips
    assert starts == sorted(starts)
    assert starts[0] >= 0
    assert starts[-1] <= max(count - span, 0)
    if clips > 1:
        assert (starts[0], starts[-1]) == (0, max(count - span, 0))
        gaps = np.diff(starts)
        assert gaps.max() - gaps.min() <= 1


def test_short_videos_repeat_their_last_frame(root):
    for path in root.glob("*/a/0.avi"):
        write_video(path, gray_frames(6, (64, 48)))
    clip = load(root, frames=4, frame_stride=3).load([0], torch.tensor([9])).images[0]
    assert shown_numbers(clip) == [0, 3, 5, 5]
    clips = load(root, "test", frames=4, frame_stride=3, test_clips=2).batch([0])[0][0]
    assert [shown_numbers(clip) for clip in clips] == [[0, 3, 5, 5]] * 2


def test_test_frames_are_the_middle_as_torchvision_takes_it(tmp_path):
    for split in ("train", "val"):
        for name in ("map", "other"):
            (tmp_path / split / name).mkdir(parents=True)
            write_video(tmp_path / split / name / "0.avi", maps(), "mjpeg")
    data = load(tmp_path, "test", frames=2, frame_stride=29, test_clips=1, size=56)
    frames = decoded(data.files[0])
    for place, number in enumerate((0, 29)):
        assert torch.equal(data[0][0][:, place], middle_by_torchvision(frames[number], 56))


def test_all_frames_of_a_training_clip_show_the_same_part(tmp_path):
    for split in ("train", "val"):
        for name in ("map", "other"):
            (tmp_path / split / name).mkdir(parents=True)
            write_video(tmp_path / split / name / "0.avi", maps(), "mjpeg")
    options = {"frames": 3, "frame_stride": 8, "min_area": 0.3, "size": 32}
    words = torch.arange(40)
    images = load(tmp_path, flip=True, **options).load([0] * 40, words).images.float()
    assert (images[:, :2, :1] - images[:, :2]).abs().max() < 12  # noise of the codec
    assert (images[:, 2].mean((2, 3)).diff(dim=1) - 64).abs().max() < 6
    plain = load(tmp_path, **options).load([0] * 40, words).images.float()
    is_mirrored = torch.tensor([bool((image == other.flip(-1)).all()) for image, other in zip(images, plain)])  # noqa: B905
    is_same = torch.tensor([bool((image == other).all()) for image, other in zip(images, plain)])  # noqa: B905
    assert (is_mirrored ^ is_same).all()
    assert 8 < is_mirrored.sum() < 32
    widths = plain[:, 0, 0].mean(1).diff(dim=1).mean(1) * 32 / 2
    heights = plain[:, 1, 0].mean(2).diff(dim=1).mean(1) * 32 / 2
    areas = widths * heights / (128 * 96)
    assert 0.25 < areas.min() < 0.5
    assert 0.7 < areas.max() < 1.1


def test_workers_do_not_matter(root):
    data = pickle.loads(pickle.dumps(load(root, frames=4, flip=True)))
    batches = TrainingBatches(ExampleOrder(len(data), 3), range(3), 4)
    one, other = (list(make_loader(data, batches, workers=workers)) for workers in (0, 2))
    for first, second in zip(one, other, strict=True):
        assert all(map(torch.equal, first, second))
    assert not torch.equal(one[0].images, one[1].images)


def test_damaged_videos_are_left_out_and_named_once(root, capsys):
    data = load(root, frames=4, frame_stride=1)
    truncate(data.files[0])
    truncate(data.files[2], 100)
    for words in (None, torch.arange(4)):
        assert data.load([0, 1, 2, 3], words).ids.tolist() == [0, 1, 3]  # the first has enough frames
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"liere: warning: cannot read {data.files[2]} (Invalid data found when processing input): "
        "skipped (1 of at most 10)"
    )
    data = load(root, frames=8, frame_stride=4, max_unreadable=1)
    with pytest.raises(ValueError, match=r"b.0.avi .*data.max_unreadable is 1"):
        data.load([0, 1, 2, 3], torch.arange(4))
    assert "but a clip needs 29): skipped (1 of at most 1" in capsys.readouterr().err


def test_what_to_install_is_reported(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError, match=r"pip install 'liere\[video\]'"):
        load(root)


def test_a_class_without_videos_is_named(root):
    for path in (root / "val" / "b").glob("[01]*"):
        path.unlink()
    with pytest.raises(ValueError, match=r"no file with the suffix .avi, .mp4.* in .*val.b"):
        load(root)


class TestClaims:
    """FFmpeg allocates a table for the claimed samples of an MP4 file: two kilobytes took two gigabytes."""

    def test_more_samples_than_bytes_are_refused(self, tmp_path):
        write_video(tmp_path / "0.mp4", gray_frames(6, (32, 32)))
        content = bytearray((tmp_path / "0.mp4").read_bytes())
        place = content.index(b"stsz") + 8
        content[place : place + 8] = (1).to_bytes(4, "big") + (60_000_000).to_bytes(4, "big")
        (tmp_path / "0.mp4").write_bytes(content)
        with pytest.raises(UnreadableError, match=r"it claims 60,000,000 samples but has only [\d,]+ bytes"):
            read_frames(tmp_path / "0.mp4", range)

    def test_samples_of_a_byte_are_refused(self, tmp_path):
        file = tmp_path / "0.mp4"
        write_video(file, gray_frames(6, (32, 32)))
        content = bytearray(file.read_bytes())
        place, samples = content.index(b"stsz") + 8, len(content) // 2
        content[place : place + 8] = (1).to_bytes(4, "big") + samples.to_bytes(4, "big")
        file.write_bytes(content)
        with pytest.raises(UnreadableError, match=rf"it claims {samples:,} samples but has only [\d,]+ bytes"):
            read_frames(file, range)

    def test_samples_that_are_repeated_very_often_are_refused(self, tmp_path):
        """A table of 24 bytes per sample and edit: 800 kilobytes took 1.2 gigabytes."""
        file = tmp_path / "0.mp4"
        write_video(file, gray_frames(6, (32, 32)))
        content = bytearray(file.read_bytes())
        place = content.index(b"elst") + 8
        content[place : place + 4] = (10_000_000).to_bytes(4, "big")
        file.write_bytes(content)
        with pytest.raises(UnreadableError, match="it has 10,000,000 edits of 6 samples: convert it"):
            read_frames(file, range)

    @pytest.mark.parametrize("name", ["0.mov", "0.mp4"])
    def test_still_videos_and_uncompressed_sound_are_read(self, tmp_path, name):
        with av.open(str(tmp_path / name), "w") as container:
            stream = container.add_stream("mpeg4", rate=25)
            stream.width = stream.height = 32
            stream.pix_fmt = "yuv420p"
            if name == "0.mov":
                sound = container.add_stream("pcm_u8", rate=8_000, layout="mono")
                noise = av.AudioFrame.from_ndarray(np.zeros((1, 100_000), np.uint8), "u8", "mono")
                noise.sample_rate = 8_000
                container.mux(sound.encode(noise))
            for _ in range(300):
                frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        assert len(read_frames(tmp_path / name, lambda count: [0, count - 1])) == 2

    def test_more_frames_than_allowed_are_refused(self, videos, monkeypatch):
        monkeypatch.setattr(video_frames, "MOST_FRAMES", COUNT)
        assert len(read_frames(videos / "plain.avi", range)) == COUNT
        monkeypatch.setattr(video_frames, "MOST_FRAMES", COUNT - 1)
        with pytest.raises(UnreadableError, match=rf"it has more than {COUNT - 1} frames: cut it into several files"):
            read_frames(videos / "plain.avi", range)

    def test_files_in_fragments_count_as_well(self, tmp_path):
        file = tmp_path / "0.mp4"
        with av.open(str(file), "w", options={"movflags": "frag_keyframe+empty_moov"}) as container:
            stream = container.add_stream("mpeg4", rate=25)
            stream.width = stream.height = 32
            stream.pix_fmt = "yuv420p"
            for frame in gray_frames(6, (32, 32)):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(stream.encode(None))
        assert len(read_frames(file, range)) == 6
        content = bytearray(file.read_bytes())
        place = content.index(b"trun") + 8
        content[place : place + 4] = (60_000_000).to_bytes(4, "big")
        file.write_bytes(content)
        with pytest.raises(UnreadableError, match=r"it claims 60,000,0\d\d samples"):
            read_frames(file, range)

    @pytest.mark.parametrize("content", [b"\0\0\0\x08free" * 2_000, b"\0\0\0\0moov" * 500, b"\0\0\0\1moov" + bytes(99)])
    def test_boxes_without_end_are_passed_over(self, tmp_path, monkeypatch, content):
        monkeypatch.setattr(video_frames, "MOST_BOXES", 1_000)
        (tmp_path / "0.mp4").write_bytes(content)
        with pytest.raises(UnreadableError):
            read_frames(tmp_path / "0.mp4", range)

    def test_a_compressed_header_is_refused(self, tmp_path):
        (tmp_path / "0.mov").write_bytes(b"\0\0\0\x18moov\0\0\0\x10cmov" + bytes(8))
        with pytest.raises(UnreadableError, match="its header is compressed: convert it"):
            read_frames(tmp_path / "0.mov", range)
