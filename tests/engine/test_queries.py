"""The statements that run often find what they need by an index."""

from collections.abc import Generator
from dataclasses import asdict
from importlib.resources import files
from typing import Any, LiteralString
from uuid import UUID

import pytest
from psycopg import Connection, Cursor
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Composable, Composed

from rowcall.store import grid
from rowcall.store.db import Database
from rowcall.store.migrate import MIGRATIONS
from rowcall.store.queries import query
from rowcall.store.referrers import referrers_of
from rowcall.store.targets import describe
from rowcall.store.undoing.blocking import block, tell_blocked
from rowcall.store.undoing.doubting import doubting
from rowcall.store.undoing.finding import find, finding
from rowcall.store.undoing.slices import Undoing, count_done, prepare
from rowcall.store.undoing.writing import comparing, deleting_at_once, statements
from rowcall.store.undos import Slice

from ..database import Server

FILLED = """
    INSERT INTO rowcall.file VALUES (repeat('a', 64), 1, '/nowhere');
    INSERT INTO rowcall.file
        SELECT encode(sha256(n::text::bytea), 'hex'), 1, '/nowhere' FROM generate_series(1, 5000) n;
    INSERT INTO rowcall.job (id, number, importer, config, file_sha256, file_name, account, state, created_at)
        SELECT md5(n::text)::uuid, 'BU' || n, 'things', '{}', repeat('a', 64), 'a.csv', 'me',
               CASE WHEN n % 500 = 0 THEN 'PROCESSING' ELSE 'COMPLETED' END, now() - n * interval '1 minute'
        FROM generate_series(1, 5000) n;
    INSERT INTO rowcall.batch (job_id, number, first_row, last_row, state, created)
        SELECT md5((1 + n % 20)::text)::uuid, n, n * 10, n * 10 + 9,
               CASE WHEN n > 9900 THEN 'pending' ELSE 'done' END, 10
        FROM generate_series(1, 10000) n;
    INSERT INTO rowcall.row (job_id, number, line, cells)
        SELECT md5((1 + n % 20)::text)::uuid, n, n, ARRAY[n::text] FROM generate_series(1, 20000) n;
    INSERT INTO rowcall.outcome (job_id, row_number, status)
        SELECT md5((1 + n % 20)::text)::uuid, n, CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'created' END::rowcall.status
        FROM generate_series(1, 20000) n;
    INSERT INTO rowcall.duplicate
        SELECT md5((1 + n % 20)::text)::uuid, n, 1, '{}', false FROM generate_series(1, 10000) n;
    INSERT INTO rowcall.waiting SELECT md5((1 + n % 20)::text)::uuid, n FROM generate_series(1, 10000) n;
    INSERT INTO rowcall.row_edit
        SELECT md5((1 + n % 20)::text)::uuid, n, ARRAY[1 || n::text], NULL, 1, 'me', now()
        FROM generate_series(1, 10000) n;
    INSERT INTO rowcall.reversal (job_id, row_number, undo, result)
        SELECT gen_random_uuid(), n, 1, 'deleted' FROM generate_series(1, 5000) n;
    INSERT INTO rowcall.job_event (job_id, organisation_id, before, after)
        SELECT id, organisation_id, 'UPLOADED', 'PROCESSING' FROM rowcall.job;
    INSERT INTO rowcall.value_field (job_id, field, asks)
        SELECT md5(n::text)::uuid, field, true FROM generate_series(1, 5000) n, unnest(ARRAY['a', 'b']) field;
    INSERT INTO rowcall.value_mapping (job_id, field, scope, value, folded, digest, occurrences)
        SELECT md5((1 + n % 20)::text)::uuid, CASE n % 3 WHEN 0 THEN 'a' ELSE 'b' END, '', n, n, n::text::bytea,
               1 + n % 7
        FROM generate_series(1, 20000) n;
    ANALYZE rowcall.file, rowcall.job, rowcall.batch, rowcall.row, rowcall.outcome, rowcall.duplicate, rowcall.waiting,
        rowcall.row_edit, rowcall.reversal, rowcall.job_event, rowcall.value_field, rowcall.value_mapping;
"""
JOB = UUID("c4ca4238-a0b9-2382-0dcc-509a6f75849b")  # md5 of 1
NO_FILTER = dict.fromkeys(["organisation", "state", "importer", "number", "scope"])
HOT: dict[str, tuple[dict[str, Any], str]] = {
    "claim_batch": ({"state": "PROCESSING"}, "batch_pending"),
    "claim_this_batch": ({"state": "PROCESSING", "number": 9940}, "batch_p"),
    "pending_batches": ({}, "batch_"),  # either of those that hold only what waits
    "batch_duplicates": ({"first": 5000, "last": 5100}, "duplicate_pkey"),
    "batch_waiting": ({"first": 5000, "last": 5100}, "waiting_pkey"),
    "rows_that_wait": ({"after": 5000, "most": 100}, "waiting_pkey"),
    "failed_for_want": ({"after": 5000, "most": 100, "lookups": [], "constraints": []}, "outcome_failed"),
    "batch_counts": ({"first": 5000, "last": 5100}, "outcome_pkey"),
    "what_is_left": ({}, "reversal_pkey"),
    "page_of_values": (
        {"field": None, "statuses": ["UNRESOLVED", "IGNORED"], "text": None, "count": 3, "last": 500, "most": 50},
        "value_mapping_frequent",
    ),
    "open_values": ({}, "value_mapping_frequent"),
    "page_of_jobs": ({**NO_FILTER, "at": None, "last": None, "most": 50}, "job_created_at"),
    "find_interrupted": ({"sha256": "a" * 64, "importer": "things", "config": "{}"}, "job_unfinished"),
}


