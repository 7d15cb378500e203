"""Tables with habits of their own: checks that raise, triggers that write, names that others use too."""

import threading
import time
from dataclasses import replace
from typing import Any, LiteralString, cast

import pytest
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL

from rowcall import DateTime, Decimal, Final, Importer, Integer, Json, Lookup, Text, Update
from rowcall.engine.doctor import Verdict, verify_job
from rowcall.engine.surroundings import check_importers
from rowcall.formats import ReadOptions
from rowcall.importer.registry import Pack, Registry
from rowcall.model import Code, Mode, State
from rowcall.store import staging
from rowcall.store.db import Database
from rowcall.store.layout import Layout
from rowcall.store.mappings import columns_of
from rowcall.store.matching import found_by
from rowcall.store.targets import describe

from .importing import Result, declared, run_import, sql
from .undoing import undone

BATCHES = pytest.mark.parametrize("batch_rows", [1, 100])
ID: dict[str, Any] = {"id": Integer(required=True)}


def imported(database: Database, importer: type[Importer], text: str, batch_rows: int, **how: Any) -> Result:
    """What a dry run says and the import then does."""
    plan = run_import(database, importer, text, batch_rows=batch_rows, dry_run=True, **how)
    done = run_import(database, importer, text, batch_rows=batch_rows, **how)
    assert plan.told == done.told
    return done


@BATCHES
def test_check_that_raises_fails_its_row(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, total int, qty int, CHECK (total / qty < 100))")
    importer = declared("t", key="id", **ID, total=Integer(), qty=Integer())
    result = imported(database, importer, "id,total,qty\n1,5,1\n2,5,0\n3,500,1\n4,6,1\n", batch_rows)
    assert [told.split()[0] for told in result.told] == ["created", "failed", "failed", "created"]
    assert "division by zero" in result.issue(2).message


@BATCHES
def test_domain_whose_check_is_a_function_refuses_its_row(database: Database, batch_rows: int) -> None:
    sql(
        database,
        """
        CREATE FUNCTION good(x text) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            IF x = 'bad' THEN RAISE EXCEPTION 'not this'; END IF;
            RETURN true;
        END $$;
        CREATE DOMAIN code AS text CHECK (good(VALUE));
        CREATE TABLE t (id int PRIMARY KEY, code code);
        """,
    )
    importer = declared("t", key="id", **ID, code=Text())
    result = imported(database, importer, "id,code\n1,a\n2,b\n3,bad\n4,c\n", batch_rows)
    assert [told.split()[0] for told in result.told] == ["created", "created", "failed", "created"]


@BATCHES
def test_trigger_may_write_to_rows_of_the_same_batch(database: Database, batch_rows: int) -> None:
    sql(
        database,
        """
        CREATE TABLE cat (id int PRIMARY KEY, name text, parent int, children int NOT NULL DEFAULT 0);
        INSERT INTO cat VALUES (1, 'old');
        CREATE FUNCTION count_child() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN UPDATE cat SET children = children + 1 WHERE id = NEW.parent; RETURN NULL; END $$;
        CREATE TRIGGER count_child AFTER INSERT ON cat FOR EACH ROW EXECUTE FUNCTION count_child();
        """,
    )
    importer = declared("cat", key="id", on_match=Update(), **ID, name_=Text(), parent=Integer())
    result = imported(database, importer, "id,name,parent\n1,new,\n2,kid,1\n", batch_rows)
    assert result.told == ["updated", "created"]
    assert result.values("id", "name", "children") == [(1, "new", 1), (2, "kid", 0)]


