"""Verifies a job: what must hold of it, each by a query that has to return nothing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, LiteralString

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed

from rowcall.engine.values.ask import is_under_way
from rowcall.importer import Importer, ItemImporter, WholeFileImporter
from rowcall.model import State
from rowcall.store.jobs import Job
from rowcall.store.queries import query
from rowcall.store.targets import Target, describe
from rowcall.store.undoing.slices import same_row

_EXAMPLES = 5
_ACCOUNTED = (State.VALIDATED, State.INVALID, State.COMPLETED, State.COMPLETED_WITH_ERRORS)
_EFFECTIVE = (
    *(State.PROCESSING, State.PAUSED, State.CANCELLED, State.COMPLETED, State.COMPLETED_WITH_ERRORS),
    *(State.REVERTING, State.REVERTED),
)


class Verdict(StrEnum):
    """What a check came to."""

    OK = "ok"
    NOTE = "note"
    """Nothing of ours is wrong, and somebody may want to know."""
    SKIPPED = "skipped"
    FAILED = "failed"
    VIOLATED = "violated"

    @property
    def bad(self) -> bool:
        return self in (Verdict.FAILED, Verdict.VIOLATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found."""

    name: str
    said: str
    verdict: Verdict = Verdict.OK
    count: int = 0
    examples: Sequence[str] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class _Patient:
    """A job to verify, with its importer if that is declared, and its table if its rows can be compared with that."""

    connection: Connection[Any]
    job: Job
    importer: type[Importer] | None
    target: Target | None
    kin: list[str]
    """Names of the importers that write to the same table."""

    @property
    def effective(self) -> bool:
        return self.job.state in _EFFECTIVE or is_under_way(self.connection, self.job)

    def found(self, statement: LiteralString | Composed) -> tuple[int, list[str]]:
        """How many rows a statement returns, and the first of them."""
        inner = SQL(statement) if isinstance(statement, str) else statement
        counted = SQL("SELECT count(*) OVER (), found FROM ({}) v LIMIT {}").format(inner, _EXAMPLES)
        given = {"id": self.job.id, "importers": self.kin}
        rows = self.connection.execute(counted, given).fetchall()
        return (rows[0][0] if rows else 0), [row[1] for row in rows]


def verify_job(
    connection: Connection[Any], job: Job, importer: type[Importer] | None, kin: Sequence[type[Importer]] = ()
) -> list[Finding]:
    """Check what must hold of a job. `kin` are all importers: other jobs may have changed the same table since.

    I7, that a run with faults ends as one without, takes a second run; I9 to I11 are about all jobs together.
    """
    _analyze(connection)
    target = _comparable(connection, importer)
    names = [other.name for other in kin if importer and other.target == importer.target]
    patient = _Patient(connection, job, importer, target, names)
    return [finding for check in _CHECKS for finding in check(patient)]


def _analyze(connection: Connection[Any]) -> None:
    """Let the planner know how many outcomes there are: it looks for later ones of the same keys, which no index has.

    It would read all of them for each key that was written again since, if it expected few. What belongs to a row is
    looked up by itself, whatever is expected.
    """
    with suppress(psycopg.errors.ReadOnlySqlTransaction):  # a standby has those of its primary
        connection.execute("ANALYZE rowcall.outcome")


def _comparable(connection: Connection[Any], importer: type[Importer] | None) -> Target | None:
    """The importer's table, if outcomes name its rows by primary key."""
    if importer is None or not importer.target or issubclass(importer, WholeFileImporter | ItemImporter):
        return None
    target = describe(connection, importer.target)
    return target if target.primary_key else None


def _finding(patient: _Patient, name: str, said: str, *statements: LiteralString | Composed) -> Finding:
    found = [patient.found(statement) for statement in statements]
    count = sum(many for many, _ in found)
    examples = [example for _, some in found for example in some][:_EXAMPLES]
    verdict = Verdict.VIOLATED if count else Verdict.OK
    return Finding(name=name, said=said, verdict=verdict, count=count, examples=examples)


