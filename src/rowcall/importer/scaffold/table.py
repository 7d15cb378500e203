"""An importer for a table: its columns, types, keys, foreign keys and check constraints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from rowcall.errors import Final
from rowcall.importer.fields import folded
from rowcall.importer.scaffold.checks import Demand, Understood, understand
from rowcall.importer.scaffold.source import (
    FieldSource,
    ImporterSource,
    Value,
    are_told_apart,
    bound,
    field_names,
    source,
    taken_headers,
    taken_notes,
)
from rowcall.model import Code
from rowcall.store.targets import Check, ForeignKey, Target, TargetColumn, UniqueIndex

_KINDS = {
    **dict.fromkeys(("text", "varchar", "bpchar", "citext"), "Text"),
    **dict.fromkeys(("int2", "int4", "int8"), "Integer"),
    **dict.fromkeys(("numeric", "float4", "float8"), "Decimal"),
    **dict.fromkeys(("timestamptz", "timestamp"), "DateTime"),
    **dict.fromkeys(("json", "jsonb"), "Json"),
    "bool": "Boolean",
    "date": "Date",
    "uuid": "Uuid",
}
_TEXTS = ("text", "varchar", "bpchar", "citext")
_EXACT_TEXTS = (*_TEXTS, "name", "char", "xml", "varbit", "tsvector", "hstore", "ltree")
"""Types of which blanks around a text, or an empty one, can be values."""
_DIGITS = 38
_RANGES = {"int2": (-(2**15), 2**15 - 1), "int4": (-(2**31), 2**31 - 1)}
_LOWER = ("min", "min_length")
_OPTIONS = {
    "Text": ("min_length", "max_length", "pattern"),
    "Integer": ("min", "max"),
    "Decimal": ("min", "max"),
    "Choice": ("choices",),
}


def scaffold_table(
    target: Target, referenced: Sequence[Target] = (), of_domains: Sequence[Check] = (), *, exact: bool = False
) -> str:
    """The source of an importer for the table; `referenced` are the tables that its foreign keys lead to.

    `of_domains` are the checks of the domains that its columns are of.

    `exact` for files that Rowcall exported: blanks, empty texts and all digits are values, not somebody's slips.
    """
    _check_name(target)
    columns = [_known(column, target) for column in target.columns.values() if not _left_out(column, target)]
    names = field_names([column.name for column in columns])
    key, natural_key = _keys(target, names)
    return source(
        ImporterSource(
            target=_table(target.schema, target.name),
            description=f"Rows of {target.name}.",
            key=key,
            natural_key=natural_key,
            fields=tuple(_field(column, names, referenced, exact=exact) for column in columns),
            notes=(
                *_left_out_notes(target),
                *_unique_notes(target, key, natural_key),
                *_foreign_notes(target),
                *_check_notes(target, columns, of_domains),
            ),
        )
    )


def _check_name(target: Target) -> None:
    if not _can_be_named(target.schema, target.name):
        raise Final(
            Code.BAD_TARGET,
            f"The table {target.name!r} of the schema {target.schema!r} has a dot in its name, as which an importer's "
            "target takes what stands between schema and table.",
            hint="Rename it.",
        )


def _can_be_named(schema: str, name: str) -> bool:
    return "." not in schema + name


@dataclass(frozen=True, slots=True)
class _Known:
    """A column with all that the table says about it."""

    column: TargetColumn
    foreign: ForeignKey | None
    demands: dict[Demand, str]
    """What check constraints ask of it, each with the constraint's name."""

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def choices(self) -> tuple[str, ...]:
        listed = next((demand.value for demand in self.demands if demand.option == "choices"), None)
        return tuple(self.column.labels or ()) or (listed if isinstance(listed, tuple) else ())

    @property
    def kind(self) -> str:
        if self.foreign or self.column.base.startswith("_"):
            return "Lookup" if self.foreign else "List"
        return "Choice" if are_told_apart(self.choices) else _KINDS.get(self.column.base, "Text")

    @property
    def said(self) -> dict[Demand, str]:
        """The demands that the field says."""
        options = _OPTIONS.get(self.kind, ())
        return {
            demand: check
            for demand, check in self.demands.items()
            if demand.option in options and _bound(demand, self.kind) is not None
        }

    @property
    def required(self) -> bool:
        demanded = self.column.not_null or any(demand.option == "required" for demand in self.demands)
        return demanded and self.column.default is None


