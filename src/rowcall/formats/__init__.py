"""Files become rows, and rows files."""

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
