"""What a person at a terminal is asked about the columns of a job, here as with a server."""

from collections.abc import Sequence

from rowcall.cli.desk import Desk
from rowcall.cli.map import show_columns
from rowcall.cli.prompt import Option, ask_text, choose
from rowcall.cli.screen import screen, short
from rowcall.client.answers import Job
from rowcall.client.answers.columns import (
    ColumnAnswers,
    ColumnMapping,
    ColumnMappings,
    ColumnUpdate,
    ColumnWarning,
    Join,
    TargetField,
)
from rowcall.errors import Final
from rowcall.model import Code

_LEAVE_OUT = ""
_SAME_FOR_ALL = -1
_SAMPLES = 60
_READINGS: dict[str, list[Option[ColumnUpdate]]] = {
    Code.AMBIGUOUS_DATES: [
        Option(ColumnUpdate(position=0, confirm=True, date_order="dmy"), "the day first", "31/12/2024"),
        Option(ColumnUpdate(position=0, confirm=True, date_order="mdy"), "the month first", "12/31/2024"),
        Option(ColumnUpdate(position=0, confirm=True, date_order="ymd"), "the year first", "24/12/31"),
    ],
    Code.AMBIGUOUS_NUMBERS: [
        Option(ColumnUpdate(position=0, confirm=True, decimal_mark="."), "a point is the decimal mark", "1,234.50"),
        Option(ColumnUpdate(position=0, confirm=True, decimal_mark=","), "a comma is the decimal mark", "1.234,50"),
    ],
}


def settle_columns(at: Desk, job: Job) -> Job:
    """Ask about the columns of a job until they are settled, and let it go on. Raises `Left`."""
    number = str(job.id)
    while True:
        _ask_open(at, number)
        _ask_missing(at, number)
        if _ask_whether(at, number):
            try:
                return at.confirm_columns(number)
            except Final as error:
                if error.code != Code.MISSING_COLUMNS and not _ask_readings(at, number):
                    raise
                screen().print(error.message, markup=False)
        else:
            _ask_which(at, number)


# ------------------------------------------------------------------------------------------------------- what is open


def _ask_open(at: Desk, job: str) -> None:
    """Ask about each column that isn't settled."""
    now = at.column_mappings(job)
    while open_ := [column for column in now.columns if column.status == "UNRESOLVED"]:
        now = _ask_column(at, job, now, open_[0])


def _ask_column(at: Desk, job: str, now: ColumnMappings, column: ColumnMapping) -> ColumnMappings:
    if column.target_field and (warning := _ambiguous(at, job).get(column.position)):
        return _ask_reading(at, job, column, warning)
    fields = at.target_fields(job)
    options = _fields_for(column, fields, now)
    wanted = column.target_field or next((other.field for other in column.others), None)
    place = next((nth for nth, option in enumerate(options) if option.value == wanted), 0)
    name = choose(_question(column), options, at=place, about=_about(column))
    return at.change_columns(job, _answer(now, column, name))


def _ask_readings(at: Desk, job: str) -> bool:
    """Ask how columns are read whose values don't tell. False where there are none."""
    columns = {column.position: column for column in at.column_mappings(job).columns}
    asked = _ambiguous(at, job)
    for position, warning in asked.items():
        _ask_reading(at, job, columns[position], warning)
    return bool(asked)


def _ask_reading(at: Desk, job: str, column: ColumnMapping, warning: ColumnWarning) -> ColumnMappings:
    said = choose(f"{column.header!r} is read with", _READINGS[warning.code or ""], about=[warning.message])
    return at.change_columns(job, ColumnAnswers(updates=[_of(said, column)]))


def _ambiguous(at: Desk, job: str) -> dict[int, ColumnWarning]:
    """The columns whose values can be read in several ways."""
    found = at.column_warnings(job).warnings
    return {position: each for each in found if each.code in _READINGS for position in each.positions}


def _of(update: ColumnUpdate, column: ColumnMapping) -> ColumnUpdate:
    return ColumnUpdate(
        position=column.position,
        confirm=update.confirm,
        date_order=update.date_order,
        decimal_mark=update.decimal_mark,
    )


def _question(column: ColumnMapping) -> str:
    return f"Which field is column {column.header!r}?"