@pytest.mark.parametrize("name", ["t", "n", "s", "m", "problems", "keyed", "numbers", "alike", "line", "cells"])
def test_columns_may_be_called_what_we_call_ours(database: Database, name: str) -> None:
    table = f'CREATE TABLE t ("{name}" int PRIMARY KEY, code text UNIQUE, extra jsonb)'
    sql(database, cast("LiteralString", table))
    sql(database, "INSERT INTO t VALUES (1, 'a', '{\"q\": 1}'), (9, 'x', NULL)")
    fields = {name: Integer(required=True), "code": Text(), "extra": Json()}
    importer = declared("t", key=name, on_match=Update(), **fields)
    result = imported(database, importer, f"{name},code\n1,b\n2,x\n3,c\n3,d\n", batch_rows=3)
    assert [told.split()[0] for told in result.told] == ["updated", "failed", "skipped", "created"]
    assert result.outcomes[1].before == {name: 1, "code": "a", "extra": '{"q": 1}'}  # from which it comes back


@BATCHES
def test_index_whose_expression_raises_fails_its_row(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, code text); CREATE UNIQUE INDEX ON t ((code::int))")
    result = imported(database, declared("t", key="id", **ID, code=Text()), "id,code\n1,5\n2,abc\n3,6\n", batch_rows)
    assert [told.split()[0] for told in result.told] == ["created", "failed", "created"]


_IGNORING_CASE: LiteralString = """
    CREATE COLLATION nd (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE DOMAIN alike AS text COLLATE nd;
    CREATE DOMAIN several AS alike[];
"""
_TYPES = """
    CREATE TYPE took AS (what text, how_long interval);
    CREATE TYPE marked AS (at point, more json);
    CREATE TYPE mood AS ENUM ('glad', 'sad');
    CREATE DOMAIN feeling AS mood;
    CREATE DOMAIN any_json AS json;
    CREATE DOMAIN some_json AS any_json;
"""


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("interval", "1 mon", "30 days"),
        ("interval[]", "{24:00:00}", '{"1 day"}'),
        ("circle", "<(0,0),1>", "<(5,5),1>"),
        ("float8", "0", "-0"),
        ("jsonb", '{"a": 1.0}', '{"a": 1.00}'),
        ("text COLLATE nd", "a", "A"),
        ("text[] COLLATE nd", "{a}", "{A}"),
        ("alike", "a", "A"),
        ("several", "{a}", "{A}"),
        ("took", '(a,"1 mon")', '(a,"30 days")'),
        # these have no equality
        ("json", '{"a":1}', '{"a":2}'),
        ("json[]", '{"{\\"a\\":1}"}', '{"{\\"a\\": 1}"}'),
        ("some_json", '{"a":1}', '{"a": 1}'),
        ("point[]", '{"(1,2)"}', '{"(1,3)"}'),
        ("marked", '("(1,2)",1)', '("(1,3)",1)'),
        ("jsonpath", '$."a"', '$."b"'),
        ("pg_snapshot", "10:20:10", "10:20:11"),
        ("feeling", "glad", "sad"),
    ],
)
def test_values_that_differ_are_changes_whatever_their_type_calls_equal(
    database: Database, kind: str, old: str, new: str
) -> None:
    if "nd" in kind or kind in ("alike", "several"):
        if not sql(database, "SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'"):
            pytest.skip("this PostgreSQL comes without ICU")
        sql(database, _IGNORING_CASE)
    sql(database, _TYPES)
    sql(database, cast("LiteralString", f"CREATE TABLE t (id int PRIMARY KEY, x {kind})"))
    sql(database, cast("LiteralString", f"INSERT INTO t VALUES (1, '{old}')"))
    importer = declared("t", key="id", on_match=Update(), **ID, x=Text())
    for value, told in ((old, "unchanged"), (new, "updated"), (new, "unchanged")):
        quoted = value.replace('"', '""')
        assert run_import(database, importer, f'id,x\n1,"{quoted}"\n').told == [told]


