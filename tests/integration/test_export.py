"""Rows from PostgreSQL into files: every value, the rows asked for, one snapshot, whole or not at all."""

import bz2
import io
import json
import lzma
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest
from psycopg import Connection

from rowcall.errors import FileRefused, Final
from rowcall.export import Filter, Resource, export_rows, export_to, find_resource, select_rows
from rowcall.formats import WriteFormat
from rowcall.model import Code
from rowcall.store.db import Database

from ..reading import read
from .command import COMMAND, rowcall

THINGS = Resource(name="things", table="thing")


@pytest.fixture
def connection(database: Database) -> Generator[Connection[Any]]:
    with database.connect() as connection:
        connection.execute("""
            CREATE TYPE mood AS ENUM ('glad', 'so so');
            CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
            CREATE TABLE thing (
                id integer PRIMARY KEY, "Größe %" text, email email, mood mood, code varchar(3), yes boolean,
                big bigint, price numeric(12, 2), exact numeric, ratio double precision, day date,
                at timestamptz, local timestamp, hour time, took interval, raw bytea, tags text[], numbers int[],
                data jsonb, key uuid);
            INSERT INTO thing VALUES
                (2, E'\\ufefftab\\t line\\n back\\\\slash \\\\N "quote", é', 'a@b', 'so so', 'abc', true,
                 9007199254740993, 0.10, 123456789012345678901234567890.0123456789, 0.1, '2024-02-29',
                 '2024-02-29 12:00:00.5+02', '2024-02-29 12:00:00', '23:59:59', '1 day 2 hours', '\\x00ff',
                 ARRAY['a,b', NULL, E'"\\n\\\\'], '{1,2}', '{"a": [1, null], "b": "x\\ny"}',
                 '00000000-0000-0000-0000-000000000001'),
                (1, '', NULL, 'glad', '=1', false, -5, -1.50, 1e-20, 'NaN', '0001-01-01', '1969-12-31 23:59:59+00',
                 NULL, NULL, NULL, NULL, '{}', NULL, 'null', NULL);
            INSERT INTO thing (id) VALUES (3);
        """)
        yield connection


def exported(connection: Connection[Any], kind: WriteFormat, *fields: str, filters: tuple[str, ...] = ()) -> bytes:
    selection = select_rows(connection, THINGS, fields=fields, filters=[Filter.parse(text) for text in filters])
    out = io.BytesIO()
    export_to(connection, selection, out, kind)
    return out.getvalue()


def ids(connection: Connection[Any], *filters: str) -> list[int]:
    lines = exported(connection, WriteFormat.NDJSON, "id", filters=filters).splitlines()
    return [json.loads(line)["id"] for line in lines]


def refusal(connection: Connection[Any], *filters: str, fields: tuple[str, ...] = ()) -> str:
    with pytest.raises(Final) as error:
        exported(connection, WriteFormat.CSV, *fields, filters=filters)
    assert error.value.code == Code.BAD_OPTION
    return str(error.value)


# -- values


def test_ndjson_has_values_as_such_digit_for_digit(connection: Connection[Any]) -> None:
    first, second, third = exported(connection, WriteFormat.NDJSON).decode().splitlines()
    assert json.loads(second, parse_float=Decimal) == {
        "id": 2,
        "Größe %": '\ufefftab\t line\n back\\slash \\N "quote", é',
        "email": "a@b",
        "mood": "so so",
        "code": "abc",
        "yes": True,
        "big": 9007199254740993,
        "price": Decimal("0.10"),
        "exact": Decimal("123456789012345678901234567890.0123456789"),
        "ratio": Decimal("0.1"),
        "day": "2024-02-29",
        "at": "2024-02-29T10:00:00.5Z",
        "local": "2024-02-29T12:00:00",
        "hour": "23:59:59",
        "took": "P1DT2H",
        "raw": "\\x00ff",
        "tags": ["a,b", None, '"\n\\'],
        "numbers": [1, 2],
        "data": {"a": [1, None], "b": "x\ny"},
        "key": "00000000-0000-0000-0000-000000000001",
    }
    assert json.loads(first)["Größe %"] == ""
    assert json.loads(first)["ratio"] == "NaN"
    assert set(json.loads(third).values()) == {3, None}


