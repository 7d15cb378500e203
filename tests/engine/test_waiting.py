"""Rows that look for others in their own target find the same ones, however the file is cut and whoever is first."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, LiteralString

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from psycopg.sql import SQL, Literal

from rowcall import Importer, Integer, Lookup, Skip, Text, Update, Version
from rowcall.engine.doctor import verify_job
from rowcall.engine.moves import cancel
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.errors import Final
from rowcall.importer.matching import OnMatch
from rowcall.model import State
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig, get_job

from .importing import Result, declared, result_of, run_import, settings_for, sql

PEOPLE = """
    DROP TABLE IF EXISTS people;
    CREATE TABLE people (
        id int PRIMARY KEY, name text, team int, code int, boss_id int REFERENCES people, mate_id int, boss_code int);
    INSERT INTO people (id, name, team, code) VALUES
        (10, 'bob-1', 1, 1), (20, 'ann-2', 1, 1), (21, 'bob-2', 1, 1), (30, 'bob-3', 1, 1), (38, 'Lea-3', 1, 1),
        (40, 'dan-4', 1, 1), (50, 'eve-5', 1, 1), (51, 'eve-5', 1, 1), (60, 'gus-6', 1, 1), (61, 'gus-6', 2, 1),
        (70, 'hal-7', 1, 7), (80, 'ida-8', 1, 1), (81, 'jon-8', 1, 1), (82, 'kit-8', 1, 1), (84, 'nic-8', 1, 1),
        (90, 'ole-9', 1, 1), (91, 'pia-9', 1, 1), (100, 'sam-10', 1, 1), (110, 'tim-11', 1, 1), (111, 'uwe-11', 1, 1),
        (112, 'vic-11', 1, 1), (114, 'wim-11', 1, 1), (120, 'xia-12', 1, 1);