def _accounted(patient: _Patient) -> Iterator[Finding]:
    said = "Every row has its outcome, and every outcome its row."
    if patient.job.state in _ACCOUNTED:
        rows, outcomes = query("rows_without_outcome"), query("outcomes_without_row")
        yield _finding(patient, "I1", said, rows, outcomes, query("undone_without_row"))
    else:
        said = f"Every outcome has its row ({patient.job.state})."
        yield _finding(patient, "I1", said, query("outcomes_without_row"), query("undone_without_row"))


def _batches(patient: _Patient) -> Iterator[Finding]:
    yield _finding(patient, "I2", "The batches follow each other from first row to last.", query("batches_apart"))
    yield _finding(patient, "I3", "A batch has all of its outcomes or none.", query("batches_in_part"))
    yield _finding(patient, "I4", "The counters say what the outcomes say.", query("counters_off"))


def _effects(patient: _Patient) -> Iterator[Finding]:
    said = "Every row of the target was created once."
    if patient.target is None or not patient.effective:
        yield _skipped("I5", said, patient)
        return
    yield _finding(patient, "I5", said, query("created_twice"))
    if _one_was_undone(patient):
        undone = "What was taken back is not in the target as the import left it."
        yield _finding(patient, "I5", undone, _about(patient.target, "undone_still_there"))
    count, examples = patient.found(_about(patient.target, "created_not_there"))
    if count:
        told = "Rows that this job created are no longer in the target: they were deleted, or their key was changed."
        yield Finding(name="I5", said=told, verdict=Verdict.NOTE, count=count, examples=examples)


def _one_was_undone(patient: _Patient) -> bool:
    return patient.found("SELECT '' AS found FROM rowcall.undo WHERE job_id = %(id)s")[0] > 0


def _row_keys(patient: _Patient) -> Iterator[Finding]:
    said = "Every row key belongs to a row that was created."
    once = patient.importer is not None and patient.importer.once and patient.effective
    if once:
        yield _finding(patient, "I6", said, query("keys_without_row"), query("rows_without_key"))
    else:
        yield _finding(patient, "I6", said, query("keys_without_row"))


def _transactions(patient: _Patient) -> Iterator[Finding]:
    said = "A row of the target came with its outcome, in one transaction."
    if patient.target is None or not patient.effective:
        yield _skipped("I8", said, patient)
        return
    earlier = SQL("t.xmin <> o.xmin AND age(t.xmin) > age(o.xmin)")
    yield _finding(patient, "I8", said, _about(patient.target, "effect_apart", apart=earlier))
    later = SQL("t.xmin <> o.xmin AND age(t.xmin) < age(o.xmin)")
    count, examples = patient.found(_about(patient.target, "effect_apart", apart=later))
    if count:
        told = "Rows that this job created were written again since, by no job: another program changed them."
        yield Finding(name="I8", said=told, verdict=Verdict.NOTE, count=count, examples=examples)


def _skipped(name: str, said: str, patient: _Patient) -> Finding:
    if patient.importer is None:
        why = f"importer {patient.job.importer} is not declared here"
    elif not patient.effective:
        why = f"a job that is {patient.job.state} has changed nothing"
    else:
        why = "its outcomes don't name rows of a table by primary key"
    return Finding(name=name, said=f"{said} Not checked: {why}.", verdict=Verdict.SKIPPED)


def _about(target: Target, name: str, **parts: Composable) -> Composed:
    """A statement about the rows of a target, found by the key that outcomes name them by."""
    same = same_row(target, SQL("o.target_key"))
    return SQL(query(name)).format(target=_no_placeholders(target.own_rows), same=_no_placeholders(same), **parts)


def _no_placeholders(part: Composable) -> SQL:
    """Names for a statement that has parameters, where a single % would begin one."""
    return SQL(part.as_string().replace("%", "%%"))  # pyright: ignore[reportArgumentType] (quoted already)


_CHECKS: tuple[Callable[[_Patient], Iterator[Finding]], ...] = (
    _accounted,
    _batches,
    _effects,
    _row_keys,
    _transactions,
)
