"""What was agreed to, held against what would happen now. A row that would come out otherwise has drifted.

It is not written but fails, with what was planned, what would happen now and what has changed since. Trying it again
is to agree to that; and so is to answer what a value stands for, when a job stops to ask while it commits.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import polars as pl
from psycopg import Connection

from rowcall.engine.preview.marks import marks_of, statuses_of
from rowcall.engine.preview.plan import NOTHING_FOUND
from rowcall.engine.wants import for_want
from rowcall.engine.work import Work
from rowcall.model import Code, Issue, Status
from rowcall.store import plans
from rowcall.store.copying import jsonb_text
from rowcall.store.queries import query
from rowcall.store.rows import RowBatch

OUTCOME = {
    "row_number": pl.Int64,
    "status": pl.String,
    "target_key": pl.String,
    "issues": pl.String,
    "before": pl.String,
    "result": pl.String,
}
"""What an outcome has, as texts that PostgreSQL reads."""
_MATCHED = (Status.UPDATED, Status.UNCHANGED, Status.SKIPPED)
_MATCHED_OR_NOT = ({Status.CREATED.value, Status.UPDATED.value}, {Status.CREATED.value, Status.UNCHANGED.value})


@dataclass(frozen=True, slots=True)
class Agreed:
    """What somebody has agreed to, for a run of rows."""

    first_row: int
    marks: plans.Marks
    said: Mapping[int, Mapping[str, Any] | None] = field(default_factory=dict[int, Mapping[str, Any] | None])
    """Rows with a value that somebody was asked about since, and has answered: what the answer makes of them is agreed
    to as well. With the row of the target that each was to change, as it was then."""

    def and_said(self, connection: Connection[Any], work: Work, numbers: Collection[int]) -> "Agreed":
        """The same, and what was said since of values that these rows have."""
        given = {"id": work.job.id, "numbers": list(numbers)}
        before = dict(connection.execute(query("planned_before"), given).fetchall())
        return replace(self, said={number: before.get(number) for number in numbers})

    def off(self, outcomes: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
        """Those of the outcomes that were not agreed to, with what was `planned`."""
        there = self.marks[outcomes["row_number"].to_numpy() - self.first_row]
        otherwise = pl.Series(marks_of(outcomes, found) != there, dtype=pl.Boolean)
        off = outcomes.with_columns(statuses_of(there).alias("planned")).filter(otherwise)
        if not self.said or not off.height:
            return off
        as_said = [self._is_as_said(row) for row in off.iter_rows(named=True)]
        return off.filter(~pl.Series(as_said, dtype=pl.Boolean))

    def _is_as_said(self, row: Mapping[str, Any]) -> bool:
        """Whether only an answer makes a row come out otherwise, and no change that others made to the target."""
        number, planned, now = row["row_number"], row["planned"], row["status"]
        if number not in self.said or {planned, now} in _MATCHED_OR_NOT:
            return False
        before = self.said[number]
        return before is None or now != Status.UPDATED or before == _decoded(row["before"])

    def planned(self, numbers: Sequence[int]) -> pl.Series:
        """The statuses that were agreed to for some rows."""
        return statuses_of(self.marks[np.asarray(numbers, dtype=np.int64) - self.first_row])


def agreed(connection: Connection[Any], work: Work, batch: RowBatch) -> Agreed | None:
    """What somebody has agreed to for these rows, if that was asked for."""
    return Agreed(batch.first_row, plans.marks_of(connection, work.job.id, batch)) if work.planned else None


class OffPlan(Exception):
    """Not all rows would come out as agreed on this route: a more careful one has to tell which."""


def plan_done(connection: Connection[Any], work: Work, batch: RowBatch) -> None:
    """What was planned for these rows is done, or they have drifted."""
    connection.execute(query("plan_done"), {"id": work.job.id, "first": batch.first_row, "last": batch.last_row})


def as_agreed(connection: Connection[Any], work: Work, settled: pl.DataFrame, held: Agreed | None) -> pl.DataFrame:
    """Outcomes of rows that aren't written; those that were not agreed to say so."""
    if held is None or not settled.height:
        return settled
    whole = settled.with_columns(pl.lit(None, pl.String).alias(name) for name in OUTCOME if name not in settled.columns)
    off = without_wants(work, held.off(whole, NOTHING_FOUND))
    if not off.height:
        return settled
    rest = settled.filter(~pl.col("row_number").is_in(off["row_number"].implode()))
    return pl.concat([rest, drifted(connection, work, off)], how="diagonal")


