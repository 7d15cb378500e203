"""What the product promises, beside what was measured."""

import msgspec
from rich.table import Table
from rich.text import Text

from measuring.tables import titled_table

_ROWS = 1_000_000


class Must(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A promise. Without a value it could not be measured here, and is neither kept nor broken."""

    name: str
    must: float
    value: float | None
    holds: bool | None
    aim: float | None = None


def at_least(name: str, must: float, value: float | None, aim: float | None = None) -> Must:
    return Must(name=name, must=must, value=value, holds=None if value is None else value >= must, aim=aim)


def at_most(name: str, must: float, value: float | None, aim: float | None = None) -> Must:
    return Must(name=name, must=must, value=value, holds=None if value is None else value <= must, aim=aim)


def musts_table(musts: list[Must], rows: int = _ROWS) -> Table:
    """The musts with their verdicts."""
    table = titled_table("Musts", 1, "", "must", "aim", "measured", "")
    if rows < _ROWS:
        table.caption = f"Set for {_ROWS:,} rows: with fewer, starting weighs more."
    for must in musts:
        value = "" if must.value is None else f"{must.value:,}"
        table.add_row(must.name, f"{must.must:,}", "" if must.aim is None else f"{must.aim:,}", value, _verdict(must))
    return table


def _verdict(must: Must) -> Text:
    if must.holds is None:
        return Text("not measured", "yellow")
    return Text("holds", "green") if must.holds else Text("fails", "bold red")
