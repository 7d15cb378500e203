"""Examples of the OpenAPI document. A test holds each against its schema."""

from typing import Any

from rowcall.model import Code

_ID, _EXPORT, _WEBHOOK = (f"019a8c2e-5d0b-7c3a-9c41-2b7f6a1e0d{number}" for number in (11, 12, 13))
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_AT, _BEGAN, _ENDED = (f"2026-11-16T09:00:0{second}Z" for second in (0, 1, 4))
_LOGS = "Whoever runs the service finds more in its logs: request 1c9f4b7e5d3a2f60."
_COUNTS = {
    "rows": 1000,
    "created": 980,
    "updated": 12,
    "unchanged": 5,
    "skipped": 0,
    "failed": 3,
    "reverted": 0,
    "cancelled": 0,
    "blank": 1,
    "header": 1,
    "other": 0,
}
_FILE = {"name": "users.csv", "sha256": _SHA256, "size": 64120}
_JOB = {
    "id": _ID,
    "number": "BU20261116000001",
    "state": "COMPLETED_WITH_ERRORS",
    "importer": "users",
    "dryRun": False,
    "context": {"registration": "R1"},
    "scope": "R1",
    "supersedes": [{"id": _EXPORT, "number": "BU20261115000007"}],
    "supersededBy": None,
    "file": _FILE,
    "url": None,
    "counts": _COUNTS,
    "progress": {"percent": 100.0, "rowsPerSecond": 333, "elapsedMs": 3000},
    "account": "ann",
    "createdAt": _AT,
    "startedAt": _BEGAN,
    "endedAt": _ENDED,
    "background": True,
    "wish": None,
    "allowed": ["edit", "reprocess"],
    "error": None,
}
_IMPORTER = {"name": "users", "description": "People who write and read.", "target": "users"}
_FIELD = {
    "name": "email",
    "type": "email",
    "column": "email",
    "required": True,
    "default": None,
    "aliases": ["mail", "e-mail address"],
    "help": "One address per user.",
    "demands": {"max_length": "200"},
}
_ISSUE = {"code": "REQUIRED", "message": "A value is required.", "field": "email", "value": None, "metadata": None}
_ISSUES = [{"code": "REQUIRED", "field": "email", "status": "failed", "count": 3, "firstRow": 17}]
_ITEM = {
    "row": 17,
    "line": 18,
    "status": "failed",
    "issues": [_ISSUE],
    "values": {"email": None, "name": "Bob"},
    "original": {"name": "Bbo"},
    "revision": 1,
    "targetKey": None,
    "attempt": 1,
    "at": _ENDED,
}
_PENDING = {
    "jobId": _ID,
    "jobNumber": "BU20261116000001",
    "importer": "users",
    "row": 17,
    "line": 18,
    "status": "failed",
    "issues": [_ISSUE],
    "revision": 1,
    "at": _ENDED,
}
_EDIT = {
    "revision": 1,
    "position": 1,
    "header": "name",
    "before": "Bbo",
    "after": "Bob",
    "account": "ann",
    "at": _ENDED,
}
_MOVE = {"id": 7, "before": "PROCESSING", "after": "COMPLETED_WITH_ERRORS", "at": _ENDED}
_COLUMN = {
    "position": 0,
    "header": "E-Mail",
    "field": "email",
    "status": "mapped",
    "reason": "alias",
    "dateOrder": None,
    "decimal": None,
}
_NOT_ON_RECEIPTS = ("url", "progress", "background", "wish", "allowed", "scope", "supersedes")
_RECEIPT = {
    **{name: value for name, value in _JOB.items() if name not in _NOT_ON_RECEIPTS},
    "target": "content.users",
    "mode": "upsert",
    "durationMs": 3000,
    "rowsPerSecond": 333,
    "columns": [_COLUMN],
    "constants": {},
    "balanced": True,
    "issues": _ISSUES,
    "edits": [{"account": "ann", "rows": 1, "cells": 1}],
}
_EXPORT_JOB = {
    "id": _EXPORT,
    "state": "COMPLETED",
    "resource": "users",
    "job": None,
    "format": "csv",
    "fileName": "users.csv",
    "account": "ann",
    "progress": {"rows": 1000, "total": 1000, "bytes": 64120},
    "createdAt": _AT,
    "startedAt": _BEGAN,
    "completedAt": _ENDED,
    "expiresAt": "2026-11-23T09:00:04Z",
    "download": f"/v1/exports/{_EXPORT}/download",
    "error": None,
}
_HOOK = {
    "id": _WEBHOOK,
    "url": "https://example.org/hooks/rowcall",
    "states": ["COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED"],
    "enabled": True,
    "disabledBecause": None,
    "failures": 0,
    "lastSuccessAt": _ENDED,
    "createdAt": _AT,
}
_TRY = {"at": _ENDED, "attempt": 1, "status": 204, "ms": 87, "error": None}
_DELIVERY = {
    "id": _EXPORT,
    "messageId": f"msg_{_EXPORT.replace('-', '')}",
    "jobId": _ID,
    "after": "COMPLETED",
    "attempt": 1,
    "status": 204,
    "ms": 87,
    "error": None,
    "nextAttemptAt": None,
    "deliveredAt": _ENDED,
    "createdAt": _ENDED,
    "log": [_TRY],
}
_CANDIDATE = {"id": "7", "label": "Germany", "score": 92}
_VALUE = {
    "id": 311,
    "field": "country_id",
    "scope": None,
    "value": "Germny",
    "group": "germny",
    "occurrences": 41,
    "status": "UNRESOLVED",
    "action": None,
    "target": _CANDIDATE,
    "basis": "similar",
    "reason": "92 % like Germany",
    "candidates": [_CANDIDATE],
    "fixed": False,
    "decidedBy": None,
    "decidedAt": None,
}
_VALUE_FIELD = {
    "field": "country_id",
    "type": "lookup",
    "table": "country",
    "within": None,
    "onMissing": "ask",
    "mayCreate": False,
    "waits": True,
    "values": 320,
    "unresolved": 9,
    "rows": 1000,
    "coveredRows": 992,
    "coveredPercent": 99.2,
}
_DECISION = {
    "id": _EXPORT,
    "importer": "shops",
    "field": "country_id",
    "scope": None,
    "value": "Germny",
    "action": "use",
    "target": {"id": "7", "label": "Germany"},
    "decidedBy": "ann",
    "decidedAt": _AT,
    "job": {"id": _ID, "number": "BU20261116000001"},
}
_ENTRY = {
    "id": 42,
    "at": _AT,
    "account": "ann",
    "action": "import.create",
    "subject": _ID,
    "details": {"number": "BU20261116000001", "importer": "users"},
    "requestId": "f3c1a7d2",
    "clientAddress": "203.0.113.9",
}
_CHECKS = {
    "database": {"ok": True, "required": True, "ms": 1.2, "detail": ""},
    "migrations": {"ok": True, "required": True, "ms": 1.2, "detail": ""},
    "workers": {"ok": True, "required": False, "ms": 1.2, "detail": "2 seen within a minute"},
    "files": {"ok": True, "required": True, "ms": 0.3, "detail": ""},
}

