"""What the database refuses: only the guilty rows fail, and each is told why."""

from dataclasses import dataclass
from typing import Any, LiteralString

import pytest

from rowcall import Boolean, Choice, Date, Decimal, Final, Integer, Issue, Text, Update, Version
from rowcall.model import Code, State
from rowcall.store.db import Database

from .importing import declared, run_import, sql


@dataclass(frozen=True)
class Refusal:
    """A table, a file of which it refuses the second of three rows, and what is told about that row."""

    table: LiteralString
    fields: dict[str, Any]
    file: str
    code: Code
    about: str | None
    value: str | None
    constraint: str | None = None


_ID = {"id": Integer(required=True)}
_CODED = {**_ID, "code": Text()}
REFUSALS = {
    "unique": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text UNIQUE); INSERT INTO t VALUES (9, 'b')",
        _CODED,
        "id,code\n1,a\n2,b\n3,c\n",
        Code.UNIQUE_VIOLATION,
        "code",
        "b",
        "t_code_key",
    ),
    "composite unique": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, a text, b int, UNIQUE (a, b)); INSERT INTO t VALUES (9, 'x', 1)",
        {**_ID, "a": Text(), "b": Integer()},
        "id,a,b\n1,x,2\n2,x,1\n3,y,1\n",
        Code.UNIQUE_VIOLATION,
        "a, b",
        "x, 1",
        "t_a_b_key",
    ),
    "partial unique index": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text, live boolean); INSERT INTO t VALUES (9, 'a', true);"
        "CREATE UNIQUE INDEX t_live ON t (code) WHERE live",
        {**_CODED, "live": Boolean()},
        "id,code,live\n1,a,no\n2,a,yes\n3,b,yes\n",
        Code.UNIQUE_VIOLATION,
        "code",
        "a",
        "t_live",
    ),
    "expression unique index": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text); CREATE UNIQUE INDEX t_lower ON t (lower(code));"
        "INSERT INTO t VALUES (9, 'B')",
        _CODED,
        "id,code\n1,a\n2,b\n3,c\n",
        Code.UNIQUE_VIOLATION,
        "code",
        "b",
        "t_lower",
    ),
    "exclusion": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, days int4range, EXCLUDE USING gist (days WITH &&));"
        "INSERT INTO t VALUES (9, '[5,7)')",
        {**_ID, "days": Text()},
        "id;days\n1;[1,3)\n2;[6,9)\n3;[3,5)\n",
        Code.UNIQUE_VIOLATION,
        "days",
        "[6,9)",
        "t_days_excl",
    ),
    "foreign key": Refusal(
        "CREATE TABLE o (id int PRIMARY KEY); INSERT INTO o VALUES (1);"
        "CREATE TABLE t (id int PRIMARY KEY, o_id int REFERENCES o)",
        {**_ID, "o_id": Integer()},
        "id,o_id\n1,1\n2,5\n3,\n",
        Code.FOREIGN_KEY_VIOLATION,
        "o_id",
        "5",
        "t_o_id_fkey",
    ),
    "foreign key to the table itself": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, parent int REFERENCES t)",
        {**_ID, "parent": Integer()},
        "id,parent\n1,3\n2,5\n3,\n",
        Code.FOREIGN_KEY_VIOLATION,
        "parent",
        "5",
        "t_parent_fkey",
    ),
    "deferred foreign key": Refusal(
        "CREATE TABLE o (id int PRIMARY KEY); INSERT INTO o VALUES (1);"
        "CREATE TABLE t (id int PRIMARY KEY, o_id int REFERENCES o DEFERRABLE INITIALLY DEFERRED)",
        {**_ID, "o_id": Integer()},
        "id,o_id\n1,1\n2,5\n3,\n",
        Code.FOREIGN_KEY_VIOLATION,
        "o_id",
        "5",
        "t_o_id_fkey",
    ),
    "check": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text CHECK (code NOT LIKE 'b%'))",
        _CODED,
        "id,code\n1,a\n2,b\n3,\n",
        Code.CHECK_VIOLATION,
        "code",
        "b",
        "t_code_check",
    ),
    "check over columns with names of our own": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, key int, changed int, CHECK (key < changed))",
        {**_ID, "key_": Integer(), "changed": Integer()},
        "id,key,changed\n1,1,2\n2,2,1\n3,,1\n",
        Code.CHECK_VIOLATION,
        "key, changed",
        "2, 1",
        "t_check",
    ),
    "check of the whole row": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text); CREATE FUNCTION fine(t) RETURNS boolean LANGUAGE sql IMMUTABLE"
        " RETURN $1.code <> 'b'; ALTER TABLE t ADD CHECK (fine(t))",
        _CODED,
        "id,code\n1,a\n2,b\n3,\n",
        Code.CHECK_VIOLATION,
        None,
        None,
        "t_check",
    ),
    "required by the column": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL)",
        _CODED,
        "id,code\n1,a\n2,\n3,c\n",
        Code.REQUIRED,
        "code",
        "",
    ),
    "not null by a trigger's doing": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL); CREATE FUNCTION empty() RETURNS trigger LANGUAGE "
        "plpgsql AS $$ BEGIN NEW.code := nullif(NEW.code, 'b'); RETURN NEW; END $$; "
        "CREATE TRIGGER empty BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION empty()",
        _CODED,
        "id,code\n1,a\n2,b\n3,c\n",
        Code.NOT_NULL_VIOLATION,
        "code",
        "b",
    ),
    "too long": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code varchar(3))",
        _CODED,
        "id,code\n1,äöü\n2,abcd\n3,c\n",
        Code.TOO_LONG,
        "code",
        "abcd",
    ),
    "too long for an index": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text UNIQUE)",
        _CODED,
        f"id,code\n1,a\n2,{''.join(chr(0x4E00 + i * 7919 % 20000) for i in range(4000))}\n3,c\n",
        Code.VALUE_REFUSED,
        None,
        None,
    ),
    "numeric overflow": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code numeric(5,2))",
        {**_ID, "code": Decimal()},
        "id,code\n1,999.99\n2,1000\n3,-1.5\n",
        Code.TOO_LARGE,
        "code",
        "1000",
    ),
    "smallint": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code smallint)",
        {**_ID, "code": Integer()},
        "id,code\n1,32767\n2,-32769\n3,-32768\n",
        Code.TOO_SMALL,
        "code",
        "-32769",
    ),
    "enum": Refusal(
        "CREATE TYPE e AS ENUM ('a', 'b c'); CREATE TABLE t (id int PRIMARY KEY, code e)",
        _CODED,
        "id,code\n1,a\n2,d\n3,b c\n",
        Code.NOT_A_CHOICE,
        "code",
        "d",
    ),
    "domain": Refusal(
        "CREATE DOMAIN d AS text CHECK (VALUE <> 'b'); CREATE TABLE t (id int PRIMARY KEY, code d)",
        _CODED,
        "id,code\n1,a\n2,b\n3,\n",
        Code.CHECK_VIOLATION,
        "code",
        "b",
        "d_check",
    ),
    "a type that the field doesn't know": Refusal(
        'CREATE TABLE t (id int PRIMARY KEY, "the code" inet)',
        {**_ID, "code": Text(column="the code")},
        "id,code\n1,10.0.0.1\n2,b\n3,::1\n",
        Code.VALUE_REFUSED,
        "code",
        "b",
    ),
    "trigger": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text); CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.code = 'b' THEN RAISE 'b is not wanted'; END IF; RETURN NEW; END $$; "
        "CREATE TRIGGER judge BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION judge()",
        _CODED,
        "id,code\n1,a\n2,b\n3,c\n",
        Code.ROW_REFUSED,
        None,
        None,
    ),
    "trigger with a code of its own": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text); CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.code = 'b' THEN RAISE 'b is not wanted' USING ERRCODE = 'MY001'; END IF; RETURN NEW; END $$; "
        "CREATE TRIGGER judge BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION judge()",
        _CODED,
        "id,code\n1,a\n2,b\n3,c\n",
        Code.ROW_REFUSED,
        None,
        None,
    ),
    "deferred trigger": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text); CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.code = 'b' THEN RAISE 'b is not wanted'; END IF; RETURN NEW; END $$; "
        "CREATE CONSTRAINT TRIGGER judge AFTER INSERT OR UPDATE ON t DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION judge()",
        _CODED,
        "id,code\n1,a\n2,b\n3,c\n",
        Code.ROW_REFUSED,
        None,
        None,
    ),
    "no partition": Refusal(
        "CREATE TABLE t (id int PRIMARY KEY, code text) PARTITION BY RANGE (id);"
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (1) TO (2);"
        "CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (3) TO (4)",
        _CODED,
        "id,code\n1,a\n2,b\n3,c\n",
        Code.CHECK_VIOLATION,
        "id",
        "2",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_only_the_guilty_row_fails(database: Database, name: str) -> None:
    refusal = REFUSALS[name]
    sql(database, refusal.table)
    importer = declared("t", key="id", on_match=Update(), **refusal.fields)
    for told in ("created", "unchanged"):
        result = run_import(database, importer, refusal.file)
        assert result.told == [told, f"failed {refusal.code}", told]
        assert result.job.state is State.COMPLETED_WITH_ERRORS
        assert {1, 3} <= set(result.values("id"))
        assert 2 not in result.values("id")
        issue = result.issue(2)
        assert (issue.field, issue.value) == (refusal.about, refusal.value)
        if refusal.constraint:
            assert (issue.metadata or {})["constraint"] == refusal.constraint
        if refusal.code == Code.FOREIGN_KEY_VIOLATION:
            told = {"category": "FK_MISMATCH", "fkType": refusal.table.partition("REFERENCES ")[2][0], "fkValue": "5"}
            assert told.items() <= (issue.metadata or {}).items()


def test_row_that_is_not_written_breaks_no_constraint(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, amount int CHECK (amount > 0)); INSERT INTO t VALUES (1, 5)")
    importer = declared("t", key="id", id=Integer(required=True), amount=Integer())
    result = run_import(database, importer, "id,amount\n1,-1\n2,-2\n3,3\n")
    assert result.told == ["skipped ALREADY_EXISTS", "failed CHECK_VIOLATION", "created"]


def test_default_that_is_not_written_over_a_match_breaks_no_constraint(database: Database) -> None:
    table = "CREATE TABLE t (id int PRIMARY KEY, amount int, kind text, CHECK (amount > 0 OR kind = 'loss'))"
    sql(database, table)
    sql(database, "INSERT INTO t VALUES (1, 5, 'loss')")
    fields = {"id": Integer(required=True), "amount": Integer(), "kind": Choice("gain", "loss", default="gain")}
    importer = declared("t", key="id", on_match=Update(), **fields)
    result = run_import(database, importer, "id,amount\n1,-1\n2,-2\n3,3\n")
    assert result.told == ["updated", "failed CHECK_VIOLATION", "created"]


def test_every_guilty_row_is_found_among_many(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, code text); ALTER TABLE t ADD EXCLUDE USING btree (code WITH =)")
    lines = [f"{number},{'same' if number % 50 == 7 else number}" for number in range(1, 301)]
    result = run_import(database, declared("t", id=Integer(), code=Text()), "id,code\n" + "\n".join(lines))
    failed = [number for number, outcome in result.outcomes.items() if outcome.told == "failed UNIQUE_VIOLATION"]
    assert sorted(failed) == [57, 107, 157, 207, 257]
    assert (result.counts.created, len(result.rows)) == (295, 295)


def test_refused_update_leaves_the_row_as_it_was(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, code text UNIQUE); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    importer = declared("t", key="id", on_match=Update(), id=Integer(), code=Text())
    result = run_import(database, importer, "id,code\n1,b\n3,c\n")
    assert result.told == ["failed UNIQUE_VIOLATION", "created"]
    assert result.outcomes[1].before is None
    assert result.values("id", "code") == [(1, "a"), (2, "b"), (3, "c")]


def test_odd_names_are_only_names(database: Database) -> None:
    sql(
        database,
        '''
        CREATE SCHEMA "My Schema";
        CREATE TABLE "My Schema"."Weird Table" (
            "the ""id""" int PRIMARY KEY, "select" text UNIQUE CHECK ("select" <> 'BAD'), "100% {}" text, "ä'\\" int,
            "rowcall's" text DEFAULT '{}%' NOT NULL)
        ''',
    )
    fields = {
        "id": Integer(column='the "id"', required=True),
        "select": Text(),
        "percent": Text(column="100% {}"),
        "quote": Integer(column="ä'\\"),
        "own": Text(column="rowcall's"),
    }
    importer = declared("My Schema.Weird Table", key="id", natural_key="select", on_match=Update(), **fields)
    text = "id,select,percent,quote,own\n1,x,%s {} %(a)s,1,\n2,BAD,,,\n3,y,,3,z\n"
    result = run_import(database, importer, text)
    assert result.told == ["created", "failed CHECK_VIOLATION", "created"]
    assert result.issue(2).field == "select"
    result = run_import(database, importer, text.replace("3,y,,3", "3,y,,4"))
    assert result.told == ["unchanged", "failed CHECK_VIOLATION", "updated"]
    assert [tuple(row.values()) for row in result.rows] == [
        (1, "x", "%s {} %(a)s", 1, "{}%"),
        (3, "y", None, 4, "z"),
    ]


def test_percent_in_the_name_of_a_key(database: Database) -> None:
    sql(database, 'CREATE TABLE t ("50%" int PRIMARY KEY, "b%s" text NOT NULL)')
    importer = declared("t", key="share", on_match=Update(), share=Integer(column="50%"), b=Text(column="b%s"))
    assert [run_import(database, importer, "share,b\n1,x\n").told for _ in range(2)] == [["created"], ["unchanged"]]


def test_triggers_may_change_what_is_written(database: Database) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int PRIMARY KEY, code text, twice int GENERATED ALWAYS AS (id * 2) STORED);
        CREATE FUNCTION upper_code() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.code := upper(NEW.code); RETURN NEW; END $$;
        CREATE TRIGGER upper_code BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION upper_code();
        """,
    )
    importer = declared("t", key="id", on_match=Update(), id=Integer(), code=Text())
    run_import(database, importer, "id,code\n1,a\n")
    result = run_import(database, importer, "id,code\n1,b\n2,c\n")
    assert result.told == ["updated", "created"]
    assert result.values("code", "twice") == [("B", 2), ("C", 4)]


@pytest.mark.parametrize("batch_rows", [1, 2, 1_000])
def test_row_that_a_trigger_drops_has_failed(database: Database, batch_rows: int) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int PRIMARY KEY, code text);
        INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
        CREATE FUNCTION choose() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.code = 'no' THEN RETURN NULL; END IF; RETURN NEW; END $$;
        CREATE TRIGGER choose BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION choose();
        """,
    )
    importer = declared("t", key="id", on_match=Update(), **_CODED)
    text = "id,code\n1,a\n2,no\n3,x\n4,d\n5,no\n6,e\n"
    result = run_import(database, importer, text, batch_rows=batch_rows)
    dropped = "failed ROW_REFUSED"
    assert result.told == ["unchanged", dropped, "updated", "created", dropped, "created"]
    assert result.values("id", "code") == [(1, "a"), (2, "b"), (3, "x"), (4, "d"), (6, "e")]
    assert result.issue(5).message == "A trigger or rule of t drops this row."
    sql(database, "DELETE FROM t")
    result = run_import(database, importer, text, batch_rows=batch_rows)
    assert result.told == ["created", dropped, "created", "created", dropped, "created"]


