"""Columns of the file to fields of the importer.

By name and alias where nobody is to be asked, and what is missing ends the job. Else also by what header and values are
like, and what isn't sure is left for a person to decide.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from difflib import get_close_matches

import polars as pl

from rowcall.engine.columns.asking import asking, in_config
from rowcall.engine.columns.saved import as_saved
from rowcall.engine.columns.suggest import SURE, Seen, Suggestion, named_by_column, suggest
from rowcall.engine.columns.usable import check_usable, usable
from rowcall.errors import Final
from rowcall.formats import Column, Reading
from rowcall.formats.columns import normal
from rowcall.importer import Field, Importer
from rowcall.model import Code
from rowcall.store.jobs import JobConfig
from rowcall.store.mappings import ColumnMapping
from rowcall.store.templates import Template

_SAMPLES = 3
_LOOKED_AT = 300
"""Values of each column that tell what it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known before a file is looked at."""

    needed: frozenset[str] = frozenset()
    """Fields that the target can't do without."""
    decisions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Fields that people chose before, by `normal` header; an empty one means that the column was left out."""
    template: Template | None = None


def known_names(importer: type[Importer], config: JobConfig, mapped: Sequence[ColumnMapping]) -> frozenset[str]:
    """What columns of a file may be called, as `normal` has it.

    A file that was begun has its header where it had it: by the names that were found then.
    """
    if mapped:
        return frozenset(normal(column.header) for column in mapped)
    fields = usable(importer, config)
    asked = (part for header in config.mapping for part in (header, *header.split("+")))
    aliases = (alias for declared in fields.values() for alias in declared.aliases)
    return frozenset(filter(None, map(normal, (*fields, *aliases, *asked))))


def map_columns(importer: type[Importer], reading: Reading, config: JobConfig, known: Known) -> list[ColumnMapping]:
    """Each column with its field.

    Raises when `--map` names what isn't there; and, where nobody is to be asked, when a required field gets no column
    or two columns claim a field. A file without records of a format without a header, such as `[]`, has no columns to
    ask for.
    """
    if not reading.columns and not any(batch.frame.height or batch.bad for batch in reading):
        return []
    samples = _samples(reading)
    settled = _as_asked(importer, reading, config, samples)
    if known.template:
        settled |= as_saved(importer, reading, config, known.template, settled, samples)
    if asking(importer, config) != "never":
        found = _suggested(importer, reading, config, known, settled)
        settled |= {place: _proposed(reading.columns[place], samples[place], each) for place, each in found.items()}
        return [settled[place] for place in _places(reading)]
    chosen = {place: column.target_field or "" for place, column in settled.items()}
    chosen |= _matches(usable(importer, config), reading.columns, chosen, set(config.constants))
    _require(importer, reading, chosen, config, known.needed)
    called = _called(usable(importer, config))
    return [
        settled.get(place) or _by_name(column, samples[place], chosen.get(place), called)
        for place, column in enumerate(reading.columns)
    ]


def _suggested(
    importer: type[Importer],
    reading: Reading,
    config: JobConfig,
    known: Known,
    settled: Mapping[int, ColumnMapping],
) -> dict[int, Suggestion]:
    """For each column that isn't settled, the field that it probably is."""
    first = next((batch.frame.head(_LOOKED_AT) for batch in reading if batch.frame.height), None)
    left = [place for place in _places(reading) if place not in settled]
    seen = [Seen(reading.columns[place].header, _values(first, place)) for place in left]
    taken = {name for name in (*config.constants, *(column.target_field for column in settled.values())) if name}
    return dict(
        zip(left, suggest(usable(importer, config), seen, remembered=known.decisions, taken=taken), strict=True)
    )


def _proposed(column: Column, samples: list[str | None], found: Suggestion) -> ColumnMapping:
    sure = found.field is not None and found.confidence >= SURE
    open_ = found.field is not None or found.others
    return ColumnMapping(
        position=column.index,
        header=column.name,
        samples=samples,
        target_field=found.field,
        status="AUTO_MATCHED" if sure else "UNRESOLVED" if open_ else "IGNORED",
        reason=found.reason,
        confidence=found.confidence,
        others=found.others,
    )


def _values(first: pl.DataFrame | None, place: int) -> list[str | None]:
    return [] if first is None or place >= first.width else first.to_series(place).to_list()


def _by_name(
    column: Column, samples: list[str | None], field_name: str | None, called: Mapping[str, str]
) -> ColumnMapping:
    same = called.get(normal(column.name))
    unused = f"{same} has its values already" if same else "no field of that name"
    return ColumnMapping(
        position=column.index,
        header=column.name,
        samples=samples,
        target_field=field_name,
        status="AUTO_MATCHED" if field_name else "IGNORED",
        reason="the header is its name, alias or column" if field_name else unused,
    )


