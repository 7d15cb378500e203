"""Columns of the file to fields of the importer; and how each column's texts are read.

By name and alias where nobody is to be asked, and what is missing ends the job. Else also by what header and values are
like, and what isn't sure is left for a person to decide.
"""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

import polars as pl
from psycopg import Connection

from rowcall.engine.suggest import SURE, Seen, Suggestion, suggest
from rowcall.errors import Final
from rowcall.formats import Column, Reading
from rowcall.formats.columns import normal
from rowcall.importer import Date, DateTime, Decimal, Field, Importer, Integer, Text
from rowcall.importer.fields import ColumnReading
from rowcall.importer.matching import Ask
from rowcall.model import Code
from rowcall.store.jobs import Job, JobConfig
from rowcall.store.mappings import ColumnMapping, Counted, columns_of, count_evidence, decide_columns, set_reading
from rowcall.store.templates import Template, TemplateColumn

_SAMPLE_ROWS = 10_000
_SAMPLES = 3
_LOOKED_AT = 300
"""Values of each column that tell what it may be."""
_EXACT_FORMATS = frozenset({"json", "ndjson", "parquet", "arrow", "xlsx", "xls", "xlsb", "ods"})
"""Formats that have numbers of their own, written with a point when they become text, and tell empty from none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known before a file is looked at."""

    needed: frozenset[str] = frozenset()
    """Fields that the target can't do without."""
    decisions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Fields that people chose before, by `normal` header; an empty one means that the column was left out."""
    template: Template | None = None


def asking(importer: type[Importer], config: JobConfig) -> Ask:
    """Whether a person is asked about the columns of a job."""
    return config.ask or importer.flow.columns


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
        settled |= _as_saved(importer, reading, config, known.template, settled, samples)
    if asking(importer, config) != "never":
        found = _suggested(importer, reading, config, known, settled)
        settled |= {place: _proposed(reading.columns[place], samples[place], each) for place, each in found.items()}
        return [settled[place] for place in _places(reading)]
    chosen = {place: column.target_field or "" for place, column in settled.items()}
    chosen |= _matches(importer, reading.columns, chosen, set(config.constants))
    _require(importer, reading, chosen, config, known.needed)
    return [
        settled.get(place) or _by_name(column, samples[place], chosen.get(place))
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
    return dict(zip(left, suggest(importer.fields, seen, remembered=known.decisions, taken=taken), strict=True))


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


def _by_name(column: Column, samples: list[str | None], field_name: str | None) -> ColumnMapping:
    return ColumnMapping(
        position=column.index,
        header=column.name,
        samples=samples,
        target_field=field_name,
        status="AUTO_MATCHED" if field_name else "IGNORED",
        reason="the header is its name or alias" if field_name else "no field of that name",
    )


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
            check_field(importer, field_name)
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


def _as_saved(
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
    return {column.position: column for column in from_template(importer, template, open_, taken)}


def from_template(
    importer: type[Importer], template: Template, columns: Sequence[ColumnMapping], taken: Set[str | None]
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
        usable = known.target_field in importer.fields and known.target_field not in taken
        if usable or known.target_field is None:
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


def _refuse_rivals(rivals: Sequence[str], field_name: str) -> None:
    if len(rivals) > 1:
        raise Final(
            Code.BAD_MAPPING,
            f"Columns {', '.join(map(repr, rivals))} would all go to field {field_name!r}; one can.",
            hint=f"Choose with --map '{rivals[0]}={field_name}', and leave others out with --map '{rivals[1]}=', "
            f"or join them with --map '{'+'.join(rivals)}={field_name}'.",
            over_http=f"Choose with {_config('mapping', {rivals[0]: field_name, rivals[1]: ''})}.",
        )


def _matches(
    importer: type[Importer], columns: Sequence[Column], chosen: Mapping[int, str], constant: Set[str]
) -> dict[int, str]:
    """Fields by name, then by alias, for the columns and fields that are left."""
    free = {place: column for place, column in enumerate(columns) if place not in chosen}
    taken = {*constant, *chosen.values()}
    matched: dict[int, str] = {}
    for field_name, declared in importer.fields.items():
        if field_name in taken:
            continue
        exact = [place for place, column in free.items() if column.header == field_name]
        named = [place for place, column in free.items() if normal(column.name) == normal(field_name)]
        alias = {normal(alias) for alias in declared.aliases}
        others = [place for place, column in free.items() if normal(column.name) in alias]
        for place in exact or named or others:
            matched[place] = field_name
    for field_name in importer.fields:
        _refuse_rivals([columns[place].name for place, name in matched.items() if name == field_name], field_name)
    return matched


def check_field(importer: type[Importer], name: str) -> None:
    """Refuse a field that the importer doesn't have."""
    if name not in importer.fields:
        hint = _meant(name, list(importer.fields), "It has")
        raise Final(Code.BAD_MAPPING, f"Importer {importer.name} has no field {name!r}.", hint=hint)


