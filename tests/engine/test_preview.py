"""A preview says what would happen, row for row, and submitting it does exactly that (E1, E3, E4, X4)."""

from collections.abc import Iterable
from typing import Any, LiteralString

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import Connection

from rowcall import (
    Decimal,
    Fail,
    Flow,
    Importer,
    Integer,
    Json,
    List,
    Lookup,
    RowOutcome,
    Skip,
    Status,
    Text,
    Update,
    Version,
    WholeFileImporter,
)
from rowcall.engine import moves
from rowcall.engine.preview.documents import preview_of
from rowcall.engine.preview.foresee import is_foreseeable
from rowcall.engine.scratch import NO_SCRATCH
from rowcall.engine.work import prepare_work
from rowcall.errors import PlanStale, WrongState
from rowcall.model import State
from rowcall.store import jobs
from rowcall.store.db import Database

from .importing import declared, run_import, sql
from .previewing import plan, preview, submit

TABLE = """
    CREATE TABLE city (id int PRIMARY KEY, name text UNIQUE NOT NULL);
    INSERT INTO city VALUES (1, 'Rome'), (2, 'Oslo');
    CREATE TABLE t (id int, code text, name text, city_id int REFERENCES city, version int NOT NULL DEFAULT 1,
        CHECK (code <> 'BAD'), PRIMARY KEY (id {version}) {unique});
    INSERT INTO t VALUES (1, 'a', 'A', 1), (2, 'b', 'B', 1), (3, 'c', 'C', NULL)
"""
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "code": Text(max_length=9),
    "name_": Text(),
    "city": Lookup("city", by="name", column="city_id"),
}
FILE = (
    "id,code,name,city\n1,a,A,Rome\n2,b,new,Oslo\n3,a,C,\n4,BAD,D,\n5,e,E,Rome\n5,f,F,Rome\nx,g,G,\n7,,H,Paris\n"
    "8,much too long,I,\n9,n,N,Oslo\n"
)
IMPORTERS: dict[str, type[Importer]] = {
    "skip": declared("t", key="id", on_match=Skip(), **FIELDS),
    "fail": declared("t", key="id", on_match=Fail(), **FIELDS),
    "update": declared("t", key="id", on_match=Update(), **FIELDS),
    "version": declared("t", key="id", on_match=Version(), **FIELDS),
    "once": declared("t", key="id", once=True, **FIELDS),
}


def _table(database: Database, kind: str) -> None:
    versioned = kind == "version"
    made = TABLE.format(version=", version" if versioned else "", unique="" if versioned else ", UNIQUE (code)")
    with database.connect() as connection:
        connection.execute(made.encode())


@pytest.mark.parametrize(("batch_rows", "workers"), [(3, 1), (1_000, 1), (2, 3)])
@pytest.mark.parametrize("kind", IMPORTERS)
def test_commit_does_what_the_preview_said(database: Database, kind: str, batch_rows: int, workers: int) -> None:
    """E3: by the same code, whatever happens on a match."""
    _table(database, kind)
    before = sql(database, "SELECT xmin::text, * FROM t ORDER BY id")
    planned = preview(database, IMPORTERS[kind], FILE, batch_rows=batch_rows, workers=workers)
    assert sql(database, "SELECT xmin::text, * FROM t ORDER BY id") == before
    assert sql(database, "SELECT * FROM rowcall.row_key") == []
    done = submit(database, IMPORTERS[kind], planned.job, workers=workers)
    assert done.job.state is State.COMPLETED_WITH_ERRORS
    assert done.told == planned.told
    assert done.counts == planned.counts
    assert {n: o.before for n, o in done.outcomes.items()} == {n: o.before for n, o in planned.outcomes.items()}
    assert sql(database, "SELECT count(*) FROM rowcall.outcome WHERE attempt = 0") == [(0,)]


