"""Cells are corrected over rows that never change, verified at once, and only those rows run again (X3, C7, D4)."""

from pathlib import Path
from typing import Any, ClassVar, LiteralString

import pytest

from rowcall import (
    Choice,
    Email,
    Final,
    Flow,
    Integer,
    ItemImporter,
    ItemResult,
    Lookup,
    RowOutcome,
    Status,
    Text,
    Update,
    Version,
    WholeFileImporter,
)
from rowcall.engine import moves
from rowcall.engine.corrections.replace import Replacing, count_replaced, replace_cells
from rowcall.errors import WrongState
from rowcall.model import State
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.edits import count_edits, edits_of
from rowcall.store.grid import Wanted
from rowcall.store.retention import remove_rows
from rowcall.store.rows import Source, read_rows

from .editing import Desk
from .importing import declared, sql

TABLE = """
    CREATE TABLE city (id int PRIMARY KEY, name text NOT NULL);
    INSERT INTO city VALUES (1, 'Rome'), (2, 'Oslo');
    CREATE TABLE t (id int PRIMARY KEY, email text UNIQUE, kind text, city_id int REFERENCES city, CHECK (id < 1000))
"""
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "email": Email(required=True, aliases=["mail"]),
    "kind": Choice("new", "old"),
    "city": Lookup("city", by="name", column="city_id"),
}
PLAIN = declared("t", key="id", **FIELDS)
PREVIEW = declared("t", key="id", flow=Flow(preview=True), **FIELDS)
UPDATES = declared("t", key="id", on_match=Update(), flow=Flow(preview=True), **FIELDS)
HEAD = "id,Mail,kind,city\n"
FILE = HEAD + "1,a@x.org,new,Rome\n2,nobody,new,Rome\n3,c@x.org,newish,Paris\n"


@pytest.fixture
def table(database: Database) -> Database:
    sql(database, TABLE)
    return database


@pytest.mark.parametrize("batch", [1, 2, 1_000])
def test_a_failed_row_is_corrected_verified_at_once_and_only_it_runs_again(
    table: Database, tmp_path: Path, batch: int
) -> None:
    """X3, C7: what came in stays as it is."""
    desk = Desk(table, tmp_path, PLAIN, FILE, batch=batch)
    assert [told.split()[0] for told in desk.result().told] == ["created", "failed", "failed"]
    half = desk.edit(3, kind="new")
    assert (half.status, [issue["code"] for issue in half.issues]) == ("failed", ["NOT_FOUND"])
    good = desk.edit(3, revision=1, city="Oslo")
    assert (good.status, good.issues, good.row.revision) == ("created", [], 2)
    assert (good.row.cells, good.row.original) == (
        ["3", "c@x.org", "new", "Oslo"],
        ["3", "c@x.org", "newish", "Paris"],
    )
    assert desk.row(3).status == "failed"  # it has not run yet
    done = desk.again(edited=True)
    assert [outcome.status for _, outcome in sorted(done.outcomes.items())] == ["created", "failed", "created"]
    assert done.values("id", "city_id") == [(1, 1), (3, 2)]
    assert done.job.state is State.COMPLETED_WITH_ERRORS
    assert sql(table, "SELECT cells FROM rowcall.row WHERE number = 3") == [(["3", "c@x.org", "newish", "Paris"],)]
    assert sql(table, "SELECT count(*) FROM rowcall.attempt") == [(1,)]  # the second row was left alone


def test_cells_are_named_by_header_field_or_place_and_others_are_refused(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PLAIN, FILE)
    assert desk.edit(2, Mail="b@x.org").status == "created"
    assert desk.edit(2, revision=1, email="bb@x.org").row.cells[1] == "bb@x.org"
    assert desk.edit(2, revision=2, **{"column 2": "bbb@x.org"}).row.cells[1] == "bbb@x.org"
    with pytest.raises(Final, match="no column 'emial'") as unknown:
        desk.edit(2, revision=3, emial="x")
    assert (unknown.value.code, unknown.value.hint) == ("UNKNOWN_CELL", "Did you mean 'email'?")
    with pytest.raises(Final, match="are the same cell"):
        desk.edit(2, revision=3, email="x", Mail="y")
    with pytest.raises(Final, match="has no row 4") as nothing:
        desk.edit(4, email="x")
    assert nothing.value.code == "ROW_NOT_FOUND"


