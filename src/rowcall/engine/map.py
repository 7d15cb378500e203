"""Columns of the file to fields of the importer; and how each column's texts are read.

By name and alias where nobody is to be asked, and what is missing ends the job. Else also by what header and values are
like, and what isn't sure is left for a person to decide.
"""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
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
from rowcall.model import Code
from rowcall.store.jobs import Job, JobConfig
from rowcall.store.mappings import ColumnMapping, Counted, columns_of, count_evidence, decide_columns, set_reading

_SAMPLE_ROWS = 10_000
_SAMPLES = 3
_LOOKED_AT = 300
"""Values of each column that tell what it may be."""
_EXACT_FORMATS = frozenset({"json", "ndjson", "parquet", "arrow", "xlsx", "xls", "xlsb", "ods"})
"""Formats that have numbers of their own, written with a point when they become text, and tell empty from none."""


def map_columns(
    importer: type[Importer], reading: Reading, config: JobConfig, *, needed: frozenset[str]
) -> list[ColumnMapping]:
    """Each column with its field. `needed` are fields that the target can't do without.

    Raises when `--map` names what isn't there; and, where nobody is to be asked, when a required field gets no column
    or two columns claim a field. A file without records of a format without a header, such as `[]`, has no columns to
    ask for.
    """
    if not reading.columns and not any(batch.frame.height or batch.bad for batch in reading):
        return []
    chosen = _overrides(importer, reading.columns, config.mapping)
    samples = _samples(reading)
    if importer.flow.columns != "never":
        return _suggested(importer, reading, config, chosen, samples)
    for place, field_name in _matches(importer, reading.columns, chosen, set(config.constants)).items():
        chosen[place] = field_name
    _require(importer, reading, chosen, config, needed)
    return [
        _mapping(column, samples[place], chosen.get(place), by_hand=_named(column, config.mapping))
        for place, column in enumerate(reading.columns)
    ]


def _suggested(
    importer: type[Importer],
    reading: Reading,
    config: JobConfig,
    chosen: Mapping[int, str],
    samples: Sequence[list[str | None]],
) -> list[ColumnMapping]:
    """Each column with the field that it probably is."""
    first = next((batch.frame.head(_LOOKED_AT) for batch in reading if batch.frame.height), None)
    left = [place for place in _places(reading) if place not in chosen]
    seen = [Seen(reading.columns[place].header, _values(first, place)) for place in left]
    taken = {name for name in (*config.constants, *chosen.values()) if name}
    found = dict(zip(left, suggest(importer.fields, seen, taken=taken), strict=True))
    return [
        _proposed(column, samples[place], found[place])
        if place in found
        else _mapping(column, samples[place], chosen[place], by_hand=True)
        for place, column in enumerate(reading.columns)
    ]


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


def _mapping(column: Column, samples: list[str | None], field_name: str | None, *, by_hand: bool) -> ColumnMapping:
    status = "USER_CONFIRMED" if by_hand else "AUTO_MATCHED" if field_name else "IGNORED"
    reason = "as asked" if by_hand else "the header is its name or alias" if field_name else "no field of that name"
    return ColumnMapping(
        position=column.index,
        header=column.name,
        samples=samples,
        target_field=field_name or None,
        status=status,
        reason=reason,
    )


def _samples(reading: Reading) -> list[list[str | None]]:
    """The first three values of each column; of a column without any, none."""
    first = next((batch.frame.head(_SAMPLES) for batch in reading if batch.frame.height), None)
    values = [_values(first, place) for place in _places(reading)]
    return [column if any(column) else [] for column in values]


def _places(reading: Reading) -> range:
    return range(len(reading.columns))


# ------------------------------------------------------------------------------------------------------ which is which


def _named(column: Column, mapping: Mapping[str, str]) -> bool:
    return any(_is_header(header, column) for header in mapping)


def _is_header(header: str, column: Column) -> bool:
    return header in (column.header, column.name) or normal(header) == normal(column.name) != ""


