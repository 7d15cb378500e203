"""Files and cells at the edge of what there is."""

import json
from typing import LiteralString, cast

import pytest

from rowcall import DateTime, Decimal, Integer, Json, List, Text, Update
from rowcall.model import State
from rowcall.store.db import Database

from .importing import declared, run_import, sql

CELLS = [
    "tab\there",
    "two\nlines",
    "win\r\nlines",
    "\\",
    "\\N",
    "\\n",
    "\\.",
    "\\\\t\\",
    'a "quoted" word',
    '"',
    "'",
    "{}",
    "{a,b}",
    "{NULL}",
    "NULL",
    "null",
    "%s %(x)s {} {0}",
    "$1; DROP TABLE t; --",
    "👩‍👩‍👧 ä ß 漢字 \u200f",
    "\x01\x1f\x7f",
    ",",
    "=1+1",
    "é" * 1_000_000,
]


@pytest.mark.parametrize("bad", [False, True], ids=["straight", "staged"])
def test_cells_arrive_as_they_are(database: Database, bad: bool) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, cell text CHECK (cell <> 'BAD'), list text[], object jsonb)")
    importer = declared(
        "t", key="id", on_match=Update(), id=Integer(), cell=Text(strip=False), list=List(), object=Json()
    )
    cells = [*CELLS, "BAD"] if bad else CELLS
    lines = [f'{number},"{cell.replace(chr(34), 2 * chr(34))}",,' for number, cell in enumerate(cells)]
    text = "id,cell,list,object\n" + "\n".join(lines) + '\n900,,"a ""x"",{b},\\,NULL","{""k"": [1, ""\\""\\n""]}"\n'
    result = run_import(database, importer, text)
    assert set(result.told) - {"failed CHECK_VIOLATION"} == {"created"}
    assert result.values("cell")[:-1] == CELLS
    assert result.rows[-1]["list"] == ['a "x"', "{b}", "\\", "NULL"]
    assert result.rows[-1]["object"] == {"k": [1, '"\n']}
    assert set(run_import(database, importer, text).told) - {"failed CHECK_VIOLATION"} == {"unchanged"}


@pytest.mark.parametrize("dry_run", [False, True])
def test_keys_and_values_of_any_text_are_told_as_they_are(database: Database, dry_run: bool) -> None:
    sql(database, "CREATE TABLE t (cell text PRIMARY KEY, code int CHECK (code > 0))")
    importer = declared("t", key="cell", on_match=Update(), cell=Text(strip=False), code=Integer())
    cells = [cell for cell in CELLS if len(cell) < 100]
    lines = [f'"{cell.replace(chr(34), 2 * chr(34))}",{place % 2}' for place, cell in enumerate(cells)]
    result = run_import(database, importer, "cell,code\n" + "\n".join(lines), dry_run=dry_run)
    for (_, outcome), (place, cell) in zip(sorted(result.outcomes.items()), enumerate(cells), strict=True):
        assert outcome.key == ([cell] if place % 2 and not dry_run else None)
        assert outcome.told == ("created" if place % 2 else "failed CHECK_VIOLATION")


def test_header_alone_is_a_job_without_rows(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int)")
    for dry_run, state in ((True, State.VALIDATED), (False, State.COMPLETED)):
        result = run_import(database, declared("t", id=Integer()), "id,name\n", dry_run=dry_run)
        assert (result.job.state, result.job.row_count, result.counts.done) == (state, 0, 0)


def test_file_of_bad_records_alone(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, name text)")
    importer = declared("t", key="id", id=Integer(), name_=Text())
    result = run_import(database, importer, 'id,name\n1,"a"b\n2,"c"d\n3,"e', batch_rows=1)
    assert result.told == ["failed BROKEN_QUOTE", "failed BROKEN_QUOTE", "failed UNCLOSED_QUOTE"]
    assert result.job.state is State.COMPLETED_WITH_ERRORS


def test_one_column(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int)")
    assert run_import(database, declared("t", id=Integer()), "id\n1\nx\n3\n").told == [
        "created",
        "failed INVALID_INTEGER",
        "created",
    ]


def test_three_hundred_columns(database: Database) -> None:
    names = [f"c{place}" for place in range(300)]
    with database.connect() as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(f'{name} text' for name in names)})".encode())
    text = "\n".join([",".join(names), *(",".join(f"{row}-{name}" for name in names) for row in range(3))])
    result = run_import(database, declared("t", **{name: Text() for name in names}), text)
    assert result.told == ["created"] * 3
    assert result.rows[2]["c299"] == "2-c299"


def test_blank_rows_of_every_kind(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int, name text)")
    result = run_import(database, declared("t", id=Integer(), name_=Text(blank=["-"])), 'id,name\n,\n" ",-\n\n2,x\n')
    assert result.told == ["created"] * 3
    assert result.job.blank_lines == 1
    assert result.values("id", "name") == [(2, "x"), (None, None), (None, None)]