def _about(column: ColumnMapping) -> list[str]:
    samples = ", ".join(sample for sample in column.samples or [] if sample)
    filled = f", {100 * column.fill_share:.0f} % filled" if column.fill_share is not None else ""
    return [f"{short(samples or 'no values', _SAMPLES)}{filled}; {column.reason}"]


def _fields_for(column: ColumnMapping, fields: Sequence[TargetField], now: ColumnMappings) -> list[Option[str]]:
    """The fields, the likely ones first; then those that nothing goes to."""
    likely = [name for name in (column.target_field, *(other.field for other in column.others)) if name]
    sure = {other.field: other.confidence for other in column.others}
    taken = {other.target_field: other.header for other in now.columns if other.target_field}
    ranked = sorted(fields, key=lambda f: (likely.index(f.name) if f.name in likely else len(likely), f.name in taken))
    options = [Option(f.name, f.name, _told(f, sure.get(f.name), taken.get(f.name))) for f in ranked]
    return [*options, Option(_LEAVE_OUT, "leave it out")]


def _told(field: TargetField, confidence: float | None, taken: str | None) -> str:
    parts = [field.type, "required" if field.required else "", field.help]
    if confidence is not None:
        parts.append(f"{100 * confidence:.0f} % likely")
    if taken:
        parts.append(f"now from {taken!r}")
    return ", ".join(part for part in parts if part)


def _answer(now: ColumnMappings, column: ColumnMapping, name: str) -> ColumnAnswers:
    """What follows from a field that was chosen; where another column has it, both can go to it."""
    if name == _LEAVE_OUT:
        return ColumnAnswers(updates=[ColumnUpdate(position=column.position, ignore=True)])
    holders = [c for c in now.columns if c.target_field == name and c.position != column.position]
    if holders and _joins(column, holders, name):
        positions = [*(c.position for c in sorted(holders, key=lambda c: c.place)), column.position]
        return ColumnAnswers(joins=[Join(target_field=name, positions=positions)])
    if name == column.target_field:
        return ColumnAnswers(updates=[ColumnUpdate(position=column.position, confirm=True)])
    return ColumnAnswers(updates=[ColumnUpdate(position=column.position, target_field=name)])


def _joins(column: ColumnMapping, holders: Sequence[ColumnMapping], name: str) -> bool:
    listed = " and ".join(repr(holder.header) for holder in holders)
    options = [
        Option(False, f"{name} comes from {column.header!r} instead"),
        Option(True, "both are joined, with a blank between"),
    ]
    return choose(f"{listed} goes to {name} already:", options)


# ---------------------------------------------------------------------------------------------- what is still missing


def _ask_missing(at: Desk, job: str) -> None:
    """Ask where each required field without a value comes from."""
    while missing := (now := at.column_mappings(job)).missing:
        name = missing[0].field
        free = [column for column in now.columns if not column.target_field]
        options = [Option(column.position, column.header, _about(column)[0]) for column in free]
        options.append(Option(_SAME_FOR_ALL, "the same value for all rows"))
        near = next((nth for nth, column in enumerate(free) if column.header == missing[0].near_miss), 0)
        position = choose(f"Where does {name} come from? It is required.", options, at=near)
        if position == _SAME_FOR_ALL:
            if value := ask_text(f"The value of {name} in all rows:"):
                _give_all(at, job, name, value)
        else:
            at.change_columns(job, ColumnAnswers(updates=[ColumnUpdate(position=position, target_field=name)]))


def _give_all(at: Desk, job: str, name: str, value: str) -> None:
    try:
        at.change_columns(job, ColumnAnswers(constants={name: value}))
    except Final as error:
        if error.code != Code.BAD_MAPPING:
            raise
        screen().print(f"{error.message} {error.hint}".strip(), markup=False)


# ------------------------------------------------------------------------------------------------------ a last look


def _ask_whether(at: Desk, job: str) -> bool:
    """Whether to go on with the columns as they are."""
    show_columns(at, job, at.column_mappings(job))
    options = [Option(True, "go on with these columns"), Option(False, "change a column")]
    return choose("Is that right?", options)


def _ask_which(at: Desk, job: str) -> None:
    now = at.column_mappings(job)
    options = [Option(column, column.header, column.target_field or "left out") for column in now.columns]
    _ask_column(at, job, now, choose("Which column?", options))