def test_a_header_that_is_another_columns_field_has_to_be_said_by_place(table: Database, tmp_path: Path) -> None:
    desk = Desk(
        table, tmp_path, PLAIN, "id,kind,email,what\n2,new,nobody,x\n", mapping={"kind": "email", "what": "kind"}
    )
    with pytest.raises(Final, match="more than one column") as both:
        desk.edit(1, kind="old")
    assert both.value.hint == "Say `column 2` or `column 4`."


def test_whoever_saw_an_earlier_revision_changes_nothing(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PLAIN, FILE)
    desk.edit(2, email="b@x.org", who="ann")
    with pytest.raises(Final, match="was corrected since you saw it: it is at revision 1, not 0") as late:
        desk.edit(2, email="z@x.org", who="ben")
    assert (late.value.code, desk.row(2).cells[1]) == ("EDITED_MEANWHILE", "b@x.org")


def test_every_correction_is_kept_and_can_be_taken_back(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PLAIN, FILE)
    desk.edit(2, email="b@x.org", kind="old")
    desk.edit(2, revision=1, email="bb@x.org", who="ben")
    back = desk.edit(2, revision=2, kind=None)
    assert (back.row.cells, back.row.revision) == (["2", "bb@x.org", "new", "Rome"], 3)
    with table.connect() as connection:
        assert [(each.account, each.rows, each.cells) for each in count_edits(connection, desk.job.id)] == [
            ("ann", 1, 1)
        ]
    gone = desk.undo(2, revision=3)
    assert (gone.row.cells, gone.row.original, gone.row.revision) == (["2", "nobody", "new", "Rome"], None, 4)
    assert (gone.status, gone.issues[0]["code"]) == ("failed", "INVALID_EMAIL")
    with table.connect() as connection:
        told = [(e.revision, e.position, e.before, e.after, e.account) for e in edits_of(connection, desk.job.id, 2)]
        assert count_edits(connection, desk.job.id) == []
    assert told == [
        (4, 1, "bb@x.org", "nobody", "ann"),
        (3, 2, "old", "new", "ann"),
        (2, 1, "b@x.org", "bb@x.org", "ben"),
        (1, 1, "nobody", "b@x.org", "ann"),
        (1, 2, "new", "old", "ann"),
    ]
    with pytest.raises(Final, match="No row that failed"):
        desk.again(edited=True)


def test_what_is_written_already_is_not_corrected(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PLAIN, FILE)
    with pytest.raises(Final, match="Row 1 is created already") as done:
        desk.edit(1, email="z@x.org")
    assert done.value.code == "ROW_DONE"
    assert desk.row(1).revision == 0


def test_a_correction_in_the_preview_replaces_what_is_planned(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PREVIEW, FILE, batch=1)
    assert desk.job.state is State.VALIDATED
    assert desk.edit(2, email="b@x.org").status == "created"
    spoilt = desk.edit(1, id="5000")
    assert (spoilt.status, spoilt.issues[0]["code"]) == ("failed", "CHECK_VIOLATION")
    now = desk.result()
    assert (now.told[0], now.told[1], now.counts.created, now.counts.failed, now.rows) == (
        "failed CHECK_VIOLATION",
        "created",
        1,
        2,
        [],
    )
    done = desk.submit()
    assert (done.job.state, done.values("id", "email"), done.counts.failed) == (
        State.COMPLETED_WITH_ERRORS,
        [(2, "b@x.org")],
        2,
    )


def test_rows_that_met_in_the_file_are_decided_anew_in_the_preview(table: Database, tmp_path: Path) -> None:
    text = HEAD + "1,a@x.org,new,\n1,b@x.org,new,\n2,c@x.org,new,\n"
    desk = Desk(table, tmp_path, UPDATES, text)
    assert desk.result().told == ["skipped DUPLICATE_IN_FILE", "created", "created"]
    desk.edit(2, id="2")  # it leaves the first one alone, and meets the third
    planned = desk.result().told
    assert planned == ["created", "skipped DUPLICATE_IN_FILE", "created"]
    done = desk.submit()
    assert (done.told, done.values("id", "email")) == (planned, [(1, "a@x.org"), (2, "c@x.org")])


