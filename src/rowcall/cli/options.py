"""Options that several commands share: how a file is read."""

from typing import Annotated, Literal, cast

import typer

from rowcall.config import limits_from
from rowcall.errors import Final
from rowcall.formats import Format, ReadOptions
from rowcall.model import Code

Sheet = Annotated[str | None, typer.Option(help="Sheet of a workbook, by name or by position from 1.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a text file, such as utf-8 or windows-1252.")]
Delimiter = Annotated[str | None, typer.Option(help="What divides the fields: a character or two, or 'tab'.")]
Quote = Annotated[str | None, typer.Option(help="The quote character; '' when quotes are just text.")]
Escape = Annotated[str | None, typer.Option(help="How a quote inside a field is written: doubled or backslash.")]
Comment = Annotated[str | None, typer.Option(help="Lines starting with this are comments.")]
Header = Annotated[int | None, typer.Option(help="Line (or sheet row) of the header, from 1; 0 when there is none.")]
Records = Annotated[str | None, typer.Option(help="Key of a JSON document under which the records lie.")]
FileFormat = Annotated[
    str | None, typer.Option("--format", help="Read the file as this format, whatever it looks like.")
]
Ragged = Annotated[str, typer.Option(help="Records with too few fields: reject, or pad with empty ones.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark, where the values leave it open: point or comma.")]
DateOrder = Annotated[str | None, typer.Option(help="Order of dates, where the values leave it open: dmy, mdy or ymd.")]


def read_options(
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    escape: str | None = None,
    comment: str | None = None,
    header: int | None = None,
    records: str | None = None,
    format: str | None = None,  # noqa: A002 (the product's word)
    ragged: str = "reject",
    decimal: str | None = None,
    date_order: str | None = None,
) -> ReadOptions:
    """The options of `open_rows` from those of a command."""
    marks = {"point": ".", "comma": ",", ".": ".", ",": ","}
    return ReadOptions(
        format=Format(_one_of("--format", format, [f.value for f in Format])) if format else None,
        encoding=encoding,
        delimiter=delimiter,
        quote=quote,
        escape=cast("Literal['doubled', 'backslash'] | None", _one_of("--escape", escape, ["doubled", "backslash"])),
        comment=comment,
        header=header,
        sheet=int(sheet) if sheet and sheet.isdecimal() else sheet,
        records=records,
        ragged=cast("Literal['reject', 'pad']", _one_of("--ragged", ragged, ["reject", "pad"])),
        decimal=cast("Literal['.', ','] | None", marks.get(_one_of("--decimal", decimal, list(marks)) or "")),
        date_order=cast(
            "Literal['dmy', 'mdy', 'ymd'] | None", _one_of("--date-order", date_order, ["dmy", "mdy", "ymd"])
        ),
        limits=limits_from(),
    )


def _one_of(option: str, value: str | None, allowed: list[str]) -> str | None:
    if value is not None and value not in allowed:
        raise Final(Code.BAD_OPTION, f"{option} is {value!r}; expected {', '.join(allowed)}.")
    return value
