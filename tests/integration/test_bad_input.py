"""Hostile and broken files, through the command: a clear end, in bounded memory, never a traceback."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .command import Done, rowcall

MEGABYTE = 2**20
MEMORY = 512  # MB


def _write(path: Path, pieces: Iterator[bytes] | list[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(pieces)


def inspected(path: Path) -> tuple[Done, dict[str, object]]:
    done = rowcall("inspect", path, "--json")
    assert "Traceback" not in done.err
    assert done.memory < MEMORY
    return done, json.loads(done.out) if done.status == 0 else {}


def counts(found: dict[str, object]) -> dict[str, int]:
    value = found["counts"]
    assert isinstance(value, dict)
    return value  # pyright: ignore[reportUnknownVariableType] (JSON)


def codes(found: dict[str, object]) -> list[tuple[int, str]]:
    return [(bad["line"], bad["code"]) for bad in found["bad"]]  # pyright: ignore[reportUnknownVariableType, reportIndexIssue, reportGeneralTypeIssues] (JSON)


# Written in pieces: a process inherits the peak memory of the one that starts it.
def _gzip_bomb() -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as file:
        file.writelines([b"a,b\n", *[b"0" * MEGABYTE] * 300])
    return out.getvalue()


def _zip_of(name: str, *pieces: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as file:
        file.writelines(pieces)
    return out.getvalue()


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "EMPTY_FILE"),
    "mark only": (lambda: b"\xef\xbb\xbf", "EMPTY_FILE"),
    "blank lines": (lambda: b"\n\n\n", "EMPTY_FILE"),
    "binary": (lambda: bytes(range(256)) * 400, "UNKNOWN_FORMAT"),
    "20,000 columns": (lambda: b",".join(b"c%d" % i for i in range(20_000)) + b"\n", "TOO_MANY_COLUMNS"),
    "header over 1 MB": (lambda: b"x" * (2 * MEGABYTE) + b",y\n1,2\n", "LINE_TOO_LONG"),
    "cut gzip": (lambda: gzip.compress(b"a,b\n1,2\n" * 1_000)[:-20], "ARCHIVE_CORRUPT"),
    "cut zip": (lambda: _zip_of("x.csv", b"a,b\n1,2\n" * 1_000)[:-30], "ARCHIVE_CORRUPT"),
    "gzip bomb": (_gzip_bomb, "ARCHIVE_TOO_LARGE"),
    "zip bomb": (lambda: _zip_of("x.csv", *[b"0" * MEGABYTE] * 300), "ARCHIVE_TOO_LARGE"),
    "workbook of nothing": (lambda: _zip_of("xl/workbook.xml", b"<x/>"), "WORKBOOK_CORRUPT"),
    "encrypted workbook": (
        lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504 + "EncryptedPackage".encode("utf-16-le") * 40,
        "PASSWORD_PROTECTED",
    ),
    "parquet of nothing": (lambda: b"PAR1" + b"\0" * 100 + b"PAR1", "PARQUET_CORRUPT"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    make, code = REFUSED[name]
    path = tmp_path / "file"
    path.write_bytes(make())
    done, _ = inspected(path)
    assert done.status == 1
    assert code in done.err
    assert len(done.err.splitlines()) <= 4


def test_a_line_of_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _write(path, [b"a,b\n1,2\n", *[b"x" * MEGABYTE] * 1024, b"\n3,4\n"])
    done, found = inspected(path)
    assert done.status == 0
    assert counts(found)["good"] == 2
    assert codes(found) == [(3, "LINE_TOO_LONG")]


def test_a_gigabyte_without_any_line_end(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _write(path, [b"x" * MEGABYTE] * 1024)
    done, _ = inspected(path)
    assert done.status == 1
    assert "LINE_TOO_LONG" in done.err


def test_a_quote_never_closed_at_the_start_of_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    line = b"1,some text,another text,1000\n"
    _write(path, [b'a,b,c,d\n1,"open,2,3\n', *[line * 10_000] * 300])
    done, found = inspected(path)
    assert done.status == 0
    assert codes(found) == [(2, "UNCLOSED_QUOTE")]
    assert counts(found)["good"] == 3_000_000


def test_wrong_bytes_in_row_900_000(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _write(path, [b"id,name\n", *[b"1,Zo\xc3\xab\n"] * 899_999, b"2,Zo\xeb\n", *[b"3,x\n"] * 10])
    _, found = inspected(path)
    assert codes(found) == [(900_001, "INVALID_ENCODING")]
    assert counts(found)["rows"] == 900_010


def test_a_cell_of_ten_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _write(path, [b'a,b\n1,"', *[b"text, and\n"] * MEGABYTE, b'"\n2,y\n'])
    _, found = inspected(path)
    assert (counts(found)["good"], counts(found)["bad"]) == (2, 0)


def test_a_json_line_of_200_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    _write(path, [b'{"a": 1}\n{"a": "', *[b"x" * MEGABYTE] * 200, b'"}\n{"a": 3}\n'])
    _, found = inspected(path)
    assert codes(found) == [(2, "LINE_TOO_LONG")]
    assert counts(found)["good"] == 2


def test_json_of_100_000_brackets(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_bytes(b'{"a": 1}\n{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b'}\n{"a": 3}\n')
    _, found = inspected(path)
    assert codes(found) == [(2, "JSON_TOO_DEEP")]


@pytest.mark.parametrize("text", ["[", '{"a": {"b": 1', '[{"a": '])
def test_json_that_is_cut_short(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    _, found = inspected(path)
    assert (counts(found)["good"], counts(found)["bad"]) == (0, 1)
    assert " 1 bad" in rowcall("inspect", path).out


@pytest.mark.parametrize("text", ["now", "infinity", "NaN", "1_000", "0x1F", "١٢٣", "−5", "\\.", "__proto__"])
def test_odd_values_are_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"a,b\n{text},1\n")
    _, found = inspected(path)
    assert found["rows"] == [{"row": 1, "line": 2, "cells": [text, "1"]}]