@pytest.mark.parametrize("batch", [1, 1_000])
def test_keys_that_meet_only_by_correction_are_decided_in_the_preview(
    table: Database, tmp_path: Path, batch: int
) -> None:
    text = HEAD + "1,a@x.org,new,\n02,b@x.org,new,\n3,c@x.org,new,\n"
    desk = Desk(table, tmp_path, UPDATES, text, batch=batch)
    desk.edit(3, id="2")  # no text of the file is the same
    planned = desk.result().told
    assert planned == ["created", "skipped DUPLICATE_IN_FILE", "created"]
    assert desk.submit().told == planned


@pytest.mark.parametrize("batch", [1, 1_000])
def test_row_that_is_mended_counts_against_others_in_the_preview(table: Database, tmp_path: Path, batch: int) -> None:
    text = HEAD + "1,a@x.org,new,\n02,b@x.org,new,\n2,nobody,new,\n"
    desk = Desk(table, tmp_path, UPDATES, text, batch=batch)
    assert desk.result().told[1:] == ["created", "failed INVALID_EMAIL"]
    desk.edit(3, email="c@x.org")  # its key is as it was, but now it counts
    planned = desk.result().told
    assert planned == ["created", "skipped DUPLICATE_IN_FILE", "created"]
    assert desk.submit().told == planned


@pytest.mark.parametrize("batch", [1, 1_000])
def test_what_a_row_met_by_correction_had_met_itself_stays_decided(table: Database, tmp_path: Path, batch: int) -> None:
    text = HEAD + "1,a@x.org,new,\n2,b@x.org,new,\n2,c@x.org,new,\n3,c@x.org,new,\n"
    desk = Desk(table, tmp_path, UPDATES, text, batch=batch)
    desk.edit(1, id="2")
    planned = desk.result().told
    assert desk.submit().told == planned


def test_rows_that_become_equal_by_correction_are_written_once(table: Database, tmp_path: Path) -> None:
    sql(table, "INSERT INTO t (id, email) VALUES (7, 'old@x.org')")
    text = HEAD + "x,a@x.org,new,\ny,b@x.org,new,\n"
    desk = Desk(table, tmp_path, declared("t", key="id", on_match=Update(), **FIELDS), text)
    desk.edit(1, id="7")
    desk.edit(2, id="7")
    done = desk.again(edited=True)
    assert (done.told, done.values("id", "email")) == (
        ["skipped DUPLICATE_IN_FILE", "updated"],
        [(7, "b@x.org")],
    )


def test_a_row_that_lost_can_be_corrected_and_run(table: Database, tmp_path: Path) -> None:
    text = HEAD + "1,a@x.org,new,\n1,b@x.org,new,\n"
    desk = Desk(table, tmp_path, declared("t", key="id", **FIELDS), text)
    lost = next(number for number, outcome in desk.result().outcomes.items() if outcome.status != "created")
    edited = desk.edit(lost, id="2")
    assert edited.status == "created"
    assert desk.again("failed", "skipped", edited=True).values("id") == [1, 2]


def test_a_record_that_could_not_be_read_counts_once_somebody_corrects_it(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PLAIN, HEAD + "1,a@x.org\n2,b@x.org,new,Rome\n")
    assert desk.result().told == ["failed TOO_FEW_FIELDS", "created"]
    assert desk.edit(1, kind="new").status == "created"
    done = desk.again(edited=True)
    assert (done.told, done.values("id", "kind")) == (["created", "created"], [(1, "new"), (2, "new")])


