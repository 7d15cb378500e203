"""A field whose value stands in another table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rowcall.importer.fields import Field


@dataclass(frozen=True, init=False)
class Lookup(Field):
    """A row of another table, named in the file by one of that table's columns; kept as the row's key.

    The engine looks it up in one query per batch, by each of the columns `by` in turn, and takes the column `to`.
    `within` names a field that the looked-up row must agree with in the column of the same name.
    """

    table: str
    by: tuple[str, ...]
    to: str
    within: str | None

    def __init__(
        self,
        table: str,
        *,
        by: str | Sequence[str],
        to: str = "id",
        within: str | None = None,
        required: bool = False,
        default: str | int | None = None,
        aliases: Sequence[str] = (),
        help: str = "",  # noqa: A002 (the same name on every field)
        column: str = "",
        blank: Sequence[str] = (),
    ) -> None:
        super().__init__(required=required, default=default, aliases=aliases, help=help, column=column, blank=blank)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "by", (by,) if isinstance(by, str) else tuple(by))
        object.__setattr__(self, "to", to)
        object.__setattr__(self, "within", within)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not self.table or self.table.count(".") > 1:
            yield f'the table {self.table!r} is not a name; write "table" or "schema.table".'
        if not self.by or not all(self.by):
            yield "it has no columns to look by."