def _left_out(column: TargetColumn, target: Target) -> str:
    """Why there is no field for the column, if so."""
    if column.generated:
        return "PostgreSQL generates it"
    if column.always and column.name not in target.primary_key:
        return "it is GENERATED ALWAYS AS IDENTITY"
    if column.base in ("_json", "_jsonb"):
        return "an array of JSON can't be told from one of several dimensions"
    return ""


def _left_out_notes(target: Target) -> Iterator[str]:
    for column in target.columns.values():
        if why := _left_out(column, target):
            yield f"Left out: {column.name}, {column.type}; {why}."


def _known(column: TargetColumn, target: Target) -> _Known:
    demands = {
        demand: check.name
        for check in target.checks
        for demand in understand(check.expression).demands
        if demand.column == column.name
    }
    foreign = (key for key in target.foreign if _can_be_named(key.table_schema, key.table_name))
    return _Known(column, next((key for key in foreign if key.columns == [column.name]), None), demands)


def _field(known: _Known, names: dict[str, str], referenced: Sequence[Target], *, exact: bool) -> FieldSource:
    column, foreign, name = known.column, known.foreign, names[known.name]
    taken = taken_headers(names)
    options: dict[str, Value] = {
        **(_lookup(foreign, referenced) if foreign else {}),
        **_tighter(_of_type(column, known.kind, exact=exact), known),
        **({"required": True} if known.required else {}),
        **({"column": column.name} if name != column.name else {}),
        **({"aliases": [column.name]} if folded(column.name) != folded(name) and column.name not in taken else {}),
        **({"help": " ".join(column.comment.split())} if column.comment else {}),
    }
    choices = known.choices if known.kind == "Choice" else ()
    values = (_table(foreign.table_schema, foreign.table_name),) if foreign else choices
    notes = (*_field_notes(known), *taken_notes(column.name, name, taken))
    return FieldSource(name=name, kind=known.kind, values=values, options=options, notes=notes)


def _lookup(foreign: ForeignKey, referenced: Sequence[Target]) -> dict[str, Value]:
    """By the referenced column, and by the one unique text that the referenced table has, if it has one."""
    to = foreign.table_columns[0]
    table = next((t for t in referenced if (t.schema, t.name) == (foreign.table_schema, foreign.table_name)), None)
    words = [name for name in _unique_texts(table) if name != to] if table else []
    by = (to, *words) if len(words) == 1 else to
    return {"by": by} if to == "id" else {"by": by, "to": to}


def _unique_texts(table: Target) -> list[str]:
    single = {index.columns[0]: None for index in table.unique if len(index.columns) == 1}
    return [name for name in single if table.columns[name].base in _TEXTS]


def _of_type(column: TargetColumn, kind: str, *, exact: bool) -> dict[str, Value]:
    if kind == "Text":
        as_it_is = (exact and column.base in _EXACT_TEXTS) or column.labels is not None
        length = {} if column.max_length is None else {"max_length": column.max_length}
        return {**({"exact": True} if as_it_is else {}), **length}
    if kind == "Decimal" and _needs_exact(column, exact=exact):
        return {"exact": True}
    if kind == "Integer" and column.base in _RANGES:
        low, high = _RANGES[column.base]
        return {"min": low, "max": high}
    if kind == "Decimal" and column.scale is not None:
        return {"places": max(0, column.scale)}
    return {}