def test_importers_whose_rows_need_each_other_plan_all_of_them_again(database: Database, tmp_path: Path) -> None:
    sql(database, "CREATE TABLE node (id int PRIMARY KEY, name text UNIQUE, parent int REFERENCES node)")
    nodes = declared(
        "node",
        key="id",
        flow=Flow(preview=True),
        id=Integer(required=True),
        name_=Text(column="name"),
        parent=Lookup("node", by="name"),
    )
    desk = Desk(database, tmp_path, nodes, "id,name,parent\n1,root,\n2,leaf,rot\n")
    assert desk.result().told == ["created", "failed NOT_FOUND"]
    edited = desk.edit(2, parent="root")
    assert (edited.alone, edited.job.state) == (False, State.VALIDATING)
    with pytest.raises(WrongState, match="edit is not possible now"):
        desk.edit(2, revision=1, parent="x")
    desk.run()
    assert (desk.job.state, desk.result().told) == (State.VALIDATED, ["created", "created"])
    assert desk.submit().values("id", "parent") == [(1, None), (2, 1)]


def test_all_or_nothing_is_corrected_in_its_preview_only(table: Database, tmp_path: Path) -> None:
    whole = declared("t", key="id", atomic=True, flow=Flow(preview=True), **FIELDS)
    desk = Desk(table, tmp_path, whole, HEAD + "1,a@x.org,new,Rome\n2,b@x.org,new,Rome\n")
    desk.edit(2, city="Oslo")
    assert desk.run().state is State.VALIDATED
    done = desk.submit()
    assert (done.job.state, done.values("city_id")) == (State.COMPLETED, [1, 2])
    with pytest.raises(Final, match="takes a file as a whole") as refused:
        desk.edit(2, city="Rome")
    assert refused.value.code == "ROW_DONE"


class Asks(ItemImporter):
    """Asks somebody about each row."""

    asked: ClassVar[list[str]] = []
    who = Text(required=True)

    async def process(self, row: Any) -> Any:
        type(self).asked.append(row["who"])
        return ItemResult(Status.CREATED)


class Sums(WholeFileImporter):
    """Looks at all rows."""

    flow = Flow(preview=True)
    amount = Integer(required=True)

    def process(self, rows: Any, connection: Any) -> Any:
        return [RowOutcome(number, Status.CREATED) for number in rows["number"]]


def _told(desk: Desk) -> list[str]:
    return [desk.row(number).status for number in range(1, (desk.job.row_count or 0) + 1)]


def test_a_wrong_correction_of_all_or_nothing_can_be_taken_back(table: Database, tmp_path: Path) -> None:
    whole = declared("t", key="id", atomic=True, flow=Flow(preview=True), **FIELDS)
    desk = Desk(table, tmp_path, whole, HEAD + "1,a@x.org,new,Rome\n2,b@x.org,new,Rome\n")
    assert desk.edit(2, email="nobody").status == "failed"
    assert desk.run().state is State.VALIDATED
    with table.connect() as connection:
        counts = jobs.counts_of(connection, desk.job)
    assert moves.possible(desk.job, counts, whole) == ["edit", "cancel", "reopen"]
    with pytest.raises(WrongState, match="all rows of a file or none, and 1 row of its plan fails") as refused:
        desk.submit()
    assert "submit" not in refused.value.allowed
    desk.undo(2, revision=1)
    assert desk.run().state is State.VALIDATED
    assert desk.submit().values("id") == [1, 2]


PRICES = """
    CREATE TABLE price (code text, version int, amount int CHECK (amount >= 0), PRIMARY KEY (code, version));
    CREATE TABLE paid (code text PRIMARY KEY, amount int CHECK (amount >= 0));
    CREATE TABLE stock (code text PRIMARY KEY, amount int CHECK (amount >= 0), note text, UNIQUE (amount, note))
"""


@pytest.mark.parametrize(
    ("target", "options"),
    [("price", {"on_match": Version()}), ("paid", {"atomic": True}), ("paid", {}), ("stock", {})],
    ids=["versions", "all or nothing", "alone", "unforeseen"],
)
@pytest.mark.parametrize("cells", [{"amount": "6"}, {"amount": "5"}, {"code": "b"}], ids=["other", "same", "key"])
def test_equal_rows_are_decided_as_before_when_a_correction_is_taken_back(
    database: Database, tmp_path: Path, target: LiteralString, options: Any, cells: Any
) -> None:
    sql(database, PRICES)
    options = {"on_match": Update(), "flow": Flow(preview=True), **options}
    importer = declared(target, key="code", code=Text(), amount=Integer(), **options)
    desk = Desk(database, tmp_path, importer, "code,amount\na,5\na,3\n")
    planned = desk.result().told
    assert planned == ["skipped DUPLICATE_IN_FILE", "created"]
    desk.edit(1, **cells)
    desk.run()
    if desk.row(1).revision:
        desk.undo(1, revision=1)
        desk.run()
    assert desk.result().told == planned
    assert desk.submit().told == planned
    assert sql(database, f"SELECT code, amount FROM {target}") == [("a", 3)]


