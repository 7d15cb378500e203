"""Asks what values mean: gathers the distinct values of a job's fields, and says whether a person has to answer.

A field that others are looked up within is settled before they are gathered: what the same text means depends on it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
from psycopg import Connection

from rowcall.engine.judge import numbered, problems_of, rows_of
from rowcall.engine.meaning import meant
from rowcall.engine.resolve import asking, with_scopes
from rowcall.engine.typed import needed_for, texts_of
from rowcall.engine.values.answers import Unsettled, answers_of
from rowcall.engine.values.match import match_values
from rowcall.engine.work import Work
from rowcall.importer import Choice, Importer, Lookup, WholeFileImporter
from rowcall.model import State
from rowcall.store import jobs, value_mappings
from rowcall.store.jobs import Job
from rowcall.store.queries import query
from rowcall.store.rows import RowBatch, Sources, all_batches


def concerns(connection: Connection[Any], job: Job, importer: type[Importer]) -> bool:
    """Whether somebody may have to be asked about values, or was before."""
    if issubclass(importer, WholeFileImporter):
        return False
    fields = _askable(importer)
    if any(field.on_missing in _GATHERED for field in fields.values()):
        return True
    if not fields:
        return False
    return not value_mappings.remembered_fields(connection, job.organisation_id, job.importer).isdisjoint(fields)


_GATHERED = ("ask", "create")
"""What is asked about once, and what is created by one spelling, is known of the whole file before the first batch."""


def _askable(importer: type[Importer]) -> dict[str, Lookup | Choice]:
    return {name: field for name, field in importer.fields.items() if isinstance(field, (Lookup, Choice))}


def gather_values(connection: Connection[Any], work: Work) -> None:
    """Gather the values that can be gathered by now, and find out what they stand for. Doing it again is no matter."""
    while fields := _next_fields(connection, work):
        work = replace(work, answers=answers_of(connection, work.job.id))
        with connection.transaction():
            for name in fields:
                value_mappings.begin_gathering(connection)
                for batch in all_batches(connection, work.job.id):
                    value_mappings.add_gathered(connection, _values_in(connection, work, batch, name))
                asks = _askable(work.importer)[name].on_missing == "ask"
                value_mappings.keep_gathered(connection, work.job.id, name, asks=asks)
                match_values(connection, work, name)
            value_mappings.name_created(connection, work.job.id)


def _next_fields(connection: Connection[Any], work: Work) -> list[str]:
    """The fields whose values are not gathered yet, and of which it is known what they are looked up within."""
    remembered = value_mappings.remembered_fields(connection, work.job.organisation_id, work.job.importer)
    given = {*work.sources, *work.job.config.constants}
    asked = [
        name
        for name, field in _askable(work.importer).items()
        if name in given and (field.on_missing in _GATHERED or name in remembered) and name not in work.own_lookups
    ]
    done = value_mappings.gathered_fields(connection, work.job.id)
    unsettled = {each.field for each in value_mappings.open_fields(connection, work.job.id)}
    unsettled |= {name for name in asked if name not in done}
    return [name for name in asked if name not in done and not unsettled.intersection(_scopes(work, name))]


def _scopes(work: Work, name: str) -> set[str]:
    """The fields that a field is looked up within, and those that these are."""
    found: set[str] = set()
    while name in work.lookups and (within := work.lookups[name].within) and within not in found:
        found.add(within)
        name = within
    return found


def _settled_before(work: Work, name: str) -> set[str]:
    """What a field is looked up within, and those of as few scopes of which people said something: to skip rows, maybe.

    Fields that are gathered together don't depend on each other: each keeps what was decided of its values.
    """
    scopes = _scopes(work, name)
    others = {other for other in work.answers.fields if len(_scopes(work, other)) < len(scopes)}
    return scopes | with_scopes(work.lookups, others)


def _values_in(connection: Connection[Any], work: Work, batch: RowBatch, name: str) -> pl.DataFrame:
    """The distinct values of a field in a batch: scope, value, occurrences."""
    return _values_of(connection, work, rows_of(connection, work, batch, _sources_for(work, name)), name)


def _sources_for(work: Work, name: str) -> Sources:
    return needed_for(work, {name, *_settled_before(work, name)})


def _values_of(connection: Connection[Any], work: Work, rows: pl.DataFrame, name: str) -> pl.DataFrame:
    earlier = _settled_before(work, name)
    broken, unusable = problems_of(work, rows)
    scopes = _scopes(work, name)
    numbers = [*broken["row_number"], *unusable.filter(pl.col("field").is_in([name, *scopes]))["number"]]
    texts = texts_of(work, {name, *earlier}, rows).filter(~pl.col("number").is_in(numbers))
    if earlier:
        found = meant(connection, work, texts, earlier)
        failing = found.issues.filter(pl.col("field").is_in(list(scopes)))
        texts = found.rows.filter(~pl.col("number").is_in([*found.skipped["number"], *failing["number"]]))
    field = work.importer.fields[name]
    if isinstance(field, Lookup):
        texts = asking(name, field, texts)
    else:
        texts = texts.with_columns(field.clean().alias(name), pl.lit("").alias("_scope"))
    return (
        texts.drop_nulls(name)
        .group_by(pl.col("_scope").alias("scope"), pl.col(name).alias("value"))
        .agg(pl.len().cast(pl.Int64).alias("occurrences"))
    )


def add_corrected(connection: Connection[Any], work: Work, numbers: Sequence[int]) -> Work:
    """The work, when it is known what values that corrections have brought to some rows are to create, if anything.

    Like those of the file they stand for what is there, or is to be created, by whatever spelling.
    """
    gathered = value_mappings.gathered_fields(connection, work.job.id)
    names = [name for name in work.creating if work.lookups[name].on_missing == "create" and name in gathered]
    for name in names:
        values = _values_of(connection, work, numbered(connection, work, numbers, _sources_for(work, name)), name)
        with connection.transaction():
            value_mappings.begin_gathering(connection)
            value_mappings.add_gathered(connection, values)
            value_mappings.keep_further(connection, work.job.id, name)
            match_values(connection, work, name)
            value_mappings.name_created(connection, work.job.id)
        work = replace(work, answers=answers_of(connection, work.job.id))
    return work


def is_open(connection: Connection[Any], job: Job) -> bool:
    """Whether somebody has to say something."""
    return bool(value_mappings.open_fields(connection, job.id))


def stop_to_ask(connection: Connection[Any], work: Work, unsettled: Unsettled) -> Job:
    """The job, whose rows have values that nobody was asked about, where that is done.

    What is written stays, and what it was written by doesn't change any more.
    """
    with connection.transaction():
        job = moved = work.job
        if job.state is not State.CELL_MAPPING:
            moved = jobs.move(connection, job, State.CELL_MAPPING)
        if job.state is State.PROCESSING:
            connection.execute(query("fix_values"), {"id": job.id})
        elif job.state is State.VALIDATING:  # what was planned is planned anew, with whatever is decided now
            connection.execute(query("forget_plan"), {"id": job.id})
        for (name,), some in unsettled.questions.group_by("field"):
            value_mappings.begin_gathering(connection)
            value_mappings.add_gathered(connection, _counted(connection, work, str(name), some))
            value_mappings.keep_questions(connection, job.id, str(name))
            match_values(connection, work, str(name))
    return moved


def _counted(connection: Connection[Any], work: Work, name: str, questions: pl.DataFrame) -> pl.DataFrame:
    """The values in question, and how many rows of the job have each.

    Not only of those that were at hand, which two workers may both have had.
    """
    asked = questions.group_by("scope", "value").agg(pl.col("number").n_unique().cast(pl.Int64).alias("here"))
    everywhere = [
        _values_in(connection, work, batch, name).join(asked, on=["scope", "value"], how="semi")
        for batch in all_batches(connection, work.job.id)
    ]
    counts = pl.concat(everywhere).group_by("scope", "value").agg(pl.col("occurrences").sum())
    found = asked.join(counts, on=["scope", "value"], how="left")
    return found.select("scope", "value", pl.coalesce("occurrences", "here").alias("occurrences"))


def is_under_way(connection: Connection[Any], job: Job) -> bool:
    """Whether rows were being written when the job stopped to ask."""
    return job.state is State.CELL_MAPPING and value_mappings.asked_from(connection, job.id) == State.PROCESSING
