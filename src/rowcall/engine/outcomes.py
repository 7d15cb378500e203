"""Outcomes that an importer's own code gives, made ready to be stored."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.work import Work
from rowcall.errors import Final
from rowcall.importer import Importer, RowOutcome
from rowcall.model import Code, Status
from rowcall.store.copying import cells_text, copy_into_own, jsonb_text

SCHEMA = {
    "row_number": pl.Int64,
    "status": pl.String,
    "target_key": pl.String,
    "issues": pl.String,
    "before": pl.String,
    "result": pl.String,
}


def outcomes_frame(importer: type[Importer], outcomes: Iterable[RowOutcome], numbers: Sequence[int]) -> pl.DataFrame:
    """One outcome for each of these rows, no more and no less: a row that is not accounted for stops the import."""
    frame = pl.DataFrame([_row(importer, outcome) for outcome in outcomes], schema=SCHEMA)
    given, expected = frame["row_number"].sort(), pl.Series(sorted(numbers), dtype=pl.Int64)
    if given.to_list() != expected.to_list():
        missing = sorted(set(expected) - set(given))[:5]
        several = given.filter(given.is_duplicated()).unique().sort().head(5).to_list()
        unknown = sorted(set(given) - set(expected))[:5]
        raise Final(
            Code.OUT_OF_BALANCE,
            f"{importer.name}.process gave {len(given):,} outcomes for {len(expected):,} rows: none for {missing}, "
            f"several for {several}, some for rows it was not given: {unknown}.",
            hint="It has to give exactly one RowOutcome for each row.",
        )
    return frame


def _row(importer: type[Importer], outcome: RowOutcome) -> dict[str, Any]:
    if not isinstance(outcome, RowOutcome):  # pyright: ignore[reportUnnecessaryIsInstance] (callers without a type checker)
        told = f"process of importer {importer.name} gave {outcome!r}; a RowOutcome is expected for each row."
        raise Final(Code.IMPORTER_FAILED, told, hint="Mend its code, then resume the job.")
    return {
        "row_number": outcome.number,
        "status": Status(outcome.status).value,
        "target_key": _array(outcome.target_key),
        "issues": _json(outcome.issues) if outcome.issues else None,
        "before": _json(outcome.before),
        "result": _json(outcome.result),
    }


def _array(key: tuple[str, ...] | None) -> str | None:
    return cells_text(pl.DataFrame({str(at): [part] for at, part in enumerate(key)})).item() if key else None


def _json(value: object) -> str | None:
    return None if value is None else jsonb_text(value)


def add_outcomes(connection: Connection[Any], work: Work, outcomes: pl.DataFrame) -> None:
    """COPY outcomes of the job's rows."""
    if outcomes.height:
        copy_into_own(connection, "outcome", work.job.id, outcomes)
