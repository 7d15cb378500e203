"""Failed rows go out as a workbook, are corrected in it, and only those that were changed run again (X3)."""

import csv
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.worksheet.worksheet import Worksheet

from rowcall import Choice, Decimal, Email, Final, Flow, Integer, Lookup, Text
from rowcall.engine.corrections.rejects import Merged, merge_rejects, open_returned
from rowcall.export.rejects import select_rejects, write_rejects
from rowcall.formats import Limits
from rowcall.model import State
from rowcall.store.db import Database

from .editing import Desk
from .importing import declared, sql

TABLE = """
    CREATE TABLE city (id int PRIMARY KEY, name text NOT NULL);
    INSERT INTO city VALUES (1, 'Rome'), (2, 'Oslo');
    CREATE TABLE t (id int PRIMARY KEY, email text UNIQUE, kind text, city_id int REFERENCES city, note text)
"""
FIELDS: dict[str, Any] = {
    "id": Integer(required=True),
    "email": Email(required=True),
    "kind": Choice("new", "old"),
    "city": Lookup("city", by="name", column="city_id"),
    "note": Text(exact=True),
}
THINGS = declared("t", key="id", **FIELDS)
HEAD = "id,email,kind,city,note,other\n"
FILE = HEAD + (
    "1,a@x.org,new,Rome,fine,x\n"
    "2,,newish,Paris,=1+1,007\n"
    "3,c@x.org,old,Paris,ünï ☃,03/04/2024\n"
    "4,nobody,old,Rome,,1.50\n"
)
Change = Callable[[Worksheet], None]


@pytest.fixture
def table(database: Database) -> Database:
    sql(database, TABLE)
    return database


def rejects(desk: Desk) -> bytes:
    out = BytesIO()
    with desk.database.connect() as connection, connection.transaction():
        write_rejects(connection, select_rejects(connection, desk.job, desk.importer), out)
    return out.getvalue()


def sheet_of(workbook: bytes) -> Worksheet:
    sheet = openpyxl.load_workbook(BytesIO(workbook)).worksheets[0]
    assert isinstance(sheet, Worksheet)
    return sheet


def changed(workbook: bytes, change: Change) -> bytes:
    """The workbook as somebody saves it who changed something."""
    book, out = openpyxl.load_workbook(BytesIO(workbook)), BytesIO()
    change(book.worksheets[0])
    book.save(out)
    return out.getvalue()


def setting(**cells: Any) -> Change:
    def change(sheet: Worksheet) -> None:
        for place, value in cells.items():
            sheet[place] = value

    return change


def bring(desk: Desk, file: bytes, folder: Path, name: str = "rejects.xlsx") -> Merged:
    path = folder / name
    path.write_bytes(file)
    with (
        open_returned(path, name, Limits()) as reading,
        desk.database.connect() as connection,
        connection.transaction(),
    ):
        merged = merge_rejects(connection, desk.job, desk.importer, reading, who="ann")
    desk.job = merged.job
    return merged


def told(merged: Merged) -> list[tuple[int, str]]:
    return [(each.line, each.code) for each in merged.first_refused]


def test_the_workbook_has_the_failed_rows_as_the_file_has_them(table: Database, tmp_path: Path) -> None:
    sheet = sheet_of(rejects(Desk(table, tmp_path, THINGS, FILE)))
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert rows[0] == ["id", "email", "kind", "city", "note", "other", "rowcall_problems", "rowcall_key"]
    assert [row[:6] for row in rows[1:]] == [
        ["2", None, "newish", "Paris", "=1+1", "007"],
        ["3", "c@x.org", "old", "Paris", "ünï ☃", "03/04/2024"],
        ["4", "nobody", "old", "Rome", None, "1.50"],
    ]
    assert sheet["E2"].data_type == "s"  # no formula
    assert sheet.freeze_panes == "A2"
    assert sheet.column_dimensions["H"].hidden
    comments = {
        cell.coordinate: cell.comment.text for row in sheet.iter_rows(min_row=2) for cell in row if cell.comment
    }
    assert set(comments) == {"B2", "C2", "D2", "D3", "B4"}
    assert comments["B2"] == "REQUIRED: A value is required."
    assert comments["D3"].startswith("NOT_FOUND: 'Paris'")
    cells: list[Any] = [cell for row in sheet.iter_rows(min_row=2) for cell in row]
    marked = {cell.coordinate for cell in cells if cell.fill.fgColor.rgb == "FFFDE9D9"}
    assert marked == set(comments)
    lists = {str(rule.sqref).split(":")[0]: rule for rule in sheet.data_validations.dataValidation}
    assert (lists["C2"].formula1, lists["C2"].showErrorMessage) == ('"new,old"', True)
    assert (lists["D2"].formula1, lists["D2"].showErrorMessage) == ('"Oslo,Rome"', False)