@pytest.mark.parametrize(("cells", "number"), [({"amount": "6"}, 1), ({"amount": "-4"}, 2)])
@pytest.mark.parametrize("there", ["", "INSERT INTO paid VALUES ('a', 9)"])
def test_the_next_of_equal_rows_counts_where_the_database_refuses_the_one_that_is_corrected_or_stays(
    database: Database, tmp_path: Path, cells: Any, number: int, there: LiteralString
) -> None:
    sql(database, f"{PRICES}; {there}")
    importer = declared("paid", key="code", on_match=Update(), flow=Flow(preview=True), code=Text(), amount=Integer())
    desk = Desk(database, tmp_path, importer, f"code,amount\na,5\na,{-3 if number == 1 else 3}\nb,1\n")
    desk.edit(number, **cells)
    desk.run()
    planned = desk.result().told
    assert planned == ["updated" if there else "created", "failed CHECK_VIOLATION", "created"]
    assert desk.submit().told == planned
    assert sql(database, "SELECT amount FROM paid ORDER BY code") == [
        (int(cells["amount"]) if number == 1 else 5,),
        (1,),
    ]


def test_what_is_all_or_nothing_and_through_is_asked_for_nothing_that_is_refused(
    table: Database, tmp_path: Path
) -> None:
    desk = Desk(table, tmp_path, declared("t", key="id", atomic=True, **FIELDS), HEAD + "1,a@x.org,new,Rome\n")
    with table.connect() as connection:
        counts = jobs.counts_of(connection, desk.job)
    assert (desk.job.state, moves.possible(desk.job, counts, desk.importer)) == (State.COMPLETED, ["undo"])


def test_a_field_with_a_value_for_all_rows_has_no_cell(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PLAIN, "id,Mail\n2,nobody\n", constants={"kind": "old"})
    with pytest.raises(Final, match="kind has the value 'old' for all rows") as constant:
        desk.edit(1, kind="new")
    assert constant.value.code == "UNKNOWN_CELL"


def test_importers_that_ask_elsewhere_ask_nobody_when_a_row_is_corrected(database: Database, tmp_path: Path) -> None:
    Asks.asked.clear()
    desk = Desk(database, tmp_path, Asks, 'who,b\nann,1\n"",2\n')
    assert _told(desk) == ["created", "failed"]
    edited = desk.edit(2, 0, "ann", **{"column 1": "ben"})
    assert (edited.status, edited.issues[0]["code"], Asks.asked) == ("skipped", "NOT_APPLIED", ["ann"])
    with desk.database.connect() as connection, connection.transaction():
        desk.job, _ = moves.reprocess(connection, desk.job, Asks, Wanted(edited=True))
    desk.run()
    assert (_told(desk), Asks.asked) == (["created", "created"], ["ann", "ben"])


def test_importers_of_whole_files_see_corrections_when_they_look_again(database: Database, tmp_path: Path) -> None:
    desk = Desk(database, tmp_path, Sums, "amount\n1\nx\n")
    assert _told(desk) == ["created", "failed"]
    edited = desk.edit(2, amount="2")
    assert (edited.alone, edited.job.state) == (False, State.VALIDATING)
    desk.run()
    assert (desk.job.state, _told(desk)) == (State.VALIDATED, ["created", "created"])


@pytest.mark.parametrize("text", ["ünï ☃ 𝕏", "=1+1", "'; DROP TABLE t; --", 'a "b", {c}\\N\t\n%s', "x" * 40_000])
def test_any_text_can_be_laid_over_a_cell(database: Database, tmp_path: Path, text: str) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, note text)")
    notes = declared("t", key="id", id=Integer(required=True), note=Text(exact=True))
    desk = Desk(database, tmp_path, notes, "id,note\nx,n\n")
    desk.edit(1, id="1", note=text)
    assert desk.again(edited=True).values("note") == [text]