@pytest.fixture(scope="module")
def history(shared_server: Server) -> Generator[Database]:
    """A database with some history, for all of these tests."""
    with shared_server.new_database() as database:
        with database.connect() as connection:
            connection.execute("TRUNCATE rowcall.file CASCADE")  # else pages of rows that earlier tests had would count
            connection.execute(FILLED)
        yield database


@pytest.fixture
def filled(history: Database) -> Generator[Connection[Any]]:
    """A connection to that database. What is done with it is taken back."""
    with history.connect() as connection, connection.transaction(force_rollback=True):
        yield connection


def read_whole(plan: str) -> list[str]:
    """The steps of a plan that read all of a table; of one that is known to be empty that costs nothing."""
    return [line for line in plan.splitlines() if "Seq Scan" in line and "(cost=0.00..0.00 " not in line]


def test_hot_queries_use_their_index(filled: Connection[Any]) -> None:
    cursor = filled.cursor(row_factory=scalar_row)
    for name, (given, index) in HOT.items():
        plan = "\n".join(cursor.execute(SQL("EXPLAIN ") + SQL(query(name)), {"id": JOB, **given}))
        assert f"using {index}" in plan or f"on {index}" in plan, f"{name}:\n{plan}"
        assert not read_whole(plan) or name == "find_interrupted", f"{name}:\n{plan}"


@pytest.mark.parametrize("name", ["counts_of_jobs", "last_events"])
def test_what_is_told_of_many_jobs_is_found_by_index(filled: Connection[Any], name: str) -> None:
    """All batches that there are, or all moves, were read for it."""
    cursor = filled.cursor(row_factory=scalar_row)
    ids = cursor.execute("SELECT id FROM rowcall.job ORDER BY created_at LIMIT 1000").fetchall()
    plan = "\n".join(cursor.execute(SQL("EXPLAIN ") + SQL(query(name)), {"ids": ids}))
    assert not read_whole(plan), plan


def test_jobs_of_which_nothing_is_known_are_not_told_of(filled: Connection[Any]) -> None:
    cursor = filled.cursor(row_factory=scalar_row)
    for name in ("counts_of_jobs", "last_events"):
        assert cursor.execute(query(name), {"ids": [JOB, UUID(int=1)]}).fetchall() == [JOB], name


def test_rows_are_read_by_number(filled: Connection[Any]) -> None:
    select = "EXPLAIN SELECT cells[1] FROM rowcall.row WHERE job_id = %s AND number BETWEEN 500 AND 700 ORDER BY number"
    plan = "\n".join(filled.cursor(row_factory=scalar_row).execute(select, [JOB]))
    assert "row_pkey" in plan
    assert not read_whole(plan)


@pytest.mark.parametrize("kept_by", [None, 1])
def test_an_undo_looks_up_each_row_of_a_slice_by_itself(filled: Connection[Any], kept_by: int | None) -> None:
    """As a join with what it has taken back so far, which statistics know nothing of, a slice could take minutes."""
    filled.execute("CREATE TABLE t (id int PRIMARY KEY)")
    what = Undoing(job_id=JOB, target=describe(filled, "t"), referrers=(), which=grid.Wanted())
    prepare(filled)
    select = SQL("EXPLAIN ") + finding(what, Slice(5000, 5100), lock=True, kept_by=kept_by)
    plan = "\n".join(filled.cursor(row_factory=scalar_row).execute(select))
    assert "Index Cond: ((job_id = o.job_id) AND (row_number = o.row_number))" in plan, plan
    assert "Anti Join" not in plan
    assert not read_whole(plan)


