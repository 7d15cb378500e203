"""Undo after an import brings back the target exactly, but for what others have changed since (X2)."""

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any, LiteralString

import polars as pl
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from psycopg.sql import SQL, Identifier

from rowcall import Date, Fail, Importer, Integer, List, Skip, Text, Update, Version
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.model import State
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig

from .importing import declared, settings_for, sql
from .undoing import previewed, undone

TABLES: LiteralString = """
    CREATE TYPE mood AS ENUM ('glad', 'so so');
    CREATE TYPE pair AS (a int, b jsonb);
    CREATE TABLE t (
        id int PRIMARY KEY, name text COLLATE "C", code varchar(6), size numeric, price numeric(8, 2), share float8,
        day date, at timestamptz, wait interval, mood mood, raw json, doc jsonb, docs jsonb[], tags text[],
        nums int[], shares float8[], pair pair, spans int4range, bits bit(3), bytes bytea, place inet, padded char(4),
        doubled numeric GENERATED ALWAYS AS (size * 2) STORED, note text NOT NULL DEFAULT 'none');
    CREATE TABLE v (id int, version int, name text, doc jsonb, PRIMARY KEY (id, version));
"""
# texts as PostgreSQL reads them; a NULL is None
_DOC = st.sampled_from(["null", '"null"', "{}", '{"a": 1.0}', '{"a": 1.00}', "[null]", "1", '"x"'])
VALUES: dict[str, st.SearchStrategy[str | None]] = {
    "name": st.none() | st.sampled_from(["", " ", "one", "ONE", "null", "é", "e\u0301", 'a"b\\', "{x}", "[1]", "%s"]),
    "code": st.none() | st.sampled_from(["a", "b", "ab "]),
    "size": st.none() | st.sampled_from(["1", "1.0", "1.00", "NaN", "1e3", "12345678901234567890.123456789"]),
    "price": st.none() | st.sampled_from(["1", "2.50"]),
    "share": st.none() | st.sampled_from(["0.1", "-0", "0", "NaN", "Infinity", "1e-300"]),
    "day": st.none() | st.sampled_from(["2024-02-29", "infinity", "0044-03-15 BC"]),
    "at": st.none() | st.sampled_from(["2024-02-29 12:00:00.123456+02", "-infinity"]),
    "wait": st.none() | st.sampled_from(["1 day", "24:00:00", "1 mon -1 day"]),
    "mood": st.none() | st.sampled_from(["glad", "so so"]),
    "raw": st.none() | _DOC | st.just('{"b":1, "a": 2,"b":3}'),
    "doc": st.none() | _DOC,
    "docs": st.none() | st.sampled_from(["{}", '{"null"}', "{NULL}", '{"{}","1"}']),
    "tags": st.none() | st.sampled_from(["{}", "{a}", '{"",NULL}', "[0:1]={a,b}", "{{a},{b}}"]),
    "nums": st.none() | st.sampled_from(["{}", "{1,2}", "[2:3]={1,2}", "{{1,2},{3,4}}"]),
    "shares": st.none() | st.sampled_from(["{-0,1.5}", "{NaN}"]),
    "pair": st.none() | st.sampled_from(["(,)", '(1,"null")', "(1,)"]),
    "spans": st.none() | st.sampled_from(["empty", "[1,5)", "(,3)"]),
    "bits": st.none() | st.just("101"),
    "bytes": st.none() | st.sampled_from(["\\x", "\\x00ff"]),
    "place": st.none() | st.sampled_from(["10.0.0.1", "10.0.0.0/8"]),
    "padded": st.none() | st.just("ab"),
    "note": st.sampled_from(["none", "", "x"]),
}
NAMES = list(VALUES)
KNOWN = st.dictionaries(st.integers(1, 8), st.fixed_dictionaries(VALUES), min_size=2, max_size=8)

