"""Rowcall's words. Imports nothing of ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Stable names of what can be wrong. `docs/reference.md` explains each; a test keeps the two equal."""

    # a record that can't become a row
    UNCLOSED_QUOTE = "UNCLOSED_QUOTE"
    BROKEN_QUOTE = "BROKEN_QUOTE"
    TOO_FEW_FIELDS = "TOO_FEW_FIELDS"
    TOO_MANY_FIELDS = "TOO_MANY_FIELDS"
    INVALID_ENCODING = "INVALID_ENCODING"
    NUL_CHARACTER = "NUL_CHARACTER"
    LINE_TOO_LONG = "LINE_TOO_LONG"
    INVALID_JSON = "INVALID_JSON"
    NOT_AN_OBJECT = "NOT_AN_OBJECT"
    DUPLICATE_KEY = "DUPLICATE_KEY"
    JSON_TOO_DEEP = "JSON_TOO_DEEP"
    TRUNCATED = "TRUNCATED"

    # one cell of a row that otherwise stands
    CELL_ERROR = "CELL_ERROR"
    NOT_CALCULATED = "NOT_CALCULATED"
    CELL_BROKEN = "CELL_BROKEN"
    CELL_TOO_LONG = "CELL_TOO_LONG"
    DATE_OUT_OF_RANGE = "DATE_OUT_OF_RANGE"

    # worth knowing about a file that is read all the same
    NAME_MISMATCH = "NAME_MISMATCH"
    ENCODING_GUESSED = "ENCODING_GUESSED"
    DUPLICATE_HEADER = "DUPLICATE_HEADER"
    SIMILAR_HEADERS = "SIMILAR_HEADERS"
    BLANK_HEADER = "BLANK_HEADER"
    TRAILING_BYTES = "TRAILING_BYTES"
    TRAILING_DELIMITER = "TRAILING_DELIMITER"
    FORMULA_GUARD = "FORMULA_GUARD"
    HIDDEN_SHEETS = "HIDDEN_SHEETS"
    HIDDEN_ROWS = "HIDDEN_ROWS"
    MERGED_CELLS = "MERGED_CELLS"
    OTHER_DATA = "OTHER_DATA"

    # a value that doesn't fit its field
    REQUIRED = "REQUIRED"
    INVALID_INTEGER = "INVALID_INTEGER"
    INVALID_DECIMAL = "INVALID_DECIMAL"
    INVALID_BOOLEAN = "INVALID_BOOLEAN"
    INVALID_DATE = "INVALID_DATE"
    DATE_NOT_EXISTING = "DATE_NOT_EXISTING"
    INVALID_DATETIME = "INVALID_DATETIME"
    INVALID_UUID = "INVALID_UUID"
    INVALID_EMAIL = "INVALID_EMAIL"
    INVALID_LIST = "INVALID_LIST"
    NOT_A_CHOICE = "NOT_A_CHOICE"
    TOO_LONG = "TOO_LONG"
    TOO_SHORT = "TOO_SHORT"
    TOO_SMALL = "TOO_SMALL"
    TOO_LARGE = "TOO_LARGE"
    TOO_PRECISE = "TOO_PRECISE"
    PATTERN_MISMATCH = "PATTERN_MISMATCH"
    NOT_FOUND = "NOT_FOUND"
    NOT_UNIQUE = "NOT_UNIQUE"
    VALUE_LEFT_OUT = "VALUE_LEFT_OUT"

    # a row that meets another, or the target
    DUPLICATE_IN_FILE = "DUPLICATE_IN_FILE"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    ALREADY_IMPORTED = "ALREADY_IMPORTED"
    UNIQUE_VIOLATION = "UNIQUE_VIOLATION"
    FOREIGN_KEY_VIOLATION = "FOREIGN_KEY_VIOLATION"
    CHECK_VIOLATION = "CHECK_VIOLATION"
    NOT_NULL_VIOLATION = "NOT_NULL_VIOLATION"
    VALUE_REFUSED = "VALUE_REFUSED"
    ROW_REFUSED = "ROW_REFUSED"
    NOT_APPLIED = "NOT_APPLIED"
    CHANGED_SINCE = "CHANGED_SINCE"
    HAS_DEPENDENTS = "HAS_DEPENDENTS"
    LATER_VERSION = "LATER_VERSION"
    DRIFTED = "DRIFTED"

    # an import that can't go on, or can't begin
    UNKNOWN_IMPORTER = "UNKNOWN_IMPORTER"
    BAD_DECLARATION = "BAD_DECLARATION"
    BAD_TARGET = "BAD_TARGET"
    IMPORTER_FAILED = "IMPORTER_FAILED"
    MISSING_COLUMNS = "MISSING_COLUMNS"
    BAD_MAPPING = "BAD_MAPPING"
    TEMPLATE_NOT_FOUND = "TEMPLATE_NOT_FOUND"
    DECISION_NOT_FOUND = "DECISION_NOT_FOUND"
    VALUES_UNRESOLVED = "VALUES_UNRESOLVED"
    BAD_CONTEXT = "BAD_CONTEXT"
    AMBIGUOUS_DATES = "AMBIGUOUS_DATES"
    AMBIGUOUS_NUMBERS = "AMBIGUOUS_NUMBERS"
    FILE_CORRUPT = "FILE_CORRUPT"
    JOB_NOT_FOUND = "JOB_NOT_FOUND"
    JOB_BUSY = "JOB_BUSY"
    WRONG_STATE = "WRONG_STATE"
    SCOPE_BUSY = "SCOPE_BUSY"
    SUPERSEDED = "SUPERSEDED"
    FINGERPRINT_MISMATCH = "FINGERPRINT_MISMATCH"
    OUT_OF_BALANCE = "OUT_OF_BALANCE"
    UNDO_NOT_POSSIBLE = "UNDO_NOT_POSSIBLE"
    UNDO_INCOMPLETE = "UNDO_INCOMPLETE"
    UNDO_NOT_FOUND = "UNDO_NOT_FOUND"
    INTERRUPTED = "INTERRUPTED"
    DATABASE_UNREACHABLE = "DATABASE_UNREACHABLE"
    DATABASE_TOO_OLD = "DATABASE_TOO_OLD"
    DATABASE_GONE = "DATABASE_GONE"
    DATABASE_BUSY = "DATABASE_BUSY"
    DATABASE_FULL = "DATABASE_FULL"
    DATABASE_REFUSED = "DATABASE_REFUSED"
    EMBEDDED_FAILED = "EMBEDDED_FAILED"
    MIGRATION_FAILED = "MIGRATION_FAILED"
    MIGRATIONS_PENDING = "MIGRATIONS_PENDING"
    UNKNOWN_RESOURCE = "UNKNOWN_RESOURCE"

    # a request that is refused
    BAD_REQUEST = "BAD_REQUEST"
    BAD_CURSOR = "BAD_CURSOR"
    TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
    KEY_REUSED = "KEY_REUSED"
    ROW_NOT_FOUND = "ROW_NOT_FOUND"
    ROW_DONE = "ROW_DONE"
    UNKNOWN_CELL = "UNKNOWN_CELL"
    EDITED_MEANWHILE = "EDITED_MEANWHILE"
    NOT_AS_COUNTED = "NOT_AS_COUNTED"
    NO_ROW_KEY = "NO_ROW_KEY"
    FOREIGN_ROW_KEY = "FOREIGN_ROW_KEY"
    BAD_ROW_KEY = "BAD_ROW_KEY"
    DUPLICATE_ROW_KEY = "DUPLICATE_ROW_KEY"
    STALE_ROW_KEY = "STALE_ROW_KEY"
    PLAN_STALE = "PLAN_STALE"
    PLAN_REQUIRED = "PLAN_REQUIRED"
    UPLOAD_NOT_FOUND = "UPLOAD_NOT_FOUND"
    UPLOAD_GONE = "UPLOAD_GONE"
    UPLOAD_BUSY = "UPLOAD_BUSY"
    WRONG_OFFSET = "WRONG_OFFSET"
    CHECKSUM_MISMATCH = "CHECKSUM_MISMATCH"
    TOO_SLOW = "TOO_SLOW"
    UNSUPPORTED_BODY = "UNSUPPORTED_BODY"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    NO_SUCH_PLACE = "NO_SUCH_PLACE"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    BODY_TOO_LARGE = "BODY_TOO_LARGE"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    ACCOUNT_NOT_FOUND = "ACCOUNT_NOT_FOUND"
    ACCOUNT_EXISTS = "ACCOUNT_EXISTS"
    API_KEY_NOT_FOUND = "API_KEY_NOT_FOUND"
    API_ROLE_MISSING = "API_ROLE_MISSING"
    GRANTS_MISSING = "GRANTS_MISSING"
    WEBHOOK_NOT_FOUND = "WEBHOOK_NOT_FOUND"
    PORT_TAKEN = "PORT_TAKEN"
    EXPORT_NOT_FOUND = "EXPORT_NOT_FOUND"
    EXPORT_EXPIRED = "EXPORT_EXPIRED"
    RANGE_NOT_SATISFIABLE = "RANGE_NOT_SATISFIABLE"
    HTTP_TOO_OLD = "HTTP_TOO_OLD"

    # a server that is asked by a client
    SERVER_UNREACHABLE = "SERVER_UNREACHABLE"
    SERVER_BUSY = "SERVER_BUSY"
    SERVER_TOO_OLD = "SERVER_TOO_OLD"
    NOT_ROWCALL = "NOT_ROWCALL"
    NOT_DONE_YET = "NOT_DONE_YET"
    CUT_OFF = "CUT_OFF"

    # a file that is to be fetched
    URL_REFUSED = "URL_REFUSED"
    URL_UNREACHABLE = "URL_UNREACHABLE"
    URL_FAILED = "URL_FAILED"
    CONTENT_MISMATCH = "CONTENT_MISMATCH"

    # a file that is refused
    FILE_TOO_LARGE = "FILE_TOO_LARGE"
    FILE_STORE_AWAY = "FILE_STORE_AWAY"
    SERVICE_STOPPING = "SERVICE_STOPPING"
    FOREIGN_FILE_STORE = "FOREIGN_FILE_STORE"
    FILE_NOT_FOUND = "FILE_NOT_FOUND"
    EMPTY_FILE = "EMPTY_FILE"
    UNKNOWN_FORMAT = "UNKNOWN_FORMAT"
    UNKNOWN_ENCODING = "UNKNOWN_ENCODING"
    BAD_OPTION = "BAD_OPTION"
    TOO_MANY_COLUMNS = "TOO_MANY_COLUMNS"
    HEADER_TOO_LONG = "HEADER_TOO_LONG"
    ARCHIVE_CORRUPT = "ARCHIVE_CORRUPT"
    ARCHIVE_TOO_LARGE = "ARCHIVE_TOO_LARGE"
    ARCHIVE_NOT_ONE_FILE = "ARCHIVE_NOT_ONE_FILE"
    PASSWORD_PROTECTED = "PASSWORD_PROTECTED"
    WORKBOOK_CORRUPT = "WORKBOOK_CORRUPT"
    WORKBOOK_TOO_LARGE = "WORKBOOK_TOO_LARGE"
    SHEET_NOT_FOUND = "SHEET_NOT_FOUND"
    NO_RECORDS = "NO_RECORDS"
    PARQUET_CORRUPT = "PARQUET_CORRUPT"
    PARQUET_TOO_LARGE = "PARQUET_TOO_LARGE"
    READER_FAILED = "READER_FAILED"
    FORMAT_LIMIT = "FORMAT_LIMIT"
    WRITE_FAILED = "WRITE_FAILED"
    BAD_SETTING = "BAD_SETTING"
    SYSTEM_ERROR = "SYSTEM_ERROR"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class Status(StrEnum):
    """What happened to a row."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"


ROW_STATUSES = (*(status.value for status in Status), "reverted", "pending", "cancelled")
"""The same, and what is said of a row that was taken back, or that nothing has happened to."""


@dataclass(frozen=True, slots=True)
class Issue:
    """What is wrong with a row. The code is one of `Code`, or a rule's own."""

    code: str
    message: str
    field: str | None = None
    value: str | None = None
    metadata: Mapping[str, object] | None = None


