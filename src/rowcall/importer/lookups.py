"""A field whose value stands in another table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rowcall.importer.fields import Field
from rowcall.importer.matching import OnMissing, on_missing_mistakes


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
    label: str | None = None
    """The column that people know its rows by, where they choose one; the first of `by` that is no key unless told."""
    synonyms: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other texts for what is found `by`, whatever their case and accents."""
    on_missing: OnMissing = "fail"
    creates: str | None = None
    """The column that takes the text when a row is created for it: people may then have it created."""

    def __init__(
        self,
        table: str,
        *,
        by: str | Sequence[str],
        to: str = "id",
        within: str | None = None,
        label: str | None = None,
        synonyms: Mapping[str, str] | None = None,
        on_missing: OnMissing = "fail",
        creates: str | None = None,
        required: bool = False,
        default: str | int | None = None,
        aliases: Sequence[str] = (),
        help: str = "",  # noqa: A002 (the same name on every field)
        column: str = "",
        blank: Sequence[str] = (),
    ) -> None:
        super().__init__(required=required, default=default, aliases=aliases, help=help, column=column, blank=blank)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "by", (by,) if isinstance(by, str) or not isinstance(by, Sequence) else tuple(by))  # pyright: ignore[reportUnnecessaryIsInstance] (anything may stand there)
        object.__setattr__(self, "to", to)
        object.__setattr__(self, "within", within)
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "synonyms", {} if synonyms is None else synonyms)
        object.__setattr__(self, "on_missing", on_missing)
        object.__setattr__(self, "creates", creates)

    @property
    def shown(self) -> str:
        """The column that people know its rows by."""
        return self.label or next((column for column in self.by if column != self.to), self.by[0])

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not self.table or self.table.count(".") > 1:
            yield f'the table {self.table!r} is not a name; write "table" or "schema.table".'
        if len(set(self.by)) < len(self.by):
            yield f"it looks by {', '.join(self.by)}; each is needed once."
        if not self.to:
            yield "to is empty; name the column to take."
        if not self.by or not all(self.by):
            yield "it has no columns to look by."
        yield from on_missing_mistakes(self.on_missing)
        if self.creates is not None and self.creates not in self.by:
            yield f"creates is {self.creates!r}, which it doesn't look by: what is created would not be found again."
        if self.on_missing == "create" and self.creates is None:
            yield f'on_missing is "create"; say which column takes the text, such as creates="{self.shown}".'
