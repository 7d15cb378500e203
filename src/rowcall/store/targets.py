"""What a table of the application is: columns, keys, what it demands. Read from PostgreSQL's catalog."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from psycopg import Connection, Cursor
from psycopg.rows import RowFactory, class_row, scalar_row, tuple_row
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.queries import query

Row = TypeVar("Row")
_CLOSED = ("pg_catalog", "information_schema", "rowcall", "rowcall_queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetColumn:
    """A column of the target."""

    name: str
    type: str
    """As PostgreSQL writes it: `character varying(20)`."""
    base: str
    """The type's plain name, below domains: `varchar`, `int4`, `_text`."""
    not_null: bool
    never_null: bool
    """Its type itself has no null: not even a temporary table takes one."""
    default: str | None
    """The expression that fills it: the declared default, its domain's, or the next value of an identity column."""
    generated: bool
    always: bool
    """An identity that takes another number only when its row is created."""
    sequence: str | None
    """The sequence that numbers it, if nothing else does."""
    max_length: int | None
    """This and the next two are of an array those of its elements."""
    precision: int | None
    scale: int | None
    """How many decimal places are kept, of numbers or of seconds; of numbers also -2, which keeps whole hundreds."""
    labels: list[str] | None
    """Of an enum."""
    bitwise: bool = True
    """Values are equal to PostgreSQL only when they are the same; of numbers, whatever zeros they end with."""
    equality: str | None = None
    """The type by whose equality values are compared, where its own has none: of a domain over an enum, the enum."""
    own_json: bool = False
    """Its type, or that of its elements, has its own idea of what it is as JSON, from which it may not come back."""
    is_array: bool = False
    comment: str | None = None

    @property
    def needed(self) -> bool:
        """Whether a new row must bring a value."""
        return self.not_null and self.default is None

    def equal(self, one: Composable, other: Composable) -> Composed:
        """That two of its values are equal, such that an index serves."""
        as_ = SQL("::" + self.equality if self.equality else "")  # pyright: ignore[reportArgumentType] (the catalog's own words)
        return SQL("{}{} = {}{}").format(one, as_, other, as_)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueIndex:
    """Columns that are unique together."""

    name: str
    columns: list[str]
    primary: bool
    immediate: bool = True
    """Checked row by row, not when a statement is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sameness:
    """When PostgreSQL takes two rows for the same, where their texts don't tell."""

    name: str
    columns: list[str]
    """All that it looks at."""
    parts: list[str]
    """SQL over the columns; rows are the same when all of them are equal."""
    condition: str | None = None
    """SQL that holds for the rows it is about."""
    nulls_equal: bool = False

    @property
    def about(self) -> list[str]:
        """The columns that must differ; the others only say whether."""
        named = [name for name in self.columns if any(_names(part, name) for part in self.parts)]
        return named or self.columns