def without_wants(work: Work, off: pl.DataFrame) -> pl.DataFrame:
    """The same without rows that failed for want of another one, or lost against one: their turn may come again."""
    wanting = [number for number, issues in _told_why(off) if any(_wants(work, issue) for issue in issues)]
    return off.filter(~pl.col("row_number").is_in(wanting))


def _told_why(off: pl.DataFrame) -> Iterable[tuple[int, list[dict[str, Any]]]]:
    left_out = pl.col("status").is_in([Status.FAILED.value, Status.SKIPPED.value])
    for number, issues in (
        off.filter(left_out, pl.col("issues").is_not_null()).select("row_number", "issues").iter_rows()
    ):
        yield number, msgspec.json.decode(issues)


def _wants(work: Work, issue: Mapping[str, Any]) -> bool:
    about: Mapping[str, Any] = issue.get("metadata") or {}
    return issue["code"] == Code.DUPLICATE_IN_FILE or for_want(
        work, issue["code"], issue.get("field"), about.get("constraint")
    )


def drifted(connection: Connection[Any], work: Work, off: pl.DataFrame) -> pl.DataFrame:
    """The outcomes of rows that are not written because they were not agreed to."""
    if not off.height:
        return pl.DataFrame(schema=OUTCOME)
    given = {"id": work.job.id, "numbers": off["row_number"].to_list()}
    before = dict(connection.execute(query("planned_before"), given).fetchall())
    told = [_told(row, before.get(row["row_number"])) for row in off.iter_rows(named=True)]
    failed = pl.lit(Status.FAILED.value).alias("status")
    return off.select("row_number", failed, pl.Series("issues", told, dtype=pl.String))


def _told(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    now, fresh = _decoded(row["before"]), _decoded(row["result"])
    before = before if before and now else {}
    changed = {name: [value, now.get(name)] for name, value in before.items() if value != now.get(name)}
    parts = {"planned": row["planned"], "now": row["status"], "since": changed, "changes": fresh.get("changes")}
    metadata: dict[str, Any] = {name: value for name, value in parts.items() if value}
    issue = Issue(Code.DRIFTED, _what_happened(row["planned"], row["status"]), metadata=metadata)
    also: list[Any] = msgspec.json.decode(row["issues"]) if row["issues"] else []
    return jsonb_text([issue, *also])


def _decoded(text: str | None) -> dict[str, Any]:
    return msgspec.json.decode(text) if text else {}


def _what_happened(planned: str, now: str) -> str:
    if planned == Status.CREATED and now in _MATCHED:
        return "A row with this key was created by others since the preview."
    if planned in _MATCHED and now == Status.CREATED:
        return "The row that it means was deleted by others since the preview."
    if planned in (Status.UPDATED, Status.UNCHANGED) and now in (Status.UPDATED, Status.UNCHANGED):
        return "The row that it means was changed by others since the preview."
    if planned == now:
        return (
            f"It would be {now} as planned, but not in the same way: what it refers to has changed since the preview."
        )
    return f"It was planned to be {planned} and would be {now} now: the database has changed since the preview."


def left_behind(connection: Connection[Any], work: Work, pieces: Iterable[Sequence[int]]) -> None:
    """Rows that have failed for want of others to the end, and were planned otherwise."""
    for numbers in pieces:
        held = agreed(connection, work, RowBatch(0, numbers[0], numbers[-1]))
        if held is None:
            return
        planned = dict(zip(numbers, held.planned(numbers), strict=True))
        for status in set(planned.values()) - {Status.FAILED.value}:
            about = {"planned": status, "now": Status.FAILED.value}
            issue = Issue(Code.DRIFTED, _what_happened(status, Status.FAILED), metadata=about)
            some = [number for number in numbers if planned[number] == status]
            connection.execute(query("say_first"), {"id": work.job.id, "numbers": some, "issue": jsonb_text([issue])})
