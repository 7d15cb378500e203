"""What a file is goes by its content; compression comes off with caps on what comes out."""

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from rowcall.errors import FileRefused
from rowcall.formats import Limits, ReadOptions
from rowcall.model import Code

from ..reading import read

CSV = b"id,name\n1,Ann\n2,Bob\n"


def zipped(*entries: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def one_zip(data: bytes) -> bytes:
    return zipped(("folder/", b""), ("__MACOSX/._x.csv", b"junk"), ("folder/x.csv", data))


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "zip": one_zip,
}


@pytest.mark.parametrize("kind", PACKERS)
def test_compression_is_known_by_content(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "whatever.bin"
    path.write_bytes(PACKERS[kind](CSV))
    got = read(path)
    assert got.values == [("1", "Ann"), ("2", "Bob")]
    assert got.detected("compression") == kind


def test_a_stream_is_read_like_a_file() -> None:
    assert read(io.BytesIO(gzip.compress(CSV)), name="x.csv.gz").values == [("1", "Ann"), ("2", "Bob")]


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd"])
def test_joined_members_are_one_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(PACKERS[kind](CSV[:8]) + PACKERS[kind](CSV[8:]))
    assert read(path).values == [("1", "Ann"), ("2", "Bob")]


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd"])
def test_trailing_junk_is_told(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(PACKERS[kind](CSV) + b"some more bytes")
    got = read(path)
    assert got.values == [("1", "Ann"), ("2", "Bob")]
    assert "TRAILING_BYTES" in got.notes


@pytest.mark.parametrize("kind", PACKERS)
def test_a_truncated_archive_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    packed = PACKERS[kind]("".join(f"{i},{i * i}\n" for i in range(5_000)).encode())
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(FileRefused) as refusal:
        read(path)
    assert refusal.value.code == Code.ARCHIVE_CORRUPT


@pytest.mark.parametrize("kind", PACKERS)
def test_a_bomb_is_stopped(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(PACKERS[kind](b"0" * 100_000_000))
    with pytest.raises(FileRefused) as refusal:
        read(path, ReadOptions(limits=Limits(inflate_ratio=50)))
    assert refusal.value.code == Code.ARCHIVE_TOO_LARGE


def test_a_bomb_in_a_bomb_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(gzip.compress(gzip.compress(CSV))))
    with pytest.raises(FileRefused) as refusal:
        read(path)
    assert refusal.value.code == Code.ARCHIVE_NOT_ONE_FILE


def test_a_zstd_window_of_two_gigabytes_is_refused(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=31, compression_level=1)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "x.zst"
    path.write_bytes(packer.compress(CSV) + packer.flush())
    with pytest.raises(FileRefused) as refusal:
        read(path)
    assert refusal.value.code == Code.ARCHIVE_CORRUPT


def test_an_archive_of_several_files_is_refused_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(("a.csv", CSV), ("../../b.csv", CSV)))
    with pytest.raises(FileRefused, match=r"2 files \('a.csv', '../../b.csv'\)"):
        read(path)


def test_an_entry_name_never_becomes_a_path(tmp_path: Path) -> None:
    path = tmp_path / "in" / "x.zip"
    path.parent.mkdir()
    path.write_bytes(zipped(("../../escaped.csv", CSV)))
    assert read(path).values == [("1", "Ann"), ("2", "Bob")]
    assert not (tmp_path / "escaped.csv").exists()


def test_an_encrypted_entry_is_told(tmp_path: Path) -> None:
    data = bytearray(zipped(("a.csv", CSV)))
    data[6] |= 1
    central = data.rindex(b"PK\x01\x02")
    data[central + 8] |= 1
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    with pytest.raises(FileRefused) as refusal:
        read(path)
    assert refusal.value.code == Code.PASSWORD_PROTECTED


@pytest.mark.parametrize(
    ("name", "data"), [("x.xlsx", CSV), ("x.parquet", b'{"a": 1}\n{"a": 2}\n'), ("x.csv", b'[{"a": 1}]')]
)
def test_a_name_that_lies_is_told(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    got = read(path)
    assert got.values
    assert "NAME_MISMATCH" in got.notes


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"a": 1}\n{"a": 2}\n', "ndjson"),
        (b'{"a": 1}', "ndjson"),
        (b'[{"a": 1}]', "json"),
        (b'{\n  "data": [\n {"a": 1}]}', "json"),
        ('\ufeff[{"a": 1}]'.encode("utf-16-le"), "json"),
        (b"[id],[name]\n1,2\n", "csv"),
        (b"{x},y\n1,2\n", "csv"),
        (b"a,b\n1,x\0y\n3,4\n", "csv"),
    ],
)
def test_text_is_told_apart(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert read(path).detected("format") == kind


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"%PDF-1.7\n...", "PDF"),
        (b"\x89PNG\r\n\x1a\n....", "PNG"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "web page"),
        (bytes(range(256)) * 50, "binary"),
        (zipped(("[Content_Types].xml", b"x"), ("word/document.xml", b"x")), "Office"),
    ],
)
def test_what_is_no_file_of_rows_is_named(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    with pytest.raises(FileRefused, match=what) as refusal:
        read(path)
    assert refusal.value.code == Code.UNKNOWN_FORMAT


@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_no_file_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileRefused) as refusal:
        read(tmp_path / name)
    assert refusal.value.code == Code.FILE_NOT_FOUND


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").touch()
    with pytest.raises(FileRefused) as refusal:
        read(tmp_path / "x.csv")
    assert refusal.value.code == Code.EMPTY_FILE


def test_temporary_files_are_gone_when_reading_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(CSV))
    read(path)
    path.write_bytes(gzip.compress(CSV)[:20])
    with pytest.raises(FileRefused):
        read(path)
    assert list(scratch.iterdir()) == []


def test_an_object_in_one_line_is_a_document_where_its_records_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"rows":[{"a":"1"},{"a":"2"}]}\n')
    assert read(path, ReadOptions(records="rows")).values == [("1",), ("2",)]