def _names(expression: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", expression) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """Columns that must be found in another table."""

    name: str
    columns: list[str]
    table_schema: str
    table_name: str
    table_columns: list[str]
    seen: bool = True
    """Whether this role can see all of that table; the constraint does, whoever writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check constraint, as PostgreSQL writes it."""

    name: str
    columns: list[str]
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with its columns: all that is needed to read it."""

    schema: str
    name: str
    kind: str = "r"
    """`r` for a table, `p` for a partitioned one, `f` for a foreign one, `v` for a view, …: as the catalog has it."""
    columns: dict[str, TargetColumn]

    @property
    def identifier(self) -> Identifier:
        return Identifier(self.schema, self.name)

    @property
    def own_rows(self) -> Composed:
        """The table, to be read from."""
        # tables that inherit from a plain one are others
        return SQL("ONLY {}" if self.kind == "r" else "{}").format(self.identifier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Table):
    """A table that rows go into."""

    unique: tuple[UniqueIndex, ...]
    foreign: tuple[ForeignKey, ...]
    checks: tuple[Check, ...]
    odd_unique: tuple[Sameness, ...] = ()
    """Unique indexes over expressions, with a condition, or in which nulls are equal."""
    exclusions: tuple[str, ...] = ()
    """The names of exclusion constraints."""
    plain: bool = False
    """Nothing but constraints has a say in what it takes: no triggers, rules, policies, odd indexes, made columns."""
    referred_to: frozenset[str] = frozenset()
    """The columns that foreign keys refer to."""
    looks_around: bool = False
    """What becomes of a row may depend on others: a trigger asks or changes tables, or calls what may."""
    rule: str | None = None
    """A rewrite rule on what is inserted or updated. COPY passes it over, and some statements refuse it."""

    meddled: frozenset[str] = frozenset()
    """The columns that a trigger may give another value before a row is written."""

    @property
    def takes_rows(self) -> bool:
        """Whether rows may be copied into it: a table, and neither PostgreSQL's own nor ours."""
        return self.kind in ("r", "p", "f") and self.schema not in _CLOSED

    @property
    def types(self) -> dict[str, str]:
        """The columns with the plain names of their types; all enums are alike."""
        return {name: "enum" if column.labels else column.base for name, column in self.columns.items()}

    @property
    def primary_key(self) -> tuple[str, ...]:
        return next((tuple(index.columns) for index in self.unique if index.primary), ())

    @property
    def keys_change(self) -> bool:
        """Whether a trigger may give rows other keys than they come with."""
        return not self.meddled.isdisjoint(self.primary_key)

    @property
    def refers_to_itself(self) -> bool:
        return any((key.table_schema, key.table_name) == (self.schema, self.name) for key in self.foreign)

    def is_unique(self, columns: frozenset[str]) -> bool:
        """Whether PostgreSQL makes sure that no two rows agree in these columns."""
        return any(columns >= frozenset(index.columns) for index in self.unique)


def describe(connection: Connection[Any], table: str) -> Target:
    """The table of that name, `table` or `schema.table`, with all that it demands of rows."""
    oid, found = _found(connection, table)
    found_plain = _about(connection, oid, "target_plain", tuple_row).fetchone()
    about: tuple[bool, list[str], bool, str | None, list[str]] = found_plain or (
        False,
        [],
        True,
        None,
        [*found.columns],
    )
    return Target(
        schema=found.schema,
        name=found.name,
        kind=found.kind,
        columns=found.columns,
        unique=tuple(_about(connection, oid, "target_unique", class_row(UniqueIndex))),
        foreign=tuple(_about(connection, oid, "target_foreign", class_row(ForeignKey))),
        checks=tuple(_about(connection, oid, "target_checks", class_row(Check))),
        odd_unique=tuple(_about(connection, oid, "target_odd_unique", class_row(Sameness))),
        exclusions=tuple(_about(connection, oid, "target_exclusions", scalar_row)),
        plain=about[0],
        referred_to=frozenset(about[1]),
        looks_around=about[2],
        rule=about[3],
        meddled=frozenset(about[4]),
    )


def domain_checks(connection: Connection[Any], table: str) -> list[Check]:
    """What the domains that a table's columns are of ask of each `VALUE`."""
    oid, _ = _found(connection, table)
    return _about(connection, oid, "target_domain_checks", class_row(Check)).fetchall()


def require_no_rule(target: Target, named: str) -> None:
    """Refuse a table with a rewrite rule: it would count for some rows and not for others."""
    if target.rule:
        told = f"{named} has the rule {target.rule!r}, which COPY passes over."
        raise Final(Code.BAD_TARGET, told, hint="Have a trigger do what the rule does, and drop the rule.")


def find_table(connection: Connection[Any], table: str) -> Table:
    """The table of that name, to be read."""
    return _found(connection, table)[1]


def _found(connection: Connection[Any], table: str) -> tuple[int, Table]:
    named = connection.execute(query("target_name"), {"name": _quoted(table)}).fetchone()
    if named is None:
        raise _missing(connection, table)
    oid, schema, name, kind = named
    columns = _about(connection, oid, "target_columns", class_row(TargetColumn)).fetchall()
    return oid, Table(schema=schema, name=name, kind=kind, columns={column.name: column for column in columns})


def _about(connection: Connection[Any], oid: int, name: str, made: RowFactory[Row]) -> Cursor[Row]:
    """What a query tells of a table.

    Most of its time is planning, and a job asks several times. With the number of the table in its text, instead of
    beside it, PostgreSQL plans it once for a session.
    """
    statement = SQL(query(name)).format(oid=Literal(oid))
    return connection.cursor(row_factory=made).execute(statement, prepare=True)


def _quoted(table: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in table.split(".", 1))


def _missing(connection: Connection[Any], table: str) -> Final:
    names = connection.cursor(row_factory=scalar_row).execute(query("target_tables")).fetchall()
    near = [name for name in get_close_matches(table, names, 3) if name != table]
    hint = f"Did you mean {' or '.join(near)}?" if near else "Create it, or correct the importer's `target`."
    if table in names:
        hint = (
            f"There is one with this dot in its own name: {table.partition('.')[0]!r} is taken for a schema. Rename it."
        )
    return Final(Code.BAD_TARGET, f"There is no table {table!r} in the database.", hint=hint)