def test_rows_of_jobs_without_corrections_are_read_as_ever(table: Database, tmp_path: Path) -> None:
    """No table of corrections is looked at for them."""
    desk = Desk(table, tmp_path, PLAIN, FILE)
    sql(table, "ALTER TABLE rowcall.row_edit RENAME COLUMN cells TO elsewhere")
    try:
        with table.connect() as connection:
            rows = read_rows(connection, desk.job.id, {"id": Source((0,))}, first=1, last=3, edited=False)
        assert rows["id"].to_list() == ["1", "2", "3"]
    finally:
        sql(table, "ALTER TABLE rowcall.row_edit RENAME COLUMN elsewhere TO cells")


def test_corrections_go_with_their_job(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PLAIN, FILE)
    desk.edit(2, email="b@x.org")
    with table.connect() as connection:
        list(remove_rows(connection, desk.job.id, at_once=2))
    assert sql(table, "SELECT (SELECT count(*) FROM rowcall.row_edit), (SELECT count(*) FROM rowcall.cell_edit)") == [
        (0, 0)
    ]


# ------------------------------------------------------------------------------------------- what others make of it


@pytest.mark.parametrize("rows", ["1,a@x.org,Rome\n2,b@x.org,Oslo\n", "1,a@x.org,Rome\n1,b@x.org,Oslo\n"])
def test_a_correction_with_a_value_that_nobody_knows_has_the_job_ask(
    table: Database, tmp_path: Path, rows: str
) -> None:
    """Also of a row that meets others: these can't be planned before somebody has said what it stands for."""
    asks = FIELDS | {"city": Lookup("city", by="name", column="city_id", on_missing="ask")}
    desk = Desk(table, tmp_path, declared("t", key="id", flow=Flow(preview=True), **asks), "id,email,city\n" + rows)
    edited = desk.edit(1, city="Romme")
    assert (edited.status, edited.issues[0]["code"], edited.alone) == ("failed", "NOT_FOUND", False)
    assert edited.job.state is State.VALIDATING
    assert desk.run().state is State.CELL_MAPPING
    assert sql(table, "SELECT value, status FROM rowcall.value_mapping WHERE value = 'Romme'") == [
        ("Romme", "UNRESOLVED")
    ]


def test_a_row_that_lost_counts_when_only_the_other_is_corrected(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, PLAIN, "id,mail\n3,a@x.org\n2000,b@x.org\n2000,c@x.org\n")
    desk.edit(2, id="4")
    sql(table, "ALTER TABLE t DROP CONSTRAINT t_id_check")
    assert desk.again("failed", "skipped").told == ["created", "created", "created"]


def test_a_record_of_which_nothing_was_read_has_its_cells_where_they_were_said(table: Database, tmp_path: Path) -> None:
    """An array in PostgreSQL begins where its first element was set: cells begin with the first column."""
    desk = Desk(table, tmp_path, PLAIN, '{"id": 1, "mail": "a@x.org", "kind": "new"}\n{"id": 2, oops}\n')
    assert desk.row(2).cells == []
    assert desk.edit(2, kind="old").row.cells == [None, None, "old"]
    back = desk.undo(2, revision=1)
    assert (back.row.cells, back.row.original, back.issues[0]["code"]) == ([], None, "INVALID_JSON")
    assert desk.edit(2, revision=2, kind="old").row.cells == [None, None, "old"]
    done = desk.edit(2, revision=3, id="2", mail="b@x.org")
    assert (done.row.cells, done.status) == (["2", "b@x.org", "old"], "created")
    with table.connect() as connection:
        assert [(edit.rows, edit.cells) for edit in count_edits(connection, desk.job.id)] == [(1, 3)]
    assert desk.again(edited=True).told == ["created", "created"]
    assert sql(table, "SELECT array_lower(cells, 1) FROM rowcall.row_edit") == [(1,)]