def test_parquet_has_types(connection: Connection[Any]) -> None:
    frame = pl.read_parquet(io.BytesIO(exported(connection, WriteFormat.PARQUET)))
    row = frame.row(1, named=True)
    assert row["price"] == Decimal("0.10")
    assert row["exact"] == "123456789012345678901234567890.0123456789"
    assert row["day"] == date(2024, 2, 29)
    assert row["at"] == datetime(2024, 2, 29, 10, 0, 0, 500_000, UTC)
    assert row["local"] == datetime(2024, 2, 29, 12)  # noqa: DTZ001 (it has no zone)
    assert (row["tags"], row["numbers"]) == (["a,b", None, '"\n\\'], [1, 2])
    assert (row["yes"], row["big"], row["ratio"]) == (True, 9007199254740993, 0.1)
    assert frame["at"].to_list()[0] == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_csv_protects_from_formulas_and_every_format_reads_back(connection: Connection[Any], tmp_path: Path) -> None:
    assert b"'=1" in exported(connection, WriteFormat.CSV, "id", "code")
    fields = ["id", "Größe %", "code", "yes", "big", "exact", "day", "at", "tags", "data"]
    kinds = [WriteFormat.NDJSON, WriteFormat.CSV, WriteFormat.XLSX]
    for kind in kinds:
        (tmp_path / f"out.{kind}").write_bytes(exported(connection, kind, *fields))
    ndjson, csv, xlsx = ([row[:8] for row in read(tmp_path / f"out.{kind}").values] for kind in kinds)
    assert xlsx == ndjson
    assert csv == [tuple(cell or "" for cell in row) for row in ndjson]  # CSV has no null
    assert read(tmp_path / "out.csv").values[1][8] == '["a,b",null,"\\"\\n\\\\"]'


def test_a_column_alone_keeps_its_empty_texts_and_nulls(connection: Connection[Any]) -> None:
    lines = exported(connection, WriteFormat.NDJSON, "Größe %").splitlines()
    assert [json.loads(line)["Größe %"] for line in lines][::2] == ["", None]


def test_infinity_is_text_and_has_no_place_in_parquet(connection: Connection[Any]) -> None:
    connection.execute("UPDATE thing SET at = 'infinity', day = '0044-03-15 BC'")
    assert b'"infinity"' in exported(connection, WriteFormat.NDJSON, "at")
    with pytest.raises(FileRefused, match="'infinity'"):
        exported(connection, WriteFormat.PARQUET, "id", "at")
    with pytest.raises(FileRefused, match="'0044-03-15 BC'"):
        exported(connection, WriteFormat.PARQUET, "day")


def test_an_empty_export_still_has_columns_and_types(connection: Connection[Any]) -> None:
    assert exported(connection, WriteFormat.CSV, "id", "day", filters=("id>100",)) == b"id,day\n"
    frame = pl.read_parquet(io.BytesIO(exported(connection, WriteFormat.PARQUET, "id", "day", filters=("id>100",))))
    assert frame.schema == {"id": pl.Int32, "day": pl.Date}


# -- which rows


def test_filters_choose_rows_by_the_columns_type(connection: Connection[Any]) -> None:
    assert ids(connection) == [1, 2, 3]
    assert ids(connection, "id=3", "id=1") == [1, 3]
    assert ids(connection, "id>1", "id<=2") == [2]
    assert ids(connection, "price<0") == [1]
    assert ids(connection, "mood!=glad") == [2, 3]
    assert ids(connection, "mood=null") == [3]
    assert ids(connection, "mood=null", "mood=so so") == [2, 3]
    assert ids(connection, "email!=null") == [2]
    assert ids(connection, "Größe %=") == [1]
    assert ids(connection, "at>=1969-12-31T23:59:59Z", "at<1970-01-01") == [1]
    assert ids(connection, "code=abcdef") == []  # not cut down to varchar(3)
    assert ids(connection, "code='; DROP TABLE thing; --") == []


def test_what_does_not_fit_is_said_before_anything_is_written(connection: Connection[Any]) -> None:
    assert "'x' doesn't fit the field 'id', which is integer." in refusal(connection, "id=x")
    assert "'sad' doesn't fit the field 'mood', which is mood." in refusal(connection, "mood=sad")
    assert "no field 'emial'. Did you mean 'email'?" in refusal(connection, "emial=x")
    assert "Did you mean 'price'?" in refusal(connection, fields=("id", "prices"))
    assert "Named twice: 'id'." in refusal(connection, fields=("id", "code", "id"))


def test_a_resource_gives_out_its_own_fields_in_its_own_order(connection: Connection[Any]) -> None:
    resource = Resource(name="r", table="thing", fields=("code", "id"), order=("price",), filters=("id",))
    selection = select_rows(connection, resource)
    frame = pl.concat(export_rows(connection, selection))
    assert frame.rows() == [("=1", "1"), ("abc", "2"), (None, "3")]
    with pytest.raises(Final, match="can't be filtered by 'code'"):
        select_rows(connection, resource, filters=[Filter("code", "=", "x")])
    with pytest.raises(Final, match="has no field 'price'"):
        select_rows(connection, resource, fields=["price"])
    with pytest.raises(Final, match=r"no column of thing\. Did you mean 'price'"):
        select_rows(connection, Resource(name="r", table="thing", fields=("prize",)))


def test_an_unknown_resource_is_told_with_what_there_is(connection: Connection[Any]) -> None:
    assert find_resource(connection, "things", {"things": THINGS}) is THINGS
    assert find_resource(connection, "public.thing", {}).table == "public.thing"
    for name in ("thin", "rowcall.job", "pg_authid"):
        with pytest.raises(Final, match=r"^There is no resource and no table[^,]*Known are: thing, things\.$") as error:
            find_resource(connection, name, {"things": THINGS})
        assert error.value.code == Code.UNKNOWN_RESOURCE


# -- many rows