"""
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "name_": Text(),
    "team": Integer(),
    "code": Integer(),
    "boss_id": Lookup("people", by="name"),
    "mate_id": Lookup("people", by="name", within="team"),
    "boss_code": Lookup("people", by="name", to="code"),
}
LONG = "".join(sha256(str(n).encode()).hexdigest() for n in range(200))
"""Longer than an index takes."""
# Rows of the file, with what becomes of them: an outcome, and what was found.
SOUGHT = {
    # a name is given up
    "10,rob-1,1,1,,,": ("updated", None),
    "11,new-1,1,1,bob-1,,": ("failed NOT_FOUND", None),
    "12,own-1,1,1,rob-1,,": ("created", 10),
    # a name moves from one to another
    "20,cy-2,1,1,,,": ("updated", None),
    "21,ann-2,1,1,,,": ("updated", None),
    "22,new-2,1,1,ann-2,,": ("created", 21),
    "23,own-2,1,1,cy-2,,": ("created", 20),
    # names that differ in case only
    "31,Bob-3,1,1,,,": ("created", None),
    "32,new-3,1,1,Bob-3,,": ("created", 31),
    "33,own-3,1,1,BOB-3,,": ("created", 30),
    "34,Kim-3,1,1,,,": ("created", None),
    "35,kim-3,1,1,,,": ("created", None),
    "36,two-3,1,1,Kim-3,,": ("created", 34),
    "37,few-3,1,1,KIM-3,,": ("created", 35),
    "38,lea-3,1,1,,,": ("updated", None),
    "39,any-3,1,1,Lea-3,,": ("created", 38),
    # another one gets the name
    "41,dan-4,1,1,,,": ("created", None),
    "42,new-4,1,1,dan-4,,": ("failed NOT_UNIQUE", None),
    "43,two-4,1,1,,,": ("created", None),
    "44,two-4,1,1,,,": ("created", None),
    "45,own-4,1,1,two-4,,": ("failed NOT_UNIQUE", None),
    # one of two that have it gives it up
    "51,fay-5,1,1,,,": ("updated", None),
    "52,new-5,1,1,eve-5,,": ("created", 50),
    # a team is changed
    "60,gus-6,3,1,,,": ("updated", None),
    "62,new-6,1,1,,gus-6,": ("failed NOT_FOUND", None),
    "63,own-6,3,1,,gus-6,": ("created", 60),
    "64,two-6,2,1,,gus-6,": ("created", 61),
    # what is kept of the row that is found is changed
    "70,hal-7,1,77,,,": ("updated", None),
    "71,new-7,1,1,,,hal-7": ("created", 77),
    # one that waits for a name gives up its own, which another gets
    "80,lea-8,1,1,,,": ("updated", None),
    "81,ida-8,1,1,,,": ("updated", None),
    "82,max-8,1,1,ida-8,,": ("updated", 81),
    "83,new-8,1,1,kit-8,,": ("created", 84),
    "84,kit-8,1,1,,,": ("updated", None),
    # they wait for each other, and find what was there before
    "90,pia-9,1,1,pia-9,,": ("updated", 91),
    "91,ole-9,1,1,ole-9,,": ("updated", 90),
    # what else is wrong with a row is told once, beside what it really lacks
    "100,tom-10,1,1,,,": ("updated", None),
    "101,new-10,1,x,sam-10,,": ("failed INVALID_INTEGER NOT_FOUND", None),
    "102,own-10,1,x,yet-10,,": ("failed INVALID_INTEGER", None),
    "103,yet-10,1,1,,,": ("created", None),
    # one that is not in yet, as it needs one that waits, gives up its name
    "110,tia-11,1,1,,,": ("updated", None),
    "111,tim-11,1,1,,,": ("updated", None),
    "112,new-11,1,1,tim-11,,": ("updated", 111),
    "113,own-11,1,1,wim-11,,": ("failed NOT_FOUND", None),
    "114,wum-11,1,1,new-11,,": ("updated", 112),
    # a long name
    f"131,{LONG},1,1,,,": ("created", None),
    f"132,{LONG.upper()},1,1,,,": ("created", None),
    f"133,new-13,1,1,{LONG.upper()},,": ("created", 132),
    # nobody changes what they look for; one would, but fails
    "121,new-12,1,1,xia-12,,": ("created", 120),
    "120,yan-12,1,1,nobody,,": ("failed NOT_FOUND", None),
    "122,own-12,1,1,own-12,,": ("created", 122),
}
HEADER = "id,name,team,code,boss_id,mate_id,boss_code"


def imported(database: Database, rows: Iterable[str], *, atomic: bool = False, **options: Any) -> Result:
    """People by name, changed by number."""
    sql(database, PEOPLE)
    importer = declared("people", key="id", on_match=Update(), atomic=atomic, **FIELDS)
    text = "\n".join([HEADER, *rows, ""])
    return run_import(database, importer, text, **options)


def found(result: Result, rows: Iterable[str]) -> dict[str, tuple[str, int | None]]:
    """What became of each row of the file, and whom it found."""
    there = {row["id"]: row for row in result.rows}
    outcomes: dict[str, tuple[str, int | None]] = {}
    for row, outcome in zip(rows, result.told, strict=True):
        kept = {} if outcome.startswith("failed") else there[int(row.split(",")[0])]
        sought = [kept[name] for name in ("boss_id", "mate_id", "boss_code") if kept.get(name) is not None]
        outcomes[row] = outcome, sought[0] if sought else None
    return outcomes


@pytest.mark.parametrize(("batch_rows", "workers", "order"), [(1, 3, -1), (2, 1, 1), (3, 3, -1), (100, 1, 1)])
def test_rows_find_whom_the_file_makes_of_them(database: Database, batch_rows: int, workers: int, order: int) -> None:
    rows = list(SOUGHT)[::order]
    result = imported(database, rows, batch_rows=batch_rows, workers=workers)
    assert found(result, rows) == SOUGHT
    assert result.job.state is State.COMPLETED_WITH_ERRORS
    assert sql(database, "SELECT count(*) FROM rowcall.waiting") == [(0,)]


def test_dry_run_tells_the_same(database: Database) -> None:
    result = imported(database, SOUGHT, batch_rows=20, dry_run=True)
    assert result.told == [outcome for outcome, _ in SOUGHT.values()]


def test_all_or_nothing_finds_the_same(database: Database) -> None:
    good = {row: what for row, what in SOUGHT.items() if not what[0].startswith("failed")}
    result = imported(database, good, batch_rows=20, atomic=True)
    assert result.job.state is State.COMPLETED
    assert found(result, good) == good


def interrupted(database: Database, tmp_path: Path) -> tuple[type[Importer], Job]:
    """An import that was stopped when some of the rows that wait had their turn."""
    sql(database, PEOPLE)
    sql(
        database,
        "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF OLD.row_number = TG_ARGV[0]::int THEN PERFORM nowhere(); END IF; RETURN OLD; END $$",
    )
    number = next(place for place, row in enumerate(SOUGHT, 1) if row.startswith("83,"))  # others waited and are in
    stop = SQL("CREATE TRIGGER stop BEFORE DELETE ON rowcall.waiting FOR EACH ROW EXECUTE FUNCTION stop({})")
    importer = declared("people", key="id", on_match=Update(), **FIELDS)
    how = settings_for(database, tmp_path, batch_rows=20)
    text = BytesIO("\n".join([HEADER, *SOUGHT, ""]).encode())
    with database.connect() as connection:
        connection.execute(stop.format(Literal(number)))
        job = start_job(connection, how, importer, text, file_name="a.csv", config=JobConfig())
    with pytest.raises(Final, match="nowhere"):
        run_job(Run(database, importer, how), job)
    sql(database, "DROP FUNCTION stop CASCADE")
    return importer, job


def test_interrupted_rows_that_wait_go_on(database: Database, tmp_path: Path) -> None:
    importer, job = interrupted(database, tmp_path)
    done = run_job(Run(database, importer, settings_for(database, tmp_path, batch_rows=20)), job)
    assert found(result_of(database, importer, done), SOUGHT) == SOUGHT


def test_cancelled_rows_that_wait_have_not_had_their_turn(database: Database, tmp_path: Path) -> None:
    importer, job = interrupted(database, tmp_path)
    with database.connect() as connection:
        waited = {number for (number,) in connection.execute("SELECT row_number FROM rowcall.waiting")}
        with connection.transaction():
            done = cancel(connection, get_job(connection, str(job.id)))
        verified = verify_job(connection, done, importer, [importer])
    outcomes = result_of(database, importer, done).outcomes
    assert waited
    assert done.state is State.CANCELLED
    assert {row for row, outcome in outcomes.items() if outcome.told == "skipped NOT_APPLIED"} == waited
    assert [finding for finding in verified if finding.verdict.bad] == []


UPDATE, BY_NAME = Update(), Lookup("nodes", by="name")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table `nodes` of id, name, parent_id and more, what is in it, a file, and what becomes of it all."""

    table: LiteralString = "id text PRIMARY KEY DEFAULT gen_random_uuid()::text, name text, parent_id text"
    more: LiteralString = ""
    there: LiteralString
    on_match: OnMatch = UPDATE
    natural_key: tuple[str, ...] = ()
    parent: Lookup = BY_NAME
    rows: list[str]
    told: list[str]
    left: list[tuple[str, str, str | None]]


