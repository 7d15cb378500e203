"""Verifies rows: texts become typed values, and whatever doesn't fit becomes an issue. No loop over cells.

All issues of a row are found. A value that can't be read silences its own checks and the rules that look at it, nothing
else. Work is spent on what is wrong only where something is: one `select` reads all columns in their usual form, one
tells which checks fail anywhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from types import MappingProxyType

import polars as pl

from rowcall.engine.failures import importer_failed
from rowcall.errors import Final
from rowcall.importer.fields import Check, ColumnLimits, ColumnReading, Field, read_missed, refused
from rowcall.importer.importer import Importer
from rowcall.importer.lookups import Lookup
from rowcall.importer.rules import Rule
from rowcall.model import Code

_VALUE_SHOWN = 200
_FOUND_SHOWN = 60
_ISSUE_SCHEMA = {
    "number": pl.Int64,
    "code": pl.String,
    "field": pl.String,
    "value": pl.String,
    "message": pl.String,
}
_NOTHING = pl.lit(None, dtype=pl.String)
_NO_READINGS: Mapping[str, ColumnReading] = MappingProxyType({})
_NO_LIMITS: Mapping[str, ColumnLimits] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Verified:
    """The good rows with typed values, and what is wrong with the others."""

    frame: pl.DataFrame
    """`number` and a column per field; only rows without issues."""
    issues: pl.DataFrame
    """number, code, field, value, message; by number, then in the order of the fields."""


def verify(
    importer: type[Importer],
    rows: pl.DataFrame,
    *,
    readings: Mapping[str, ColumnReading] = _NO_READINGS,
    limits: Mapping[str, ColumnLimits] = _NO_LIMITS,
    unresolved: pl.DataFrame | None = None,
    awaited: pl.DataFrame | None = None,
) -> Verified:
    """Verify rows of texts: `number`, and a String column for each field that the file has.

    Lookup fields are resolved already; those that could not be are null, as are cells that the reader found no value
    in, with their issue in `unresolved`, or in `awaited` if they are not held against the row.
    """
    rows = rows.rechunk()  # joined rows are in pieces, and Polars panics over columns that are cut differently
    steps = _steps(importer, tuple(rows.columns), frozenset(readings.items()), frozenset(limits.items()))
    texts = rows.select("number", *(column.clean for column in steps.columns))
    values, unread = _read(steps, texts)
    batch = _Batch(steps, rows, texts, values, unread, _lost(rows, _both(unresolved, awaited)))
    findings = list(batch.findings())
    good = values.select("number", *steps.kept)
    lost = batch.lost if awaited is None else _lost(rows, unresolved)
    if masks := [*(finding.mask for finding in findings), *lost.values()]:
        good = good.filter(~reduce(lambda one, other: one | other, masks))
    return Verified(good, _issues(batch, findings, unresolved))


# -- compiled once for an importer and the columns of a file


@dataclass(frozen=True, slots=True)
class _Column:
    field: Field
    position: int
    is_mapped: bool
    is_required: bool
    clean: pl.Expr
    usual: pl.Expr
    others: tuple[pl.Expr, ...]
    refusal: pl.Expr
    checks: tuple[Check, ...]

    @property
    def name(self) -> str:
        return self.field.name


@dataclass(frozen=True, slots=True)
class _Steps:
    importer: type[Importer]
    columns: tuple[_Column, ...]
    kept: tuple[str, ...]
    judged: tuple[tuple[_Column, Check] | Rule, ...]
    """What is judged, in the order in which a row's issues are reported."""
    failing: tuple[pl.Expr, ...]
    """Where it fails; one expression for each of `judged`."""

    def column(self, name: str | None) -> _Column | None:
        return next((column for column in self.columns if column.name == name), None)


@lru_cache(maxsize=128)
def _steps(
    importer: type[Importer],
    names: tuple[str, ...],
    readings: frozenset[tuple[str, ColumnReading]],
    limits: frozenset[tuple[str, ColumnLimits]],
) -> _Steps:
    fields = [
        field.read_as(dict(readings).get(name, ColumnReading()), dict(limits).get(name, ColumnLimits()))
        for name, field in importer.fields.items()
    ]
    columns = tuple(_column(field, position, field.name in names) for position, field in enumerate(fields))
    checks = tuple((column, check) for column in columns for check in column.checks)
    failing = (*(check.failing for _, check in checks), *(~rule.expression for rule in importer.rules))
    return _Steps(
        importer,
        columns,
        tuple(column.name for column in columns if column.is_mapped or column.field.default is not None),
        (*checks, *importer.rules),
        tuple(expression.alias(str(index)) for index, expression in enumerate(failing)),
    )


def _column(field: Field, position: int, is_mapped: bool) -> _Column:
    usual, *others = field.forms()
    looked_up = isinstance(field, Lookup)  # with its default, before it comes here
    if field.default is not None and not looked_up:
        usual = pl.when(pl.col(field.name).is_null()).then(_default(field)).otherwise(usual)
    return _Column(
        field,
        position,
        is_mapped,
        (field.default is None or looked_up) and (field.required or field.limits.required),
        (field.clean() if is_mapped else pl.lit(None, dtype=pl.String)).alias(field.name),
        usual.alias(field.name),
        tuple(others),
        field.refusal(),
        field.checks(),
    )


def _default(field: Field) -> pl.Expr:
    # A default is written as Python writes it, whatever the file's column does.
    value = field.read_as(ColumnReading(), field.limits).default_value()
    if value is None or value.null_count():
        told = f"The default of {field.name!r}, {field.default!r}, doesn't fit its column {field.column!r}."
        raise Final(Code.BAD_DECLARATION, told, hint="Change the default or the column.")
    return pl.lit(value).first()