def test_an_undo_fetches_the_rows_that_it_deletes_from_where_they_are(filled: Connection[Any]) -> None:
    """Whatever is known of the target: as a join, each slice could read all of it."""
    filled.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 50000)")
    what = Undoing(job_id=JOB, target=describe(filled, "t"), referrers=(), which=grid.Wanted())
    select = SQL("EXPLAIN ") + deleting_at_once(what, 1, Slice(1, 20_000))
    plan = "\n".join(filled.cursor(row_factory=scalar_row).execute(select))
    assert "Tid Scan on t" in plan, plan
    assert "Seq Scan on t" not in plan, plan


UNKNOWN = """
    CREATE TABLE t (id int PRIMARY KEY, v text);
    INSERT INTO t SELECT n, 'new' FROM generate_series(1, 500) n;
    INSERT INTO rowcall.outcome (job_id, row_number, status, target_key, before)
        SELECT md5('30')::uuid, n, 'updated', ARRAY[n::text], jsonb_build_object('id', n, 'v', 'old')
        FROM generate_series(1, 500) n;
    INSERT INTO rowcall.reversal (job_id, row_number, undo, result)
        SELECT md5('30')::uuid, n, 1, 'changed' FROM generate_series(1, 500) n;
"""
"""A job that statistics know nothing of, and its target, written by the same transaction."""


def rows_read(node: dict[str, Any]) -> float:
    """How many rows the nodes of a plan came by, those that they dropped included."""
    names = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter")
    own = node["Actual Loops"] * sum(node.get(name, 0) for name in names)
    return own + sum(rows_read(each) for each in node.get("Plans", []))


def test_an_undo_reads_no_row_for_each_other_whatever_statistics_know(filled: Connection[Any]) -> None:
    """Outcomes were taken for a single one, and all that is to be taken back was read for each of them."""
    filled.execute(UNKNOWN)
    job = UUID("34173cb3-8f07-f89d-dbeb-c2ac9128303f")  # md5 of 30
    what = Undoing(job_id=job, target=describe(filled, "t"), referrers=(), which=grid.Wanted())
    prepare(filled)
    given = {"id": job, "number": 1, "first": 1, "last": 500}
    restoring, deleting = statements(what, ["v"])
    asked = [comparing(what), doubting(what, {"v"}), restoring, deleting]
    cursor = filled.cursor(row_factory=scalar_row)
    with filled.transaction(force_rollback=True):
        find(filled, what, Slice(1, 500), lock=True)
        for select in [*asked, *(SQL(query(name)) for name in ("count_reverted", "free_row_keys", "undoing_kept"))]:
            explain = SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + select
            found: list[Any] = cursor.execute(explain, given if "%(" in select.as_string() else None).fetchall()
            assert rows_read(found[0][0]["Plan"]) < 20 * 500, found
        assert count_done(filled) == 500


REFERRED = """
    CREATE TABLE t (id int PRIMARY KEY, boss int REFERENCES t);
    CREATE TABLE c (t int REFERENCES t);
    INSERT INTO t SELECT n FROM generate_series(1, 500) n;
    INSERT INTO c SELECT n FROM generate_series(1, 500) n;
    INSERT INTO rowcall.outcome (job_id, row_number, status, target_key)
        SELECT md5('30')::uuid, n, 'created', ARRAY[n::text] FROM generate_series(1, 500) n;
"""
"""A job of which each row is in the way of others, which no index knows."""


