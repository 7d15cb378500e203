"""Files become rows, and rows files."""

from typing import TYPE_CHECKING

from rowcall.lazy import lazily

if TYPE_CHECKING:
    from rowcall.formats.evidence import ColumnProfile, Evidence, Kind, Profile, profile_of
    from rowcall.formats.opening import open_rows
    from rowcall.formats.reading import (
        BadRecord,
        Batch,
        CellIssue,
        Column,
        Counts,
        Detected,
        Fact,
        Format,
        Limits,
        Note,
        Reading,
        ReadOptions,
        Sheet,
        Skipped,
        SkippedLines,
    )
    from rowcall.formats.writing import Refused, WriteColumn, WriteFormat, WriteOptions, Writer, open_writer

__all__ = [
    "BadRecord",
    "Batch",
    "CellIssue",
    "Column",
    "ColumnProfile",
    "Counts",
    "Detected",
    "Evidence",
    "Fact",
    "Format",
    "Kind",
    "Limits",
    "Note",
    "Profile",
    "ReadOptions",
    "Reading",
    "Refused",
    "Sheet",
    "Skipped",
    "SkippedLines",
    "WriteColumn",
    "WriteFormat",
    "WriteOptions",
    "Writer",
    "open_rows",
    "open_writer",
    "profile_of",
]

_HOMES = {
    "evidence": ("ColumnProfile", "Evidence", "Kind", "Profile", "profile_of"),
    "opening": ("open_rows",),
    "writing": ("Refused", "WriteColumn", "WriteFormat", "WriteOptions", "Writer", "open_writer"),
}
_ELSEWHERE = {name for names in _HOMES.values() for name in names}
__getattr__ = lazily(__name__, {**_HOMES, "reading": [name for name in __all__ if name not in _ELSEWHERE]})