def required_without(importer: type[Importer], given: Set[str | None], needed: frozenset[str]) -> list[str]:
    """The required fields that are not among those that get a value."""
    return [
        name
        for name, declared in importer.fields.items()
        if name not in given and declared.default is None and (declared.required or name in needed)
    ]


def _require(
    importer: type[Importer],
    reading: Reading,
    chosen: Mapping[int, str],
    config: JobConfig,
    needed: frozenset[str],
) -> None:
    missing = required_without(importer, {*chosen.values(), *config.constants}, needed)
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
            raise _no_header(importer, missing, left)
        doubtful = reading.detected.header is not None and not any(chosen.values())
        raise _missing(importer, missing, [column.name for column in left], doubtful=doubtful)
    if not any(name for name in chosen.values()):
        names = ", ".join(importer.fields)
        raise Final(
            Code.MISSING_COLUMNS,
            f"No column of the file belongs to a field of {importer.name}.",
            hint=f"Its fields are {names}. Map columns with --map 'Header=field'.",
            over_http=f"Its fields are {names}. Map columns with {_config('mapping', {'Header': 'field'})}.",
        )


def _no_header(importer: type[Importer], missing: Sequence[str], left: Sequence[Column]) -> Final:
    listed = ", ".join(column.name for column in left)
    told = f"The file has no header row, so that its columns are called {listed}; {importer.name} requires "
    hint = (
        f"Name each with --map '{left[0].name}={missing[0]}', or write a header row above the data; if there is one, "
        "give its line with --header."
    )
    over_http = (
        f"Name each with {_config('mapping', {left[0].name: missing[0]})}, or write a header row above the data; if "
        f"there is one, give its line with {_config('header', 3)}."
    )
    return Final(Code.MISSING_COLUMNS, f"{told}{', '.join(missing)}.", hint=hint, over_http=over_http)


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
        over_http = f"Try {_config('mapping', guesses)}."
    else:
        hint = "Map one with --map 'Header=field', or give a value for all rows with --set field=value."
        mapping, constants = _config("mapping", {"Header": "field"}), _config("constants", {"field": "value"})
        over_http = f"Map one with {mapping}, or give a value for all rows with {constants}."
    if doubtful and not guesses:
        none = "If these are values and the file has no header row, say"
        hint, over_http = f"{hint} {none} --header 0.", f"{over_http} {none} {_config('header', 0)}."
    told = f"Required by {importer.name} and not in the file: {listed}. {unused}"
    return Final(Code.MISSING_COLUMNS, told, hint=hint, over_http=over_http)


def _config(name: str, value: object) -> str:
    """How something is said in the configuration of an import over HTTP."""
    return f"`config` {json.dumps({name: value}, ensure_ascii=False)}"


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


# --------------------------------------------------------------------------------------------------- how it is read


def watched(importer: type[Importer], columns: Sequence[ColumnMapping]) -> dict[int, str]:
    """The columns whose values can be read in two ways, with a pattern of the values that raise the question."""
    patterns: dict[int, str] = {}
    for column in columns:
        declared = importer.fields.get(column.target_field or "") if column.place == 0 else None
        if isinstance(declared, Date | DateTime):
            patterns[column.position] = r"^\s*\d{1,2}[-/.]"
        elif isinstance(declared, Decimal | Integer):
            patterns[column.position] = r"[.,]"
    return patterns


def blank_is_none(
    importer: type[Importer], columns: Sequence[ColumnMapping], *, kind: str, ask: Ask, needed: frozenset[str]
) -> frozenset[int]:
    """The columns of exact texts in which a blank cell is no value: CSV can't tell the two, and there may be none.

    Columns that may become such are among them.
    """
    if kind in _EXACT_FORMATS:
        return frozenset()
    exact = {name for name, declared in importer.fields.items() if isinstance(declared, Text) and declared.exact}
    open_ = {None} if ask != "never" and exact else set[None]()
    return frozenset(column.position for column in columns if column.target_field in exact - needed | open_)