def _needs_exact(column: TargetColumn, *, exact: bool) -> bool:
    """Whether the column takes numbers that have too many digits for a Decimal."""
    precision, scale = column.precision, column.scale
    if precision is None or scale is None:
        return exact or column.base != "numeric"
    return max(precision, precision - scale, scale) > _DIGITS


def _tighter(options: dict[str, Value], known: _Known) -> dict[str, Value]:
    """The options with what constraints ask for; of two bounds the one that leaves less."""
    for demand in known.said:
        value, other = _bound(demand, known.kind), options.get(demand.option)
        if demand.option == "choices" or value is None:
            continue
        if isinstance(value, int | float) and isinstance(other, int | float):
            value = max(value, other) if demand.option in _LOWER else min(value, other)
        options = {**options, demand.option: value}
    return options


def _bound(demand: Demand, kind: str) -> Value | None:
    """A whole number above 5 is at least 6; a fraction above 5 is told in a note."""
    if not isinstance(demand.value, Decimal):
        return str(demand.value)
    number = bound(demand.value, whole=kind != "Decimal")
    if number is None or not demand.strict or kind == "Decimal":
        return number
    return number + (1 if demand.option in _LOWER else -1)


def _field_notes(known: _Known) -> Iterator[str]:
    if known.kind == "Text" and known.column.base not in _KINDS:
        yield f"{known.column.type}: taken as text, which PostgreSQL reads."
    if known.column.always:
        yield "GENERATED ALWAYS AS IDENTITY: rows with a value keep it."
    if known.said:
        yield f"By the constraint {', '.join(dict.fromkeys(known.said.values()))}."
    for demand in known.said:
        if demand.strict and known.kind == "Decimal":
            yield f"{demand.value} itself is refused too, by PostgreSQL."


def _keys(target: Target, names: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The primary key, then the one other unique index if there is just one."""
    indexes = [index for index in target.unique if all(column in names for column in index.columns)]
    primary = [_named(index, names) for index in indexes if index.primary]
    others = [_named(index, names) for index in indexes if not index.primary]
    keys = [*primary, *(others if len(others) == 1 else []), (), ()]
    return keys[0], keys[1]


def _named(index: UniqueIndex, names: dict[str, str]) -> tuple[str, ...]:
    return tuple(names[column] for column in index.columns)


def _unique_notes(target: Target, *keys: tuple[str, ...]) -> list[str]:
    taken = sum(bool(key) for key in keys)
    others = [", ".join(index.columns) for index in target.unique if not index.primary]
    if len(target.unique) == taken:
        return []
    return [f"Unique too, and may serve as the key or natural_key: {'; '.join(others)}."]


def _foreign_notes(target: Target) -> Iterator[str]:
    for key in target.foreign:
        if len(key.columns) > 1 or not _can_be_named(key.table_schema, key.table_name):
            lead = f"{', '.join(key.columns)} {'together lead' if len(key.columns) > 1 else 'leads'}"
            to = f"{key.table_name} ({', '.join(key.table_columns)})"
            yield f"{lead} to {to}: PostgreSQL checks that such a row is there."


def _check_notes(target: Target, columns: Sequence[_Known], of_domains: Sequence[Check]) -> Iterator[str]:
    said = {demand for known in columns for demand in known.said}
    left = [check for check in target.checks if not _is_said(understand(check.expression), said)]
    if left or of_domains:
        yield "Checked by PostgreSQL only, where a @rule would tell it sooner:"
    yield from (f"- {check.name}: {check.expression}" for check in left)
    yield from (f"- {check.name} of {', '.join(check.columns)}: {check.expression}" for check in of_domains)


def _is_said(understood: Understood, said: set[Demand]) -> bool:
    """Whether the fields say all of a constraint; `required` and `filled` go without saying."""
    implied = ("required", "filled")
    return understood.whole and all(demand in said or demand.option in implied for demand in understood.demands)


def _table(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"
