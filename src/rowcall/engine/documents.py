"""What programs are told, on the command line and over HTTP: jobs, rows, receipts, importers as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, cast

from rowcall.engine.corrections.rejects import Merged
from rowcall.engine.moves import possible
from rowcall.engine.receipt import Receipt
from rowcall.engine.undo.preview import UndoPreview
from rowcall.importer import Field, Importer, conditions
from rowcall.model import State, Status
from rowcall.store.edits import CellEdit
from rowcall.store.fingerprints import FingerprintCheck
from rowcall.store.grid import RowResult
from rowcall.store.jobs import Job, JobCounts
from rowcall.store.mappings import ColumnMapping
from rowcall.store.results import IssueCount
from rowcall.store.undos import Undone

_ALWAYS: Mapping[str, str] = MappingProxyType({})
_SHARED = frozenset(part.name for part in fields(Field))


def job_document(job: Job, counts: JobCounts, importer: type[Importer] | None) -> dict[str, Any]:
    """A job for a program. Its importer tells whether it can be taken back; None where there is none any more."""
    return {
        "id": job.id,
        "number": job.number,
        "state": job.state,
        "importer": job.importer,
        "dryRun": job.config.dry_run,
        "context": job.context,
        "scope": job.scope_key,
        "supersedes": [{"id": each["id"], "number": each["number"]} for each in job.supersedes],
        "supersededBy": job.superseded_by,
        "file": file_document(job),
        "url": job.url,
        "counts": counts_document(job, counts),
        "progress": progress_document(job, counts),
        "account": job.account,
        "createdAt": job.created_at,
        "startedAt": job.processing_started_at,
        "endedAt": job.completed_at,
        "background": job.background,
        "wish": job.wish,
        "allowed": possible(job, counts, importer),
        "error": job.last_error,
    }


def fingerprint_document(found: FingerprintCheck | None) -> dict[str, Any]:
    """What the check of a fingerprint found, for a program."""
    if found is None:
        told = {"verdict": None, "note": "Nobody has looked.", "sampled": 0, "matched": 0, "mismatched": 0}
        none = dict.fromkeys(("warn", "abort", "checkedAt", "acknowledgedBy", "acknowledgedAt"))
        return {**told, **none, "findings": []}
    return {
        "verdict": found.verdict,
        "note": found.note,
        "sampled": found.sampled,
        "matched": found.matched,
        "mismatched": found.mismatched,
        "warn": found.warn,
        "abort": found.abort,
        "findings": [asdict(finding) for finding in found.findings],
        "checkedAt": found.checked_at,
        "acknowledgedBy": found.acknowledged_by,
        "acknowledgedAt": found.acknowledged_at,
    }


def _without_findings(told: dict[str, Any]) -> dict[str, Any]:
    """A check of a fingerprint as receipts have it; rows of the target are not for keeping."""
    return {name: value for name, value in told.items() if name != "findings"}


def file_document(job: Job) -> dict[str, Any]:
    """A job's file for a program. While it is yet to be fetched, nothing but its name is known."""
    return {"name": job.file_name, "sha256": job.file_sha256, "size": job.file_size}


def counts_document(job: Job, counts: JobCounts) -> dict[str, int]:
    """What became of the rows, and the lines beside them; `rows` are those read so far while there may be more."""
    return {
        "rows": rows_of(job, counts),
        "created": counts.created,
        "updated": counts.updated,
        "unchanged": counts.unchanged,
        "skipped": counts.skipped,
        "failed": counts.failed,
        "reverted": counts.reverted,
        "cancelled": rows_of(job, counts) - counts.done if _is_over(job) else 0,
        "blank": job.blank_lines,
        "header": job.header_lines,
        "other": job.other_lines,
    }


def _is_over(job: Job) -> bool:
    """Whether rows that nothing became of will stay so."""
    state = job.paused_from or job.state
    return state in (State.CANCELLED, State.SUPERSEDED, State.REVERTING, State.REVERTED)


def progress_document(job: Job, counts: JobCounts) -> dict[str, Any]:
    """How far a job is; a part is not known while the file is still read."""
    elapsed = job.worked_ms if job.processing_started_at else None
    return {
        "percent": _percent(job, counts),
        "rowsPerSecond": 1000 * counts.done // elapsed if elapsed else None,
        "elapsedMs": elapsed,
    }