class Category(StrEnum):
    """What an issue's metadata tells of, under `category`. Importers and packs may have others."""

    FK_MISMATCH = "FK_MISMATCH"
    """A value that names no row of another table, or several: `fkType` is the table, `fkValue` the value."""


class State(StrEnum):
    """Where a job stands. `MOVES` has the ways from one to another."""

    UPLOADED = "UPLOADED"
    COLUMN_MAPPING = "COLUMN_MAPPING"
    CELL_MAPPING = "CELL_MAPPING"
    FINGERPRINT_CHECK = "FINGERPRINT_CHECK"
    FINGERPRINT_WARN = "FINGERPRINT_WARN"
    FINGERPRINT_ABORT = "FINGERPRINT_ABORT"
    VALIDATING = "VALIDATING"
    VALIDATED = "VALIDATED"
    INVALID = "INVALID"
    PROCESSING = "PROCESSING"
    PAUSED = "PAUSED"
    CANCELLED = "CANCELLED"
    SUPERSEDED = "SUPERSEDED"
    COMPLETED = "COMPLETED"
    COMPLETED_WITH_ERRORS = "COMPLETED_WITH_ERRORS"
    REVERTING = "REVERTING"
    REVERTED = "REVERTED"
    FAILED = "FAILED"


_STOPS = frozenset({State.PAUSED, State.CANCELLED, State.FAILED})
_STARTS = frozenset({State.VALIDATING, State.PROCESSING})
_BACK = frozenset({State.COLUMN_MAPPING, State.CELL_MAPPING})
"""Where a person can say otherwise, as long as nothing is written."""
_UNWRITTEN: dict[State, frozenset[State]] = {
    State.UPLOADED: frozenset({State.COLUMN_MAPPING}) | _STOPS,
    State.COLUMN_MAPPING: frozenset({State.CELL_MAPPING, State.FINGERPRINT_CHECK}) | _STARTS | _STOPS,
    State.CELL_MAPPING: frozenset({State.COLUMN_MAPPING, State.FINGERPRINT_CHECK}) | _STARTS | _STOPS,
    State.FINGERPRINT_CHECK: frozenset({State.FINGERPRINT_WARN, State.FINGERPRINT_ABORT}) | _STARTS | _STOPS,
    State.FINGERPRINT_WARN: _BACK | {State.FINGERPRINT_CHECK, State.CANCELLED},
    State.FINGERPRINT_ABORT: frozenset({State.FAILED}),
    State.VALIDATING: frozenset({State.VALIDATED, State.INVALID, State.CELL_MAPPING, State.PROCESSING}) | _STOPS,
    State.VALIDATED: _BACK | _STARTS | {State.CANCELLED},
    State.PAUSED: _BACK | _STARTS | {State.UPLOADED, State.FINGERPRINT_CHECK, State.REVERTING, State.CANCELLED},
}
MOVES: dict[State, frozenset[State]] = {
    **{state: after | {State.SUPERSEDED} for state, after in _UNWRITTEN.items()},
    State.PROCESSING: frozenset(
        {State.COMPLETED, State.COMPLETED_WITH_ERRORS, State.VALIDATING, State.CELL_MAPPING} | _STOPS
    ),
    State.COMPLETED: frozenset({State.PROCESSING, State.REVERTING}),
    State.COMPLETED_WITH_ERRORS: frozenset({State.PROCESSING, State.REVERTING}),
    State.CANCELLED: frozenset({State.REVERTING}),
    State.REVERTING: frozenset(
        {State.REVERTED, State.PAUSED, State.COMPLETED, State.COMPLETED_WITH_ERRORS, State.CANCELLED}
    ),
    State.REVERTED: frozenset(),
    State.INVALID: frozenset(),
    State.SUPERSEDED: frozenset(),
    State.FAILED: frozenset(),
}
"""The moves that a job may make."""
WORKING = frozenset(
    {
        *(State.UPLOADED, State.COLUMN_MAPPING, State.CELL_MAPPING, State.FINGERPRINT_CHECK),
        *(State.VALIDATING, State.PROCESSING, State.REVERTING),
    }
)
"""The states in which there is something to do."""
ENDED = frozenset(
    {
        *(State.INVALID, State.CANCELLED, State.SUPERSEDED, State.COMPLETED, State.COMPLETED_WITH_ERRORS),
        *(State.REVERTED, State.FAILED),
    }
)
"""The states in which there is nothing to do, unless rows are to be tried again or taken back."""