# -- done for each batch


def _read(steps: _Steps, texts: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, pl.Series]]:
    """The typed values, and for each field with texts that can't be read, where they are."""
    values = texts.select("number", *(column.usual for column in steps.columns))
    unread: dict[str, pl.Series] = {}
    for column in steps.columns:
        text, value = texts[column.name], values[column.name]
        if value.null_count() == (text.null_count() if column.field.default is None else 0):
            continue
        value = read_missed(text, value, column.others).alias(column.name)
        values = values.with_columns(value)
        missing = value.is_null() & text.is_not_null()
        if missing.any():
            unread[column.name] = missing
    return values, unread


def _both(one: pl.DataFrame | None, other: pl.DataFrame | None) -> pl.DataFrame | None:
    return one if other is None else other if one is None else pl.concat([one, other])


def _lost(rows: pl.DataFrame, unresolved: pl.DataFrame | None) -> dict[str, pl.Series]:
    """For each field with cells or look-ups that came to nothing, where they are."""
    if unresolved is None or unresolved.is_empty():
        return {}
    parts = unresolved.partition_by("field", as_dict=True)
    return {str(name): rows["number"].is_in(part["number"].implode()) for (name,), part in parts.items()}


@dataclass(frozen=True, slots=True)
class _Finding:
    """The rows in which one thing is wrong."""

    mask: pl.Series
    column: _Column | None
    told: pl.Expr
    """A struct of code and message."""


@dataclass(frozen=True, slots=True)
class _Batch:
    steps: _Steps
    rows: pl.DataFrame
    texts: pl.DataFrame
    values: pl.DataFrame
    unread: Mapping[str, pl.Series]
    lost: Mapping[str, pl.Series]

    def findings(self) -> Iterator[_Finding]:
        """Everything that is wrong; what a field itself says comes before the rules."""
        for column in self.steps.columns:
            yield from self._blank(column)
            if (mask := self.unread.get(column.name)) is not None:
                yield _Finding(mask, column, column.refusal)
        yield from self._failed()

    def _blank(self, column: _Column) -> Iterator[_Finding]:
        text = self.texts[column.name]
        if column.is_required and text.null_count():
            lost = self.lost.get(column.name)
            mask = text.is_null() if lost is None else text.is_null() & ~lost
            yield _Finding(mask, column, refused(Code.REQUIRED, pl.lit("A value is required.")))

    def _failed(self) -> Iterator[_Finding]:
        if not self.steps.failing:
            return
        masks = self._masks()
        failing = masks.select(pl.all().any()).row(0)
        for judged, mask, fails in zip(self.steps.judged, masks.iter_columns(), failing, strict=True):
            if not fails:
                continue
            if isinstance(judged, Rule):
                told = refused(judged.code, pl.lit(judged.message))
                yield _Finding(self._heard(judged, mask), self.steps.column(judged.field), told)
            else:
                column, check = judged
                yield _Finding(mask.fill_null(False), column, refused(check.code, check.message))

    def _masks(self) -> pl.DataFrame:
        try:
            return self.values.select(self.steps.failing)
        except Exception as error:
            raise self._blamed(error) from error

    def _blamed(self, error: Exception) -> Exception:
        """The error as that of the rule that raises it, if one does."""
        for judged, failing in zip(self.steps.judged, self.steps.failing, strict=True):
            try:
                self.values.select(failing)
            except Exception as its_own:
                rule = isinstance(judged, Rule)
                return importer_failed(self.steps.importer, f"Rule {judged.name}", its_own) if rule else its_own
        return error

    def _heard(self, rule: Rule, mask: pl.Series) -> pl.Series:
        """Where a rule fails and everything it looks at could be read."""
        silencers = [masks[name] for masks in (self.unread, self.lost) for name in rule.reads if name in masks]
        return reduce(lambda heard, silencer: heard & ~silencer, silencers, mask.fill_null(False))


def _issues(batch: _Batch, findings: list[_Finding], unresolved: pl.DataFrame | None) -> pl.DataFrame:
    told = [_told(batch, finding) for finding in findings]
    if unresolved is not None and not unresolved.is_empty():
        positions = {column.name: column.position for column in batch.steps.columns}
        position = pl.col("field").replace_strict(positions, return_dtype=pl.Int64).alias("position")
        told.insert(0, unresolved.select(*_ISSUE_SCHEMA, position))
    if not told:
        return pl.DataFrame(schema=_ISSUE_SCHEMA)
    return pl.concat(told).sort("number", "position", maintain_order=True).select(*_ISSUE_SCHEMA)


def _told(batch: _Batch, finding: _Finding) -> pl.DataFrame:
    """The issues of one finding."""
    column = finding.column
    numbers = batch.rows["number"].filter(finding.mask)
    text = batch.texts[column.name].filter(finding.mask) if column else _NOTHING
    value = batch.rows[column.name].filter(finding.mask) if column and column.is_mapped else _NOTHING
    cut = pl.when(pl.col("text").str.len_chars() > _FOUND_SHOWN).then(pl.col("text").str.slice(0, _FOUND_SHOWN) + "…")
    frame = numbers.to_frame().with_columns(text.alias("text"), value.alias("value"))
    told = frame.with_columns(found=cut.otherwise(pl.col("text"))).select(
        "number",
        finding.told.alias("told"),
        pl.lit(column.name if column else None, dtype=pl.String).alias("field"),
        pl.col("value").str.slice(0, _VALUE_SHOWN),
        pl.lit(column.position if column else len(batch.steps.columns), dtype=pl.Int64).alias("position"),
    )
    return told.unnest("told").select(*_ISSUE_SCHEMA, "position")