def _percent(job: Job, counts: JobCounts) -> float | None:
    """Of the file while it is brought in, then of its rows."""
    if job.row_count:
        return 1000 * counts.done // job.row_count / 10
    return None if job.percent_read is None else round(job.percent_read, 1)


def rows_of(job: Job, counts: JobCounts) -> int:
    """The rows of the file, as far as they are known."""
    return counts.ingested if job.row_count is None else job.row_count


def row_document(result: RowResult, headers: Sequence[str]) -> dict[str, Any]:
    """A row for a program."""
    return {
        "row": result.row,
        "line": result.line,
        "status": result.status,
        "issues": result.issues or [],
        "values": values_of(result, headers),
        "original": original_of(result, headers),
        "revision": result.revision,
        "targetKey": result.target_key,
        "attempt": result.attempt,
        "at": result.at,
        "changes": result.changes,
    }


def values_of(result: RowResult, headers: Sequence[str]) -> dict[str, str | None]:
    """The cells under their headers. A record with too many fields has cells without one."""
    return dict(zip(_titles(headers, len(result.cells)), result.cells, strict=False))


def _titles(headers: Sequence[str], width: int) -> list[str]:
    return [*headers, *(f"column {place + 1}" for place in range(len(headers), width))]


def original_of(result: RowResult, headers: Sequence[str]) -> dict[str, str | None] | None:
    """What the file has in cells that were corrected, under their headers; None if none were."""
    if result.original is None:
        return None
    cells = zip_longest(_titles(headers, len(result.cells)), result.cells, result.original)
    return {title: before for title, now, before in cells if now != before and title is not None}


def edit_document(edit: CellEdit, headers: Sequence[str]) -> dict[str, Any]:
    """A correction for a program."""
    return {
        "revision": edit.revision,
        "position": edit.position,
        "header": headers[edit.position],
        "before": edit.before,
        "after": edit.after,
        "account": edit.account,
        "at": edit.at,
    }


def merged_document(merged: Merged, counts: JobCounts, importer: type[Importer] | None) -> dict[str, Any]:
    """What came of a workbook, for a program."""
    return {
        "job": job_document(merged.job, counts, importer),
        "rows": merged.rows,
        "changed": merged.laid.rows,
        "cells": merged.laid.cells,
        "unchanged": merged.rows - merged.refused - merged.laid.rows,
        "refused": merged.refused,
        "notMerged": [
            {"line": each.line, "row": each.row, "code": each.code, "message": each.message}
            for each in merged.first_refused
        ],
        "ignoredColumns": merged.ignored,
    }


def receipt_document(made: Receipt) -> dict[str, Any]:
    """A receipt for a program."""
    job, balance = made.job, made.balance
    return {
        "id": job.id,
        "number": job.number,
        "state": job.state,
        "importer": job.importer,
        "target": made.target,
        "mode": made.mode,
        "dryRun": job.config.dry_run,
        "context": job.context,
        "supersededBy": job.superseded_by,
        "file": file_document(job),
        "account": job.account,
        "createdAt": job.created_at,
        "startedAt": job.processing_started_at,
        "endedAt": job.completed_at,
        "durationMs": made.milliseconds,
        "rowsPerSecond": made.rows_per_second,
        "columns": [_column_document(column) for column in made.columns],
        "constants": job.config.constants,
        "counts": {
            "rows": balance.rows,
            **{status.value: getattr(balance, status.value) for status in Status},
            "reverted": balance.reverted,
            "cancelled": balance.cancelled,
            "blank": job.blank_lines,
            "header": job.header_lines,
            "other": job.other_lines,
        },
        "balanced": balance.holds,
        "issues": [issue_count_document(issue) for issue in made.issues],
        "edits": [{"account": each.account, "rows": each.rows, "cells": each.cells} for each in made.edits],
        "undos": [undo_receipt_document(job, done) for done in made.undos],
        "fingerprint": _without_findings(fingerprint_document(made.fingerprint)) if made.fingerprint else None,
        "error": job.last_error,
    }


def undo_preview_document(seen: UndoPreview) -> dict[str, Any]:
    """What an undo would do, for a program."""
    return {
        "possible": seen.refusal is None,
        "reason": seen.refusal,
        "reversible": seen.reversible,
        "toDelete": seen.to_delete,
        "toRestore": seen.to_restore,
        "fields": seen.fields,
        "notRestored": seen.not_restored,
        "changed": seen.changed,
        "blocked": seen.blocked,
        "refused": seen.refused,
        "gone": seen.gone,
        "reverted": seen.reverted,
        "blockedBy": seen.blocked_by,
        "samples": [_undo_sample_document(sample) for sample in seen.samples],
        "until": seen.until,
    }


