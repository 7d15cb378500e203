"""Cells of a row, corrected by a person: laid over what came in, and verified at once.

While a job waits for its preview to be submitted, what is planned for the row is replaced. When it is through, rows
that failed or were skipped can be corrected, and run when they are tried again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import polars as pl
from psycopg import Connection

from rowcall.engine.corrections.alone import hands_over, stand_alone, try_alone
from rowcall.engine.duplicates import KeySet, decide_again, key_sets, same_as
from rowcall.engine.judge import duplicates, judge_rows, numbered
from rowcall.engine.moves import as_a_whole, require
from rowcall.engine.preview.plan import close_plan, looked_up, replace_rows
from rowcall.engine.scratch import NO_SCRATCH
from rowcall.engine.values.answers import Unsettled
from rowcall.engine.values.ask import add_corrected
from rowcall.engine.work import NO_TARGET, Work, prepare_work
from rowcall.errors import Final
from rowcall.importer import Importer
from rowcall.importer.declaration import did_you_mean
from rowcall.model import Code, State, Status
from rowcall.store import jobs, staging
from rowcall.store.edits import lay_over_row, row_of
from rowcall.store.grid import RowResult
from rowcall.store.jobs import Job
from rowcall.store.mappings import ColumnMapping, columns_of
from rowcall.store.queries import query

MOST_TEXT = 1_000_000
"""Characters that a corrected cell may have."""
_AROUND = 1_000
"""Rows that may be planned again with one; if more have to do with it, all are."""
OPEN = [Status.FAILED.value, Status.SKIPPED.value]
"""What rows are that can be corrected when their job is through."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A row as it is corrected, and what would become of it now."""

    job: Job
    row: RowResult
    status: str
    issues: list[dict[str, Any]]
    alone: bool
    """Whether that is all there is to say; else the job is planned again, since other rows count for it."""


def edit_row(
    connection: Connection[Any],
    job: Job,
    importer: type[Importer],
    number: int,
    cells: Mapping[str, str | None],
    *,
    who: str,
    revision: int | None,
) -> Edited:
    """Correct cells of a row, named by header, field or `column N`; null takes a correction back.

    `revision` is the one that the person saw: has somebody corrected the row since, nothing happens and it is said so.
    None is whichever it is at.
    Called in a transaction, on a connection that may write to the target.
    """
    job = lock_for_edit(connection, job, importer)
    places = places_of(connection, job, cells)
    texts = {places[name]: text for name, text in cells.items()}
    return _laid(connection, job, importer, found_row(connection, job, number), texts, who=who, revision=revision)


def undo_edits(
    connection: Connection[Any], job: Job, importer: type[Importer], number: int, *, who: str, revision: int | None
) -> Edited:
    """Take back all corrections of a row. Called as `edit_row`."""
    job = lock_for_edit(connection, job, importer)
    texts: dict[int, str | None] = {column.position: None for column in columns_of(connection, job.id)}
    return _laid(connection, job, importer, found_row(connection, job, number), texts, who=who, revision=revision)


def _laid(
    connection: Connection[Any],
    job: Job,
    importer: type[Importer],
    row: RowResult,
    texts: Mapping[int, str | None],
    *,
    who: str,
    revision: int | None,
) -> Edited:
    if revision not in (None, row.revision):
        told = f"Row {row.row:,} was corrected since you saw it: it is at revision {row.revision}, not {revision}."
        raise Final(Code.EDITED_MEANWHILE, told, hint="Look at it again, then send the revision that you saw.")
    _require_open(job, row)
    lay_over_row(connection, job.id, row.row, texts, who)
    return _verified(connection, job, importer, row, set(texts))


def lock_for_edit(connection: Connection[Any], job: Job, importer: type[Importer]) -> Job:
    """The job, which stays as it is until the transaction ends; refused where its rows can't be corrected."""
    connection.execute(query("lock_batch_numbers"), {"id": job.id})
    job = jobs.get_job(connection, str(job.id))
    require(job, "edit")
    if job.state is not State.VALIDATED and as_a_whole(importer):
        told = f"{importer.name} takes a file as a whole: when it is through, single rows can't be tried again."
        raise Final(Code.ROW_DONE, told, hint="Import the corrected file.")
    return job


def found_row(connection: Connection[Any], job: Job, number: int) -> RowResult:
    """A row of a job, with what became of it."""
    row = row_of(connection, job.id, number)
    if row is None:
        told = f"Job {job.number} has no row {number:,}."
        raise Final(Code.ROW_NOT_FOUND, told, hint=f"It has {job.row_count or 0:,} rows, from 1.")
    return row


def _require_open(job: Job, row: RowResult) -> None:
    if job.state is not State.VALIDATED and row.status not in OPEN:
        told = f"Row {row.row:,} is {row.status} already: what it wrote would not change with it."
        raise Final(Code.ROW_DONE, told, hint="Only rows that failed or were skipped can be corrected now.")


