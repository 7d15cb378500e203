"""Rows through a temporary table to the target: matched, held against what was agreed to, asked about, written."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier, Literal

from rowcall.engine.judge import OUTCOMES
from rowcall.engine.outcomes import add_outcomes
from rowcall.engine.preview.drift import OUTCOME, Agreed, OffPlan, as_agreed, drifted
from rowcall.engine.preview.foresee import are_foreseeable
from rowcall.engine.preview.plan import foreknown
from rowcall.engine.refusals import fields_named, is_refusal, issue_of, issue_of_violation, tells_of_rows
from rowcall.engine.rowkeys import row_keys
from rowcall.engine.typed import as_written
from rowcall.engine.work import Work
from rowcall.errors import Retryable
from rowcall.model import Code, Issue, Status
from rowcall.store import matching, staging, writing
from rowcall.store.copying import copy_out, json_text, jsonb_text, text_columns
from rowcall.store.trial import Refused, Tried, try_halves
from rowcall.store.violations import violations
from rowcall.words import counted

_WRITTEN = (Status.CREATED.value, Status.UPDATED.value, Status.UNCHANGED.value)


def target_columns(work: Work, good: pl.DataFrame) -> pl.DataFrame:
    """The values, as they are written, under the names of the target's columns."""
    named = as_written(work, good).select(pl.col(name).alias(work.importer.fields[name].column) for name in work.fields)
    as_json = [
        name
        for name, dtype in named.schema.items()
        if isinstance(dtype, pl.List) and work.target.columns[name].base in ("json", "jsonb")
    ]
    return named.with_columns(json_text(pl.col(name)) for name in as_json)


@dataclass(frozen=True, slots=True)
class Care:
    """How careful to be with rows."""

    checked: bool
    """Constraints are asked which they would refuse."""
    isolated: bool
    """Then it is tried which the target refuses."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows that are in the temporary table and can be written."""

    pieces: list[list[int]] | None
    """Their numbers, as they can be written one piece after the other; None: at once."""
    settled: pl.DataFrame
    """Outcomes of the others."""


def stage(
    connection: Connection[Any], work: Work, good: pl.DataFrame, care: Care, held: Agreed | None, found: pl.DataFrame
) -> Staged:
    """Find out which good rows can be written, as far as that was agreed to. `found` is what look-ups found."""
    rows = _rows(work, good)
    refused = _staged(connection, work, rows)
    taken = staging.take_keys(connection, work.job.importer, work.job.id) if work.importer.once else []
    staged = _without(rows, [*refused, *(number for number, *_ in taken)])
    otherwise = _not_agreed(connection, work, staged, held, found) if held else _AS_AGREED
    if care.checked:
        refused |= _violating(connection, work, rows)
    pieces: list[list[int]] | None = None
    if care.isolated:
        guilty, pieces = _guilty(connection, work, rows)
        refused |= guilty
    lucky = otherwise.lucky.filter(~pl.col("row_number").is_in(list(refused)))
    if lucky.height:
        if not care.isolated:  # whoever writes them may still be told that they are refused
            raise OffPlan
        staging.remove(connection, lucky["row_number"].to_list())
    gone = drifted(connection, work, pl.concat([otherwise.drifted, lucky]))
    if work.importer.once:
        staging.give_back_keys(connection, work.job.id, [*refused, *gone["row_number"]])
    settled = as_agreed(connection, work, _settled([*_failed(refused), *map(_skipped, taken)]), held)
    return Staged(pieces, pl.concat([settled, gone], how="diagonal"))


def write_staged(connection: Connection[Any], work: Work, staged: Staged, *, changes: bool) -> None:
    """Write the rows, with an outcome for each. `changes`: with what is changed in rows that are there."""
    for piece in staged.pieces if staged.pieces is not None else [None]:
        _write(connection, work, piece)
    writing.add_outcomes(connection, work.layout, work.job.id, _key_fields(work), changes=changes)
    add_outcomes(connection, work, staged.settled)


def left_alone(connection: Connection[Any], work: Work, numbers: Sequence[int], *, changes: bool) -> pl.DataFrame:
    """The outcomes of those of some rows that are in the temporary table, but won't be written: their match stays."""
    outcomes = writing.outcomes_of(work.layout, _key_fields(work), changes=changes)
    select = SQL(
        "SELECT {} FROM ({}) outcome WHERE status NOT IN ('created', 'updated') AND row_number = ANY ({})"
    ).format(SQL(", ").join(map(Identifier, OUTCOME)), outcomes, Literal(list(numbers)))
    return copy_out(connection, select, list(OUTCOME.items()))