def _undo_sample_document(sample: dict[str, Any]) -> dict[str, Any]:
    before: dict[str, Any] = sample["before"] or {}
    now: dict[str, Any] = sample["now"]
    differing = [name for name in now if name not in before or before[name] != now[name]]
    return {
        **{name: sample[name] for name in ("row", "line", "status", "issue")},
        "targetKey": sample["target_key"],
        "fields": [{"name": name, "before": before.get(name), "now": now[name]} for name in differing],
    }


def undo_receipt_document(job: Job, done: Undone) -> dict[str, Any]:
    """What an undo did, for a program."""
    undo = done.undo
    asked = {name: getattr(undo.which, name) for name in ("statuses", "code", "field", "text", "rows")}
    results = ("deleted", "restored", "changed", "blocked", "refused", "gone")
    return {
        "jobId": job.id,
        "jobNumber": job.number,
        "importer": job.importer,
        "file": file_document(job),
        "number": undo.number,
        "state": undo.left_in or job.state,
        "account": undo.account,
        "requestId": undo.request_id,
        "createdAt": undo.created_at,
        "completedAt": undo.completed_at,
        "which": {name: value for name, value in asked.items() if value},
        "partial": undo.partial,
        **{name: getattr(done, name) for name in results},
        "blockedBy": done.blocked_by,
        "digest": done.digest,
    }


def issue_count_document(issue: IssueCount) -> dict[str, Any]:
    """How often something was wrong, for a program."""
    about = {"code": issue.code, "field": issue.field, "status": issue.status}
    return {**about, "count": issue.count, "firstRow": issue.first_row}


def _column_document(column: ColumnMapping) -> dict[str, Any]:
    return {
        "position": column.position,
        "header": column.header,
        "field": column.target_field,
        "status": column.status,
        "reason": column.reason,
        "dateOrder": column.date_order,
        "decimal": column.decimal_mark,
    }


def importer_summary(name: str, importer: type[Importer]) -> dict[str, Any]:
    """An importer in a list for a program."""
    return {"name": name, "description": importer.description, "target": importer.target}


def importer_document(importer: type[Importer]) -> dict[str, Any]:
    """An importer for a program."""
    return {
        **importer_summary(importer.name, importer),
        "keys": importer.keys,
        "onMatch": type(importer.on_match).__name__.lower(),
        "preview": importer.flow.preview,
        "atomic": importer.atomic,
        "once": importer.once,
        "timezone": importer.timezone,
        "context": [_field_document(field) for field in importer.context_fields.values()],
        "scope": None if importer.scope is None else list(importer.scope_keys),
        "fields": [_field_document(field, importer.only_when.get(name, {})) for name, field in importer.fields.items()],
        "rules": [
            {"name": rule.name, "field": rule.field, "code": rule.code, "message": rule.message}
            for rule in importer.rules
        ],
    }


def _field_document(field: Field, only_when: Mapping[str, str | tuple[str, ...]] = _ALWAYS) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": type_of(field),
        "column": field.column,
        "required": field.required,
        "default": field.default_text(),
        "aliases": list(field.aliases),
        "help": field.help,
        "demands": demands_of(field),
        "onlyWhen": {what: list(conditions.values_of(wanted)) for what, wanted in only_when.items()},
    }


def type_of(field: Field) -> str:
    """What kind of field it is: `text`, `lookup`."""
    return type(field).__name__.lower()


def demands_of(field: Field) -> dict[str, str]:
    """What a kind of field can be told in addition, where it was told."""
    own = [(part, getattr(field, part.name)) for part in fields(field) if part.name not in _SHARED]
    return {part.name: _told(value) for part, value in own if value != part.default and value not in (None, (), {})}


def _told(value: object) -> str:
    """A setting as a person would write it: `a, b`, `xl: Large`, `true`."""
    match value:
        case bool():
            return str(value).lower()
        case Mapping():
            pairs = cast("Mapping[object, object]", value).items()  # of whatever a field was told
            return ", ".join(f"{name}: {_told(each)}" for name, each in pairs)
        case list() | tuple() | set() | frozenset():
            return ", ".join(map(_told, cast("Iterable[object]", value)))  # the same
        case _:
            return str(value)