CASES = {
    "what is there stays": Case(
        there="('1', 'a')",
        on_match=Skip(),
        rows=["1,b,", "2,b,a", "3,c,b", "4,A,", "5,d,A"],
        told=["skipped ALREADY_EXISTS", "created", "created", "created", "created"],
        left=[("1", "a", None), ("2", "b", "1"), ("3", "c", "2"), ("4", "A", None), ("5", "d", "4")],
    ),
    "versions are added": Case(
        table="id text, name text, parent_id text, version int, PRIMARY KEY (id, version)",
        there="('1', 'a', NULL, 1), ('2', 'b', NULL, 1), ('3', 'c', '1', 1)",
        on_match=Version(),
        rows=["1,c,", "2,b,", "4,d,b", "5,e,c", "3,c,a", "6,f,a"],
        told=["updated", "unchanged", "created", "failed NOT_UNIQUE", "unchanged", "created"],
        left=[("1", "a", None), ("1", "c", None), ("2", "b", None), ("3", "c", "1"), ("4", "d", "2"), ("6", "f", "1")],
    ),
    "case makes no difference": Case(
        table="id text PRIMARY KEY, name citext, parent_id text",
        there="('1', 'a'), ('2', 'b')",
        rows=["1,c,", "2,A,", "3,d,a", "4,e,B", "5,f,C"],
        told=["updated", "updated", "created", "failed NOT_FOUND", "created"],
        left=[("1", "c", None), ("2", "A", None), ("3", "d", "2"), ("5", "f", "1")],
    ),
    "the row that is found is part of the key": Case(
        more=", code text, UNIQUE (parent_id, name)",
        there="('1', 'r', NULL, 'a'), ('2', 'x', '1', 'c')",
        natural_key=("parent_id", "name"),
        parent=Lookup("nodes", by="code"),
        rows=["1,r,,b", ",x,b,d", "3,q,c,e", "4,p,d,f"],
        told=["updated", "updated", "created", "created"],
        left=[("1", "r", None), ("2", "x", "1"), ("3", "q", "2"), ("4", "p", "2")],
    ),
    "by one column or another": Case(
        there="('1', '2'), ('a', 'b')",
        parent=Lookup("nodes", by=("id", "name")),
        rows=["2,c,", "3,d,2", "a,e,", "4,f,b", "5,g,e"],
        told=["created", "created", "updated", "failed NOT_FOUND", "created"],
        left=[("1", "2", None), ("2", "c", None), ("3", "d", "2"), ("5", "g", "a"), ("a", "e", None)],
    ),
    "by what the target makes of a row": Case(
        more=", slug text GENERATED ALWAYS AS (replace(name, ' ', '-')) STORED",
        there="('1', 'a b'), ('2', 'x'), ('3', 'y')",
        parent=Lookup("nodes", by="slug"),
        rows=["1,c d,", "2,a b,", "3,y,a-b"],
        told=["updated", "updated", "updated"],
        left=[("1", "c d", None), ("2", "a b", None), ("3", "y", "2")],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("batch_rows", "workers", "order"), [(1, 3, 1), (100, 1, -1)])
def test_whatever_becomes_of_rows_they_find_the_same(
    database: Database, name: str, batch_rows: int, workers: int, order: int
) -> None:
    case = CASES[name]
    if "citext" in case.table:
        if not sql(database, "SELECT 1 FROM pg_available_extensions WHERE name = 'citext'"):
            pytest.skip("this PostgreSQL comes without citext")
        sql(database, "CREATE EXTENSION citext")
    sql(database, f"CREATE TABLE nodes ({case.table}{case.more}); INSERT INTO nodes VALUES {case.there}")
    fields = {"id": Text(), "name_": Text(required=True), "parent_id": case.parent}
    if "code" in case.more:
        fields["code"] = Text()
    importer = declared("nodes", key="id", natural_key=case.natural_key, on_match=case.on_match, **fields)
    text = "\n".join([",".join(fields).replace("_,", ","), *case.rows[::order], ""])
    result = run_import(database, importer, text, batch_rows=batch_rows, workers=workers)
    assert result.told == case.told[::order]
    assert sorted(map(str, result.values("id", "name", "parent_id"))) == sorted(map(str, case.left))


NAMES = st.sampled_from(["a", "A", "b", "B"])
MEMBERS = st.dictionaries(st.integers(0, 5), st.tuples(NAMES, NAMES | st.just("")), max_size=5)
FAMILY = st.tuples(st.lists(NAMES, max_size=3), MEMBERS)
SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@settings(max_examples=2, deadline=None, phases=[Phase.generate], suppress_health_check=SLOW)
@given(families=st.lists(FAMILY, min_size=8, max_size=8))
def test_any_file_comes_to_the_same(database: Database, families: list[Any]) -> None:
    """Families have names of their own: each of them is a small case for itself."""
    there = [(10 * f + n, f"{name}{f}") for f, (names, _) in enumerate(families) for n, name in enumerate(names)]
    rows = [
        f"{10 * f + n},{name}{f},{boss and f'{boss}{f}'}"
        for f, (_, members) in enumerate(families)
        for n, (name, boss) in members.items()
    ]
    fields = {name: FIELDS[name] for name in ("id", "name_", "boss_id")}
    importer = declared("people", key="id", on_match=Update(), **fields)
    seen: list[Any] = []
    for batch_rows, workers, order in [(1, 3, 1), (4, 1, -1)]:
        sql(database, "DROP TABLE IF EXISTS people")
        sql(database, "CREATE TABLE people (id int PRIMARY KEY, name text, boss_id int)")
        with database.connect() as connection:
            connection.cursor().executemany("INSERT INTO people VALUES (%s, %s)", there)
        text = "\n".join(["id,name,boss_id", *rows[::order], ""])
        result = run_import(database, importer, text, batch_rows=batch_rows, workers=workers)
        seen.append((result.told[::order], result.values("id", "name", "boss_id")))
    assert seen[0] == seen[1]