def test_arrays_of_texts_that_ignore_case_are_changed_by_it(database: Database) -> None:
    if not sql(database, "SELECT 1 FROM pg_available_extensions WHERE name = 'citext'"):
        pytest.skip("this PostgreSQL comes without citext")
    sql(database, "CREATE EXTENSION citext; CREATE TYPE named AS (name citext)")
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, x citext[], y named); INSERT INTO t VALUES (1, '{a}', '(a)')")
    importer = declared("t", key="id", on_match=Update(), **ID, x=Text(), y=Text())
    assert run_import(database, importer, "id,x,y\n1,{a},(A)\n").told == ["updated"]
    assert run_import(database, importer, "id,x,y\n1,{A},(A)\n").told == ["updated"]
    assert run_import(database, importer, "id,x,y\n1,{A},(A)\n").told == ["unchanged"]


def test_numbers_are_the_same_whatever_zeros_they_end_with(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, x numeric, y numeric[])")
    sql(database, "INSERT INTO t VALUES (1, 1.50, '{1.50}')")
    importer = declared("t", key="id", on_match=Update(), **ID, x=Decimal(), y=Text())
    assert run_import(database, importer, "id,x,y\n1,1.5,{1.5}\n").told == ["unchanged"]


@BATCHES
def test_default_is_part_of_a_key(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (tenant text NOT NULL, code int NOT NULL, name text, PRIMARY KEY (tenant, code))")
    importer = declared(
        "t", key=("tenant", "code"), on_match=Update(), tenant=Text(default="acme"), code=Integer(), name_=Text()
    )
    result = imported(database, importer, "tenant,code,name\n,5,a\nacme,5,b\nother,5,c\n", batch_rows)
    assert [told.split()[0] for told in result.told] == ["skipped", "created", "created"]
    assert run_import(database, importer, "code,name\n5,b\n", batch_rows=batch_rows).told == ["unchanged"]


@pytest.mark.parametrize(("batch_rows", "workers"), [(1, 4), (1, 1), (100, 1)])
@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE t (id int PRIMARY KEY, ref text, tenant text DEFAULT 'acme', UNIQUE (tenant, ref))",
        "CREATE TABLE t (id int PRIMARY KEY, ref text, low text GENERATED ALWAYS AS (lower(ref)) STORED UNIQUE)",
    ],
    ids=["default", "generated"],
)
def test_first_row_counts_where_the_file_lacks_a_column_of_the_index(
    database: Database, table: LiteralString, batch_rows: int, workers: int
) -> None:
    sql(database, table)
    importer = declared("t", key="id", **ID, ref=Text())
    result = imported(database, importer, "id,ref\n1,a\n2,a\n3,b\n", batch_rows, workers=workers)
    assert [told.split()[0] for told in result.told] == ["created", "failed", "created"]