@pytest.mark.parametrize("kind", IMPORTERS)
def test_preview_and_import_without_say_the_same(database: Database, kind: str) -> None:
    _table(database, kind)
    planned = preview(database, IMPORTERS[kind], FILE)
    done = run_import(database, IMPORTERS[kind], FILE)
    assert (planned.told, planned.counts) == (done.told, done.counts)


def test_digest_is_the_same_for_any_batches_and_workers(database: Database) -> None:
    _table(database, "update")
    digests = {
        plan(database, preview(database, IMPORTERS["update"], FILE, batch_rows=rows, workers=workers).job).digest
        for rows, workers in [(1, 1), (3, 2), (7, 3), (1_000, 1)]
    }
    assert len(digests) == 1


_CHANGES: dict[str, tuple[str, bool]] = {
    "nothing": ("SELECT", False),
    "a row that is updated": ("UPDATE t SET code = 'bb' WHERE id = 2", True),
    "another column of a row that is updated": ("UPDATE t SET version = 7 WHERE id = 2", True),
    "a row that would be unchanged, so that it isn't": ("UPDATE t SET name = 'x' WHERE id = 1", True),
    "a row that is updated, in vain": ("UPDATE t SET code = code WHERE id = 2", False),
    "a row that nothing means": ("INSERT INTO t VALUES (77, 'z')", False),
    "a row is gone": ("DELETE FROM t WHERE id = 1", True),
    "a row is new": ("INSERT INTO t VALUES (9, 'n', 'N', 2)", True),
    "what a look-up finds": ("UPDATE city SET name = 'Roma' WHERE id = 1", True),
    "which one a look-up finds": (
        "UPDATE city SET name = 'tmp' WHERE id = 1; INSERT INTO city VALUES (3, 'Rome')",
        True,
    ),
}


@pytest.mark.parametrize("what", _CHANGES)
def test_digest_changes_when_the_plan_does(database: Database, what: str) -> None:
    _table(database, "update")
    statement, otherwise = _CHANGES[what]
    first = plan(database, preview(database, IMPORTERS["update"], FILE).job)
    with database.connect() as connection:
        connection.execute(statement.encode())
    second = plan(database, preview(database, IMPORTERS["update"], FILE).job)
    assert (first.digest != second.digest) is otherwise


def test_digest_changes_with_file_mapping_constants_and_mode(database: Database) -> None:
    _table(database, "update")
    importer = IMPORTERS["update"]
    files = [
        preview(database, importer, "id,name\n1,A\n"),
        preview(database, importer, "id,name\n1,A\n\n"),
        preview(database, importer, "id,name\n1,A\n", constants={"code": "a"}),
        preview(database, importer, "id,name\n1,A\n", mode="insert"),
        preview(database, importer, "id,other\n1,A\n", mapping={"other": "name"}),
        preview(database, importer, "id,other\n1,A\n", mapping={"other": "code"}),
    ]
    assert len({plan(database, each.job).digest for each in files}) == len(files)


def test_plan_tells_fields_problems_and_changes(database: Database) -> None:
    _table(database, "update")
    job = preview(database, IMPORTERS["update"], FILE, batch_rows=2).job
    with database.connect() as connection:
        told = preview_of(connection, job, IMPORTERS["update"])
    assert told["counts"] == {"rows": 10, "created": 2, "updated": 1, "unchanged": 1, "skipped": 1, "failed": 5}
    assert told["fields"] == [
        {"field": "city", "column": "city_id", "rows": 1},
        {"field": "name", "column": "name", "rows": 1},
    ]
    assert {(each["code"], each["field"]) for each in told["problems"]} == {
        ("DUPLICATE_IN_FILE", "code"),
        ("CHECK_VIOLATION", "code"),
        ("DUPLICATE_IN_FILE", "id"),
        ("INVALID_INTEGER", "id"),
        ("NOT_FOUND", "city"),
        ("TOO_LONG", "code"),
    }
    assert (told["atomic"], told["drifted"], told["undo"]) == (False, 0, {"deletes": 2, "restores": 1})
    (changes,) = sql(database, "SELECT result -> 'changes' FROM rowcall.row_status WHERE number = 2")
    assert changes == ({"name": ["B", "new"], "city_id": [1, 2]},)