@pytest.fixture
def many(connection: Connection[Any]) -> None:
    connection.execute("CREATE TABLE many AS SELECT i AS id, md5(i::text) AS text FROM generate_series(1, 200000) i")


MANY = Resource(name="many", table="many")


@pytest.mark.usefixtures("many")
def test_rows_come_in_bounded_frames_of_one_snapshot(database: Database, connection: Connection[Any]) -> None:
    heights: list[int] = []
    for frame in export_rows(connection, select_rows(connection, MANY)):
        heights.append(frame.height)
        with database.connect() as other:
            other.execute("DELETE FROM many WHERE id > 1000")
    assert sum(heights) == 200_000
    assert max(heights) < 100_000


@pytest.mark.usefixtures("many")
def test_stopping_early_leaves_the_connection_usable(connection: Connection[Any]) -> None:
    rows = export_rows(connection, select_rows(connection, MANY))
    assert next(rows).height
    rows.close()
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.usefixtures("many")
def test_an_error_on_the_way_leaves_no_file(connection: Connection[Any], tmp_path: Path) -> None:
    connection.execute("CREATE VIEW failing AS SELECT id, 1 / (199000 - id) AS part FROM many")
    selection = select_rows(connection, Resource(name="failing", table="failing"))
    (tmp_path / "out.csv").write_text("before")
    with pytest.raises(Final, match="division by zero") as error:
        export_to(connection, selection, tmp_path / "out.csv", WriteFormat.CSV)
    assert error.value.code == Code.DATABASE_REFUSED
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_a_row_that_a_workbook_cannot_hold_leaves_no_file(connection: Connection[Any], tmp_path: Path) -> None:
    connection.execute("""UPDATE thing SET "Größe %" = repeat('x', 40000) WHERE id = 2""")
    with pytest.raises(FileRefused, match="Row 2, 'Größe %'") as error:
        export_to(connection, select_rows(connection, THINGS), tmp_path / "out.xlsx", WriteFormat.XLSX)
    assert error.value.code == Code.CELL_TOO_LONG
    assert list(tmp_path.iterdir()) == []


# -- the command


@pytest.mark.usefixtures("connection")
def test_the_command_writes_a_table(database: Database, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = rowcall("export", "thing", "--out", out, "--fields", "id,code", ROWCALL_DATABASE_URL=database.url)
    assert (done.status, done.out, done.err) == (0, "", "3 rows written\n")
    assert out.read_text() == "id,code\n1,'=1\n2,abc\n3,\n"
    done = rowcall("export", "thing", "--fields", "id,Größe %", ROWCALL_DATABASE_URL=database.url)
    assert done.err.startswith("CSV can't tell empty texts from no value; there are some in Größe %. The other")
    done = rowcall("export", "thing", "--format", "ndjson", "--fields", "id", ROWCALL_DATABASE_URL=database.url)
    assert done.out.splitlines() == ['{"id":1}', '{"id":2}', '{"id":3}']
    done = rowcall("export", "thing", "--fields", "id,code", ROWCALL_DATABASE_URL=database.url)
    assert done.out == out.read_text()


@pytest.mark.usefixtures("connection")
@pytest.mark.parametrize(
    ("name", "unpack"), [("a.tsv", bytes), ("a.tab.bz2", bz2.decompress), ("a.TSV.xz", lzma.decompress)]
)
def test_the_name_says_tabs_and_compression(
    database: Database, tmp_path: Path, name: str, unpack: Callable[[bytes], bytes]
) -> None:
    done = rowcall(
        "export", "thing", "--out", tmp_path / name, "--fields", "id,code", ROWCALL_DATABASE_URL=database.url
    )
    assert done.status == 0, done.err
    assert unpack((tmp_path / name).read_bytes()).splitlines()[1] == b"1\t'=1"


def test_a_name_that_says_no_format_is_refused(tmp_path: Path) -> None:
    done = rowcall("export", "thing", "--out", tmp_path / "out.docx")
    assert done.status == 1
    assert "doesn't say which format" in done.err
    assert "--formulas is 'run'" in rowcall("export", "thing", "--formulas", "run").err


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("asked", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_told_to_stop_leaves_no_file_and_no_query(
    database: Database, connection: Connection[Any], tmp_path: Path, asked: signal.Signals, status: int
) -> None:
    connection.execute("CREATE VIEW slow AS SELECT id, CASE WHEN id = 150000 THEN pg_sleep(60)::text END FROM many")
    command = subprocess.Popen(
        [COMMAND, "export", "slow", "--out", tmp_path / "out.csv"],
        env={**os.environ, "ROWCALL_DATABASE_URL": database.url},
        stderr=subprocess.PIPE,
    )
    running = "SELECT FROM pg_stat_activity WHERE application_name = 'rowcall export' AND query LIKE 'COPY%'"
    while not connection.execute(running).rowcount:
        assert command.poll() is None
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) != []
    command.send_signal(asked)
    command.communicate(timeout=10)
    assert command.returncode == status
    assert list(tmp_path.iterdir()) == []
    assert connection.execute(running).rowcount == 0
