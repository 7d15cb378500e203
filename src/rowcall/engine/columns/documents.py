"""What programs are told of columns, on the command line and over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowcall.engine.columns.answering import Missing, missing_fields
from rowcall.engine.columns.usable import usable
from rowcall.engine.columns.warnings import ColumnWarnings
from rowcall.engine.documents import demands_of, type_of
from rowcall.engine.moves import allowed, possible
from rowcall.importer import Choice, Importer
from rowcall.importer.fields import ColumnLimits
from rowcall.model import Wish
from rowcall.store.decisions import ColumnDecision
from rowcall.store.jobs import Job, JobCounts, TemplateKey
from rowcall.store.mappings import ColumnMapping
from rowcall.store.templates import Template


def columns_document(
    job: Job, counts: JobCounts, importer: type[Importer], columns: Sequence[ColumnMapping], needed: frozenset[str]
) -> dict[str, Any]:
    """All columns of a job, and what is still open."""
    missing = missing_fields(importer, columns, job.config, needed, proposed=True)
    return {
        "state": job.state,
        "waiting": job.wish is Wish.HOLD and "map" in allowed(job),
        "allowed": possible(job, counts, importer),
        "rows": job.row_count,
        "columns": [column_document(column, job.row_count) for column in columns],
        "constants": job.config.constants,
        "missing": [missing_document(each) for each in missing],
        "template": template_key_document(job.config.template),
    }


def column_document(column: ColumnMapping, rows: int | None) -> dict[str, Any]:
    """A column and what is thought of it."""
    return {
        "position": column.position,
        "header": column.header,
        "samples": column.samples or None,
        "filled": column.filled,
        "fillShare": round(column.filled / rows, 4) if rows and column.filled is not None else None,
        "targetField": column.target_field,
        "status": column.status,
        "confidence": round(column.confidence, 2),
        "reason": column.reason,
        "others": [{"field": name, "confidence": round(sure, 2)} for name, sure in column.others],
        "place": column.place,
        "separator": column.separator if column.target_field else None,
        "dateOrder": column.date_order,
        "decimalMark": column.decimal_mark,
        "decidedBy": column.decided_by,
    }


def missing_document(missing: Missing) -> dict[str, Any]:
    """A required field that gets no value."""
    return {"field": missing.field, "nearMiss": missing.near}


def template_key_document(key: TemplateKey | None) -> dict[str, str] | None:
    """The name of a template."""
    return {"sourceSystem": key.source_system, "variant": key.variant} if key else None


def warnings_document(found: ColumnWarnings) -> dict[str, Any]:
    """What should be known of a job's columns."""
    return {
        "rows": found.rows,
        "lookedAt": found.looked_at,
        "parsed": found.parsed,
        "warnings": [
            {
                "kind": warning.kind,
                "message": warning.message,
                "positions": list(warning.positions),
                "field": warning.field,
                "code": warning.code,
                "count": warning.count,
                "examples": list(warning.examples),
            }
            for warning in found.warnings
        ],
    }


def target_fields_document(
    job: Job, importer: type[Importer], columns: Sequence[ColumnMapping], limits: Mapping[str, ColumnLimits]
) -> list[dict[str, Any]]:
    """The fields that a job's columns can go to, the required ones first."""
    taken = {column.target_field for column in columns}
    keys = {name for key in importer.keys for name in key}
    fields = [
        {
            "name": name,
            "label": name.replace("_", " ").capitalize(),
            "type": type_of(field),
            "help": field.help,
            "required": field.default is None and (field.required or limits.get(name, ColumnLimits()).required),
            "key": name in keys,
            "default": field.default_text(),
            "choices": list(field.values)
            if isinstance(field, Choice)
            else list(limits[name].labels or ())
            if name in limits
            else [],
            "demands": demands_of(field),
            "mapped": name in taken,
            "constant": job.config.constants.get(name),
        }
        for name, field in usable(importer, job.config).items()
    ]
    return sorted(fields, key=lambda field: not field["required"])


def template_document(template: Template) -> dict[str, Any]:
    """A template for a program."""
    return {
        "id": template.id,
        "sourceSystem": template.source_system,
        "importer": template.importer,
        "variant": template.variant,
        "columns": [
            {
                "position": column.position,
                "header": column.header,
                "targetField": column.target_field,
                "place": column.place,
                "separator": column.separator,
                "dateOrder": column.date_order,
                "decimalMark": column.decimal_mark,
            }
            for column in template.columns
        ],
        "constants": template.constants,
        "savedBy": template.saved_by,
        "savedAt": template.saved_at,
    }


def decision_document(decision: ColumnDecision) -> dict[str, Any]:
    """A remembered decision for a program."""
    return {
        "id": decision.id,
        "importer": decision.importer,
        "header": decision.written,
        "targetField": decision.target_field,
        "decidedBy": decision.decided_by,
        "decidedAt": decision.decided_at,
    }
