"""What PostgreSQL refuses, as issues that name constraint, field and value."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import psycopg

from rowcall.engine.work import Work
from rowcall.model import Category, Code, Issue
from rowcall.store.trial import DROPPED, NOT_THE_ROWS, Refused
from rowcall.store.violations import Violation

_FOREIGN = "23503"
_CODES = {
    "23505": Code.UNIQUE_VIOLATION,
    "23P01": Code.UNIQUE_VIOLATION,
    _FOREIGN: Code.FOREIGN_KEY_VIOLATION,
    "23514": Code.CHECK_VIOLATION,
    "23502": Code.NOT_NULL_VIOLATION,
}
_OF_A_TRIGGER = re.compile(r"PL/pgSQL function (?!inline_code_block)")  # which is our own
_COPY_COLUMN = re.compile(r"^COPY .*?, line \d+, column (.+?)(?:: |$)", re.MULTILINE)
_DETAIL_COLUMNS = re.compile(r"^Key \(([^)]*)\)=")


def is_refusal(error: psycopg.Error) -> bool:
    """Whether it is about the rows, not about the connection, the server or our own statement."""
    return tells_of_rows(Refused.of(error))


def tells_of_rows(refused: Refused) -> bool:
    """The same of what PostgreSQL said."""
    state = refused.state
    if state == DROPPED or (state == "42501" and "row-level security" in refused.message):
        return True
    if _OF_A_TRIGGER.search(refused.context) and not state.startswith(NOT_THE_ROWS):
        return True
    return state[:2] in ("22", "23", "44", "54", "P0") or state == "21000" or not _is_known(state)


def _is_known(state: str) -> bool:
    """Whether PostgreSQL itself uses a code; others can only come from an application's trigger."""
    try:
        return not state or bool(psycopg.errors.lookup(state))
    except KeyError:
        return False


def issue_of(refused: Refused, work: Work, row: pl.DataFrame) -> Issue:
    """The issue of one row that was refused. `row` has its values under the target's column names."""
    if refused.state == DROPPED:
        return Issue(Code.ROW_REFUSED, f"A trigger or rule of {work.importer.target} drops this row.")
    columns = _columns(work, refused)
    values = row.row(0, named=True) if row.height == 1 else {}
    detail, value = f" {refused.detail}" if refused.detail else "", _value(values, columns)
    keys = {key.name: key.table_name for key in work.target.foreign} if refused.state == _FOREIGN else {}
    table = keys.get(refused.constraint or "")
    return Issue(
        _code(refused.state),
        f"The database refused it: {_sentence(refused.message)}{detail}",
        field=fields_named(work, columns),
        value=value,
        metadata={"constraint": refused.constraint, "sqlstate": refused.state, **_mismatch(table, value)},
    )


def _mismatch(table: str | None, value: str | None) -> dict[str, object]:
    """What the metadata of a value tells that names no row of a table, as that of a look-up does."""
    return {"category": Category.FK_MISMATCH, "fkType": table, "fkValue": value} if table else {}


def issue_of_undo(refused: Refused, table: str) -> Issue:
    """The issue of one row that could not be taken back."""
    if refused.state == DROPPED:
        return Issue(Code.ROW_REFUSED, f"A trigger or rule of {table} keeps this row as it is.")
    detail = f" {refused.detail}" if refused.detail else ""
    return Issue(
        _code(refused.state),
        f"The database refused to take it back: {_sentence(refused.message)}{detail}",
        metadata={"constraint": refused.constraint, "sqlstate": refused.state},
    )


def _code(state: str) -> Code:
    return _CODES.get(state, Code.VALUE_REFUSED if state.startswith(("22", "54")) else Code.ROW_REFUSED)


def _columns(work: Work, refused: Refused) -> list[str]:
    if refused.column:
        return [refused.column]
    name = refused.constraint
    known = {constraint.name: constraint.columns for constraint in (*work.target.foreign, *work.target.checks)}
    known |= {index.name: index.columns for index in work.target.unique}
    known |= {index.name: index.about for index in work.target.odd_unique}
    if name in known:
        return known[name]
    if key := _DETAIL_COLUMNS.match(refused.detail):
        return key[1].split(", ")
    column = _COPY_COLUMN.search(refused.context)
    return [column[1]] if column else []


def issue_of_violation(violation: Violation, work: Work, row: Mapping[str, Any]) -> Issue:
    """The issue of a row that a constraint would refuse."""
    names = ", ".join(violation.columns)
    value = _value(row, violation.columns)
    code, message = {
        "unique": (Code.UNIQUE_VIOLATION, f"Another row of {work.importer.target} has {names} = {value}."),
        "foreign": (Code.FOREIGN_KEY_VIOLATION, f"{violation.table} has no row for {names} = {value}."),
        "check": (Code.CHECK_VIOLATION, f"{names} = {value} does not hold {violation.constraint}."),
    }[violation.kind]
    return Issue(
        code,
        message,
        field=fields_named(work, violation.columns),
        value=value,
        metadata={"constraint": violation.constraint, **_mismatch(violation.table, value)},
    )


def fields_named(work: Work, columns: Sequence[str]) -> str | None:
    """The fields that fill these columns."""
    fields = {field.column: name for name, field in work.importer.fields.items()}
    return ", ".join(fields.get(column, column) for column in columns) or None


def _value(row: Mapping[str, Any], columns: list[str]) -> str | None:
    values = [row.get(column) for column in columns]
    return (
        ", ".join("null" if value is None else str(value) for value in values)[:200]
        if any(c in row for c in columns)
        else None
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."