class Wish(StrEnum):
    """What is asked of a job while somebody works on it, or before anybody does."""

    HOLD = "hold"
    PAUSE = "pause"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is: `done` of `total` rows or bytes of uploading, fetching, reading, checking or writing."""

    phase: str
    rows: int
    done: int
    total: int
    failed: int = 0


class ExportState(StrEnum):
    """Where an export in the background stands. `EXPORT_MOVES` has the ways from one to another."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"


EXPORT_MOVES: dict[ExportState, frozenset[ExportState]] = {
    ExportState.QUEUED: frozenset({ExportState.RUNNING, ExportState.CANCELLED}),
    ExportState.RUNNING: frozenset(
        {ExportState.QUEUED, ExportState.COMPLETED, ExportState.CANCELLED, ExportState.FAILED}
    ),
    ExportState.COMPLETED: frozenset({ExportState.EXPIRED}),
    ExportState.CANCELLED: frozenset(),
    ExportState.FAILED: frozenset(),
    ExportState.EXPIRED: frozenset(),
}
"""The moves that an export may make; back to QUEUED when its worker stops."""


class Mode(StrEnum):
    """What an import does with rows that are already in the target."""

    INSERT = "insert"
    UPSERT = "upsert"


class Role(StrEnum):
    """What an account may be trusted with."""

    OPERATOR = "operator"
    """Its own jobs."""
    ADMIN = "admin"
    """All jobs of its organisation, and the audit."""


class Scope(StrEnum):
    """What a key may be used for."""

    IMPORTS_READ = "imports:read"
    IMPORTS_WRITE = "imports:write"
    """Reading included."""
    EXPORTS_READ = "exports:read"
    ADMIN = "admin"
    """To act as the admin that the account is."""


TRUE = (
    *("true", "t", "yes", "y", "1", "on", "ja", "oui", "si", "sí", "sì", "sim", "tak", "да"),
    *("vrai", "wahr", "waar", "vero", "verdadero", "verdadeiro"),
)
FALSE = (
    *("false", "f", "no", "n", "0", "off", "nein", "nee", "nej", "nei", "non", "não", "nao", "nie", "нет"),
    *("faux", "falsch", "onwaar", "falso"),
)
"""Words in cells. Each language has words for both; `no` is that of several."""
