"""What programs are told of values, on the command line and over HTTP."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from psycopg import Connection

from rowcall.engine.values.candidates import Candidate, Sought, candidates, require_askable
from rowcall.engine.values.revoke import way_on
from rowcall.importer import Choice, Importer, Lookup
from rowcall.store.cursors import decoded, encoded
from rowcall.store.jobs import Job
from rowcall.store.value_answers import ValueField, ValueMapping, WantedValues, page_of_values, value_fields
from rowcall.store.value_decisions import Revoked, ValueDecision


def value_document(value: ValueMapping) -> dict[str, Any]:
    """A value and what it stands for, for a program."""
    label, score = value.target_label or value.target_key, round(100 * value.confidence)
    target = {"id": value.target_key, "label": label, "score": score}
    return {
        "id": value.id,
        "field": value.field,
        "scope": {"id": value.scope, "label": value.scope_label or value.scope} if value.scope else None,
        "value": value.value,
        "group": value.folded,
        "occurrences": value.occurrences,
        "status": value.status,
        "action": value.action,
        "target": target if value.target_key is not None else None,
        "basis": value.basis,
        "reason": value.reason,
        "candidates": [candidate_document(each) for each in value.candidates],
        "fixed": value.fixed,
        "decidedBy": value.decided_by,
        "decidedAt": value.decided_at,
    }


def values_document(
    connection: Connection[Any], job: Job, importer: type[Importer], wanted: WantedValues, after: str | None
) -> dict[str, Any]:
    """A page of values behind a cursor, and how far the fields are settled, for a program."""
    if wanted.field is not None:
        require_askable(importer, wanted.field)
    about = f"values {job.id} {wanted.field} {wanted.status} {wanted.text}"
    place = decoded(about, after, tuple[int, int]) if after is not None else None
    found = page_of_values(connection, job.id, replace(wanted, after=place, most=wanted.most + 1))
    last = found[wanted.most - 1] if len(found) > wanted.most else None
    return {
        "items": [value_document(each) for each in found[: wanted.most]],
        "next": encoded(about, (last.occurrences, last.id)) if last else None,
        "fields": fields_document(importer, value_fields(connection, job.id)),
    }


def candidate_document(candidate: dict[str, Any]) -> dict[str, Any]:
    """What a value could stand for."""
    return {"id": candidate["key"], "label": candidate["label"], "score": candidate["score"]}


def _found_document(found: Candidate) -> dict[str, Any]:
    scope = {"id": found.scope[0], "label": found.scope[1]} if found.scope else None
    return {"id": found.key, "label": found.label, "score": found.score, "scope": scope}


def candidates_document(
    connection: Connection[Any], importer: type[Importer], field: str, sought: Sought, after: str | None
) -> dict[str, Any]:
    """A page of what a search finds, behind a cursor, for a program."""
    about = f"candidates {importer.name} {field} {sought.scope} {sought.text}"
    place = decoded(about, after, tuple[int, str, str]) if after is not None else None
    found = candidates(connection, importer, field, replace(sought, after=place))
    return {
        "items": [_found_document(each) for each in found.items],
        "more": found.last is not None,
        "next": encoded(about, found.last) if found.last else None,
    }


def fields_document(importer: type[Importer], fields: Sequence[ValueField]) -> list[dict[str, Any]]:
    """How far the values of fields are settled, for a program."""
    return [_field_document(importer, each) for each in fields]


def _field_document(importer: type[Importer], settled: ValueField) -> dict[str, Any]:
    field = importer.fields.get(settled.field)
    covered = 10000 * settled.covered // settled.rows / 100 if settled.rows else 100.0
    return {
        "field": settled.field,
        "type": type(field).__name__.lower() if field else "",
        "table": field.table if isinstance(field, Lookup) else None,
        "within": field.within if isinstance(field, Lookup) else None,
        "onMissing": field.on_missing if isinstance(field, (Lookup, Choice)) else "",
        "mayCreate": isinstance(field, Lookup) and field.creates is not None,
        "waits": settled.asks,
        "values": settled.values,
        "unresolved": settled.unresolved,
        "rows": settled.rows,
        "coveredRows": settled.covered,
        "coveredPercent": covered,
    }


def decision_document(decision: ValueDecision) -> dict[str, Any]:
    """A remembered decision for a program."""
    target = {"id": decision.target_key, "label": decision.target_label or decision.target_key}
    return {
        "id": decision.id,
        "importer": decision.importer,
        "field": decision.field,
        "scope": {"id": decision.scope, "label": decision.scope_label or decision.scope} if decision.scope else None,
        "value": decision.value,
        "action": decision.action,
        "target": target if decision.target_key is not None else None,
        "decidedBy": decision.decided_by,
        "decidedAt": decision.decided_at,
        "job": {"id": decision.from_job, "number": decision.job_number},
    }


def revoked_document(revoked: Revoked, reprocessed: Sequence[str]) -> dict[str, Any]:
    """What came of a decision that was revoked, for a program."""
    return {
        "decision": decision_document(revoked.decision),
        "rows": sum(used.rows for used in revoked.used),
        "jobs": [
            {
                "id": used.job_id,
                "number": used.number,
                "state": used.state,
                "rows": used.rows,
                "reprocessed": used.number in reprocessed,
                "wayOn": way_on(revoked, used, again=used.number in reprocessed),
            }
            for used in revoked.used
        ],
    }
