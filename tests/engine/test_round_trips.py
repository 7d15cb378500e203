"""What is exported comes back as it was, by the importer that is scaffolded from the table."""

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rowcall import DateTime, Update
from rowcall.errors import FileRefused
from rowcall.formats import WriteFormat
from rowcall.model import Mode, State
from rowcall.store.db import Database

from ..scaffolding import created
from .importing import declared, run_import, sql
from .round_trips import assert_same, brought_back, content, exported, scaffolded

FORMATS = list(WriteFormat)
_FINE = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.function_scoped_fixture,  # each example makes its table anew
]
TYPES = """
    CREATE TYPE mood AS ENUM ('glad', 'so so', 'Glad');
    CREATE DOMAIN share AS numeric(5, 4) CHECK (VALUE <= 1);
"""
# a type, and its values as PostgreSQL reads them
_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
_NUMBER = st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda number: f"{number.normalize():f}")
_WIDE = st.integers(-(10**45), 10**45).map(str)
_FLOAT = st.floats(width=64).map(lambda number: "NaN" if math.isnan(number) else repr(number))
_DAY = st.dates().map(str)
_MOMENT = st.datetimes().map(str)
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner)
)
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "text NOT NULL": _TEXT,
    "text": _TEXT.filter(bool),  # of an empty one CSV can't tell that it is there
    "varchar(12)": _TEXT.filter(bool),
    "mood": st.sampled_from(["glad", "so so", "Glad"]),
    "boolean": st.booleans(),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "numeric": _NUMBER | _WIDE,
    "numeric(20, 3)": st.decimals(-(10**16), 10**16, places=3),
    "share": st.decimals(0, 1, places=4),
    "float8": _FLOAT,
    "float4": st.floats(width=32, allow_nan=False).map(repr),
    "date": _DAY,
    "timestamp": _MOMENT,
    "timestamptz": st.datetimes().map(lambda moment: f"{moment}+02"),
    "time": st.times().map(str),
    "interval": st.timedeltas().map(lambda delta: f"{delta.days} days {delta.seconds} seconds"),
    "bytea": st.binary(max_size=9),
    "uuid": st.uuids(),
    "inet": st.ip_addresses().map(str),
    "int4range": st.integers(-9, 9).map(lambda start: f"[{start},10)"),
    "bit(4)": st.text("01", min_size=4, max_size=4),
    "jsonb": _JSON.map(lambda value: json.dumps(value).replace("\\u0000", "")),
    "int[]": st.lists(st.none() | st.integers(-9, 9), max_size=4),
    "numeric[]": st.lists(_NUMBER, max_size=4),
    "text[]": st.lists(st.none() | _TEXT, max_size=4),
    "date[]": st.lists(st.dates(), max_size=3),
    "uuid[]": st.lists(st.uuids(), max_size=3),
}
ROWS = st.lists(
    st.tuples(*(values if "NOT NULL" in kind else st.none() | values for kind, values in COLUMNS.items())), max_size=40
)


@settings(max_examples=2, phases=[Phase.generate], deadline=None, suppress_health_check=_FINE)
@given(rows=ROWS)
@pytest.mark.parametrize("kind", FORMATS)
def test_any_table_comes_back(database: Database, kind: WriteFormat, rows: list[tuple[Any, ...]]) -> None:
    names = [f"c{place}" for place, _ in enumerate(COLUMNS)]
    with database.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS t; DROP TYPE IF EXISTS mood; DROP DOMAIN IF EXISTS share")
        connection.execute(TYPES)
        listed = ", ".join(f"{name} {type_}" for name, type_ in zip(names, COLUMNS, strict=True))
        connection.execute(f"CREATE TABLE t (id int PRIMARY KEY, {listed})".encode())
        casts = ", ".join(f"%s::{type_.removesuffix(' NOT NULL')}" for type_ in COLUMNS)
        insert = f"INSERT INTO t VALUES (%s, {casts})".encode()
        connection.cursor().executemany(insert, [(number, *row) for number, row in enumerate(rows, 1)])
        connection.execute(f"INSERT INTO t (id, {names[0]}) VALUES (0, 'nothing else')".encode())
    before = content(database)
    result = brought_back(database, kind)
    assert result.told == ["unchanged"] * len(before), [outcome.issues for outcome in result.outcomes.values()]
    assert content(database) == before