def test_plan_tells_no_change_of_json_and_arrays_that_stay(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, name text, extra jsonb, raw json, tags text[])")
    sql(database, """INSERT INTO t VALUES (1, 'A', '{"q": 1}', '{"r":2}', '{x,y}'), (2, 'B', NULL, NULL, NULL)""")
    fields = {"id": Integer(), "name_": Text(), "extra": Json(), "raw": Json(), "tags": List(separator=";")}
    importer = declared("t", key="id", on_match=Update(), **fields)
    planned = preview(database, importer, 'id,name,extra,raw,tags\n1,new,"{""q"": 1}","{""r"":2}",x;y\n2,new,,,\n')
    assert [planned.outcomes[number].status for number in (1, 2)] == ["updated", "updated"]
    found = sql(database, "SELECT DISTINCT jsonb_object_keys(result -> 'changes') FROM rowcall.row_status")
    assert found == [("name",)]


def test_submit_of_another_plan_is_refused_with_the_current_one(database: Database) -> None:
    """X4"""
    _table(database, "update")
    job = preview(database, IMPORTERS["update"], FILE).job
    with pytest.raises(PlanStale) as caught, database.connect() as connection, connection.transaction():
        moves.submit(connection, job, {"0" * 64})
    assert caught.value.digest == plan(database, job).digest
    assert submit(database, IMPORTERS["update"], job).job.state is State.COMPLETED_WITH_ERRORS


def test_submitting_again_does_nothing(database: Database) -> None:
    """E4: repeating a submit adds nothing."""
    _table(database, "version")
    importer = IMPORTERS["version"]
    job = preview(database, importer, "id,code,name,city\n1,a,A,Rome\n2,b,new,Oslo\n").job
    digest = plan(database, job).digest
    submit(database, importer, job)
    after = sql(database, "SELECT * FROM t ORDER BY id, version")
    assert submit(database, importer, job, digest=digest).job.state is State.COMPLETED
    assert sql(database, "SELECT * FROM t ORDER BY id, version") == after
    with pytest.raises(WrongState), database.connect() as connection:
        moves.submit(connection, jobs.get_job(connection, str(job.id)), {"0" * 64})


class Noting(Importer):
    """Writes down the moment that it is told."""

    target, key, flow, on_match = "t", "id", Flow(preview=True), Update()
    id = Integer()
    name_ = Text()

    def before(self, connection: Connection[Any], job: Any) -> None:
        connection.execute("INSERT INTO moment VALUES ('before', %s)", [job.as_of])

    def after(self, connection: Connection[Any], job: Any) -> None:
        connection.execute("INSERT INTO moment VALUES ('after', %s)", [job.as_of])


def test_preview_and_commit_are_of_one_moment(database: Database) -> None:
    """E4"""
    _table(database, "update")
    sql(database, "CREATE TABLE moment (what text, at timestamptz)")
    job = run_import(database, Noting, "id,name\n1,A\n").job
    assert sql(database, "SELECT * FROM moment") == []
    submit(database, Noting, job)
    at = plan(database, job).as_of
    assert sql(database, "SELECT * FROM moment") == [("before", at), ("after", at)]


class Together(WholeFileImporter):
    """Takes the file as a whole."""

    target, flow = "t", Flow(preview=True)
    id = Integer()
    name_ = Text()

    def process(self, rows: Any, connection: Connection[Any]) -> Iterable[RowOutcome]:
        for number, key, name in rows.select("number", "id", "name").iter_rows():
            was = connection.execute("SELECT name FROM t WHERE id = %s", [key]).fetchone()
            connection.execute(
                "INSERT INTO t (id, name) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
                [key, name],
            )
            status = Status.UPDATED if was else Status.CREATED
            yield RowOutcome(number, status, target_key=(str(key),), before={"name": was[0]} if was else None)


