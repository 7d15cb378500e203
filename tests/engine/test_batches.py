"""What comes out does not depend on how a file is cut into batches, nor on how many work on them."""

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowcall import Email, Fail, Importer, Integer, Lookup, Skip, Text, Update, Version
from rowcall.engine.pace import Pace
from rowcall.store.db import Database

from .importing import declared, run_import, sql

TABLES = """
    CREATE TABLE places (id int PRIMARY KEY, name text UNIQUE);
    INSERT INTO places VALUES (1, 'north'), (2, 'south');
    CREATE TABLE t (
        id int, email text UNIQUE, place_id int REFERENCES places, amount int NOT NULL DEFAULT 5 CHECK (amount <> 13),
        note varchar(3), PRIMARY KEY (id));
    CREATE TABLE v (id int, note varchar(3), version int, PRIMARY KEY (id, version));
"""
RESET = """
    TRUNCATE t, v, rowcall.row_key;
    INSERT INTO t VALUES (1, NULL, 1, 1, 'a'), (2, NULL, NULL, 2, 'b'), (3, 'old@x.org', 2, 1, 'a');
    INSERT INTO v VALUES (1, 'a', 1), (2, 'a', 1), (2, 'b', 2);
    INSERT INTO rowcall.row_key VALUES ('things', '5', gen_random_uuid(), 1);
"""
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "email": Email(),
    "place_id": Lookup("places", by=("id", "name"), aliases=["place"]),
    "amount": Integer(),
    "note": Text(),
}
IMPORTERS: dict[str, type[Importer]] = {
    "skip": declared("t", key="id", on_match=Skip(), **FIELDS),
    "fail": declared("t", key="id", on_match=Fail(), **FIELDS),
    "update": declared("t", key="id", on_match=Update(), **FIELDS),
    "once": declared("t", key="id", once=True, **FIELDS),
    "version": declared("v", key="id", on_match=Version(), id=Integer(required=True), note=Text()),
}
HOW = [{"batch_rows": 1_000, "workers": 1}, {"batch_rows": 7, "workers": 1}, {"batch_rows": 3, "workers": 3}]
_ROW = st.tuples(
    st.sampled_from(["1", "2", "3", "4", "5", "6", "7", "8", "07", "", "x"]),
    st.sampled_from(["", "", "a@x.org", "A@x.org", "b@x.org", "c@x.org", "no address"]),
    st.sampled_from(["", "1", "north", "south", "west"]),
    st.sampled_from(["", "1", "2", "13", "1.5"]),
    st.sampled_from(["", "a", "b", "long"]),
)


@pytest.mark.parametrize("kind", IMPORTERS)
def test_outcomes_and_target_are_the_same(database: Database, kind: str) -> None:
    sql(database, TABLES)

    @settings(
        max_examples=3, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(st.lists(_ROW, min_size=10, max_size=40))
    def check(rows: list[tuple[str, ...]]) -> None:
        found = [_imported(database, IMPORTERS[kind], rows, how) for how in HOW]
        assert found[1] == found[0]
        assert found[2] == found[0]

    check()


@pytest.mark.parametrize("sizes", [(10, 60), (20, 35, 7), (50, 51)])
def test_every_row_comes_in_whenever_the_pace_changes(
    database: Database, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY)")
    each = itertools.cycle(sizes)
    monkeypatch.setattr(Pace, "rows", property(lambda _: next(each), lambda _, rows: None))
    content = "id\n" + "".join(f"{n}\n" for n in range(50))
    result = run_import(database, declared("t", key="id", id=Integer(required=True)), content, workers=2)
    assert result.told == ["created"] * 50


def _imported(database: Database, importer: type[Importer], rows: list[tuple[str, ...]], how: Any) -> object:
    sql(database, RESET)
    result = run_import(database, importer, _file(rows), **how)
    outcomes = [(number, o.told, o.key, o.before) for number, o in sorted(result.outcomes.items())]
    return outcomes, result.counts, result.rows


def _file(rows: list[tuple[str, ...]]) -> str:
    return "id;email;place;amount;note\n" + "".join(";".join(row) + "\n" for row in rows)