@BATCHES
def test_times_that_the_column_rounds_are_the_same_key(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (at timestamptz(0) PRIMARY KEY, x text)")
    importer = declared("t", key="at", on_match=Update(), at=Text(required=True), x=Text())
    text = "at,x\n2024-01-01T00:00:00.1Z,a\n2024-01-01T00:00:00.2Z,b\n"
    assert [told.split()[0] for told in imported(database, importer, text, batch_rows).told] == ["skipped", "created"]


@BATCHES
def test_rows_that_refer_to_each_other_come_in_beside_one_that_cannot(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE p (id int PRIMARY KEY, spouse int REFERENCES p)")
    importer = declared("p", key="id", **ID, spouse=Integer())
    result = imported(database, importer, "id,spouse\n1,2\n2,1\n3,99\n4,3\n5,\n", batch_rows)
    assert [told.split()[0] for told in result.told] == ["created", "created", "failed", "failed", "created"]


def test_order_of_dates_that_was_given_counts_whatever_a_value_says(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, at timestamptz)")
    importer = declared("t", key="id", **ID, at=DateTime())
    text = "id,at\n1,03/04/2024\n2,13/05/2024\n"
    result = run_import(database, importer, text, read=ReadOptions(date_order="mdy"))
    assert result.job.state is State.COMPLETED_WITH_ERRORS
    assert [told.split()[0] for told in result.told] == ["created", "failed"]


@BATCHES
def test_value_moves_under_an_index_on_an_expression(database: Database, batch_rows: int) -> None:
    sql(
        database,
        "CREATE TABLE t (id int PRIMARY KEY, email text); CREATE UNIQUE INDEX ON t (lower(email));"
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    )
    importer = declared("t", key="id", on_match=Update(), **ID, email=Text())
    result = imported(database, importer, "id,email\n1,x\n3,A\n4,B\n", batch_rows)
    assert [told.split()[0] for told in result.told] == ["updated", "created", "failed"]


@BATCHES
def test_row_whose_number_is_taken_fails_and_is_no_match(database: Database, batch_rows: int) -> None:
    sql(
        database,
        "CREATE SEQUENCE numbers;"
        "CREATE FUNCTION number() RETURNS int LANGUAGE sql AS $$ SELECT nextval('numbers')::int $$;"
        "CREATE TABLE t (id int PRIMARY KEY DEFAULT number(), email text NOT NULL UNIQUE);"
        "INSERT INTO t SELECT n, 'old' || n FROM generate_series(1, 50) n",
    )
    importer = declared("t", key="id", natural_key="email", id=Integer(), email=Text(required=True))
    result = run_import(database, importer, "id,email\n,n1\n,old7\n100,n2\n", batch_rows=batch_rows)
    assert result.told == ["failed UNIQUE_VIOLATION", "skipped ALREADY_EXISTS", "created"]


@BATCHES
def test_references_to_itself_that_are_judged_at_the_end(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE p (id int PRIMARY KEY, up int REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
    importer = declared("p", key="id", **ID, up=Integer())
    result = imported(database, importer, "id,up\n1,4\n2,99\n3,\n4,3\n", batch_rows)
    assert [told.split()[0] for told in result.told] == ["created", "failed", "created", "created"]


@BATCHES
@pytest.mark.parametrize("state", ["42501", "55000", "0A000", "P0001", "45000"])
def test_trigger_may_refuse_with_any_code(database: Database, state: str, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, code text)")
    function = f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.code = 'no' THEN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()
    """
    sql(database, cast("LiteralString", function))
    result = imported(database, declared("t", key="id", **ID, code=Text()), "id,code\n1,a\n2,no\n3,b\n", batch_rows)
    assert [told.split()[0] for told in result.told] == ["created", "failed", "created"]


@BATCHES
def test_key_and_natural_key_that_read_the_same_are_two_things(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, code text UNIQUE)")
    importer = declared("t", key="id", natural_key="code", once=True, id=Integer(), code=Text())
    result = imported(database, importer, "id,code\n1001,7\n,1001\n", batch_rows)
    assert result.told == ["created", "created"]


@BATCHES
def test_json_that_the_database_refuses_fails_its_row(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, v jsonb)")
    text = 'id,v\n1,"{""x"":1}"\n2,[]\n3,"""\\u0000"""\n4,{}\n'
    result = imported(database, declared("t", key="id", **ID, v=Json()), text, batch_rows)
    assert [told.split()[0] for told in result.told] == ["created", "created", "failed", "created"]


def test_names_with_a_percent_sign_are_imported_and_verified(database: Database) -> None:
    sql(database, 'CREATE DOMAIN "a %s" AS int; CREATE TABLE "50 %" ("share %" "a %s" PRIMARY KEY, "%(id)s" text)')
    fields: dict[str, Any] = {"share": Integer(column="share %"), "name_": Text(column="%(id)s")}
    importer = declared("50 %", key="share", on_match=Update(), **fields)
    result = imported(database, importer, "share,name\n1,a\n2,b\n", 1)
    assert result.told == ["created", "created"]
    with database.connect() as connection:
        verdicts = {finding.verdict for finding in verify_job(connection, result.job, importer)}
    assert verdicts == {Verdict.OK}
    assert imported(database, importer, "share,name\n1,c\n2,b\n", 1).told == ["updated", "unchanged"]


@BATCHES
@pytest.mark.parametrize("raised", ["RAISE EXCEPTION 'not %', NEW.id", "ASSERT false, 'not this'"])
@pytest.mark.parametrize("mode", [None, Mode.UPSERT])
def test_trigger_refuses_rows_of_a_table_with_strange_names(
    database: Database, raised: str, mode: Mode | None, batch_rows: int
) -> None:
    table = f"""
        CREATE TABLE t (id int PRIMARY KEY, "it's 5%" text, "back\\slash $$" text);
        INSERT INTO t VALUES (1, 'old'), (2, 'old'), (3, 'old');
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $body$
        BEGIN IF NEW."it's 5%" = 'no' THEN {raised}; END IF; RETURN NEW; END $body$;
        CREATE TRIGGER refuse AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION refuse()
    """
    sql(database, cast("LiteralString", table))
    importer = declared("t", key="id", **ID, a=Text(column="it's 5%"), b=Text(column="back\\slash $$"))
    result = imported(database, importer, "id,a,b\n1,x,y\n2,no,y\n4,no,y\n5,x,y\n6,no,y\n", batch_rows, mode=mode)
    matched = ["updated", "failed"] if mode else ["skipped", "skipped"]
    assert [told.split()[0] for told in result.told] == [*matched, "failed", "created", "failed"]
    assert "not" in result.issue(3).message


LUCK = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF NEW.n = 13 THEN RAISE EXCEPTION 'unlucky'; END IF; RETURN NEW; END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION refuse()
"""


@BATCHES
def test_trigger_refuses_rows_of_a_table_with_a_column_called_found(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, found text, n int)")
    sql(database, LUCK)
    importer = declared("t", key="id", **ID, found=Text(), n=Integer())
    result = imported(database, importer, "id,found,n\n1,a,1\n2,b,13\n3,c,3\n", batch_rows)
    assert result.told == ["created", "failed ROW_REFUSED", "created"]


def test_waiting_for_a_lock_is_no_refusal(database: Database) -> None:
    sql(database, "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1)")
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES p, n int)")
    sql(database, LUCK)
    importer = declared("t", key="id", **ID, p=Integer(), n=Integer())
    text = "id,p,n\n" + "".join(f"{number},1,{13 if number == 2 else 1}\n" for number in range(1, 101))
    impatient = replace(database, url=make_conninfo(database.url, options="-c lock_timeout=100ms"))
    locked = threading.Event()

    def hold() -> None:
        with database.connect() as connection, connection.transaction():
            connection.execute("SELECT FROM p FOR UPDATE")
            locked.set()
            time.sleep(1.5)

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait()
    result = run_import(impatient, importer, text)
    holder.join()
    assert [told for told in result.told if told != "created"] == ["failed ROW_REFUSED"]


def test_view_is_refused_at_once(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY); CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(Final, match="is no table") as refused:
        run_import(database, declared("v", **ID), "id\n1\n")
    assert refused.value.code == Code.BAD_TARGET


@pytest.mark.parametrize(
    "rule",
    [
        "CREATE RULE r AS ON INSERT TO t WHERE NEW.id > 1 DO INSTEAD NOTHING",
        "CREATE RULE r AS ON INSERT TO t DO ALSO INSERT INTO log VALUES (NEW.id)",
        "CREATE RULE r AS ON UPDATE TO t DO ALSO INSERT INTO log VALUES (NEW.id)",
    ],
)
def test_table_with_a_rule_is_refused_at_once(database: Database, rule: LiteralString) -> None:
    sql(
        database,
        "CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE); CREATE TABLE log (id int); INSERT INTO t VALUES (1)",
    )
    sql(database, rule)
    creating = Lookup("t", by="name", creates="name", to="id")
    for importer in (declared("t", key="id", **ID), declared("log", id=creating)):
        with pytest.raises(Final, match="has the rule 'r'") as refused:
            run_import(database, importer, "id\n2\n")
        assert refused.value.code == Code.BAD_TARGET
        with database.connect() as connection:
            (found,) = check_importers(connection, Registry((Pack("p", "p", (importer,)),)))
        assert found.said in refused.value.message
    sql(database, "ALTER TABLE t DISABLE RULE r")
    assert run_import(database, declared("t", key="id", **ID), "id\n2\n").told == ["created"]
    sql(database, "DROP RULE r ON t")
    assert run_import(database, declared("t", key="id", **ID), "id\n3\n").told == ["created"]


_DAYS: LiteralString = """
    CREATE TYPE some_day AS ENUM ('mon', 'tue', 'wed', 'thu', 'fri');
    CREATE DOMAIN any_day AS some_day; CREATE DOMAIN day AS any_day;
    CREATE TABLE t (day day PRIMARY KEY DEFAULT 'mon', place day NOT NULL UNIQUE, n int CHECK (n > 0));
"""


@BATCHES
def test_domain_over_an_enum_is_a_key(database: Database, batch_rows: int) -> None:
    sql(database, _DAYS)
    sql(database, "INSERT INTO t VALUES ('mon', 'mon', 1), ('tue', 'tue', 1), ('wed', 'wed', 1)")
    fields: dict[str, Any] = {"day": Text(), "place": Text(), "n": Integer()}
    importer = declared("t", key="day", natural_key="place", on_match=Update(), **fields)
    text = "day,place,n\nmon,tue,2\n,wed,3\nfri,thu,0\nthu,thu,4\nthu,fri,5\n"
    result = imported(database, importer, text, batch_rows)
    told = ["failed UNIQUE_VIOLATION", "updated", "failed CHECK_VIOLATION", "skipped DUPLICATE_IN_FILE", "created"]
    assert result.told == told
    assert result.values("day", "place", "n") == [
        ("mon", "mon", 1),
        ("tue", "tue", 1),
        ("wed", "wed", 3),
        ("thu", "fri", 5),
    ]
    done, came_to = undone(database, importer, result.job)
    assert (done.state, came_to.deleted, came_to.restored) == (State.REVERTED, 1, 1)
    assert sql(database, "SELECT day, n FROM t ORDER BY day") == [("mon", 1), ("tue", 1), ("wed", 1)]


def test_domain_over_an_enum_is_looked_up_by_its_index(database: Database) -> None:
    sql(database, _DAYS)
    with database.connect() as connection:
        target = describe(connection, "t")
        layout = Layout(target=target, columns=("day",), given=frozenset(), keys=(("day",),), on_match="update")
        staging.prepare(connection, layout)
        select = SQL("EXPLAIN SELECT FROM {} s CROSS JOIN {}").format(staging.STAGE, found_by(layout, ["day"]))
        plan = "\n".join(line for (line,) in connection.execute(select))
    assert "using t_pkey" in plan, plan


@BATCHES
def test_match_is_told_by_the_key_it_was_found_by(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, sku text UNIQUE)")
    sql(database, "INSERT INTO t (sku) VALUES ('A'), ('B')")
    importer = declared("t", key="id", natural_key="sku", id=Integer(), sku=Text())
    result = imported(database, importer, "id,sku\n,A\n2,\n", batch_rows)
    assert [(result.issue(row).field, result.issue(row).value) for row in (1, 2)] == [("sku", "A"), ("id", "2")]


def test_value_that_is_set_leaves_the_column_of_its_name_unused(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, sku text)")
    importer = declared("t", key="id", **ID, sku=Text())
    result = run_import(database, importer, "id,sku\n1,A\n", constants={"sku": "Z"})
    assert result.values("sku") == ["Z"]
    with database.connect() as connection:
        assert [column.target_field for column in columns_of(connection, result.job.id)] == ["id", None]