def test_whole_file_that_has_drifted_is_planned_again(database: Database) -> None:
    _table(database, "update")
    job = run_import(database, Together, "id,name\n1,x\n8,y\n").job
    first = plan(database, job)
    sql(database, "UPDATE t SET name = 'other' WHERE id = 1")
    again = submit(database, Together, job)
    assert again.job.state is State.VALIDATED
    assert sql(database, "SELECT name FROM t WHERE id IN (1, 8)") == [("other",)]
    second = plan(database, job)
    assert (second.drifted, second.digest == first.digest, second.submitted_at) == (1, False, None)
    done = submit(database, Together, job)
    assert (done.job.state, done.told) == (State.COMPLETED, ["updated", "created"])


_WATCHED = """
    CREATE TRIGGER nothing BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()
"""


@pytest.mark.parametrize("kind", ["skip", "fail", "update"])
def test_preview_says_the_same_whether_it_has_to_write_or_not(database: Database, kind: str) -> None:
    _table(database, kind)
    asked = preview(database, IMPORTERS[kind], FILE)
    sql(database, _WATCHED)
    written = preview(database, IMPORTERS[kind], FILE)
    assert (asked.told, asked.counts) == (written.told, written.counts)
    assert plan(database, asked.job).digest == plan(database, written.job).digest


_ONLY_WRITING_TELLS: dict[str, LiteralString] = {
    "trigger": _WATCHED,
    "rule": "CREATE RULE also AS ON DELETE TO t DO ALSO SELECT 1",
    "policies": "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    "generated column": "ALTER TABLE t ADD loud text GENERATED ALWAYS AS (upper(name)) STORED",
    "exclusion": "ALTER TABLE t ADD EXCLUDE USING btree (name WITH =)",
    "index with a condition": "CREATE INDEX ON t (name) WHERE version / 1 > 0",
    "index on an expression": "CREATE INDEX ON t (upper(name))",
    "index of another kind": "CREATE INDEX ON t USING gin (to_tsvector('simple', name))",
    "reference to what changes": "CREATE TABLE other (code text REFERENCES t (code))",
    "unique in the end": "ALTER TABLE t ADD UNIQUE (name) DEFERRABLE",
    "check of what the file doesn't bring": "ALTER TABLE t ADD CHECK (version < 3)",
    "reference of what the file doesn't bring": "ALTER TABLE t ADD FOREIGN KEY (version) REFERENCES city",
    "check without columns": "ALTER TABLE t ADD CHECK (random() < 2)",
    "default that is computed": "ALTER TABLE t ADD half int DEFAULT 1 / length(current_user)",
    "domain": "CREATE DOMAIN word AS text CHECK (VALUE <> ''); ALTER TABLE t ADD word word",
    "constraint that is off": "ALTER TABLE t DISABLE TRIGGER ALL",
    "heir": "CREATE TABLE heir () INHERITS (t)",
}


@pytest.mark.parametrize("what", _ONLY_WRITING_TELLS)
def test_target_that_has_a_say_of_its_own_is_written_to(database: Database, what: str) -> None:
    _table(database, "update")
    importer = IMPORTERS["update"]
    asked = preview(database, importer, FILE)
    with database.connect() as connection:
        assert is_foreseeable(prepare_work(connection, asked.job, importer, NO_SCRATCH, dry=True))
        connection.execute(_ONLY_WRITING_TELLS[what])
        assert not is_foreseeable(prepare_work(connection, asked.job, importer, NO_SCRATCH, dry=True))