def _overrides(importer: type[Importer], columns: Sequence[Column], mapping: Mapping[str, str]) -> dict[int, str]:
    """What `--map` says: header to field, or to nothing for a column that is to be left out."""
    chosen: dict[int, str] = {}
    for header, field_name in mapping.items():
        places = [place for place, column in enumerate(columns) if _is_header(header, column)]
        exact = [place for place in places if columns[place].header == header] or places
        if not exact:
            names = [column.name for column in columns]
            raise Final(Code.BAD_MAPPING, f"The file has no column {header!r}.", hint=_meant(header, names, "It has"))
        if field_name:
            check_field(importer, field_name)
        chosen[exact[0]] = field_name
    _refuse_rivals(columns, chosen)
    return chosen


def _refuse_rivals(columns: Sequence[Column], chosen: Mapping[int, str]) -> None:
    for field_name in {name for name in chosen.values() if name}:
        rivals = [columns[place].name for place, name in chosen.items() if name == field_name]
        if len(rivals) > 1:
            raise Final(
                Code.BAD_MAPPING,
                f"Columns {', '.join(map(repr, rivals))} would all go to field {field_name!r}; one can.",
                hint=f"Choose with --map '{rivals[0]}={field_name}', and leave others out with --map '{rivals[1]}='.",
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
    _refuse_rivals(columns, matched)
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
        declared = importer.fields.get(column.target_field or "")
        if isinstance(declared, Date | DateTime):
            patterns[column.position] = r"^\s*\d{1,2}[-/.]"
        elif isinstance(declared, Decimal | Integer):
            patterns[column.position] = r"[.,]"
    return patterns


def blank_is_none(
    importer: type[Importer], columns: Sequence[ColumnMapping], *, kind: str, needed: frozenset[str]
) -> frozenset[int]:
    """The columns of exact texts in which a blank cell is no value: CSV can't tell the two, and there may be none.

    Columns that may become such are among them.
    """
    if kind in _EXACT_FORMATS:
        return frozenset()
    exact = {name for name, declared in importer.fields.items() if isinstance(declared, Text) and declared.exact}
    open_ = {None} if importer.flow.columns != "never" and exact else set[None]()
    return frozenset(column.position for column in columns if column.target_field in exact - needed | open_)


def decide_readings(connection: Connection[Any], job: Job, importer: type[Importer]) -> None:
    """For each column of dates or numbers: which order, which decimal mark. Asked of the values, never of one cell.

    A sample decides where it can, else all rows. What stays open is a question for a person: it raises, or where the
    importer has people asked, the column is unresolved.
    """
    for column in columns_of(connection, job.id):
        if column.doubtful is False or column.date_order or column.decimal_mark:
            continue
        try:
            _decide_reading(connection, job, column, importer.fields.get(column.target_field or ""))
        except Final as error:
            if importer.flow.columns == "never":
                raise
            decide_columns(connection, job.id, [replace(column, status="UNRESOLVED", reason=error.message)])


def _decide_reading(connection: Connection[Any], job: Job, column: ColumnMapping, declared: Field | None) -> None:
    if isinstance(declared, Date | DateTime):
        order = _date_order(connection, job, column)
        set_reading(connection, job.id, replace(column, date_order=order))
    elif isinstance(declared, Decimal | Integer):
        mark = _decimal_mark(connection, job, column, declared, exact=job.file_format in _EXACT_FORMATS)
        set_reading(connection, job.id, replace(column, decimal_mark=mark))


def _counted(
    connection: Connection[Any], job: Job, column: ColumnMapping, what: Literal["date_evidence", "number_evidence"]
) -> Counted:
    counted = count_evidence(connection, job.id, what, column.position, _SAMPLE_ROWS)
    rows = job.row_count or 0
    if counted.first or counted.second or rows <= _SAMPLE_ROWS:
        return counted
    return count_evidence(connection, job.id, what, column.position, rows)


def _date_order(connection: Connection[Any], job: Job, column: ColumnMapping) -> Literal["dmy", "mdy", "ymd"]:
    if job.config.read.date_order:
        return job.config.read.date_order
    counted = _counted(connection, job, column, "date_evidence")
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
    connection: Connection[Any], job: Job, column: ColumnMapping, declared: Field, *, exact: bool
) -> Literal[".", ","]:
    if job.config.read.decimal:
        return job.config.read.decimal
    counted = _counted(connection, job, column, "number_evidence")
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
        if column.target_field
    }