def test_generated_column_takes_no_field(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    with pytest.raises(Final) as caught:
        run_import(database, declared("t", id=Integer(), twice=Integer()), "id,twice\n1,2\n")
    assert caught.value.code == Code.BAD_TARGET


def test_partitioned_tables_are_filled_and_updated_across_partitions(database: Database) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int, region text, code text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
        CREATE TABLE north PARTITION OF t FOR VALUES IN ('n');
        CREATE TABLE south PARTITION OF t FOR VALUES IN ('s') PARTITION BY RANGE (id);
        CREATE TABLE south_low PARTITION OF south FOR VALUES FROM (0) TO (100);
        """,
    )
    fields = {"id": Integer(required=True), "region": Text(required=True), "code": Text()}
    importer = declared("t", key=("id", "region"), on_match=Update(), **fields)
    assert run_import(database, importer, "id,region,code\n1,n,a\n1,s,b\n").told == ["created", "created"]
    result = run_import(database, importer, "id,region,code\n1,n,a\n1,s,c\n200,s,d\n")
    assert result.told == ["unchanged", "updated", "failed CHECK_VIOLATION"]
    assert result.outcomes[2].before == {"id": 1, "region": "s", "code": "b"}
    assert sql(database, "SELECT * FROM south_low") == [(1, "s", "c")]


def test_a_value_beyond_the_limits_of_postgresql_fails_its_row_alone(database: Database) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, sizes bigint[])")
    importer = declared("t", key="id", id=Integer(), sizes=Text())
    text = "id;sizes\n1;{1,2}\n2;[9223372036854775807,1]\n3;{3}\n"
    assert run_import(database, importer, text).told == ["created", "failed VALUE_REFUSED", "created"]


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_a_file_of_nothing_but_keys_has_its_guilty_rows_found_by_trying(database: Database, batch_rows: int) -> None:
    sql(database, "CREATE TABLE t (id int, x int DEFAULT 1 UNIQUE, PRIMARY KEY (id))")
    importer = declared("t", key="id", id=Integer())
    result = run_import(database, importer, "id\n1\n2\n", batch_rows=batch_rows)
    assert result.told == ["created", "failed UNIQUE_VIOLATION"]


_ALIKE: dict[str, tuple[LiteralString, str, dict[str, Any]]] = {
    "unique": (
        "CREATE TABLE t (id int, rev int, code text, PRIMARY KEY (id, rev), UNIQUE (code, rev))",
        "id,code\n3,\n9,A\n05,A\n",
        {"key": "id", "on_match": Version(column="rev"), "id": Integer(), "code": Text()},
    ),
    "references": (
        "CREATE TABLE t (id int PRIMARY KEY, code text UNIQUE, up int REFERENCES t DEFERRABLE INITIALLY DEFERRED)",
        "id,code,up\n1,a,2\n2,b,\n3,c,4\n4,d,99\n5,e,98\n",
        {"key": "id", "id": Integer(), "code": Text(), "up": Integer()},
    ),
    "partitions": (
        """
        CREATE TABLE t (id int, rev int, code text CHECK (code <> 'bad'), PRIMARY KEY (id, rev), UNIQUE (code, rev))
        PARTITION BY LIST (rev);
        CREATE TABLE first PARTITION OF t FOR VALUES IN (1);
        """,
        "id,code\n1,\n9,A\n5,A\n6,bad\n1,b\n",
        {"key": "id", "on_match": Version(column="rev"), "id": Integer(), "code": Text()},
    ),
    "value that is set": (
        "CREATE TABLE t (id int PRIMARY KEY, tenant text NOT NULL DEFAULT 'acme', ref text, UNIQUE (tenant, ref))",
        "id,tenant,ref\n1,,a\n2,acme,a\n3,,b\n4,,b\n",
        {"key": "id", "id": Integer(), "tenant": Text(), "ref": Text()},
    ),
}


@pytest.mark.parametrize("name", _ALIKE)
def test_issues_are_the_same_in_batches_of_any_size(database: Database, name: str) -> None:
    table, text, declaration = _ALIKE[name]
    sql(database, table)
    importer = declared("t", **declaration)
    found: list[list[tuple[Issue, ...]]] = []
    for batch_rows in (1, 2, 1_000):
        sql(database, "TRUNCATE t")
        result = run_import(database, importer, text, batch_rows=batch_rows)
        found.append([outcome.issues for _, outcome in sorted(result.outcomes.items())])
    assert any(found[0])
    assert found[0] == found[1] == found[2]


def test_the_value_of_a_violation_has_what_the_table_gave(database: Database) -> None:
    table, text, declaration = _ALIKE["unique"]
    sql(database, table)
    issue = run_import(database, declared("t", **declaration), text).issue(3)
    assert (issue.code, issue.field, issue.value) == (Code.UNIQUE_VIOLATION, "code, rev", "A, 1")
    assert issue.metadata == {"constraint": "t_code_rev_key", "sqlstate": "23505"}


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_a_row_that_fits_no_partition_tells_its_value(database: Database, batch_rows: int) -> None:
    sql(
        database,
        """
        CREATE TABLE t (id int, "Day" date, PRIMARY KEY (id, "Day")) PARTITION BY RANGE ("Day");
        CREATE TABLE t24 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
        """,
    )
    importer = declared("t", id=Integer(), day=Date(column="Day"))
    result = run_import(database, importer, "id,day\n1,2024-02-01\n2,2025-01-01\n", batch_rows=batch_rows)
    issue = result.issue(2)
    assert (issue.code, issue.field, issue.value) == (Code.CHECK_VIOLATION, "day", "2025-01-01")