def places_of(connection: Connection[Any], job: Job, names: Mapping[str, object] | Sequence[str]) -> dict[str, int]:
    """The positions of columns that are named by header, by field or as `column N`; each at most once."""
    columns = columns_of(connection, job.id)
    found = {name: _place_of(columns, job.config.constants, name) for name in names}
    if len(set(found.values())) < len(found):
        twice = [name for name in found if list(found.values()).count(found[name]) > 1]
        raise Final(Code.UNKNOWN_CELL, f"{' and '.join(map(repr, twice[:2]))} are the same cell.", hint="Name it once.")
    return found


def _place_of(columns: Sequence[ColumnMapping], constants: Mapping[str, str], name: str) -> int:
    by_header = {column.position for column in columns if column.header == name}
    by_field = {column.position for column in columns if column.target_field == name}
    places = by_header | by_field or {c.position for c in columns if name == f"column {c.position + 1}"}
    if len(places) == 1:
        return places.pop()
    numbered = " or ".join(f"`column {place + 1}`" for place in sorted(places))
    if places:
        raise Final(Code.UNKNOWN_CELL, f"{name[:100]!r} is more than one column.", hint=f"Say {numbered}.")
    if name in constants:
        told = f"{name} has the value {constants[name][:100]!r} for all rows: no cell of the file."
        raise Final(Code.UNKNOWN_CELL, told, hint="Before anything is written, go back to the columns to change it.")
    known = list(dict.fromkeys([*(c.header for c in columns), *(c.target_field for c in columns if c.target_field)]))
    hint = did_you_mean(name, known) or f"Known are: {', '.join(known)[:500]}."
    raise Final(Code.UNKNOWN_CELL, f"The file has no column {name[:100]!r}, and no field of that name.", hint=hint)


# ----------------------------------------------------------------------------------------------------- verified at once


def _verified(
    connection: Connection[Any], job: Job, importer: type[Importer], before: RowResult, changed: set[int]
) -> Edited:
    number = before.row
    work = add_corrected(connection, prepare_work(connection, job, importer, NO_SCRATCH, dry=True), [number])
    waits = job.state is State.VALIDATED
    alone = not waits or stand_alone(work)
    around = _around(connection, work, before, changed) if waits and alone else [number]
    alone = alone and len(around) <= _AROUND
    # what was decided of the file stays, once it is through, and until all of it is decided anew
    with connection.transaction(force_rollback=not (waits and alone)):
        outcomes = _tried(connection, work, around if alone else [number])
    if waits and alone:
        alone = not hands_over(connection, work, outcomes) and _replanned(connection, work, around, outcomes)
    if not alone:
        job = plan_again(connection, job)
    status, issues = outcomes.filter(pl.col("row_number") == number).select("status", "issues").row(0)
    row = found_row(connection, job, number)
    return Edited(job, row, status, msgspec.json.decode(issues) if issues else [], alone)


def _tried(connection: Connection[Any], work: Work, numbers: Sequence[int]) -> pl.DataFrame:
    if work.target is not NO_TARGET:
        staging.prepare(connection, work.layout)  # some keys are asked of the target
        decide_again(connection, work, numbers, numbers, asking=False)
        staging.drop(connection)
    return try_alone(connection, work, numbers)


def _around(connection: Connection[Any], work: Work, row: RowResult, changed: set[int]) -> list[int]:
    """The row and all that it has to do with: by a key, before or now, or by one of those. Or so many that it's enough.

    Which of them count is decided among them as among all rows of the file.
    """
    if work.target is NO_TARGET:
        return [row.row]
    keyed = any(changed.intersection(_places(work, one)) for one in key_sets(work))
    seen, found = {row.row}, _met(connection, work, {row.row})
    if found == seen and not keyed and row.status != Status.FAILED:
        return [row.row]  # it counted, alone, and has the same keys
    while len(found) <= _AROUND:
        seen, found = found, _met(connection, work, same_as(connection, work, sorted(found)))
        if found == seen:
            break
    return sorted(found)


def _places(work: Work, one: KeySet) -> list[int]:
    return [place for name in one.fields if name in work.sources for place in work.sources[name].positions]


def _met(connection: Connection[Any], work: Work, numbers: set[int]) -> set[int]:
    """These rows, and those that they met in the file before."""
    given = {"id": work.job.id, "numbers": sorted(numbers), "most": _AROUND + 1}
    return numbers | {number for (number,) in connection.execute(query("duplicates_around"), given)}


def _replanned(connection: Connection[Any], work: Work, numbers: Sequence[int], outcomes: pl.DataFrame) -> bool:
    """Replace what is planned for some rows: it is another plan then. False where somebody has to be asked first."""
    rows = numbered(connection, work, numbers)
    try:
        judged = judge_rows(connection, work, rows, duplicates(connection, work, rows))
    except Unsettled:
        return False
    replace_rows(connection, work, outcomes, looked_up(work, judged.good))
    close_plan(connection, work.job)
    return True


def plan_again(connection: Connection[Any], job: Job) -> Job:
    """The job in VALIDATING, to be planned anew. Called in a transaction."""
    connection.execute(query("forget_plan"), {"id": job.id})
    connection.execute(query("set_wish"), {"id": job.id, "wish": None})
    return jobs.move(connection, replace(job, wish=None), State.VALIDATING)