def test_what_is_in_the_way_is_read_once_for_all_rows_that_are_kept(
    filled: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """None was kept when the statistics were made: all that refers to the target was read for each of them."""
    filled.execute(REFERRED)
    job = UUID("34173cb3-8f07-f89d-dbeb-c2ac9128303f")  # md5 of 30
    target = describe(filled, "t")
    what = Undoing(job_id=job, target=target, referrers=referrers_of(filled, target), which=grid.Wanted())
    prepare(filled)
    with filled.transaction(force_rollback=True):
        find(filled, what, Slice(1, 500), lock=True)
        block(filled, what)
        plans: list[dict[str, Any]] = []
        execute, cursor = filled.execute, filled.cursor(row_factory=scalar_row)

        def explaining(statement: LiteralString | Composed) -> Cursor[Any]:
            told = SQL(statement) if isinstance(statement, str) else statement
            if told.as_string().startswith("INSERT"):
                with filled.transaction(force_rollback=True):
                    found: Any = cursor.execute(SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + told).fetchone()
                plans.append(found[0]["Plan"])
            return execute(statement)

        monkeypatch.setattr(filled, "execute", explaining)
        tell_blocked(filled, what)
        assert len(plans) == 2
        assert max(map(rows_read, plans)) < 20 * 500, plans


KNOWN = "SELECT tablename FROM pg_stats WHERE schemaname = 'rowcall' AND attname = 'job_id'"
NEW = """
    INSERT INTO rowcall.job (id, number, importer, config, file_sha256, file_name, account, state)
        VALUES (md5('new')::uuid, 'BU0', 'things', '{}', repeat('a', 64), 'a.csv', 'me', 'PROCESSING');
    INSERT INTO rowcall.batch (job_id, number, first_row, last_row, state, created, failed)
        SELECT md5('new')::uuid, n, n * 200 - 199, n * 200, 'done', 100, 100 FROM generate_series(1, 5) n;
    INSERT INTO rowcall.row (job_id, number, line, cells)
        SELECT md5('new')::uuid, n, n, ARRAY[n::text] FROM generate_series(1, 1000) n;
    INSERT INTO rowcall.outcome (job_id, row_number, status, target_key, issues)
        SELECT md5('new')::uuid, n, CASE WHEN n % 2 = 0 THEN 'failed' ELSE 'created' END::rowcall.status,
               ARRAY[n::text], CASE n % 4 WHEN 0 THEN '[{"code": "NOT_FOUND", "field": "a"}]'
                                          WHEN 2 THEN '[{"code": "ALREADY_EXISTS"}]' END::jsonb
        FROM generate_series(1, 1000) n;
    INSERT INTO rowcall.row SELECT md5('planned')::uuid, n, n, ARRAY[n::text] FROM generate_series(1, 1000) n;
    INSERT INTO rowcall.outcome (job_id, row_number, status, attempt)
        SELECT md5('planned')::uuid, n, 'failed', 0 FROM generate_series(1, 1000) n;
    INSERT INTO rowcall.row_edit
        SELECT md5('new')::uuid, n, ARRAY[1 || n::text], NULL, 1, 'me', now() FROM generate_series(1, 1000) n;
    INSERT INTO rowcall.duplicate  -- against one that was refused, and against one that was there already
        SELECT md5('new')::uuid, n, n / 20 * 20 + CASE WHEN n % 2 = 0 THEN 2 ELSE 20 END,
               CASE WHEN n % 2 = 0 THEN '{there}' ELSE '{refused}' END::text[], false
        FROM generate_series(1, 999) n WHERE n % 20 <> 2;
    INSERT INTO rowcall.waiting SELECT md5('new')::uuid, n FROM generate_series(1, 1000) n;
    INSERT INTO rowcall.retry SELECT md5('new')::uuid, n FROM generate_series(1, 1000, 5) n;
    INSERT INTO rowcall.retry  -- of others: a table of two pages is read rather than its index
        SELECT md5((1 + n % 20)::text)::uuid, n FROM generate_series(1, 2000) n;
    INSERT INTO rowcall.reversal (job_id, row_number, undo, result, target_key, issue)
        SELECT md5('new')::uuid, n, 1, CASE n % 2 WHEN 0 THEN 'blocked' ELSE 'deleted' END, ARRAY[n::text],
               '{"code": "HAS_DEPENDENTS"}'
        FROM generate_series(1, 1000) n;
    INSERT INTO rowcall.row_key SELECT 'things', n, md5('new')::uuid, n FROM generate_series(1, 1000) n;
    CREATE TABLE t (id int PRIMARY KEY);
    INSERT INTO t SELECT generate_series(1, 1000);
    CREATE TEMPORARY TABLE rowcall_returned (line bigint, key text, cells text[], problem text);
    INSERT INTO rowcall_returned
        SELECT n, concat_ws('.', 'BU0', n, 1, 1, left(encode(sha256(convert_to(
                   concat_ws(' ', md5('new')::uuid, n, 1, 1), 'UTF8')), 'hex'), 16)), ARRAY[2 || n::text], NULL
        FROM generate_series(1, 1000) n;
    CREATE TEMPORARY TABLE rowcall_judged AS
        SELECT line, cells, line AS row_number, NULL AS code, 'STALE_ROW_KEY' AS late FROM rowcall_returned;
    CREATE TEMPORARY TABLE rowcall_wanted AS
        SELECT line AS row_number, 0 AS position, 'STALE_ROW_KEY' AS late, cells[1] AS after FROM rowcall_returned;
"""
"""Another job that they know nothing of, with all that a row of it may have."""
EVERY: dict[str, Any] = {
    "first": 1,
    "last": 1000,
    "statuses": [],
    "code": None,
    "field": None,
    "text": "1",
    "edited": False,
    "numbers": None,
    "most": 1000,
}
SOME: dict[str, Any] = {"numbers": list(range(1, 1001))}
WHOLE: dict[str, dict[str, Any]] = {
    "recount_batches": EVERY,
    "balance": {},
    "issue_counts": {},
    "failed_for_want": {"after": 0, "most": 1000, "lookups": ["a"], "constraints": []},
    "not_applied": {"id": UUID("38fd0491-8ac8-6fec-4282-49a5a181ad8e")},  # md5 of planned
    "passed_over": {"key": ["there"]},
    "pass_over": {"key": ["refused"]},
    "not_waited_for": {},
    "add_retries": {**EVERY, "edited": True},
    "set_aside": SOME,
    "lost_to_edited": SOME,
    "duplicates_around": {**SOME, "most": 1000},
    "count_edits": {},
    "cells_to_replace": {**EVERY, "position": 0, "find": "1", "with": "2", "part": True, "open": []},
    "lay_edits": {"who": "me"},
    "judge_returned": {"job": "BU0", "open": []},
    "find_returned": {"positions": [0], "most": 1000},
    "refuse_returned": {},
    "what_is_left": {},
    "free_deleted": {"first": 1, "last": 1000, "number": 1},
    "rows_without_outcome": {},
    "outcomes_without_row": {},
    "counters_off": {},
    "created_not_there": {},
    "undone_still_there": {},
    "undone_without_row": {},
    "keys_without_row": {},
    "rows_without_key": {},
    "effect_apart": {"importers": ["things"]},
}
"""The statements that look something up for each row of a job, or each of many."""
PAGES = [
    grid.Wanted(),
    grid.Wanted(statuses=("created", "failed")),
    grid.Wanted(code="NOT_FOUND"),
    grid.Wanted(text="1", statuses=("failed",)),
    grid.Wanted(edited=True),
]
PARTS: dict[LiteralString, LiteralString] = {
    "{order}": "1",
    "{source}": "(SELECT n::bigint AS row_number, 0 AS position, 'x' AS after FROM generate_series(1, 1000) n)",
    "{target}": "t",
    "{same}": "t.id = o.target_key[1]::int",
    "{apart}": "t.xmin <> o.xmin",
    "TABLE rowcall_judged ON COMMIT DROP": "TABLE made",
    "TABLE rowcall_wanted ON COMMIT DROP": "TABLE made",
}


def whole(name: str) -> SQL:
    """A statement with its parts put in."""
    statement = query(name)
    for part, put in PARTS.items():
        statement = statement.replace(part, put)
    return SQL(statement)


LITTLE = """
    UPDATE pg_class SET reltuples = 1, relpages = 100000
    WHERE relnamespace = 'rowcall'::regnamespace AND relkind = 'r' AND relname <> 'job'
"""
"""PostgreSQL is to expect hardly a row in any table, as where retention has emptied them."""


@pytest.mark.parametrize("expected", ["", LITTLE], ids=["other jobs", "nothing"])
def test_a_job_that_statistics_know_nothing_of_is_read_once(filled: Connection[Any], expected: str) -> None:
    """It was taken for a single row, and all of its outcomes were read for each: minutes for 200,000 rows."""
    job, cursor = UUID("22af645d-1859-cb5c-a6da-0c484f1f37ea"), filled.cursor(row_factory=scalar_row)  # md5 of new
    with filled.transaction(force_rollback=True):
        filled.execute(NEW)
        filled.execute(expected.encode())
        every = [(name, whole(name), given) for name, given in WHOLE.items()]
        every += [
            (wanted, grid._select(wanted, is_plan=False), {**EVERY, **given_of(wanted), "most": 1000})
            for wanted in PAGES
        ]
        for name, statement, given in every:
            with filled.transaction(force_rollback=True):
                explain = SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + statement
                found: Any = cursor.execute(explain, {"id": job, **given}).fetchone()
            assert 900 < rows_read(found[0]["Plan"]) < 25 * 1000, (name, found)


def test_keys_that_come_back_are_taken_apart_once(filled: Connection[Any]) -> None:
    """They were for each part of them, and hashed for each use of what that tells."""
    filled.execute("CREATE TEMPORARY TABLE rowcall_returned (line bigint, key text, cells text[], problem text)")
    explain = SQL("EXPLAIN (VERBOSE) ") + whole("judge_returned")
    cursor = filled.cursor(row_factory=scalar_row)
    plan = "\n".join(cursor.execute(explain, {"id": JOB, **WHOLE["judge_returned"]}))
    assert (plan.count("regexp_match("), plan.count("sha256(")) == (1, 1), plan


def test_no_statistics_are_made_of_jobs(filled: Connection[Any]) -> None:
    """In whatever table: they are always of earlier ones."""
    made = """
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'rowcall'::regnamespace AND c.relkind = 'r'
          AND a.attname = 'job_id' AND a.attstattarget IS DISTINCT FROM 0"""
    assert filled.execute(made).fetchall() == []
    assert filled.execute(KNOWN).fetchall() == []


def test_statistics_of_jobs_that_were_made_before_are_removed(filled: Connection[Any]) -> None:
    filled.execute("ALTER TABLE rowcall.row ALTER COLUMN job_id SET STATISTICS 100; ANALYZE rowcall.row")
    assert filled.execute(KNOWN).fetchall() == [("row",)]
    filled.execute((MIGRATIONS / "0028_no_job_statistics.sql").read_bytes())
    filled.execute("ANALYZE rowcall.row")
    assert filled.execute(KNOWN).fetchall() == []


def given_of(wanted: grid.Wanted) -> dict[str, Any]:
    return {**asdict(wanted), "statuses": list(wanted.statuses)}


FAILED: dict[str, Any] = {"statuses": ["failed"], "most": 100}
BATCHES = SQL(query("batches_to_show"))
SHOWN: list[tuple[Composable, dict[str, Any], str]] = [
    (
        BATCHES.format(whose=SQL("b.job_id = %(id)s"), behind=SQL("b.last_row > 5000"), order=SQL("b.first_row ASC")),
        FAILED,
        "batch_",
    ),
    (
        BATCHES.format(
            whose=SQL("true"),
            behind=SQL("(b.updated_at, b.job_id, b.number) <= (now(), %(id)s, 9)"),
            order=SQL("b.updated_at DESC, b.job_id DESC, b.number DESC"),
        ),
        FAILED,
        "batch_flagged",
    ),
    *(
        (grid._select(wanted, is_plan=is_plan), {**given_of(wanted), "most": 100}, index)
        for wanted, is_plan, index in [
            (grid.Wanted(), False, "row_pkey"),
            (grid.Wanted(statuses=("created",)), True, "row_pkey"),
            (grid.Wanted(statuses=("created",)), False, "outcome_pkey"),
            (grid.Wanted(statuses=("failed",), sort="-row"), False, "outcome_failed"),
            (grid.Wanted(statuses=("failed",), code="NOPE"), True, "outcome_pkey"),
            (grid.Wanted(text="a", statuses=("failed",)), False, "row_edit_pkey"),
            (grid.Wanted(edited=True), False, "row_edit_pkey"),
        ]
    ),
]
"""Statements of pages, each with an index that it uses."""


@pytest.mark.parametrize(("statement", "given", "index"), SHOWN)
def test_pages_are_found_by_index(
    filled: Connection[Any], statement: Composable, given: dict[str, Any], index: str
) -> None:
    where = {"id": JOB, "first": 5000, "last": 5100, **given}
    plan = "\n".join(filled.cursor(row_factory=scalar_row).execute(SQL("EXPLAIN ") + statement, where))
    assert f"using {index}" in plan or f"on {index}" in plan, plan
    assert not read_whole(plan), plan


def test_digits_are_those_that_postgresql_reads_as_numbers() -> None:
    """In databases that compare by ICU, `\\d` is also a digit of other scripts, and the cast that follows fails."""
    folder = files("rowcall.store") / "sql"
    assert [file.name for file in folder.iterdir() if "\\d" in file.read_text()] == []
