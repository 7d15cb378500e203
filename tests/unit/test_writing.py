"""What becomes of a file while it is written, in every format: complete, or not there, and the reason told."""

import bz2
import errno
import gc
import gzip
import io
import json
import lzma
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow.parquet as parquet
import pytest
import zstandard

from rowcall.errors import FileRefused
from rowcall.formats.output import Compression
from rowcall.formats.writing import WriteFormat, WriteOptions, open_writer
from rowcall.model import Code

from ..writing import CSV, JSON, NDJSON, PARQUET, XLSX, columns, text_frame, write_to, written

pq = cast("Any", parquet)  # pyarrow has no annotations

FRAME = text_frame([("1", "2", "3"), (None, "", "x")])


@pytest.mark.parametrize("kind", WriteFormat)
def test_an_error_leaves_no_file(kind: WriteFormat, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_to(tmp_path / "x", kind, [FRAME], KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", WriteFormat)
def test_an_error_leaves_the_older_file_as_it_was(kind: WriteFormat, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"older")
    with pytest.raises(ZeroDivisionError):
        write_to(path, kind, [FRAME], ZeroDivisionError())
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", WriteFormat)
def test_the_file_appears_when_it_is_complete(kind: WriteFormat, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with open_writer(path, kind, columns("a", "b", "c")) as writer:
        writer.write(text_frame([("1", "2", "3")]))
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]
    umask = os.umask(0o022)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "x.csv", tmp_path / "link.csv"
    path.write_bytes(b"older")
    path.chmod(0o600)
    link.symlink_to(path)
    with open_writer(link, CSV, columns("a")) as writer:
        writer.write(pl.DataFrame({"a": ["1"]}))
    assert link.is_symlink()
    assert path.read_bytes() == b'"a"\n"1"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", WriteFormat)
def test_a_full_disk_is_told(kind: WriteFormat) -> None:
    frames = [text_frame([(os.urandom(10_000).hex(), "2", "3")])] * 20
    with pytest.raises(FileRefused, match="No space left on device") as refused:
        write_to(Path("/dev/full"), kind, frames)
    assert refused.value.code == Code.WRITE_FAILED
    assert "space" in refused.value.hint


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", "zst"])
def test_a_full_disk_is_told_by_compressed_files_too(compression: Compression) -> None:
    writer = open_writer(Path("/dev/full"), CSV, columns("a", "b", "c"), WriteOptions(compression=compression))
    writer.write(FRAME)
    with pytest.raises(FileRefused, match="No space left on device"):
        writer.close()


def test_a_disk_that_fills_up_while_the_file_is_completed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileRefused, match="No space left"):
        write_to(tmp_path / "x.csv", CSV, [FRAME])
    assert list(tmp_path.iterdir()) == []


PLACES = {
    "missing/x.csv": "No such file",
    "file/x.csv": "Not a directory",
    "folder": "Is a directory",
    "x" * 300: "File name too long",
    "nul\0": "null byte",
}


@pytest.mark.parametrize(("place", "reason"), PLACES.items(), ids=PLACES.values())
def test_a_place_that_cannot_be_written_is_told(place: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileRefused, match=reason) as refused:
        open_writer(tmp_path / place, CSV, columns("a"))
    assert refused.value.code == Code.WRITE_FAILED
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file", tmp_path / "folder"]


@pytest.mark.parametrize("kind", WriteFormat)
def test_a_stream_is_left_open_and_may_take_little_at_a_time(kind: WriteFormat) -> None:
    class Slow(io.BytesIO):
        def write(self, data: Any, /) -> int:
            return super().write(memoryview(data)[:100])

    frame = text_frame([(str(index), "x", None) for index in range(200)])
    slow, fast = Slow(), io.BytesIO()
    for stream in (slow, fast):
        with open_writer(stream, kind, columns("a", "b", "c")) as writer:
            writer.write(frame)
    if kind is XLSX:  # a workbook says when it was made
        assert slow.getvalue()[-22:-16] == b"PK\x05\x06\0\0"
    else:
        assert slow.getvalue() == fast.getvalue()


@pytest.mark.parametrize("kind", WriteFormat)
def test_an_aborted_stream_is_not_ended_as_if_complete(kind: WriteFormat) -> None:
    whole, stream = written([FRAME], kind), io.BytesIO()
    writer = open_writer(stream, kind, columns("a", "b", "c"))
    writer.write(FRAME)
    writer.abort()
    del writer
    gc.collect()
    assert len(stream.getvalue()) < len(whole) or kind in (CSV, NDJSON)  # these have no end


def test_a_closed_stream_is_told() -> None:
    stream = io.BytesIO()
    stream.close()
    with pytest.raises(FileRefused, match="it is closed"):
        open_writer(stream, CSV, columns("a"))


INFLATE: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.mark.parametrize("suffix", INFLATE)
@pytest.mark.parametrize("kind", [CSV, NDJSON, JSON])
def test_text_formats_are_compressed_by_suffix(suffix: str, kind: WriteFormat, tmp_path: Path) -> None:
    frame = text_frame([(str(index), "x", None) for index in range(5_000)])
    path = tmp_path / f"x.{kind}.{suffix.upper()}"
    write_to(path, kind, [frame, frame])
    assert INFLATE[suffix](path.read_bytes()) == written([frame, frame], kind)


@pytest.mark.parametrize("kind", [XLSX, PARQUET])
def test_formats_that_are_compressed_already_are_not_compressed_again(kind: WriteFormat, tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match=r"Leave \.gz off"):
        open_writer(tmp_path / f"x.{kind}.gz", kind, columns("a"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [CSV, NDJSON, JSON])
def test_a_column_that_a_frame_does_not_have_is_null(kind: WriteFormat) -> None:
    frames = [pl.DataFrame({"b": ["1"]}), pl.DataFrame({"b": ["2"], "a": ["x"]})]
    full = [
        pl.DataFrame({"a": [None], "b": ["1"]}, schema={"a": pl.String, "b": pl.String}),
        frames[1].select("a", "b"),
    ]
    assert written(frames, kind, columns("a", "b")) == written(full, kind)


def test_a_column_that_the_writer_does_not_know_is_never_dropped(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without the columns"):
        write_to(tmp_path / "x.csv", CSV, [FRAME, FRAME.with_columns(late="a")])
    assert list(tmp_path.iterdir()) == []


def test_a_closed_writer_takes_no_rows(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "x.csv", CSV, columns("a"))
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(pl.DataFrame({"a": ["1"]}))
    assert (tmp_path / "x.csv").read_bytes() == b'"a"\n'


@pytest.mark.parametrize("kind", WriteFormat)
def test_a_file_without_columns_is_refused(kind: WriteFormat) -> None:
    with pytest.raises(FileRefused) as refused:
        open_writer(io.BytesIO(), kind, [])
    assert refused.value.code == Code.BAD_OPTION


@pytest.mark.parametrize("kind", [CSV, NDJSON, PARQUET])
def test_very_long_texts_and_large_frames_are_written_whole(kind: WriteFormat, tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": ["ü" * 3_000_000, None, *map(str, range(250_000))]})
    path = tmp_path / "x"
    with open_writer(path, kind, columns("a")) as writer:
        writer.write(frame)
    if kind is PARQUET:
        assert pq.ParquetFile(path).read().column("a").to_pylist() == frame["a"].to_list()
    elif kind is NDJSON:
        with path.open() as lines:
            assert [json.loads(line)["a"] for line in lines] == frame["a"].to_list()
    else:
        assert pl.read_csv(path, infer_schema=False)["a"].to_list() == frame["a"].fill_null("").to_list()
