"""What a template says of the columns of a file."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

from rowcall.engine.columns.usable import usable
from rowcall.formats import Reading
from rowcall.formats.columns import normal
from rowcall.importer import Importer
from rowcall.store.jobs import JobConfig
from rowcall.store.mappings import ColumnMapping
from rowcall.store.templates import Template, TemplateColumn


def as_saved(
    importer: type[Importer],
    reading: Reading,
    config: JobConfig,
    template: Template,
    settled: Mapping[int, ColumnMapping],
    samples: Sequence[list[str | None]],
) -> dict[int, ColumnMapping]:
    """What a template says of the columns that nothing else was said of."""
    taken = {*config.constants, *(column.target_field for column in settled.values())}
    open_ = [
        ColumnMapping(
            position=column.index,
            header=column.name,
            samples=samples[place],
            target_field=None,
            status="UNRESOLVED",
            reason="",
        )
        for place, column in enumerate(reading.columns)
        if place not in settled
    ]
    return {column.position: column for column in from_template(usable(importer, config), template, open_, taken)}


def from_template(
    fields: Collection[str], template: Template, columns: Sequence[ColumnMapping], taken: Set[str | None]
) -> list[ColumnMapping]:
    """Those of the columns that a template knows by their headers, with what it says of them."""
    saved: dict[str, list[TemplateColumn]] = {}
    for known in template.columns:
        saved.setdefault(normal(known.header), []).append(known)
    found: list[ColumnMapping] = []
    for column in columns:
        if not (alike := saved.get(normal(column.header))):
            continue
        known = alike.pop(0)
        fits = known.target_field in fields and known.target_field not in taken
        if fits or known.target_field is None:
            found.append(_saved(column, known, template))
    return _renumbered(found)


def _saved(column: ColumnMapping, known: TemplateColumn, template: Template) -> ColumnMapping:
    return replace(
        column,
        target_field=known.target_field,
        status="AUTO_MATCHED" if known.target_field else "IGNORED",
        reason=f"template {template.name}",
        confidence=1.0,
        place=known.place,
        separator=known.separator,
        date_order=known.date_order,
        decimal_mark=known.decimal_mark,
        doubtful=None,
    )


def _renumbered(columns: Sequence[ColumnMapping]) -> list[ColumnMapping]:
    """The same, with the places of joined columns counted from 0: one of them may be missing."""
    parts: dict[str, list[int]] = {}
    for column in sorted(columns, key=lambda column: column.place):
        parts.setdefault(column.target_field or "", []).append(column.position)
    return [
        replace(column, place=parts[column.target_field].index(column.position) if column.target_field else 0)
        for column in columns
    ]
