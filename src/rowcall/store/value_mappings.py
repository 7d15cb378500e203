"""The distinct values of a job's fields, and what each stands for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import polars as pl
from psycopg import Connection
from psycopg.rows import class_row, scalar_row
from psycopg.sql import SQL, Identifier, Literal

from rowcall.importer import folded_values
from rowcall.store.copying import copy_in, read_columns, text_array
from rowcall.store.queries import query

SAID = {"value": pl.String, "scope": pl.String, "action": pl.String, "target": pl.String, "late": pl.Boolean}
REMEMBERED = {
    "id": pl.Int64,
    "said": pl.String,
    "said_key": pl.String,
    "said_label": pl.String,
    "overrode": pl.Boolean,
    "said_by": pl.String,
    "said_in": pl.String,
}
_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenField:
    """A field with values that somebody has to say something of."""

    field: str
    values: int
    rows: int
    """How many have such a value."""
    first: list[str]
    """The most frequent of them."""


def decided_fields(connection: Connection[Any], job_id: UUID) -> frozenset[str]:
    """The fields with values that stand for something else than a look at the table would tell."""
    return frozenset(connection.cursor(row_factory=scalar_row).execute(query("decided_fields"), {"id": job_id}))


def said(connection: Connection[Any], job_id: UUID, field: str, asked: pl.DataFrame) -> pl.DataFrame:
    """What was decided of values (`value`, `scope`) of a field: the same with `action`, `target` and `late`."""
    given = {"id": job_id, "field": field, "values": text_array(asked["value"]), "scopes": text_array(asked["scope"])}
    found = connection.execute(query("said_of_values"), given).fetchall()
    return pl.DataFrame(found, schema=SAID, orient="row")


# ------------------------------------------------------------------------------------------------- putting together


def begin_gathering(connection: Connection[Any]) -> None:
    """Make room for values of batches. Called in a transaction."""
    connection.execute("DROP TABLE IF EXISTS pg_temp.rowcall_gathered, pg_temp.rowcall_distinct")
    connection.execute(query("gathered_table"))
    connection.execute(query("distinct_table"))


def add_gathered(connection: Connection[Any], values: pl.DataFrame) -> None:
    """Add the values of a batch: scope, value, occurrences."""
    folded = values.with_columns(folded_values(pl.col("value")).alias("folded"))
    copy_in(connection, Identifier("pg_temp", "rowcall_gathered"), folded)


def keep_gathered(connection: Connection[Any], job_id: UUID, field: str, *, asks: bool) -> None:
    """Have the values that were gathered be those of the field. What was decided of them stays."""
    _sum_up(connection, field)
    given = {"id": job_id, "field": field, "asks": asks}
    for name in ("drop_ungathered", "count_known", "add_value_field"):
        connection.execute(query(name), given)


def keep_further(connection: Connection[Any], job_id: UUID, field: str) -> None:
    """Have those of the values that were gathered be the field's, too, which it doesn't have yet."""
    _sum_up(connection, field)
    connection.execute(query("drop_known"), {"id": job_id})


def keep_questions(connection: Connection[Any], job_id: UUID, field: str) -> None:
    """Have the values that were gathered be looked at anew, and the job wait for what somebody says of them."""
    _sum_up(connection, field)
    given = {"id": job_id, "field": field, "asks": True}
    for name in ("question_known", "add_value_field"):
        connection.execute(query(name), given)


def _sum_up(connection: Connection[Any], field: str) -> None:
    connection.execute("ANALYZE pg_temp.rowcall_gathered")
    connection.execute(query("sum_gathered"), {"field": field})
    connection.execute("ANALYZE pg_temp.rowcall_distinct")


def to_match(connection: Connection[Any]) -> Iterator[pl.DataFrame]:
    """The values that were gathered and nobody has looked at, some at a time: id, scope, value, folded."""
    texts = {name: SQL(name) for name in ("scope", "value", "folded")}
    source = SQL("(SELECT * FROM pg_temp.rowcall_distinct WHERE id > {} ORDER BY id LIMIT {}) AS d")
    after = 0
    while (found := read_columns(connection, source.format(Literal(after), Literal(_AT_ONCE)), "id", texts)).height:
        yield found
        after = found["id"][-1]


def add_matched(connection: Connection[Any], job_id: UUID, field: str, matched: pl.DataFrame) -> None:
    """Keep values with what they stand for."""
    connection.execute("DROP TABLE IF EXISTS pg_temp.rowcall_matched")
    connection.execute(query("matched_table"))
    copy_in(connection, Identifier("pg_temp", "rowcall_matched"), matched)
    connection.execute("ANALYZE pg_temp.rowcall_matched")
    connection.execute(query("add_matched"), {"id": job_id, "field": field})


def count_values(connection: Connection[Any], job_id: UUID, field: str) -> None:
    """Count how far a field is settled, when other than a person's answers have changed that."""
    connection.execute(query("count_values"), {"id": job_id, "field": field})


def name_created(connection: Connection[Any], job_id: UUID) -> None:
    """Have values that are the same without case and accents create one thing, by the spelling that most rows have.

    Called in a transaction.
    """
    # of a table that was just filled, the planner knows nothing: it might hold each value against each other one
    connection.execute("SET LOCAL enable_nestloop TO off")
    connection.execute(query("name_created"), {"id": job_id})
    connection.execute("SET LOCAL enable_nestloop TO on")


def gathered_fields(connection: Connection[Any], job_id: UUID) -> set[str]:
    """The fields whose values were gathered."""
    return set(connection.cursor(row_factory=scalar_row).execute(query("value_fields"), {"id": job_id}))


def open_fields(connection: Connection[Any], job_id: UUID) -> list[OpenField]:
    """The fields that somebody has to say something of."""
    return connection.cursor(row_factory=class_row(OpenField)).execute(query("open_values"), {"id": job_id}).fetchall()


def asked_from(connection: Connection[Any], job_id: UUID) -> str | None:
    """The state in which a job was before it asked about values."""
    return connection.cursor(row_factory=scalar_row).execute(query("asked_from"), {"id": job_id}).fetchone()


# ------------------------------------------------------------------------------------------------------ remembered


def remembered_fields(connection: Connection[Any], organisation: UUID, importer: str) -> set[str]:
    """The fields of an importer that an organisation has decided something of."""
    given = {"organisation": organisation, "importer": importer}
    return set(connection.cursor(row_factory=scalar_row).execute(query("remembered_fields"), given))


def remembered(connection: Connection[Any], organisation: UUID, importer: str, values: pl.DataFrame) -> pl.DataFrame:
    """What an organisation decided of values that were gathered, as `to_match` gives them."""
    given = {"organisation": organisation, "importer": importer, "first": values["id"][0], "last": values["id"][-1]}
    return pl.DataFrame(connection.execute(query("remembered_values"), given).fetchall(), REMEMBERED, orient="row")
