"""What PostgreSQL refuses, as issues that name constraint, field and value."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from rowcall.engine.work import Work
from rowcall.model import Category, Code, Issue
from rowcall.store.trial import DROPPED, NOT_THE_ROWS, Refused
from rowcall.store.violations import Kind, Violation, may_be_asked

_STATES: dict[Kind, str] = {"unique": "23505", "foreign": "23503", "check": "23514", "missing": "23502"}
_CODES = {
    _STATES["unique"]: Code.UNIQUE_VIOLATION,
    "23P01": Code.UNIQUE_VIOLATION,
    _STATES["foreign"]: Code.FOREIGN_KEY_VIOLATION,
    _STATES["check"]: Code.CHECK_VIOLATION,
    _STATES["missing"]: Code.NOT_NULL_VIOLATION,
}
_OF_A_TRIGGER = re.compile(r"PL/pgSQL function (?!inline_code_block)")  # which is our own
_COPY_COLUMN = re.compile(r"^COPY .*?, line \d+, column (.+?)(?:: |$)", re.MULTILINE)
_DETAIL_COLUMNS = re.compile(r"^(?:Key|Partition key of the failing row contains) \((.*?)\) ?= ?\(")


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


def issue_of(refused: Refused, work: Work, row: Mapping[str, Any]) -> Issue:
    """The issue of one row that was refused. `row` has its values under the target's column names."""
    if refused.state == DROPPED:
        does = "drops this row, or gives it another key" if work.target.keys_change else "drops this row"
        return Issue(Code.ROW_REFUSED, f"A trigger or rule of {work.importer.target} {does}.")
    if violation := _violation(refused, work):
        return issue_of_violation(violation, work, row)
    columns = _columns(work, refused)
    detail, value = f" {refused.detail}" if refused.detail else "", _value(row, columns)
    keys = {key.name: key.table_name for key in work.target.foreign} if refused.state == _STATES["foreign"] else {}
    table = keys.get(refused.constraint or "", "")
    return Issue(
        _code(refused.state),
        f"The database refused it: {_sentence(refused.message)}{detail}",
        field=fields_named(work, columns),
        value=value,
        metadata={"constraint": refused.constraint, "sqlstate": refused.state, **_mismatch(table, value)},
    )


def _violation(refused: Refused, work: Work) -> Violation | None:
    """What a constraint refused that can be asked, too: it is told in the same words whichever way it was found."""
    if _OF_A_TRIGGER.search(refused.context):
        return None
    columns = _in_detail(work, refused)
    for asked in may_be_asked(work.layout):
        of_a_part = work.target.kind == "p" and asked.kind == "unique" and asked.columns == columns
        named = refused.constraint == asked.constraint or of_a_part  # an index of a partition has a name of its own
        about_others = asked.kind == "foreign" and columns != asked.columns  # rows refer to what this one changes
        if refused.state == _STATES[asked.kind] and named and not about_others:
            return asked
    return None


def _mismatch(table: str, value: str | None) -> dict[str, object]:
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
    if columns := _in_detail(work, refused):
        return columns
    column = _COPY_COLUMN.search(refused.context)
    return [column[1]] if column else []


def _in_detail(work: Work, refused: Refused) -> list[str]:
    """The columns whose values PostgreSQL tells."""
    found = _DETAIL_COLUMNS.match(refused.detail)
    names = [part.strip('"').replace('""', '"') for part in found[1].split(", ")] if found else []
    return [name for name in names if name in work.target.columns]


def issue_of_violation(violation: Violation, work: Work, row: Mapping[str, Any]) -> Issue:
    """The issue of a row that a constraint would refuse."""
    names = ", ".join(violation.columns)
    value = _value(row, violation.columns)
    if violation.kind == "missing":
        value = "" if value else None
    code, message = {
        "unique": (Code.UNIQUE_VIOLATION, f"Another row of {work.importer.target} has {names} = {value}."),
        "foreign": (Code.FOREIGN_KEY_VIOLATION, f"{violation.table} has no row for {names} = {value}."),
        "check": (Code.CHECK_VIOLATION, f"{names} = {value} does not hold {violation.constraint}."),
        "missing": (
            Code.REQUIRED,
            f"{work.importer.target} has no such row yet, and a new one needs {names}.",
        ),
    }[violation.kind]
    return Issue(
        code,
        message,
        field=fields_named(work, violation.columns),
        value=value,
        metadata={
            "constraint": violation.constraint or None,
            "sqlstate": _STATES[violation.kind],
            **_mismatch(violation.table, value),
        },
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
