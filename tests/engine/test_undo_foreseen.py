"""What an undo's preview tells is what the undo then does, whoever has a say in it (X2)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, LiteralString

import pytest
from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st

from rowcall import Integer, Text, Update
from rowcall.store.db import Database
from rowcall.store.jobs import Job

from .importing import declared, run_import, sql
from .undoing import previewed, undone

TABLES: LiteralString = """
    CREATE TABLE p (id int PRIMARY KEY);
    CREATE TABLE t (
        id int PRIMARY KEY, code text UNIQUE, parent int REFERENCES p, boss int REFERENCES t, note text);
    CREATE TABLE c (t int CONSTRAINT c_t REFERENCES t);
    CREATE TABLE guarded (id int PRIMARY KEY, how text);
    CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE found text := (SELECT how FROM guarded WHERE id = OLD.id);
    BEGIN
        IF found = 'raise' THEN RAISE 'never %', OLD.id; END IF;
        IF found = 'drop' THEN RETURN NULL; END IF;
        IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
        RETURN NEW;
    END $$;
"""
TRIGGER: LiteralString = "CREATE TRIGGER guard BEFORE DELETE OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION guard()"
GUARD: LiteralString = "INSERT INTO guarded VALUES (1, 'raise'); " + TRIGGER
FIELDS: dict[str, Any] = {"id": Integer(required=True), "code": Text(), "parent": Integer(), "boss": Integer()}
UPSERT = declared("t", key="id", on_match=Update(), **FIELDS)
_ID = st.integers(1, 9)
_CODE = st.sampled_from(["", "a", "b", "c", "d"])
_PARENT = st.sampled_from(["", "1", "2", "3"])
Row = tuple[int, str, str, str]
ROWS = st.lists(st.tuples(_ID, _CODE, _PARENT, st.just("")), min_size=1, max_size=6)
LINES = st.lists(
    st.tuples(_ID, _CODE, _PARENT, st.sampled_from(["", "", "", *map(str, range(1, 10))])), min_size=2, max_size=9
)
KEPT_FOR_ONE_THAT_IS_REFUSED: dict[str, Any] = {
    "known": [(7, "b", "3", "")],
    "lines": [(2, "", "", ""), (1, "", "2", ""), (4, "", "", "1"), (7, "", "", "4")],
    "deeds": [],
    "guards": {4: "raise", 7: "drop"},
    "at_once": 1,
}
KEPT_FOR_TWO_REASONS: dict[str, Any] = {
    "known": [(9, "a", "", "")],
    "lines": [(1, "", "", ""), (2, "", "", "1"), (3, "", "", "2"), (9, "b", "", "")],
    "deeds": [("depend", 1), ("depend", 2)],
    "guards": {3: "raise", 2: "raise"},
    "at_once": 1,
}
DEEDS: dict[str, LiteralString] = {
    "take": "INSERT INTO t (id, code) SELECT 100 + n, (ARRAY['a', 'b', 'c', 'd'])[1 + n %% 4] FROM (VALUES (%s)) v (n) "
    "ON CONFLICT DO NOTHING",
    "orphan": "DELETE FROM p WHERE id = %s AND NOT EXISTS (SELECT FROM t WHERE parent = p.id)",
    "depend": "INSERT INTO c SELECT id FROM t WHERE id = %s",
    "touch": "UPDATE t SET note = 'mine' WHERE id = %s",
    "remove": "DELETE FROM t WHERE id = %s AND NOT EXISTS (SELECT FROM c WHERE c.t = t.id) "
    "AND NOT EXISTS (SELECT FROM t x WHERE x.boss = t.id)",
}


def reset(database: Database, known: list[Row]) -> None:
    with database.connect() as connection:
        connection.execute("DROP TRIGGER IF EXISTS guard ON t; TRUNCATE t, p, c, guarded")
        connection.execute("INSERT INTO p VALUES (1), (2), (3)")
        for number, code, parent, _ in known:
            connection.execute(
                "INSERT INTO t VALUES (%s, nullif(%s, ''), nullif(%s, '')::int) ON CONFLICT DO NOTHING",
                [number, code, parent],
            )


def state(database: Database) -> dict[int, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in sql(database, "SELECT id, code, parent, boss FROM t")}


def restored(before: dict[int, tuple[Any, ...]], after: dict[int, tuple[Any, ...]]) -> dict[str, int]:
    """The columns in which rows differ, with how many do."""
    counts = dict.fromkeys(("code", "parent", "boss"), 0)
    for number in before.keys() & after.keys():
        for name, one, other in zip(counts, before[number], after[number], strict=True):
            counts[name] += one != other
    return {name: count for name, count in counts.items() if count}


def noted(database: Database, job: Job) -> list[int]:
    """The rows that an undo has kept."""
    with database.connect() as connection:
        found = connection.execute(
            "SELECT row_number FROM rowcall.reversal WHERE job_id = %s "
            "AND result IN ('changed', 'blocked', 'refused') ORDER BY 1",
            [job.id],
        ).fetchall()
    return [number for (number,) in found]


def test_a_preview_tells_exactly_what_the_undo_does(database: Database) -> None:
    sql(database, TABLES)
    deeds = st.lists(st.tuples(st.sampled_from(list(DEEDS)), _ID), max_size=5)
    guards = st.none() | st.dictionaries(_ID, st.sampled_from(["raise", "drop"]), max_size=4)

    @settings(
        max_examples=25,
        phases=[Phase.explicit, Phase.generate],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(known=ROWS, lines=LINES, deeds=deeds, guards=guards, at_once=st.sampled_from([1, 3, 1_000]))
    @example(**KEPT_FOR_ONE_THAT_IS_REFUSED)
    @example(**KEPT_FOR_TWO_REASONS)
    def foresees(
        known: list[Row], lines: list[Row], deeds: list[tuple[str, int]], guards: dict[int, str] | None, at_once: int
    ) -> None:
        reset(database, known)
        text = "id,code,parent,boss\n" + "".join(",".join(map(str, line)) + "\n" for line in lines)
        result = run_import(database, UPSERT, text, batch_rows=3)
        if not result.counts.created + result.counts.updated:
            return
        with database.connect() as connection:
            for deed, number in deeds:
                connection.execute(DEEDS[deed], [number])
            if guards is not None:
                connection.execute(TRIGGER)
                for number, how in guards.items():
                    connection.execute("INSERT INTO guarded VALUES (%s, %s)", [number, how])
        before = state(database)
        seen = previewed(database, UPSERT, result.job)
        assert state(database) == before
        _, done = undone(database, UPSERT, result.job, at_once=at_once)
        event(f"guarded {guards is not None}, refused {done.refused > 0}, blocked {done.blocked > 0}")
        assert (seen.to_delete, seen.to_restore) == (done.deleted, done.restored)
        assert (seen.changed, seen.blocked, seen.refused, seen.gone) == (
            *(done.changed, done.blocked, done.refused, done.gone),
        )
        assert seen.blocked_by == done.blocked_by
        assert seen.fields == restored(before, state(database))
        kept = sorted(sample["row"] for sample in seen.samples)
        assert kept == noted(database, result.job)

    foresees()


TOUCHED: LiteralString = """
    CREATE TABLE w (id int PRIMARY KEY, code text, touched int DEFAULT 0, at timestamptz DEFAULT now());
    INSERT INTO w VALUES (1, 'a'), (2, 'b');
    CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.touched = NEW.touched + 1; NEW.at = clock_timestamp(); RETURN NEW;
    END $$;
    CREATE TRIGGER touch BEFORE UPDATE ON w FOR EACH ROW EXECUTE FUNCTION touch();