# what the file says: cells as an importer reads them
CELLS: dict[str, st.SearchStrategy[str]] = {
    "name": st.sampled_from(["", "one", "uno", "null"]),
    "code": st.sampled_from(["", "a", "b"]),
    "size": st.sampled_from(["", "1", "1.0", "7.25"]),
    "price": st.sampled_from(["", "1", "3.00"]),
    "share": st.sampled_from(["", "0.1", "5"]),
    "day": st.sampled_from(["", "2024-02-29", "2025-01-01"]),
    "mood": st.sampled_from(["", "glad", "so so"]),
    "raw": st.sampled_from(["", "null", '{"a": 3}', "{}"]),
    "doc": st.sampled_from(["", "null", '{"a": 1}', "{}"]),
    "tags": st.sampled_from(["", "a;b", "a"]),
    "nums": st.sampled_from(["", "1;2", "3"]),
    "shares": st.sampled_from(["", "0;1.5", "2"]),
    "place": st.sampled_from(["", "10.0.0.1"]),
    "note": st.sampled_from(["", "x", "y"]),
}
LINES = st.lists(
    st.tuples(st.sampled_from([*map(str, range(1, 12)), "x"]), st.fixed_dictionaries(CELLS)), min_size=3, max_size=14
)
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "name_": Text(),
    **{name: Text() for name in CELLS if name not in ("name", "day", "tags", "nums", "shares")},
    "day": Date(),
    "tags": List(separator=";"),
    "nums": List(separator=";"),
    "shares": List(separator=";"),
}
IMPORTERS: dict[str, type[Importer]] = {
    "skip": declared("t", key="id", on_match=Skip(), **FIELDS),
    "fail": declared("t", key="id", on_match=Fail(), **FIELDS),
    "update": declared("t", key="id", on_match=Update(), **FIELDS),
    "once": declared("t", key="id", once=True, **FIELDS),
    "version": declared("v", key="id", on_match=Version(), id=Integer(required=True), name_=Text(), doc=Text()),
}
KIND = st.sampled_from(["update", "update", "update", "version", "version", "once", "skip", "fail"])
HOW = st.fixed_dictionaries({"batch_rows": st.sampled_from([1, 3, 1_000]), "workers": st.sampled_from([1, 3])})
_SETTINGS = settings(
    max_examples=12,
    phases=[Phase.generate],
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
Lines = list[tuple[str, dict[str, str]]]


def reset(database: Database, known: dict[int, dict[str, str | None]]) -> None:
    """The tables with these rows."""
    with database.connect() as connection:
        connection.execute("TRUNCATE t, v, rowcall.row_key")
        insert = SQL("INSERT INTO t (id, {}) VALUES (%s, {})").format(
            SQL(", ").join(map(Identifier, NAMES)), SQL(", ").join(SQL("%s") * len(NAMES))
        )
        for number, values in known.items():
            connection.execute(insert, [number, *(values[name] for name in NAMES)])
            versioned = [number, values["name"], values["doc"]]
            connection.execute("INSERT INTO v VALUES (%s, 1, %s, %s), (%s, 2, 'b', '1')", [*versioned, number])


def rows(database: Database) -> dict[str, str]:
    """Every row of both tables, to the letter."""
    own = "SELECT 't ' || id, t::text FROM t UNION ALL SELECT 'v ' || id || ' ' || version, v::text FROM v"
    return dict(sql(database, own))


def written(lines: Lines) -> str:
    """A file with these lines."""
    columns = {"id": [number for number, _ in lines]}
    columns |= {name: [cells[name] for _, cells in lines] for name in CELLS}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)).write_csv(quote_style="always")


def imported(database: Database, kind: str, lines: Lines, how: dict[str, int]) -> Job:
    """The job of a file, which ended. Its rows are not fetched: Python has no BC."""
    with tempfile.TemporaryDirectory() as folder:
        own = settings_for(database, Path(folder), **how)
        file, config = BytesIO(written(lines).encode()), JobConfig()
        with database.connect() as connection:
            job = start_job(connection, own, IMPORTERS[kind], file, file_name="rows.csv", config=config)
        return run_job(Run(database, IMPORTERS[kind], own), job)


def wrote(database: Database, job: Job) -> dict[str, str]:
    """The keys that a job wrote, and how."""
    with database.connect() as connection:
        found = connection.execute(
            "SELECT array_to_string(target_key, ' '), status::text FROM rowcall.outcome WHERE job_id = %s "
            "AND status IN ('created', 'updated')",
            [job.id],
        ).fetchall()
    return dict(found)


def test_the_target_is_exactly_what_it_was(database: Database) -> None:
    sql(database, TABLES)

    @_SETTINGS
    @given(known=KNOWN, kind=KIND, lines=LINES, how=HOW, at_once=st.sampled_from([1, 3, 1_000]))
    def restores(
        known: dict[int, dict[str, str | None]], kind: str, lines: Lines, how: dict[str, int], at_once: int
    ) -> None:
        reset(database, known)
        before = rows(database)
        job = imported(database, kind, lines, how)
        after = rows(database)
        event(f"{kind}: {len(set(after.items()) - set(before.items())) > 0}")
        if not wrote(database, job):
            return
        seen = previewed(database, IMPORTERS[kind], job)
        now, done = undone(database, IMPORTERS[kind], job, at_once=at_once)
        assert rows(database) == before
        assert (now.state, done.kept, done.gone) == (State.REVERTED, 0, 0)
        assert (seen.to_delete, seen.to_restore) == (done.deleted, done.restored)
        again = imported(database, kind, lines, how)
        assert rows(database) == after
        undone(database, IMPORTERS[kind], again)
        assert rows(database) == before

    restores()