def test_x3_a_corrected_workbook_merges_into_the_same_job_and_only_those_rows_run(
    table: Database, tmp_path: Path
) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    workbook = changed(rejects(desk), setting(B2="b@x.org", C2="new", D2="Oslo", D3="Rome"))
    merged = bring(desk, workbook, tmp_path)
    assert (merged.rows, merged.laid.rows, merged.laid.cells, merged.refused) == (3, 2, 4, 0)
    assert merged.job.state is State.PROCESSING
    assert [desk.row(number).status for number in (1, 2, 3, 4)] == ["created", "pending", "pending", "failed"]
    desk.run()
    done = desk.result()
    assert [outcome.status for _, outcome in sorted(done.outcomes.items())] == [
        "created",
        "created",
        "created",
        "failed",
    ]
    assert done.values("id", "city_id", "note") == [(1, 1, "fine"), (2, 2, "=1+1"), (3, 1, "ünï ☃")]
    assert sql(table, "SELECT count(*) FROM rowcall.attempt") == [(2,)]
    again = bring(desk, workbook, tmp_path)
    assert (again.laid.rows, again.refused, again.job.state) == (0, 0, State.COMPLETED_WITH_ERRORS)
    assert sql(table, "SELECT count(*) FROM rowcall.cell_edit") == [(4,)]


def test_rows_and_columns_may_be_moved_left_out_and_added(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)

    def change(sheet: Worksheet) -> None:
        rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
        rows[3][1] = "d@x.org"
        order = [7, 1, 0, 3, 2]  # note and other are gone, the key comes first
        sheet.delete_rows(1, 10)
        for row in (rows[0], rows[3], rows[1]):
            sheet.append([*(row[place] for place in order), "remarks" if row is rows[0] else "my own"])

    merged = bring(desk, changed(rejects(desk), change), tmp_path)
    assert (merged.laid.rows, merged.laid.cells, merged.ignored) == (1, 1, ["remarks"])
    desk.run()
    assert desk.result().values("id", "email", "note") == [(1, "a@x.org", "fine"), (4, "d@x.org", None)]