@pytest.mark.parametrize("check", ["1 / length(code) > 0", "code < 'x'"])
def test_preview_of_what_constraints_choke_on(database: Database, check: LiteralString) -> None:
    """A check that fails on a value, and an entry that is too long for an index."""
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, code text UNIQUE)")
    sql(database, f"ALTER TABLE t ADD CHECK ({check})")
    importer = declared("t", key="id", id=Integer(), code=Text())
    long = "".join(f"{number:x}" for number in range(9_000))
    file = f'id,code\n1,a\n2,""\n3,{long}\n4,z\n'
    planned = preview(database, importer, file)
    assert planned.outcomes[3].status == "failed"
    assert submit(database, importer, planned.job).told == planned.told


_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["1", "2", "3", "4", "5", "x", ""]),
        st.sampled_from(["a", "b", "c", "d", "BAD", "", "much too long"]),
        st.sampled_from(["A", "B", ""]),
        st.sampled_from(["Rome", "Oslo", "Paris", ""]),
    ),
    max_size=12,
)


@example(
    rows=[
        ("1", "a", "A", "Rome"),
        ("1", "c", "B", "Oslo"),
        ("4", "c", "A", ""),
        ("1", "b", "A", ""),
        ("4", "a", "", "Rome"),
    ],
    kind="update",
    batch_rows=4,
    watched=False,
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=_ROWS, kind=st.sampled_from(sorted(IMPORTERS)), batch_rows=st.sampled_from([1, 4, 100]), watched=st.booleans()
)
def test_any_commit_does_what_its_preview_said(
    database: Database, rows: list[tuple[str, ...]], kind: str, batch_rows: int, watched: bool
) -> None:
    """§10: commit after preview gives exactly the previewed outcomes when nothing drifted."""
    sql(database, "DROP TABLE IF EXISTS t, city; TRUNCATE rowcall.row_key")
    _table(database, kind)
    if watched:
        sql(database, _WATCHED)
    file = "id,code,name,city\n" + "".join(",".join(row) + "\n" for row in rows)
    planned = preview(database, IMPORTERS[kind], file, batch_rows=batch_rows)
    done = submit(database, IMPORTERS[kind], planned.job)
    assert (done.told, done.counts) == (planned.told, planned.counts)


@pytest.mark.parametrize("key", ["uuid DEFAULT gen_random_uuid()", "int GENERATED BY DEFAULT AS IDENTITY"])
@pytest.mark.parametrize("atomic", [False, True])
def test_versions_whose_key_the_target_draws_are_written_as_previewed(
    database: Database, key: LiteralString, atomic: bool
) -> None:
    """It is drawn anew by the commit: the row was refused as changed by others, and all or nothing never ended."""
    sql(
        database,
        f"CREATE TABLE price (id {key} PRIMARY KEY, sku text NOT NULL, version int NOT NULL, amount numeric NOT NULL, "
        "UNIQUE (sku, version)); INSERT INTO price (sku, version, amount) VALUES ('w', 1, 2), ('x', 1, 3)",
    )
    fields: dict[str, Any] = {"sku": Text(required=True), "amount": Decimal(required=True)}
    importer = declared("price", key="sku", on_match=Version(), atomic=atomic, **fields)
    shown = preview(database, importer, "sku,amount\nw,5\nx,3\ny,1\n")
    assert shown.told == ["updated", "unchanged", "created"]
    done = submit(database, importer, shown.job)
    assert (done.job.state, done.told) == (State.COMPLETED, ["updated", "unchanged", "created"])
    written = sql(database, "SELECT sku, version, amount::int FROM price ORDER BY sku, version")
    assert written == [("w", 1, 2), ("w", 2, 5), ("x", 1, 3), ("y", 1, 1)]
    again = preview(database, importer, "sku,amount\nw,6\nx,4\n")
    sql(database, "INSERT INTO price (sku, version, amount) VALUES ('w', 3, 9)")
    drifted = submit(database, importer, again.job)
    assert drifted.job.state is (State.VALIDATED if atomic else State.COMPLETED_WITH_ERRORS)
    assert atomic or drifted.told == ["failed DRIFTED", "updated"]