def _called(fields: Mapping[str, Field]) -> dict[str, str]:
    """All that fields are called, as headers are compared, with the field."""
    by_alias = {normal(alias): name for name, declared in fields.items() for alias in declared.aliases}
    return {**named_by_column(fields), **by_alias, **{normal(name): name for name in fields}}


def _samples(reading: Reading) -> list[list[str | None]]:
    """The values of each column in the first three rows, None where one is blank; of a column without any, none."""
    first = next((batch.frame.head(_SAMPLES) for batch in reading if batch.frame.height), None)
    values = [[value if value and value.strip() else None for value in _values(first, at)] for at in _places(reading)]
    return [column if any(column) else [] for column in values]


def _places(reading: Reading) -> range:
    return range(len(reading.columns))


# ------------------------------------------------------------------------------------------------------ which is which


def _is_header(header: str, column: Column) -> bool:
    return header in (column.header, column.name) or normal(header) == normal(column.name) != ""


def _as_asked(
    importer: type[Importer], reading: Reading, config: JobConfig, samples: Sequence[list[str | None]]
) -> dict[int, ColumnMapping]:
    """What `--map` says: header to field, or to nothing for a column that is to be left out."""
    columns = reading.columns
    chosen: dict[int, ColumnMapping] = {}
    parts: dict[str, list[int]] = {}
    for header, field_name in config.mapping.items():
        if field_name:
            check_usable(importer, field_name, config)
        places = named_places(header, columns)
        if rivals := parts.get(field_name):
            _refuse_rivals([columns[place].name for place in (*rivals, *places)], field_name)
        if field_name:
            parts[field_name] = places
        for nth, place in enumerate(places):
            chosen[place] = ColumnMapping(
                position=columns[place].index,
                header=columns[place].name,
                samples=samples[place],
                target_field=field_name or None,
                status="USER_CONFIRMED",
                reason="as asked",
                place=nth,
                separator=config.separators.get(field_name, " "),
            )
    return chosen


def named_places(header: str, columns: Sequence[Column]) -> list[int]:
    """The place of the column with this header, or of several with a plus between them, unless one is written so."""
    if (place := _place_of(header, columns)) is not None:
        return [place]
    places = [_place_of(part.strip(), columns) for part in header.split("+")]
    if missing := [part for part, place in zip(header.split("+"), places, strict=True) if place is None]:
        name, names = missing[0].strip(), [column.name for column in columns]
        raise Final(Code.BAD_MAPPING, f"The file has no column {name!r}.", hint=_meant(name, names, "It has"))
    found = [place for place in places if place is not None]
    if len(set(found)) < len(found):
        raise Final(Code.BAD_MAPPING, f"{header!r} names a column twice.", hint="Join each column once.")
    return found


def _place_of(header: str, columns: Sequence[Column]) -> int | None:
    places = [place for place, column in enumerate(columns) if _is_header(header, column)]
    exact = [place for place in places if columns[place].header == header] or places
    return exact[0] if exact else None


def _refuse_rivals(rivals: Sequence[str], field_name: str) -> None:
    if len(rivals) > 1:
        raise Final(
            Code.BAD_MAPPING,
            f"Columns {', '.join(map(repr, rivals))} would all go to field {field_name!r}; one can.",
            hint=f"Choose with --map '{rivals[0]}={field_name}', and leave others out with --map '{rivals[1]}=', "
            f"or join them with --map '{'+'.join(rivals)}={field_name}'.",
            over_http=f"Choose with {in_config('mapping', {rivals[0]: field_name, rivals[1]: ''})}.",
        )


def _matches(
    fields: Mapping[str, Field], columns: Sequence[Column], chosen: Mapping[int, str], constant: Set[str]
) -> dict[int, str]:
    """Fields by name, then by alias, then by their own column, for the columns and fields that are left."""
    free = {place: column for place, column in enumerate(columns) if place not in chosen}
    taken = {*constant, *chosen.values()}
    by_column = named_by_column(fields)
    matched: dict[int, str] = {}
    for field_name, declared in fields.items():
        if field_name in taken:
            continue
        exact = [place for place, column in free.items() if column.header == field_name]
        named = [place for place, column in free.items() if normal(column.name) == normal(field_name)]
        alias = {normal(alias) for alias in declared.aliases}
        others = [place for place, column in free.items() if normal(column.name) in alias]
        own = [place for place, column in free.items() if by_column.get(normal(column.name)) == field_name]
        for place in exact or named or others or own:
            matched[place] = field_name
    for field_name in fields:
        _refuse_rivals([columns[place].name for place, name in matched.items() if name == field_name], field_name)
    return matched