def decide_readings(connection: Connection[Any], job: Job, importer: type[Importer]) -> None:
    """For each column of dates or numbers: which order, which decimal mark. Asked of the values, never of one cell.

    A sample decides where it can, else all rows. What stays open is a question for a person: it raises, or where
    people are asked, the column is unresolved.
    """
    columns = columns_of(connection, job.id)
    for column in columns:
        if column.doubtful is False or column.date_order or column.decimal_mark or column.place:
            continue
        try:
            set_reading(connection, job.id, with_reading(connection, job, importer, column))
        except Final as error:
            if not is_asked(importer, job.config, columns):
                raise
            decide_columns(connection, job.id, [replace(column, status="UNRESOLVED", reason=error.message)])


def is_asked(importer: type[Importer], config: JobConfig, columns: Sequence[ColumnMapping]) -> bool:
    """Whether what isn't sure is a question: a person is asked, or has decided about columns already."""
    return asking(importer, config) != "never" or any(column.decided_by for column in columns)


def with_reading(
    connection: Connection[Any], job: Job, importer: type[Importer], column: ColumnMapping, *, last: int | None = None
) -> ColumnMapping:
    """The column with how it is read, as its values up to the last row tell, or all. Raises where they don't."""
    declared = importer.fields.get(column.target_field or "")
    rows = (job.row_count or 0) if last is None else last
    if isinstance(declared, Date | DateTime) and not column.date_order:
        return replace(column, date_order=_date_order(connection, job, column, rows))
    if isinstance(declared, Decimal | Integer) and not column.decimal_mark:
        mark = _decimal_mark(connection, job, column, declared, rows, exact=job.file_format in _EXACT_FORMATS)
        return replace(column, decimal_mark=mark)
    return column


def _counted(
    connection: Connection[Any],
    job: Job,
    column: ColumnMapping,
    what: Literal["date_evidence", "number_evidence"],
    rows: int,
) -> Counted:
    counted = count_evidence(connection, job.id, what, column.position, _SAMPLE_ROWS)
    if counted.first or counted.second or rows <= _SAMPLE_ROWS:
        return counted
    return count_evidence(connection, job.id, what, column.position, rows)


def _date_order(
    connection: Connection[Any], job: Job, column: ColumnMapping, rows: int
) -> Literal["dmy", "mdy", "ymd"]:
    if job.config.read.date_order:
        return job.config.read.date_order
    counted = _counted(connection, job, column, "date_evidence", rows)
    if not counted.first and not counted.second and not counted.open:
        return "dmy" if counted.example else "ymd"  # 5/5/2024 is one day either way
    if counted.first != counted.second:
        return "dmy" if counted.first > counted.second else "mdy"
    known = "as many values tell one as the other" if counted.first else "no value tells which"
    raise Final(
        Code.AMBIGUOUS_DATES,
        f"Column {column.header!r} has dates such as {counted.example!r} that can be read with the day "
        f"or the month first, and {known}.",
        hint="Say which with --date-order dmy or --date-order mdy.",
        over_http=f"Say which with {_config('dateOrder', 'dmy')}, or mdy.",
    )


def _decimal_mark(
    connection: Connection[Any], job: Job, column: ColumnMapping, declared: Field, rows: int, *, exact: bool
) -> Literal[".", ","]:
    if job.config.read.decimal:
        return job.config.read.decimal
    counted = _counted(connection, job, column, "number_evidence", rows)
    if counted.first != counted.second:
        return "." if counted.first > counted.second else ","
    if exact or (not counted.open and not counted.first):
        return "."
    if isinstance(declared, Integer):
        return "." if "," in (counted.example or "") else ","  # a whole number: what stands in it can only group digits
    raise Final(
        Code.AMBIGUOUS_NUMBERS,
        f"Column {column.header!r} has numbers such as {counted.example!r} whose "
        f"{(counted.example or '')[-4:-3]!r} can be a decimal mark or group digits, and no value tells which.",
        hint="Say which with --decimal point or --decimal comma.",
        over_http=f"Say which with {_config('decimal', '.')}, or a comma.",
    )


def readings_of(columns: Sequence[ColumnMapping]) -> dict[str, ColumnReading]:
    """How each mapped column is read."""
    return {
        column.target_field: ColumnReading(decimal=column.decimal_mark or ".", date_order=column.date_order or "ymd")
        for column in columns
        if column.target_field and column.place == 0
    }
