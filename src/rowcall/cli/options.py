"""Options that several commands share: how a file is read, and how one is written."""

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import typer

from rowcall.config import limits_from
from rowcall.errors import Final
from rowcall.formats import Format, ReadOptions, WriteFormat, WriteOptions
from rowcall.model import Code

_FORMATS = tuple(kind.value for kind in Format)
_MARKS = {"point": ".", "comma": ",", ".": ".", ",": ","}
_SUFFIXES = {
    **{f".{kind.value}": kind for kind in WriteFormat},
    **dict.fromkeys((".tsv", ".tab", ".txt"), WriteFormat.CSV),
    ".jsonl": WriteFormat.NDJSON,
    ".pq": WriteFormat.PARQUET,
}
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_Command = TypeVar("_Command", bound=Callable[..., None])

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")]


def read_options(
    *,
    sheet: Annotated[str | None, typer.Option(help="Sheet of a workbook, by name or by position from 1.")] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a text file, such as utf-8 or windows-1252.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="What divides the fields: a character or two, or 'tab'.")
    ] = None,
    quote: Annotated[str | None, typer.Option(help="The quote character; '' when quotes are just text.")] = None,
    escape: Annotated[
        str | None, typer.Option(help="How a quote inside a field is written: doubled or backslash.")
    ] = None,
    comment: Annotated[str | None, typer.Option(help="Lines starting with this are comments.")] = None,
    header: Annotated[
        int | None, typer.Option(help="Line (or sheet row) of the header, from 1; 0 when there is none.")
    ] = None,
    records: Annotated[str | None, typer.Option(help="Key of a JSON document under which the records lie.")] = None,
    format: Annotated[  # noqa: A002 (the product's word)
        str | None, typer.Option(help="Read the file as this format, whatever it looks like.")
    ] = None,
    ragged: Annotated[
        str, typer.Option(help="Records with too few fields: reject, or pad with empty ones.")
    ] = "reject",
    decimal: Annotated[str | None, typer.Option(help="Decimal mark, point or comma; else the values decide.")] = None,
    date_order: Annotated[
        str | None, typer.Option(help="Order of dates, dmy, mdy or ymd; else the values decide.")
    ] = None,
) -> ReadOptions:
    """The options of `open_rows` from those of a command."""
    return ReadOptions(
        format=Format(one_of("--format", format, _FORMATS)) if format else None,
        encoding=encoding,
        delimiter=delimiter,
        quote=quote,
        escape=cast("Literal['doubled', 'backslash'] | None", one_of("--escape", escape, ("doubled", "backslash"))),
        comment=comment,
        header=header,
        sheet=int(sheet) if sheet and sheet.isdecimal() else sheet,
        records=records,
        ragged=cast("Literal['reject', 'pad']", one_of("--ragged", ragged, ("reject", "pad"))),
        decimal=cast("Literal['.', ','] | None", _MARKS.get(one_of("--decimal", decimal, _MARKS) or "")),
        date_order=cast(
            "Literal['dmy', 'mdy', 'ymd'] | None", one_of("--date-order", date_order, ("dmy", "mdy", "ymd"))
        ),
        limits=limits_from(),
    )


def takes_read_options(*, without: Collection[str] = ()) -> Callable[[_Command], _Command]:
    """Give a command the options of `read_options`, in the place of its parameter `read`, which takes them together."""
    shared = [p for p in inspect.signature(read_options).parameters.values() if p.name not in without]

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def with_options(**given: Any) -> None:
            read = read_options(**{parameter.name: given.pop(parameter.name) for parameter in shared})
            command(read=read, **given)

        own = inspect.signature(command).parameters.values()
        parameters = [new for p in own for new in (shared if p.name == "read" else [p])]
        named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        told: Any = with_options  # Typer asks a function for these, and takes them as they are
        told.__signature__ = inspect.Signature(named)
        told.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
        return told

    return decorate


def write_format(target: str, option: str, given: str | None) -> WriteFormat:
    """The format to write: the one that is given, else by the target's name; CSV for standard output."""
    if given is not None:
        return WriteFormat(one_of(option, given, list(WriteFormat)))
    suffixes = [suffix for suffix in _suffixes(target) if suffix not in _PACKED]
    kind = WriteFormat.CSV if target == "-" else _SUFFIXES.get(suffixes[-1] if suffixes else "")
    if kind is None:
        hint = (
            "Name it .csv, .tsv, .ndjson, .json, .xlsx or .parquet (text also with .gz, .bz2, .xz or .zst), "
            f"or give {option}."
        )
        raise Final(Code.BAD_OPTION, f"{target!r} doesn't say which format to write.", hint=hint)
    return kind


def write_options(target: str, *, bom: bool, formulas: str, delimiter: str | None = None) -> WriteOptions:
    """How to write it; a file that is named so has tabs between its fields."""
    usual = "tab" if {".tsv", ".tab"} & set(_suffixes(target)) else ","
    kept = one_of("--formulas", formulas, ("protect", "keep"))
    return WriteOptions(
        delimiter={"tab": "\t"}.get(delimiter or usual, delimiter or usual),
        bom=bom,
        formulas=cast("Literal['protect', 'keep']", kept),
    )


def _suffixes(target: str) -> list[str]:
    return [suffix.lower() for suffix in Path(target).suffixes]


def one_of(option: str, value: str | None, allowed: Collection[str]) -> str | None:
    """The value of an option, which must be one of these."""
    if value is not None and value not in allowed:
        raise Final(Code.BAD_OPTION, f"{option} is {value!r}; expected {', '.join(allowed)}.")
    return value