def required_without(fields: Mapping[str, Field], given: Set[str | None], needed: frozenset[str]) -> list[str]:
    """The required fields that are not among those that get a value."""
    return [
        name
        for name, declared in fields.items()
        if name not in given and declared.default is None and (declared.required or name in needed)
    ]


def _require(
    importer: type[Importer],
    reading: Reading,
    chosen: Mapping[int, str],
    config: JobConfig,
    needed: frozenset[str],
) -> None:
    missing = required_without(usable(importer, config), {*chosen.values(), *config.constants}, needed)
    if missing:
        left = [column for place, column in enumerate(reading.columns) if not chosen.get(place)]
        if not reading.columns:
            told = (
                f"No record of the file can be read, so that nothing is known of its columns; {importer.name} requires "
            )
            hint = "`rowcall inspect` shows what is wrong with the records."
            over_http = "See that its records are whole."
            raise Final(Code.MISSING_COLUMNS, f"{told}{', '.join(missing)}.", hint=hint, over_http=over_http)
        if left and not any(column.header for column in reading.columns):
            raise _no_header(importer, missing, left, given=config.read.header == 0)
        doubtful = reading.detected.header is not None and not any(chosen.values())
        raise _missing(importer, missing, [column.name for column in left], doubtful=doubtful)
    if not any(name for name in chosen.values()):
        if not any(column.header for column in reading.columns):
            raise _no_header(importer, [], reading.columns, given=config.read.header == 0)
        names = ", ".join(importer.fields)
        raise Final(
            Code.MISSING_COLUMNS,
            f"No column of the file belongs to a field of {importer.name}.",
            hint=f"Its fields are {names}. Map columns with --map 'Header=field'.",
            over_http=f"Its fields are {names}. Map columns with {in_config('mapping', {'Header': 'field'})}.",
        )


def _no_header(importer: type[Importer], missing: Sequence[str], left: Sequence[Column], *, given: bool) -> Final:
    none = "The file has no header row" if given else "The file has no header row that could be told from its values"
    wanted = (
        f"{importer.name} requires {', '.join(missing)}" if missing else f"none belongs to a field of {importer.name}"
    )
    told = f"{none}, so that its columns are called {', '.join(column.name for column in left)}; {wanted}."
    example = {left[0].name: missing[0] if missing else next(iter(importer.fields))}
    named = " ".join(f"--map '{header}={name}'" for header, name in example.items())
    above = "or write a header row above the data; if there is one, give its line with"
    hint = f"Name each with {named}, {above} --header 1."
    over_http = f"Name each with {in_config('mapping', example)}, {above} {in_config('header', 1)}."
    return Final(Code.MISSING_COLUMNS, told, hint=hint, over_http=over_http)


def _missing(importer: type[Importer], missing: Sequence[str], left: Sequence[str], *, doubtful: bool) -> Final:
    near = [near_miss(name, importer.fields[name], left) for name in missing]
    guesses = {header: name for name, header in zip(missing, near, strict=True) if header}
    listed = ", ".join(
        f"{name} (is it {header!r}?)" if header else name for name, header in zip(missing, near, strict=True)
    )
    unused = f"Columns not used: {', '.join(left)}." if left else "Every column of the file is used."
    if guesses:
        options = " ".join(f"--map '{header}={name}'" for header, name in guesses.items())
        hint = f"Try {options}."
        over_http = f"Try {in_config('mapping', guesses)}."
    else:
        hint = "Map one with --map 'Header=field', or give a value for all rows with --set field=value."
        mapping, constants = in_config("mapping", {"Header": "field"}), in_config("constants", {"field": "value"})
        over_http = f"Map one with {mapping}, or give a value for all rows with {constants}."
    if doubtful and not guesses:
        none = "If these are values and the file has no header row, say"
        hint, over_http = f"{hint} {none} --header 0.", f"{over_http} {none} {in_config('header', 0)}."
    told = f"Required by {importer.name} and not in the file: {listed}. {unused}"
    return Final(Code.MISSING_COLUMNS, told, hint=hint, over_http=over_http)


def near_miss(name: str, declared: Field, left: Sequence[str]) -> str | None:
    """The header that is most like a field's name or alias."""
    by_normal = {normal(header): header for header in left}
    for word in (name, *declared.aliases):
        near = get_close_matches(normal(word), list(by_normal), 1, 0.7)
        if near:
            return by_normal[near[0]]
    return None


def _meant(word: str, words: Sequence[str], otherwise: str) -> str:
    near = get_close_matches(word, words, 1)
    return f"Did you mean {near[0]!r}?" if near else f"{otherwise} {', '.join(words)}."