def test_all_corrections_of_a_row_are_taken_back_whatever_its_columns_are_called(
    table: Database, tmp_path: Path
) -> None:
    named = declared("t", key="id", id=Integer(aliases=["column 2"]), email=Text(aliases=["column 1 or so"]))
    desk = Desk(table, tmp_path, named, "column 2,column 1 or so\n1,a\n2000,b\n")
    assert desk.edit(2, id="7").status == "created"
    assert desk.undo(2, revision=1).row.cells == ["2000", "b"]


CLUBS = """
    CREATE TABLE club (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text UNIQUE NOT NULL);
    INSERT INTO club (name) VALUES ('Alpha');
    CREATE TABLE seat (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, club_id uuid REFERENCES club,
        no int NOT NULL, holder text, UNIQUE (club_id, no));
    CREATE TABLE verz (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), club_id uuid REFERENCES club NOT NULL,
        code text NOT NULL, version int NOT NULL, UNIQUE (club_id, code, version))
"""
CLUB = Lookup("club", by="name", on_missing="create", creates="name", aliases=["club"])
SEATED = "SELECT name, no, holder FROM seat JOIN club ON club.id = club_id ORDER BY no, name"
SEATS = declared(
    "seat", key=("club_id", "no"), on_match=Update(), club_id=CLUB, no=Integer(required=True), holder=Text()
)


def clubs(database: Database) -> list[str]:
    return [name for (name,) in sql(database, "SELECT name FROM club ORDER BY name")]


def test_corrections_mean_what_is_there_or_is_to_be_created_by_whatever_spelling(
    database: Database, tmp_path: Path
) -> None:
    """As the values of the file do: a second row was created for each."""
    sql(database, CLUBS)
    desk = Desk(database, tmp_path, SEATS, "no,club,holder\n1,x,r\n2,gamma,s\n3,y,t\n", preview=True)
    assert desk.edit(1, club="ALPHA").status == "created"
    assert desk.edit(3, club="Gamma").status == "created"
    desk.run()
    desk.submit()
    assert clubs(database) == ["Alpha", "gamma"]
    assert sql(database, SEATED) == [("Alpha", 1, "r"), ("gamma", 2, "s"), ("gamma", 3, "t")]


def test_corrections_by_another_spelling_are_equal_keys(database: Database, tmp_path: Path) -> None:
    sql(database, CLUBS)
    desk = Desk(database, tmp_path, SEATS, "no,club,holder\n1,x,r\n1,gamma,s\n", preview=True)
    desk.edit(1, club="Gamma")
    desk.run()
    assert desk.submit().told == ["skipped DUPLICATE_IN_FILE", "created"]
    assert clubs(database) == ["Alpha", "gamma"]


def test_replaced_and_tried_again_values_are_found_by_whatever_spelling(database: Database, tmp_path: Path) -> None:
    sql(database, CLUBS)
    desk = Desk(database, tmp_path, SEATS, "no,club,holder\n1,x,r\nnone,gamma,s\n")
    assert clubs(database) == ["Alpha", "x"]
    desk.edit(2, no="2", club="ALPHA")
    assert desk.again("failed").told == ["created", "created"]
    assert clubs(database) == ["Alpha", "x"]
    shown = Desk(database, tmp_path, SEATS, "no,club,holder\n7,q,r\n8,q,s\n", preview=True)
    with database.connect() as connection, connection.transaction():
        asked = Replacing(which=Wanted(), column="club", find="q", text="alpha")
        token = count_replaced(connection, shown.job, asked).token
        shown.job = replace_cells(connection, shown.job, SEATS, asked, token=token, who="ann").job
    shown.run()
    assert shown.submit().told == ["created", "created"]
    assert clubs(database) == ["Alpha", "x"]


def test_a_correction_that_has_something_created_is_written_as_previewed(database: Database, tmp_path: Path) -> None:
    """Where a plan is made in one transaction, it was told what the trial had created, and drifted from it."""
    sql(database, CLUBS)
    importer = declared("verz", key=("club_id", "code"), on_match=Version(), club_id=CLUB, code=Text(required=True))
    desk = Desk(database, tmp_path, importer, "club,code\nALPHA,a\nalpha,b\n", preview=True)
    desk.edit(2, club="Delta")
    desk.run()
    assert desk.submit().told == ["created", "created"]
    assert clubs(database) == ["Alpha", "Delta"]