"""
OF_TOUCHED = declared("w", key="id", on_match=Update(), id=Integer(required=True), code=Text())


def test_columns_that_a_trigger_writes_are_not_told_as_restored(database: Database) -> None:
    sql(database, TOUCHED)
    job = run_import(database, OF_TOUCHED, "id,code\n1,x\n2,y\n").job
    seen = previewed(database, OF_TOUCHED, job)
    assert (seen.fields, seen.not_restored) == ({"code": 2}, {"touched": 2, "at": 2})
    undone(database, OF_TOUCHED, job)
    assert sql(database, "SELECT code, touched FROM w ORDER BY id") == [("a", 1), ("b", 1)]


def test_a_preview_that_others_keep_from_its_rows_in_a_deadlock_looks_again(database: Database) -> None:
    sql(database, TOUCHED)
    job = run_import(database, OF_TOUCHED, "id,code\n1,x\n2,y\n").job
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with database.connect() as watcher, database.connect() as others, ThreadPoolExecutor(1) as pool:
        others.execute("SET deadlock_timeout = '1h'")  # so that it isn't they who give way
        with others.transaction():
            others.execute("SELECT FROM w WHERE id = 2 FOR UPDATE")
            seen = pool.submit(previewed, database, OF_TOUCHED, job)
            while watcher.execute(blocked).fetchone() == (0,):
                assert not seen.done()
            others.execute("SELECT FROM w WHERE id = 1 FOR UPDATE")
        assert (seen.result().to_restore, seen.result().kept) == (2, 0)


@pytest.mark.parametrize(
    ("since", "why"),
    [
        ("INSERT INTO t VALUES (9, 'a')", "UNIQUE_VIOLATION"),
        ("DELETE FROM p WHERE id = 1", "FOREIGN_KEY_VIOLATION"),
        ("ALTER TABLE t ADD CONSTRAINT long CHECK (length(code) > 1) NOT VALID", "CHECK_VIOLATION"),
        (GUARD, "ROW_REFUSED"),
    ],
)
def test_what_the_database_would_refuse_is_told_before(database: Database, since: LiteralString, why: str) -> None:
    sql(database, TABLES)
    sql(database, "INSERT INTO p VALUES (1), (2); INSERT INTO t VALUES (1, 'a', 1, NULL, 'long note')")
    job = run_import(database, UPSERT, "id,code,parent\n1,bb,2\n2,cc,2\n").job
    assert previewed(database, UPSERT, job).to_restore == 1
    sql(database, since)
    seen = previewed(database, UPSERT, job)
    assert [(sample["row"], sample["issue"]["code"]) for sample in seen.samples if sample["row"] == 1] == [(1, why)]
    _, done = undone(database, UPSERT, job)
    assert (seen.to_restore, seen.kept, seen.to_delete) == (0, done.kept, done.deleted)
    assert (seen.refused, seen.changed) == (done.refused, done.changed)
