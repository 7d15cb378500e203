"""What the guarded child that reads Parquet and Arrow files sends to its parent."""

from dataclasses import dataclass
from typing import Literal

from rowcall.model import Code

Native = Literal["text", "number", "boolean", "date", "datetime", "time", "json"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column as the file's schema names it."""

    header: str
    native: Native
    binary: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """The first message: the columns, and how many rows the file says it has."""

    fields: tuple[Field, ...]
    rows: int | None


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row with a text that is none, by its index in the batch."""

    index: int
    code: Code
    message: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OddCell:
    """A value that no text can stand for, by its row's index in the batch."""

    index: int
    column: int
    value: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows: an Arrow stream with one batch of the good ones as texts, and what is wrong with others."""

    stream: bytes
    rows: int
    bad: tuple[BadRow, ...]
    odd: tuple[OddCell, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The last message about a stream: whether it had the mark of its end, and how many bytes follow."""

    marked: bool
    trailing: int