EXAMPLES: dict[str, Any] = {
    "ImportConfig": {"mode": "upsert", "mapping": {"E-Mail": "email"}, "constants": {"role": "reader"}, "dryRun": True},
    "UrlImport": {"url": "https://example.org/users.csv", "importer": "users", "config": {"mode": "upsert"}},
    "JobAnswer": _JOB,
    "JobPage": {"items": [_JOB], "next": None},
    "ItemPage": {"items": [_ITEM], "next": None},
    "PendingPage": {"items": [_PENDING], "next": None},
    "AttemptAnswer": {name: _ITEM[name] for name in ("attempt", "status", "issues", "targetKey", "at")},
    "EventsAnswer": {"items": [_MOVE], "job": _JOB},
    "Item": _ITEM,
    "EditRequest": {"cells": {"email": "bob@example.org", "column 2": "Bob"}},
    "EditAnswer": {"item": _ITEM, "status": "created", "issues": [], "alone": True, "job": _JOB},
    "CellEditAnswer": _EDIT,
    "ReprocessRequest": {"statuses": ["failed"], "code": "NOT_FOUND"},
    "ReprocessAnswer": {"job": {**_JOB, "state": "PROCESSING", "endedAt": None, "allowed": ["pause"]}, "rows": 3},
    "ValuePage": {"items": [_VALUE], "next": None, "fields": [_VALUE_FIELD]},
    "ValueUpdates": {
        "updates": [
            {"ids": [311], "confirm": True, "alike": True},
            {"field": "country_id", "value": "Gondor", "targetId": "7"},
            {"field": "country_id", "status": "UNRESOLVED", "text": "n/a", "ignore": True},
        ]
    },
    "ValuesUpdated": {"updated": 3, "fields": [{**_VALUE_FIELD, "unresolved": 6}]},
    "CandidatePage": {"items": [_CANDIDATE], "more": False},
    "DecisionPage": {"items": [_DECISION], "next": None},
    "RevokedAnswer": {
        "decision": _DECISION,
        "rows": 41,
        "jobs": [
            {
                "id": _ID,
                "number": "BU20261116000001",
                "state": "COMPLETED",
                "rows": 41,
                "reprocessed": False,
                "wayOn": "Its rows were written by it. Undo the job, or import its file again.",
            }
        ],
    },
    "ResultsSummary": {"counts": _COUNTS, "issues": _ISSUES},
    "ReceiptAnswer": _RECEIPT,
    "ImporterSummary": _IMPORTER,
    "ImporterAnswer": {
        **_IMPORTER,
        "keys": [["id"], ["email"]],
        "onMatch": "update",
        "preview": False,
        "atomic": False,
        "once": False,
        "timezone": "UTC",
        "context": [],
        "scope": None,
        "fields": [_FIELD],
        "rules": [],
    },
    "UploadAnswer": {
        "id": _ID,
        "importer": "users",
        "fileName": "users.csv",
        "length": 4194304,
        "offset": 1048576,
        "importAddress": None,
        "error": None,
        "expiresAt": "2026-11-23T09:00:00Z",
    },
    "ExportOrder": {"resource": "users", "format": "csv", "fields": ["id", "email"], "filters": ["role=author"]},
    "ExportAnswer": _EXPORT_JOB,
    "ExportPage": {"items": [_EXPORT_JOB], "next": None},
    "WebhookRequest": {"url": _HOOK["url"], "states": _HOOK["states"]},
    "WebhookChange": {"enabled": True},
    "WebhookAnswer": _HOOK,
    "NewWebhook": {**_HOOK, "lastSuccessAt": None, "secret": "whsec_bm90IGEgcmVhbCBzZWNyZXQsIGJ1dCBhcyBsb25n"},
    "WebhookList": {"items": [_HOOK]},
    "DeliveryAnswer": _DELIVERY,
    "DeliveryPage": {"items": [_DELIVERY], "next": None},
    "AuditPage": {"items": [_ENTRY], "next": None},
    "Alive": {"status": "alive"},
    "Health": {"status": "ready", "checks": _CHECKS},
}
"""By the name of the schema."""

