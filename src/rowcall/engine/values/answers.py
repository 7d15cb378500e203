"""What people decided of values, as the rows of a batch ask for it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import polars as pl
from psycopg import Connection

from rowcall.store import value_mappings
from rowcall.store.value_mappings import SAID

NOTHING_SAID = pl.DataFrame(schema=SAID)
QUESTIONS = {"number": pl.Int64, "field": pl.String, "scope": pl.String, "value": pl.String}
"""Values that somebody has to be asked about, with the rows that have them."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The decisions of a job. They change only while it waits for a person."""

    job_id: UUID
    fields: frozenset[str]
    """Those that have any."""

    def of(self, connection: Connection[Any], name: str, asked: pl.DataFrame) -> pl.DataFrame:
        """What was decided of values (`value`, `scope`) of a field: the same with `action` and `target`.

        `late`: since the plan of the job was agreed to.
        """
        if name not in self.fields or not asked.height:
            return NOTHING_SAID
        return value_mappings.said(connection, self.job_id, name, asked)


class Unsettled(Exception):
    """Rows have values that nobody was asked about yet, and somebody is to be."""

    def __init__(self, questions: pl.DataFrame) -> None:
        super().__init__(f"{questions.height} values are unsettled")
        self.questions = questions


def answers_of(connection: Connection[Any], job_id: UUID) -> Answers:
    """The decisions of a job as they are now."""
    return Answers(job_id, value_mappings.decided_fields(connection, job_id))