def test_what_a_column_would_round_is_told_instead(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, hundreds numeric(5, -2), at timestamp(0), ms timestamptz(3))")
    importer = declared("t", key="id", id=Integer(), hundreds=Decimal(), at=DateTime(), ms=DateTime())
    text = (
        "id,hundreds,at,ms\n1,12345,,\n2,49,,\n3,,2024-01-01T00:00:00.7,\n4,,,2024-01-01T00:00:00.1234Z\n"
        "5,,,2024-01-01T00:00:00.123456789Z\n6,12300,2024-01-01T00:00:01.0,2024-01-01T00:00:00.123Z\n"
    )
    result = run_import(database, importer, text)
    assert result.told == [*["failed TOO_PRECISE"] * 5, "created"]
    assert result.issue(1).message == "12345 is no multiple of 100, and its column keeps nothing finer."
    assert result.issue(3).message.endswith("has a fraction of a second, and its column keeps whole ones.")


@pytest.mark.parametrize(
    ("kind", "kept", "refused", "code"),
    [
        ("numeric(6,2)[]", ["1.550", "1e2", "NaN", " 1.5 "], ["1.555", "1e-3"], "TOO_PRECISE"),
        ("numeric(5,-2)[]", ["12300", "0"], ["12345"], "TOO_PRECISE"),
        ("varchar(3)[]", ["abc", ""], ["abcd"], "TOO_LONG"),
        ("char(3)[]", ["abc"], ["abcd"], "TOO_LONG"),
        ("timestamp(0)[]", ["2024-01-01T00:00:00.0Z"], ["2024-01-01 00:00:00.7"], "TOO_PRECISE"),
        ("timestamptz[]", ["2024-01-01T00:00:00.123456Z"], ["2024-01-01T00:00:00.1234567Z"], "TOO_PRECISE"),
        ("time(1)[]", ["12:00:00.1"], ["12:00:00.12"], "TOO_PRECISE"),
        ("prices", ["1.55"], ["1.555"], "TOO_PRECISE"),
        ("sums", ["1.55"], ["1.555"], "TOO_PRECISE"),
    ],
)
def test_items_that_the_elements_of_an_array_would_round_are_told(
    database: Database, kind: str, kept: list[str], refused: list[str], code: str
) -> None:
    sql(database, "CREATE DOMAIN price AS numeric(6,2); CREATE DOMAIN prices AS price[]")
    sql(database, "CREATE DOMAIN sums AS numeric(6,2)[]")
    sql(database, cast("LiteralString", f"CREATE TABLE t (id int PRIMARY KEY, x {kind})"))
    lists = [[item] for item in kept] + [[*kept, item] for item in refused]
    text = "".join(json.dumps({"id": number, "x": items}) + "\n" for number, items in enumerate([*lists, None, []]))
    result = run_import(database, declared("t", key="id", id=Integer(), x=List()), text, file_name="t.ndjson")
    assert result.told == [*["created"] * len(kept), *[f"failed {code}"] * len(refused), "created", "created"]


def test_text_of_an_array_is_as_long_as_it_likes(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, x varchar(3)[])")
    importer = declared("t", key="id", id=Integer(), x=Text())
    assert run_import(database, importer, 'id,x\n1,"{abc,def}"\n').told == ["created"]


def test_domains_demand_what_those_below_them_do(database: Database) -> None:
    sql(
        database,
        """
        CREATE TYPE mood AS ENUM ('glad', 'sad');
        CREATE DOMAIN money1 AS numeric(6, 2); CREATE DOMAIN price AS money1;
        CREATE DOMAIN moment1 AS timestamp(0); CREATE DOMAIN moment AS moment1;
        CREATE DOMAIN word1 AS varchar(3) NOT NULL; CREATE DOMAIN word2 AS word1; CREATE DOMAIN word AS word2;
        CREATE DOMAIN small1 AS smallint; CREATE DOMAIN small AS small1;
        CREATE DOMAIN mood1 AS mood; CREATE DOMAIN feeling AS mood1;
        CREATE DOMAIN days1 AS date[]; CREATE DOMAIN days AS days1;
        CREATE TABLE t (id int PRIMARY KEY, v price, at moment, word word, n small, mood feeling, days days);
        """,
    )
    fields = {"v": Decimal(), "at": DateTime(), "word": Text(), "n": Integer(), "mood": Text(), "days": List()}
    importer = declared("t", key="id", on_match=Update(), id=Integer(), **fields)
    text = (
        "id,v,at,word,n,mood,days\n1,1.555,,a,,,\n2,,2024-01-01T00:00:00.7,a,,,\n3,,,long,,,\n4,,,a,40000,,\n"
        '5,,,a,,bad,\n6,,,,,,\n7,1.55,2024-01-01T00:00:01,abc,1,sad,"2024-01-01,2024-01-02"\n'
    )
    result = run_import(database, importer, text)
    codes = ["TOO_PRECISE", "TOO_PRECISE", "TOO_LONG", "TOO_LARGE", "NOT_A_CHOICE", "REQUIRED"]
    assert result.told == [*(f"failed {code}" for code in codes), "created"]
    assert run_import(database, importer, text).told[-1] == "unchanged"