@pytest.mark.parametrize("kind", FORMATS)
def test_values_at_the_edge_of_their_types(database: Database, kind: WriteFormat) -> None:
    sql(
        database,
        """
        CREATE TYPE mood AS ENUM ('glad', 'Glad', ' glad');
        CREATE TABLE t (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, code char(4), remark varchar(40),
            ratio float8, small float4, exact numeric, price numeric(12, 2), wide numeric(60, 20), mood mood,
            data jsonb, tags text[], sizes bigint[], prices numeric[], days date[], ids uuid[],
            at timestamptz, local timestamp, hour timetz, took interval, raw bytea, address inet, cash money,
            span tsrange, bits varbit, twice float8 GENERATED ALWAYS AS (ratio / 2) STORED);
        INSERT INTO t (name, code, remark, ratio, small, exact, price, wide, mood, data, tags, sizes, prices, days, ids)
        VALUES ('', 'a', '  a ', 1e308, 1e38, 123456789012345678901234567890123456789, -0.10,
                1234567890123456789012345678901234567890.12345678901234567891, 'Glad', '"x"', '{"a,b",NULL,"\\"\\\\"}',
                '{9223372036854775807,NULL}', '{1.5,12345678901234567890.12345}', '{2024-02-29}',
                '{00000000-0000-0000-0000-000000000001}'),
               (' ', ' a', E'x\\n', 5e-320, 1e-45, 1e-20, 1, 0, ' glad', 'null', '{}', '{}', '{}', '{}', '{}'),
               ('=1+1', '', '''=1', 'NaN', 'NaN', 'NaN', NULL, NULL, 'glad', '""', '{""}', '{1}', NULL, NULL, NULL),
               ('007', NULL, '''', 'Infinity', '-Infinity', '-Infinity', NULL, NULL, NULL, '"5"', '{" x "}', NULL, NULL,
                NULL, NULL),
               (E'\\t', NULL, NULL, '-0', 0.1, 0.1, NULL, NULL, NULL, '[1.0, "null"]', NULL, NULL, NULL, NULL, NULL);
        INSERT INTO t (name, at, local, hour, took, raw, address, cash, span, bits)
        VALUES ('times', '1850-01-01 00:00:00.000001+02', '9999-12-31 23:59:59.999999', '23:59:59+02', '-1 mon 3.5 sec',
                '', '10.0.0.0/8', -1234.56, '[2024-01-01 00:00,)', B'10');
        """,
    )
    assert_same(database, kind)


@pytest.mark.parametrize("kind", FORMATS)
def test_times_without_time_zone_come_back_whatever_that_of_the_importer(database: Database, kind: WriteFormat) -> None:
    sql(database, "CREATE TABLE t (at timestamp PRIMARY KEY, day date, moment timestamptz)")
    sql(
        database,
        """
        INSERT INTO t VALUES ('2024-07-01 12:00', '2024-07-01', '2024-07-01 12:00+02');
        INSERT INTO t VALUES ('2024-10-27 02:30'), ('1850-01-01 00:00:00.000001');
        """,
    )
    fields = {"at": DateTime(), "day": DateTime(), "moment": DateTime()}
    importer = declared("t", key="at", on_match=Update(), timezone="Europe/Berlin", **fields)
    before = content(database)
    file = exported(database, kind)
    assert run_import(database, importer, file, file_name=f"t.{kind}").told == ["unchanged"] * 3
    sql(database, "DELETE FROM t")
    assert run_import(database, importer, file, file_name=f"t.{kind}").told == ["created"] * 3
    assert content(database) == before


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind is not WriteFormat.CSV])
def test_an_empty_text_is_told_from_none(database: Database, kind: WriteFormat) -> None:
    sql(database, 'CREATE TABLE t (id int PRIMARY KEY, a text, b varchar(3), c varbit, d "char")')
    sql(database, "INSERT INTO t VALUES (1, '', '', '', ''), (2, NULL, NULL, NULL, NULL)")
    assert_same(database, kind)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_without_rows(database: Database, kind: WriteFormat) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL)")
    if kind is WriteFormat.NDJSON:
        with pytest.raises(FileRefused, match="empty"):  # it can't be told from a file that was cut off
            brought_back(database, kind)
        return
    result = brought_back(database, kind)
    assert (result.job.state, result.told) == (State.COMPLETED, [])


def test_columns_that_can_not_be_written_are_left_out_and_told(database: Database) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int PRIMARY KEY, name text, serial int GENERATED ALWAYS AS IDENTITY, many jsonb[],
                        length int GENERATED ALWAYS AS (length(name)) STORED);
        INSERT INTO t (id, name, many) VALUES (1, 'a', '{1}'), (2, 'b', NULL);
        """,
    )
    source = scaffolded(database)
    assert list(created(source).fields) == ["id", "name"]
    for line in (
        "Left out: serial, integer; it is GENERATED ALWAYS AS IDENTITY.",
        "Left out: many, jsonb[]; an array of JSON can't be told from one of several dimensions.",
        "Left out: length, integer; PostgreSQL generates it.",
    ):
        assert line in " ".join(source.replace("#", "").split())
    assert brought_back(database, WriteFormat.NDJSON).told == ["unchanged"] * 2
    file = exported(database, WriteFormat.CSV).replace(b",b,", b",c,")
    result = run_import(database, created(source), file, mode=Mode.UPSERT)
    assert (result.told, result.values("name")) == (["unchanged", "updated"], ["a", "c"])


def test_arrays_of_several_dimensions_are_refused_not_flattened(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, a text[], b int[])")
    sql(database, "INSERT INTO t VALUES (1, '{{a},{b}}', NULL), (2, NULL, '{{1,2},{3,4}}')")
    assert brought_back(database, WriteFormat.CSV).told == ["failed INVALID_LIST"] * 2


def test_columns_that_are_called_alike_are_told_apart(database: Database) -> None:
    sql(database, """CREATE TABLE t (id int PRIMARY KEY, "Name" text, name text, "a b" text, a_b text)""")
    sql(database, "INSERT INTO t VALUES (1, 'a', 'b', 'c', 'd')")
    source = scaffolded(database)
    assert "# A file's column 'Name' looks like 'name': bring it with --map 'Name=name_2'." in source
    before = content(database)
    assert brought_back(database, WriteFormat.CSV).told == ["unchanged"]
    file, mapping = exported(database, WriteFormat.CSV), {"Name": "name_2", "a b": "a_b_2"}
    sql(database, "DELETE FROM t")
    assert run_import(database, created(source), file, mapping=mapping).told == ["created"]
    assert content(database) == before