def _rows(work: Work, good: pl.DataFrame) -> pl.DataFrame:
    rows = target_columns(work, good).insert_column(0, good["number"].alias("rowcall_number"))
    if work.layout.keys:  # in its order, an index is looked into in half the time
        rows = rows.sort(work.layout.keys[0], maintain_order=True)
    if not work.importer.once:
        return rows
    return rows.with_columns(row_keys(work.layout.keys, text_columns(rows)).alias("rowcall_key"))


def _staged(
    connection: Connection[Any], work: Work, rows: pl.DataFrame, *, only_changes: bool = False
) -> dict[int, Issue]:
    """Put rows into the temporary table, matched and filled; those that it refused, with the reason."""
    refused = {number: Refused.of(error) for number, error in staging.load(connection, work.layout, rows)}
    full = _full(rows)
    matching.match(connection, work.layout, full, only_changes=only_changes)
    staging.fill(connection, work.layout, full)
    return _issues(connection, work, rows, refused)


def _full(rows: pl.DataFrame) -> set[str]:
    """The columns that have a value in every row."""
    return {series.name for series in rows if not series.null_count()}


def foreseen(connection: Connection[Any], work: Work, good: pl.DataFrame) -> pl.DataFrame | None:
    """What would become of good rows, without writing them; None where only writing them tells."""
    rows = _rows(work, good)
    if not are_foreseeable(work, rows):
        return None
    try:
        with connection.transaction():
            refused = _staged(connection, work, rows, only_changes=True)
            refused |= _violating(connection, work, rows, sure=True)
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        return None
    fresh = _fresh(connection, work, _without(rows, refused), changes=True)
    return pl.concat([fresh, _settled(_failed(refused))], how="diagonal")


@dataclass(frozen=True, slots=True)
class _Otherwise:
    """Staged rows that would come out otherwise than was agreed to."""

    drifted: pl.DataFrame
    lucky: pl.DataFrame
    """Those that were to fail: whether they do is not known yet."""


_AS_AGREED = _Otherwise(*(pl.DataFrame(schema={**OUTCOME, "planned": pl.String}) for _ in range(2)))


def _not_agreed(
    connection: Connection[Any], work: Work, staged: pl.Series, held: Agreed, found: pl.DataFrame
) -> _Otherwise:
    """Take out the rows that have drifted, and tell which may have."""
    off = held.off(foreknown(work, _fresh(connection, work, staged)), found)
    lucky = (pl.col("planned") == Status.FAILED.value) & pl.col("status").is_in(_WRITTEN)
    gone = off.filter(~lucky)
    if gone.height:
        numbers = gone["row_number"]
        told = _fresh(connection, work, staged, changes=True).filter(pl.col("row_number").is_in(numbers.implode()))
        gone = told.join(gone.select("row_number", "planned"), on="row_number", maintain_order="left")
        staging.remove(connection, numbers.to_list())
    return _Otherwise(gone, off.filter(lucky))


def _fresh(connection: Connection[Any], work: Work, staged: pl.Series, *, changes: bool = False) -> pl.DataFrame:
    """What would become of the staged rows, which have these numbers, if they were written now."""
    outcomes = writing.outcomes_of(work.layout, _key_fields(work), changes=changes, telling=True)
    select = SQL("SELECT {} FROM ({}) outcome").format(SQL(", ").join(map(Identifier, OUTCOME)), outcomes)
    told = copy_out(connection, select, list(OUTCOME.items()))
    same = pl.Series("row_number", writing.unchanged(connection, work.layout), dtype=pl.Int64)
    new = staged.filter(~staged.is_in(pl.concat([told["row_number"], same]).implode()))
    plain = [
        pl.DataFrame({"row_number": numbers}).with_columns(pl.lit(status.value).alias("status"))
        for numbers, status in ((same, Status.UNCHANGED), (new, Status.CREATED))
    ]
    return pl.concat([told, *plain], how="diagonal")


def _without(rows: pl.DataFrame, numbers: Collection[int]) -> pl.Series:
    """The numbers of these rows without those."""
    return rows["rowcall_number"].filter(~rows["rowcall_number"].is_in(list(numbers)))


def _key_fields(work: Work) -> list[str | None]:
    return [fields_named(work, key) for key in work.layout.keys]


def _write(connection: Connection[Any], work: Work, numbers: list[int] | None = None) -> None:
    changed = writing.write(connection, work.layout, numbers)
    if changed:
        raise _meanwhile(work, changed, "changed")


def _meanwhile(work: Work, rows: int, what: str) -> Retryable:
    table = work.importer.target
    told = counted(rows, f"row of {table} was", f"rows of {table} were")
    return Retryable(Code.DATABASE_BUSY, f"{told} {what} by others meanwhile.")


