"""Files made to do harm, brought over HTTP: each ends in a job that says what is wrong, and the next is worked on."""

import gzip
import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from ..unit.workbook_files import SHEET, compound_file, parts_of, text_row
from .conftest import Site
from .test_imports import USERS, stored
from .test_moves import look

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)

HEADER = b"email,name,role,active\n"
GOOD = b"bob@example.org,Bob,reader,true\n"
BOOK = text_row(1, "email", "name")
ENTITY = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


def zipped(*entries: tuple[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def book(rows: str, **more: str) -> bytes:
    return zipped(*parts_of(rows, **more).items())


def with_entity() -> bytes:
    parts = parts_of(BOOK)
    return zipped(*{**parts, SHEET: ENTITY + parts[SHEET].replace('<?xml version="1.0"?>', "")}.items())


def zstd_of_a_large_window() -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=31, compression_level=1)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(HEADER) + packer.flush()


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing.csv": (lambda: b"", "EMPTY_FILE"),
    "mark.csv": (lambda: b"\xef\xbb\xbf", "EMPTY_FILE"),
    "wide.csv.gz": (lambda: gzip.compress(b",".join(b"c%d" % i for i in range(20_000)) + b"\n"), "TOO_MANY_COLUMNS"),
    "header.csv.gz": (lambda: gzip.compress(b"x" * (2 << 20) + b",y\n1,2\n"), "LINE_TOO_LONG"),
    "polyglot.csv": (lambda: b"%PDF-1.7\n" + HEADER + GOOD, "UNKNOWN_FORMAT"),
    "page.csv": (lambda: b"<!doctype html><html><body>Sign in", "UNKNOWN_FORMAT"),
    "bomb.gz": (lambda: gzip.compress(b"0" * (80 << 20)), "ARCHIVE_TOO_LARGE"),
    "onion.gz": (lambda: gzip.compress(gzip.compress(gzip.compress(HEADER))), "ARCHIVE_NOT_ONE_FILE"),
    "onion.zip": (lambda: zipped(("a.zip", zipped(("b.zip", zipped(("c.csv", HEADER)))))), "ARCHIVE_NOT_ONE_FILE"),
    "window.zst": (zstd_of_a_large_window, "ARCHIVE_CORRUPT"),
    "beyond.xlsx": (lambda: book('<row><c r="XFE1"><v>1</v></c></row>'), "WORKBOOK_CORRUPT"),
    "entity.xlsx": (with_entity, "WORKBOOK_CORRUPT"),
    "bomb.xlsx": (lambda: book(" " * 70_000_000), "WORKBOOK_TOO_LARGE"),
    "locked.xlsx": (lambda: compound_file("EncryptedPackage", b"secret"), "PASSWORD_PROTECTED"),
    "zeros.parquet": (lambda: b"PAR1" + b"\0" * 100 + b"PAR1", "PARQUET_CORRUPT"),
    "deep.json": (lambda: b"[" * 90_000, "MISSING_COLUMNS"),
}
IN_PART: dict[str, tuple[bytes, dict[int, list[str]]]] = {
    "quote.csv": (HEADER + b'a@example.org,"Ann,admin,true\n' + GOOD, {2: ["UNCLOSED_QUOTE"], 3: []}),
    "nul.csv": (HEADER + b"a@example.org,A\0n,admin,true\n" + GOOD, {2: ["NUL_CHARACTER"], 3: []}),
    "bytes.csv": (
        HEADER + "é@x.org,É,admin,true\n".encode() + b"a@x.org,\xc0\xaf,admin,true\n",
        {3: ["INVALID_ENCODING"]},
    ),
    "seven.csv": (HEADER + b"+AHg-@example.org,Ann,admin,true\n", {2: []}),
    "copy.csv": (HEADER + b"\\.\n" + GOOD, {2: ["TOO_FEW_FIELDS"], 3: []}),
    "proto.csv": (HEADER.replace(b"\n", b",__proto__\n") + GOOD.replace(b"\n", b",{}\n"), {2: []}),
    "casts.csv": (
        HEADER.replace(b"\n", b",created_at\n")
        + "".join(
            f"{i}@example.org,A,reader,true,{text}\n"
            for i, text in enumerate(["now", "infinity", "NaN", "1_000", "0x1F", "١٢٣", "−5"])
        ).encode(),
        {line: ["INVALID_DATETIME"] for line in range(2, 9)},
    ),
    "named.xlsx": (HEADER + GOOD, {2: []}),
    "path.zip": (zipped(("../../../escaped.csv", HEADER + GOOD)), {2: []}),
    "strings.xlsx": (
        book(BOOK + '<row r="2"><c r="A2" t="s"><v>-1</v></c><c r="B2" t="s"><v>99</v></c></row>', strings="<si/>"),
        {2: ["CELL_BROKEN", "CELL_BROKEN"]},
    ),
    "twice.ndjson": (
        b'{"email":"a@x.org","name":"A","name":"B"}\n{"email":"b@x.org","name":"B"}\n',
        {1: ["DUPLICATE_KEY"], 2: []},
    ),
    "texts.ndjson": (
        b'{"email":"a@x.org","name":"\\u0000"}\n{"email":"b@x.org","name":"\\ud800"}\n{"email":"c@x.org","name":"C"}\n',
        {1: ["NUL_CHARACTER"], 2: ["INVALID_ENCODING"], 3: []},
    ),
    "cut.ndjson": (b'{"email":"a@x.org","name":"A"}\n{"email":"b', {1: [], 2: ["TRUNCATED"]}),
}


def worked(site: Site, name: str, data: bytes) -> dict[str, Any]:
    answer = site.client.post("/v1/imports", data={"importer": "users"}, files={"file": (name, data)})
    assert answer.status_code == 202, name
    site.worker.advance(answer.json()["id"])
    return look(site, answer.json())


def test_files_that_can_not_be_read_fail_their_job_with_a_code(site: Site) -> None:
    found = {name: worked(site, name, make()) for name, (make, _) in REFUSED.items()}
    assert {name: job["state"] for name, job in found.items()} == dict.fromkeys(REFUSED, "FAILED")
    assert {name: job["error"]["code"] for name, job in found.items()} == {
        name: code for name, (_, code) in REFUSED.items()
    }
    assert worked(site, "users.csv", USERS.encode())["counts"]["created"] == 1


def test_rows_that_can_not_be_read_fail_alone(site: Site) -> None:
    for name, (data, expected) in IN_PART.items():
        job = worked(site, name, data)
        items = site.client.get(f"/v1/imports/{job['id']}/items").json()["items"]
        told = {item["line"]: [issue["code"] for issue in item["issues"]] for item in items}
        assert {line: told.get(line) for line in expected} == expected, name
        assert job["counts"]["failed"] == sum(map(bool, expected.values())), name
    assert all(len(kept) == 64 for kept in stored(site))
    assert [path.name for path in site.files.parent.parent.rglob("escaped*")] == []