def test_exactly_the_rows_that_others_wrote_since_are_kept(database: Database) -> None:
    sql(database, TABLES)
    deeds = st.dictionaries(
        st.integers(1, 12), st.sampled_from(["change", "rewrite", "delete", "replace"]), min_size=1, max_size=5
    )

    @_SETTINGS
    @given(known=KNOWN, kind=KIND, lines=LINES, how=HOW, deeds=deeds)
    def keeps(
        known: dict[int, dict[str, str | None]], kind: str, lines: Lines, how: dict[str, int], deeds: dict[int, str]
    ) -> None:
        reset(database, known)
        before = rows(database)
        job = imported(database, kind, lines, how)
        own = wrote(database, job)
        for number, deed in deeds.items():
            do(database, number, deed)
        now = rows(database)
        touched = {row for row in now.keys() | before.keys() if int(row.split()[1]) in deeds}
        if not own:
            return
        after, done = undone(database, IMPORTERS[kind], job)
        expected = {row: now[row] for row in touched & now.keys()}
        expected |= {row: value for row, value in before.items() if row not in touched}
        assert rows(database) == expected
        table = "v" if kind == "version" else "t"
        theirs = {key for key in own if int(key.split()[0]) in deeds}
        still = {key for key in theirs if f"{table} {key}" in now}
        event(f"{len(still) > 0}, {len(theirs - still) > 0}")
        assert (done.changed, done.gone, done.blocked, done.refused) == (len(still), len(theirs - still), 0, 0)
        assert done.deleted + done.restored == len(own) - len(theirs)
        assert (after.state is State.REVERTED) == (not still)

    keeps()


def do(database: Database, number: int, deed: str) -> None:
    """What somebody else does to the rows with an id."""
    statements: dict[str, list[LiteralString]] = {
        "change": ["UPDATE t SET note = note || '!' WHERE id = %s", "UPDATE v SET name = 'mine' WHERE id = %s"],
        "rewrite": ["UPDATE t SET id = id WHERE id = %s", "UPDATE v SET id = id WHERE id = %s"],
        "delete": ["DELETE FROM t WHERE id = %s", "DELETE FROM v WHERE id = %s"],
        "replace": [
            "WITH o AS (DELETE FROM t WHERE id = %s RETURNING id) INSERT INTO t (id) SELECT id + 100 FROM o",
            "UPDATE t SET id = id - 100 WHERE id = 100 + %s",
            "UPDATE v SET id = id WHERE id = %s",
        ],
    }
    with database.connect() as connection:
        for statement in statements[deed]:
            connection.execute(statement, [number])


def test_jobs_undone_in_any_order_lead_back_to_the_beginning(database: Database) -> None:
    sql(database, TABLES)
    files = st.lists(st.tuples(KIND, LINES, HOW), min_size=2, max_size=3)

    @_SETTINGS
    @given(known=KNOWN, files=files, data=st.data())
    def leads_back(
        known: dict[int, dict[str, str | None]], files: list[tuple[str, Lines, dict[str, int]]], data: st.DataObject
    ) -> None:
        reset(database, known)
        states = [rows(database)]
        jobs: list[tuple[str, Job]] = []
        for kind, lines, how in files:
            job = imported(database, kind, lines, how)
            if wrote(database, job):
                jobs.append((kind, job))
                states.append(rows(database))
        order = data.draw(st.permutations(range(len(jobs))))
        if order == sorted(order, reverse=True):
            event("the last one first")
            for place in order:
                undone(database, IMPORTERS[jobs[place][0]], jobs[place][1])
                assert rows(database) == states[place]
            return
        event("in another order")
        left = [jobs[place] for place in order]
        for _ in range(len(jobs)):
            done = [(kind, undone(database, IMPORTERS[kind], job)[0]) for kind, job in left]
            left = [(kind, job) for kind, job in done if job.state is not State.REVERTED]
        assert left == []
        assert rows(database) == states[0]

    leads_back()