REFUSALS: dict[Code, dict[str, Any]] = {
    Code.BAD_REQUEST: {"detail": "There is no status 'broken'.", "hint": "The statuses are pending, failed."},
    Code.BAD_CURSOR: {
        "detail": "`after` is no place in this list.",
        "hint": "Take the `next` of the page before, with the same filters and order.",
    },
    Code.UNAUTHENTICATED: {"detail": "A key is needed.", "hint": "Send it as `Authorization: Bearer KEY`."},
    Code.FORBIDDEN: {"detail": "The key lacks the scope imports:write."},
    Code.UNKNOWN_IMPORTER: {"detail": "There is no importer 'user'.", "hint": "Did you mean users?"},
    Code.UNKNOWN_RESOURCE: {"detail": "There is no resource 'user'.", "hint": "Known are: articles, users."},
    Code.JOB_NOT_FOUND: {"detail": f"There is no job '{_ID}'."},
    Code.EXPORT_NOT_FOUND: {"detail": f"There is no export '{_EXPORT}'."},
    Code.UPLOAD_NOT_FOUND: {"detail": f"There is no upload {_ID}.", "hint": "Begin a new one."},
    Code.WEBHOOK_NOT_FOUND: {"detail": "There is no such webhook."},
    Code.NO_SUCH_PLACE: {"detail": "Not Found"},
    Code.TOO_SLOW: {"detail": "No byte came for 30 seconds; those that had come are kept."},
    Code.WRONG_STATE: {
        "detail": "Job BU20261116000001 is COMPLETED; it can't be paused.",
        "state": "COMPLETED",
        "allowed": ["reprocess"],
    },
    Code.ROW_NOT_FOUND: {"detail": "Job BU20261116000001 has no row 1,001.", "hint": "It has 1,000 rows, from 1."},
    Code.ROW_DONE: {
        "detail": "Row 17 is created already: what it wrote would not change with it.",
        "hint": "Only rows that failed or were skipped can be corrected now.",
    },
    Code.UNKNOWN_CELL: {
        "detail": "The file has no column 'emial', and no field of that name.",
        "hint": "Did you mean 'email'?",
    },
    Code.EDITED_MEANWHILE: {
        "detail": "Row 17 was corrected since you saw it: it is at revision 1, not 0.",
        "hint": "Look at it again, then send the revision that you saw.",
    },
    Code.SCOPE_BUSY: {
        "detail": "Job BU20261116000001 is writing to the same: it is PROCESSING.",
        "hint": "Try again when it has ended, or cancel it.",
        "state": "PROCESSING",
        "allowed": [],
        "job": {"id": _ID, "number": "BU20261116000001"},
    },
    Code.SUPERSEDED: {
        "detail": "Job BU20261116000001 was superseded by job BU20261116000002, which ann brought.",
        "hint": "Go on with job BU20261116000002, or bring the file again.",
        "state": "SUPERSEDED",
        "allowed": [],
        "job": {"id": _EXPORT, "number": "BU20261116000002"},
    },
    Code.BAD_CONTEXT: {
        "detail": "The context for parcels doesn't fit: registration: A value is required.",
        "hint": "It has registration.",
    },
    Code.JOB_BUSY: {"detail": "Job BU20261116000001 is being worked on by another process.", "hint": "Wait for it."},
    Code.WRONG_OFFSET: {
        "detail": "Upload-Offset is 0, and 1,048,576 bytes have come.",
        "hint": "Ask with HEAD, and go on from there.",
    },
    Code.EXPORT_EXPIRED: {"detail": f"The file of export {_EXPORT} is gone.", "hint": "Ask for the export again."},
    Code.UPLOAD_GONE: {"detail": f"Nobody went on with upload {_ID} in time.", "hint": "Begin a new one."},
    Code.UNSUPPORTED_VERSION: {"detail": "Tus-Resumable is '0.2'; 1.0.0 is spoken here."},
    Code.FILE_TOO_LARGE: {"detail": "The file is larger than 10 GB.", "hint": "Divide it, or compress it."},
    Code.BODY_TOO_LARGE: {"detail": "The body is larger than 1,048,576 bytes (ROWCALL_MAX_BODY)."},
    Code.UNSUPPORTED_BODY: {
        "detail": "The body's content type is 'text/csv'; application/offset+octet-stream is expected."
    },
    Code.RANGE_NOT_SATISFIABLE: {"detail": "The range can't be given: the file has 64,120 bytes."},
    Code.KEY_REUSED: {"detail": "This Idempotency-Key was used before, for other content."},
    Code.BAD_MAPPING: {"detail": "Importer users has no field 'rolle' to set.", "hint": "It has email, name, role."},
    Code.VALUES_UNRESOLVED: {
        "detail": "Job BU20261116000001 has values of which nobody has said what they stand for: country_id: 'Gondor'.",
        "hint": "Say what each stands for, or that it is to be left empty, its rows skipped, or it created.",
        "missing": [{"field": "country_id", "unresolved": 1, "rows": 2, "values": ["Gondor"]}],
    },
    Code.DECISION_NOT_FOUND: {"detail": f"There is no decision '{_EXPORT}'."},
    Code.BAD_OPTION: {"detail": "users has no field 'nmae'.", "hint": "Did you mean name?"},
    Code.URL_REFUSED: {"detail": "http://10.0.0.1/users.csv is at an address that is not public."},
    Code.URL_UNREACHABLE: {"detail": "The host files.example can't be looked up."},
    Code.UPLOAD_BUSY: {
        "detail": f"Another request writes to upload {_ID}.",
        "hint": "Ask for its offset when that one has ended.",
    },
    Code.HTTP_TOO_OLD: {"detail": "With HTTP/1.0 a stream that was cut off looks like a complete one."},
    Code.TOO_MANY_REQUESTS: {"detail": "This key is used too often (ROWCALL_RATE_LIMIT).", "hint": "Try again in 1 s."},
    Code.CHECKSUM_MISMATCH: {"detail": "The piece is not what its checksum says; it was dropped."},
    Code.INTERNAL_ERROR: {"detail": "Something went wrong here.", "hint": _LOGS},
    Code.SYSTEM_ERROR: {"detail": "The machine that this runs on refused something.", "hint": _LOGS},
    Code.DATABASE_UNREACHABLE: {"detail": "The database can't be reached.", "hint": _LOGS},
    Code.DATABASE_GONE: {"detail": "The connection to the database was lost."},
    Code.DATABASE_BUSY: {"detail": "The database could not do it now: deadlock detected."},
    Code.DATABASE_REFUSED: {"detail": "The database refused: division by zero (22012)."},
    Code.DATABASE_FULL: {"detail": "The database's disk is full."},
    Code.FILE_STORE_AWAY: {"detail": "The file store did not do it.", "hint": "Send it once more."},
    Code.FOREIGN_FILE_STORE: {"detail": "The file store is not the one that the database belongs to."},
}
"""Problems by their codes."""