def test_keys_that_do_not_fit_are_told_and_nothing_is_applied_for_them(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    other = Desk(table, tmp_path, THINGS, HEAD + "9,bad,new,Rome,,\n")
    foreign = sheet_of(rejects(other))["H2"].value
    workbook = rejects(desk)
    keys = [sheet_of(workbook)[f"H{line}"].value for line in (2, 3, 4)]
    assert isinstance(keys[1], str)
    forged = keys[1].replace(".3.", ".4.", 1)

    def change(sheet: Worksheet) -> None:
        for line, key in enumerate([None, foreign, forged, "nonsense", keys[2], keys[2]], 2):
            sheet[f"B{line}"], sheet[f"H{line}"] = f"p{line}@x.org", key

    merged = bring(desk, changed(workbook, change), tmp_path)
    assert told(merged) == [
        (2, "NO_ROW_KEY"),
        (3, "FOREIGN_ROW_KEY"),
        (4, "BAD_ROW_KEY"),
        (5, "BAD_ROW_KEY"),
        (7, "DUPLICATE_ROW_KEY"),
    ]
    assert (merged.laid.rows, desk.row(4).cells[1], desk.row(2).revision) == (1, "p6@x.org", 0)


def test_a_cell_that_cannot_be_read_is_told_with_its_row(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    merged = bring(desk, changed(rejects(desk), setting(B3="=1+1", B4="d@x.org")), tmp_path)
    assert [(each.line, each.row, each.code) for each in merged.first_refused] == [(3, 3, "NOT_CALCULATED")]
    assert merged.laid.rows == 1


def test_what_can_be_picked_for_a_look_up_by_two_columns_is_found(table: Database, tmp_path: Path) -> None:
    sql(table, "ALTER TABLE city ADD iso text; UPDATE city SET iso = upper(left(name, 2))")
    places = declared(
        "t", key="id", id=Integer(), city=Lookup("city", by=("iso", "name"), label="name", column="city_id")
    )
    desk = Desk(table, tmp_path, places, "id,city\n1,Paris\n")
    workbook = rejects(desk)
    (rule,) = sheet_of(workbook).data_validations.dataValidation
    assert rule.formula1 == '"OS,RO"'
    bring(desk, changed(workbook, setting(B2="OS")), tmp_path)
    desk.run()
    assert desk.result().values("id", "city_id") == [(1, 2)]


def test_a_workbook_of_an_earlier_state_changes_nothing(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    early = rejects(desk)
    desk.edit(2, email="b@x.org")
    bring(desk, changed(early, setting(D3="Rome")), tmp_path)
    desk.run()
    assert desk.row(3).status == "created"
    late = bring(desk, changed(early, setting(B2="z@x.org", D3="Oslo", B4="d@x.org")), tmp_path)
    assert told(late) == [(2, "STALE_ROW_KEY"), (3, "ROW_DONE")]
    assert (late.laid.rows, desk.row(2).cells[1], desk.row(4).cells[1]) == (1, "b@x.org", "d@x.org")


def test_csv_with_the_keys_can_be_brought_back_too(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    rows = [[cell.value for cell in row] for row in sheet_of(rejects(desk)).iter_rows()]
    rows[3][1] = "d@x.org"
    out = StringIO()
    csv.writer(out, delimiter=";").writerows(rows)
    merged = bring(desk, out.getvalue().encode(), tmp_path, "rejects.csv")
    assert (merged.rows, merged.laid.rows) == (3, 1)


def test_a_file_without_keys_is_refused(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    with pytest.raises(Final, match="no column rowcall_key") as refused:
        bring(desk, FILE.encode(), tmp_path, "rows.csv")
    assert refused.value.code == "NO_ROW_KEY"


def test_numbers_dates_and_cleared_cells_are_taken_as_typed(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, THINGS, FILE)
    bring(desk, changed(rejects(desk), setting(A4=44, B4="d@x.org", F4=None)), tmp_path)
    assert desk.row(4).cells == ["44", "d@x.org", "old", "Rome", None, ""]


def test_numbers_have_the_decimal_mark_of_their_column(database: Database, tmp_path: Path) -> None:
    """1.234 as a number is no thousand where the file writes 1,50; as a text it is."""
    sql(database, "CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, paid numeric(9, 3))")
    importer = declared("t", key="id", id=Integer(), name_=Text(required=True), paid=Decimal())
    desk = Desk(database, tmp_path, importer, "id;name;paid\n1;;1,50\n2;;2,25\n3;;3,5\n")
    setting_all = setting(B2="a", C2=1.234, B3="b", C3="1.234", B4="c", C4=-0.5)
    assert bring(desk, changed(rejects(desk), setting_all), tmp_path).laid.cells == 6
    assert [desk.row(number).cells[2] for number in (1, 2, 3)] == ["1,234", "1.234", "-0,5"]
    desk.run()
    assert [float(paid) for paid in desk.result().values("paid")] == [1.234, 1234, -0.5]


@pytest.mark.parametrize("length", [32_767, 32_768, 50_000])
def test_long_texts_survive_the_workbook(table: Database, tmp_path: Path, length: int) -> None:
    note = "ä" * length
    desk = Desk(table, tmp_path, THINGS, HEAD + f"1,bad,new,Rome,{note},x\n")
    merged = bring(desk, changed(rejects(desk), setting(B2="a@x.org")), tmp_path)
    assert (merged.laid.cells, merged.refused) == (1, 0)
    desk.run()
    assert desk.result().values("note") == [note]


def test_a_preview_is_corrected_by_workbook_and_planned_again(table: Database, tmp_path: Path) -> None:
    desk = Desk(table, tmp_path, declared("t", key="id", flow=Flow(preview=True), **FIELDS), FILE)
    merged = bring(desk, changed(rejects(desk), setting(B4="d@x.org")), tmp_path)
    assert merged.job.state is State.VALIDATING
    desk.run()
    assert (desk.job.state, desk.result().counts.created, desk.result().rows) == (State.VALIDATED, 2, [])
    assert desk.submit().values("id") == [1, 4]


def test_headers_that_are_blank_or_ours_keep_their_columns_apart(database: Database, tmp_path: Path) -> None:
    sql(database, "CREATE TABLE t (id int PRIMARY KEY)")
    ids = declared("t", key="id", id=Integer(required=True))
    desk = Desk(database, tmp_path, ids, "id,rowcall_key,,rowcall_key\nx,k,b,c\n1,k,b,d\n")
    titles = [cell.value for cell in sheet_of(rejects(desk))[1]]
    assert (len(set(titles)), titles[0], titles[1], titles[-1]) == (6, "id", "rowcall_key (file)", "rowcall_key")
    bring(desk, changed(rejects(desk), setting(A2="2", B2="mine", D2="too")), tmp_path)
    assert desk.row(1).cells == ["2", "mine", "b", "too"]