def _violating(connection: Connection[Any], work: Work, rows: pl.DataFrame, *, sure: bool = False) -> dict[int, Issue]:
    """The rows that a constraint would refuse, taken out."""
    found = {
        number: violation
        for violation in reversed(violations(connection, work.layout, _full(rows), sure=sure))
        for number in violation.numbers
    }
    told = _told(connection, work, rows, list(found))
    issues = {number: issue_of_violation(violation, work, told[number]) for number, violation in found.items()}
    _take_out(connection, work, rows, issues)
    return issues


def _take_out(connection: Connection[Any], work: Work, rows: pl.DataFrame, issues: dict[int, Issue]) -> None:
    """Take refused rows out, unless one is refused only because another import has just created it: that is a match."""
    if not issues:
        return
    asked = _by_key(work, rows.filter(pl.col("rowcall_number").is_in(list(issues))))
    if created := matching.matched_meanwhile(connection, work.layout, asked):
        raise _meanwhile(work, created, "created")
    staging.remove(connection, list(issues))


def _by_key(work: Work, rows: pl.DataFrame) -> list[list[int]]:
    """The numbers of rows, for each key those that are matched by it: the file gives all of it, and no key before."""
    numbers: list[list[int]] = []
    for key in work.layout.keys:
        whole = pl.all_horizontal(pl.col(name).is_not_null() for name in key)
        numbers.append(rows.filter(whole)["rowcall_number"].to_list())
        rows = rows.filter(~whole)
    return numbers


def _guilty(connection: Connection[Any], work: Work, rows: pl.DataFrame) -> tuple[dict[int, Issue], list[list[int]]]:
    """Find the rows that can't be written by trying, then take back the trial and take out the guilty.

    Also returns the others in the pieces in which they could be written, one after the other.
    """
    with connection.transaction(force_rollback=True):
        staging.index_numbers(connection)
        numbers = staging.staged_numbers(connection)
        with connection.transaction(force_rollback=True):
            tried = _tried(connection, work, numbers)
        rest = [number for number in numbers if number not in tried.refused]
        pieces = [rest] if _goes_at_once(connection, work, rest) else tried.pieces
    issues = _issues(connection, work, rows, tried.refused)
    _take_out(connection, work, rows, issues)
    return issues, pieces


def _tried(connection: Connection[Any], work: Work, numbers: list[int]) -> Tried:
    pieces: list[list[int]] = []
    while True:
        tried = try_halves(connection, work.layout, numbers)
        pieces += tried.pieces
        for number, refused in tried.refused.items():
            if not tells_of_rows(refused):
                writing.write(connection, work.layout, [number])  # raises it as it is, unless it was for a moment
                raise Retryable(Code.DATABASE_BUSY, f"{work.importer.target} could not be written: {refused.message}.")
        if not work.target.refers_to_itself or len(tried.refused) in (0, len(numbers)):
            return Tried(tried.refused, pieces)
        numbers = sorted(tried.refused)  # what they refer to may be there by now


def _goes_at_once(connection: Connection[Any], work: Work, numbers: list[int]) -> bool:
    """Whether rows that could be written in pieces can be written together."""
    try:
        with connection.transaction(force_rollback=True):
            writing.write(connection, work.layout, numbers)
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        return False
    return True


def _issues(
    connection: Connection[Any], work: Work, rows: pl.DataFrame, refused: Mapping[int, Refused]
) -> dict[int, Issue]:
    told = _told(connection, work, rows, list(refused))
    return {number: issue_of(each, work, told[number]) for number, each in refused.items()}


def _told(
    connection: Connection[Any], work: Work, rows: pl.DataFrame, numbers: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """The values of some rows as texts, with those that the target gives where the file has none."""
    if not numbers:
        return {}
    found = text_columns(rows.filter(pl.col("rowcall_number").is_in(numbers)))
    if filled := staging.fillable(work.layout, found):
        given = found.select("rowcall_number").join(
            staging.texts_of(connection, filled, numbers), on="rowcall_number", how="left", maintain_order="left"
        )
        known = [pl.col(name).cast(pl.String).fill_null(given[name]) for name in filled if name in found.columns]
        found = found.with_columns(*known, *(given[name] for name in filled if name not in found.columns))
    return {row["rowcall_number"]: row for row in found.iter_rows(named=True)}


def _failed(refused: dict[int, Issue]) -> list[dict[str, Any]]:
    return [
        {"row_number": number, "status": Status.FAILED.value, "issues": jsonb_text([issue])}
        for number, issue in refused.items()
    ]


def _skipped(taken: tuple[int, str, int]) -> dict[str, Any]:
    number, job, row = taken
    message = f"Row {row:,} of job {job} was imported with the same key."
    issue = Issue(Code.ALREADY_IMPORTED, message, metadata={"job": job, "row": row})
    return {"row_number": number, "status": Status.SKIPPED.value, "issues": jsonb_text([issue])}


def _settled(outcomes: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(outcomes, schema=OUTCOMES)
