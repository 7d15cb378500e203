"""What is done with a job in each state: from its file to its last outcome, or until it waits for a person.

Each step looks at what is durable and leaves the job in its next state: whoever comes next goes on from there.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
from psycopg import Connection

from rowcall.engine import observe
from rowcall.engine.columns.answering import asks
from rowcall.engine.columns.asking import asking
from rowcall.engine.columns.map import known_names, map_columns
from rowcall.engine.columns.readings import blank_is_none, decide_readings, watched
from rowcall.engine.columns.templates import known_of, usable_constants
from rowcall.engine.commit import Hopes, commit_next, shortest_route
from rowcall.engine.corrections.reprocess import try_again
from rowcall.engine.duplicates import decide_duplicates
from rowcall.engine.fetch import fetch_file
from rowcall.engine.fingerprint import check as check_fingerprint
from rowcall.engine.fingerprint import fingerprint_of
from rowcall.engine.finish import (
    balance_of,
    begin_processing,
    count_drifted,
    finish_job,
    plan_again,
    shows_plan,
    start_processing,
)
from rowcall.engine.ingest import Ingesting, ingest, open_file
from rowcall.engine.labour import work_off
from rowcall.engine.moves import mismatch
from rowcall.engine.pace import Pace
from rowcall.engine.running import Run, check_stop, scratch_of
from rowcall.engine.second_look import look_again, plan_together, refers_to_itself, some_failed
from rowcall.engine.sequences import keep_ahead
from rowcall.engine.undo.take_back import take_back
from rowcall.engine.values import ask as ask_values
from rowcall.engine.values.answers import Unsettled
from rowcall.engine.waiting import decide_waiting
from rowcall.engine.whole_file import process_whole_file
from rowcall.engine.work import NO_TARGET, Work, checked_target, demanded, prepare_work
from rowcall.formats import Reading
from rowcall.importer import ItemImporter, WholeFileImporter
from rowcall.model import Mode, Progress, State, Wish
from rowcall.store import jobs, staging
from rowcall.store.edits import all_edited
from rowcall.store.fingerprints import check_of, forget_check, keep_check
from rowcall.store.jobs import Job
from rowcall.store.mappings import add_columns, columns_of, set_doubts, set_filled
from rowcall.store.queries import query

_NOTED_EVERY = 0.5
"""Seconds between notes of how much of a file is brought in."""


def advance(run: Run, control: Connection[Any], job: Job) -> Job:
    """Take the job on until it ends or waits for a person. `control` holds the job's lock."""
    steps = {
        State.UPLOADED: _bring_in,
        State.COLUMN_MAPPING: _map,
        State.CELL_MAPPING: _settle_values,
        State.FINGERPRINT_CHECK: _compare,
        State.VALIDATING: _process,
        State.PROCESSING: _process,
        State.REVERTING: take_back,
    }
    while (step := steps.get(job.state)) and job.wish is not Wish.HOLD:
        check_stop(run, job)
        job = observe.observed(control, job, partial(_unless_asked, step, run, control, job))
    return job


def _unless_asked(
    step: Callable[[Run, Connection[Any], Job], Job], run: Run, control: Connection[Any], job: Job
) -> Job:
    """The job after a step, or where somebody is asked about values that turned up in it."""
    try:
        return step(run, control, job)
    except Unsettled as unsettled:
        work = prepare_work(control, job, run.importer, scratch_of(run, job), dry=True)
        return ask_values.stop_to_ask(control, work, unsettled)


# --------------------------------------------------------------------------------------------------- from file to rows


def _bring_in(run: Run, control: Connection[Any], job: Job) -> Job:
    """UPLOADED: fetch the file if need be, map the columns, then bring all rows into the database."""
    if job.file_sha256 is None:
        return _fetch(run, control, job)
    target = checked_target(control, run.importer)
    needed = demanded(run.importer, target, job.config.mode)

    noted = time.monotonic()

    def tell(rows: int, done: int, total: int) -> None:
        nonlocal noted
        run.tell(Progress(phase="reading", rows=rows, done=done, total=total))
        check_stop(run, job)
        if job.background and time.monotonic() - noted > _NOTED_EVERY:
            jobs.note_percent_read(control, job, min(100.0, 1000 * done // max(1, total) / 10))
            noted = time.monotonic()

    names = known_names(run.importer, job.config, columns_of(control, job.id))
    with open_file(run.settings, job, names) as reading:
        kind = reading.detected.format.value
        reading.settle()
        if not columns_of(control, job.id):
            job = _first_mapping(run, control, job, reading, needed)
        scratch = scratch_of(run, job)
        scratch.clear()
        how = Ingesting(
            pace=_pace(run),
            scratch=scratch,
            writers=run.settings.workers,
            tell=tell,
            watched=watched(run.importer, columns_of(control, job.id)),
            blank_is_none=blank_is_none(
                run.importer,
                columns_of(control, job.id),
                kind=kind,
                ask=asking(run.importer, job.config),
                never_null=demanded(run.importer, target, Mode.INSERT),
            ),
        )
        ingest(run.database, control, job, reading, how)
    set_doubts(control, job.id, {position: position in how.seen for position in how.watched})
    set_filled(control, job.id, how.filled)
    return jobs.move(control, jobs.get_job(control, str(job.id)), State.COLUMN_MAPPING)


def _first_mapping(run: Run, control: Connection[Any], job: Job, reading: Reading, needed: frozenset[str]) -> Job:
    """Keep what is thought of the columns before anybody is asked."""
    known = known_of(control, job, needed)
    if (
        known.template
        and (constants := usable_constants(run.importer, known.template, job.config)) != job.config.constants
    ):
        job = jobs.change_config(control, job, replace(job.config, constants=constants))
    columns = map_columns(run.importer, reading, job.config, known)
    with control.transaction():
        add_columns(control, job.id, columns)
    return job


def _fetch(run: Run, control: Connection[Any], job: Job) -> Job:
    def tell(done: int, total: int) -> None:
        run.tell(Progress(phase="fetching", rows=0, done=done, total=total))

    return fetch_file(control, job, run.settings, check=partial(check_stop, run, job), tell=tell)


def _pace(run: Run) -> Pace:
    """Batches that call the outside world are small: their results are durable only when all are in."""
    if issubclass(run.importer, ItemImporter):
        return Pace(run.importer.concurrency, 10 * run.importer.concurrency)
    return Pace(run.settings.batch_rows_min, run.settings.batch_rows_max)


def _map(run: Run, control: Connection[Any], job: Job) -> Job:
    """COLUMN_MAPPING: settle which column is which field and how it is read, unless a person is to say something."""
    decide_readings(control, job, run.importer)
    if asks(control, job, run.importer):
        return jobs.hold(control, job)
    if ask_values.concerns(control, job, run.importer):
        with control.transaction():
            control.execute(query("forget_value_fields"), {"id": job.id})
            return jobs.move(control, job, State.CELL_MAPPING)
    return _settled(run, control, job)


def _settle_values(run: Run, control: Connection[Any], job: Job) -> Job:
    """CELL_MAPPING: find out what values mean, unless a person is to say something; then go on where it was."""
    work = prepare_work(control, job, run.importer, scratch_of(run, job), dry=True)
    run.tell(Progress(phase="checking", rows=job.row_count or 0, done=0, total=job.row_count or 0))
    under_way = ask_values.is_under_way(control, job)
    if not under_way:
        ask_values.gather_values(control, work)
    if ask_values.is_open(control, job):
        return jobs.hold(control, job)
    return jobs.move(control, job, State.PROCESSING) if under_way else _settled(run, control, job)


def _settled(run: Run, control: Connection[Any], job: Job) -> Job:
    """Columns and values are settled: have the file compared with the target first, if the importer wants that."""
    if fingerprint_of(run.importer, job) is None:
        return _begin(run, control, job)
    with control.transaction():
        forget_check(control, job.id)  # what was found, and seen, was of another mapping
        return jobs.move(control, job, State.FINGERPRINT_CHECK)


def _compare(run: Run, control: Connection[Any], job: Job) -> Job:
    """FINGERPRINT_CHECK: look whether the file is about the same things as the target, unless somebody said so."""
    seen, wanted = check_of(control, job.id), fingerprint_of(run.importer, job)
    if wanted is None or (seen and seen.acknowledged_at):
        return _begin(run, control, job)
    work = prepare_work(control, job, run.importer, scratch_of(run, job), dry=True)
    found = check_fingerprint(control, work, wanted)
    with control.transaction():
        keep_check(control, job.id, found)
        if found.verdict == "warn":
            return jobs.move(control, job, State.FINGERPRINT_WARN)
        if found.verdict == "abort":
            return jobs.move(control, job, State.FINGERPRINT_ABORT, error=mismatch(job, found))
    return _begin(run, control, job)


def _begin(run: Run, control: Connection[Any], job: Job) -> Job:
    """All is settled that people are asked about: decide what doesn't depend on the target, then start."""
    work = prepare_work(control, job, run.importer, scratch_of(run, job), dry=True)
    _decide(run, control, work)
    with control.transaction():
        if shows_plan(job, run.importer) or run.importer.atomic:
            job = jobs.move(control, job, State.VALIDATING)
            control.execute(query("forget_plan"), {"id": job.id})  # of how it was understood before
            return job
        return start_processing(control, job, run.importer)


def _decide(run: Run, control: Connection[Any], work: Work) -> None:
    """Which rows lose against others of the file, and which wait for others."""
    rows = work.job.row_count or 0
    run.tell(Progress(phase="checking", rows=rows, done=0, total=rows))
    if work.target is not NO_TARGET:
        decide_duplicates(run.database, control, work, workers=run.settings.workers)
        decide_waiting(control, work)


# ----------------------------------------------------------------------------------------------- from rows to outcomes


def _process(run: Run, control: Connection[Any], job: Job) -> Job:
    """VALIDATING or PROCESSING: commit the batches that wait, then end the job."""
    begin_processing(control, job, run.importer)
    work = prepare_work(control, job, run.importer, scratch_of(run, job), dry=job.state is State.VALIDATING)
    for numbers in all_edited(control, job.id) if work.edited else ():
        work = ask_values.add_corrected(control, work, numbers)
    if work.edited and not jobs.counts_of(control, job).done:  # corrected since that was decided
        _decide(run, control, work)
    if issubclass(run.importer, WholeFileImporter):
        return process_whole_file(control, work, run.importer())
    keep_ahead(control, work)
    if job.state is State.PROCESSING and run.importer.atomic:
        return _all_or_nothing(run, control, work)
    # where rows depend on each other, each batch has to see the earlier ones: else a plan fails when it is applied
    together = work.dry and (refers_to_itself(work) or run.importer.atomic or work.unforeseen)
    if not together:
        work_off(run, control, work)
        together = work.dry and some_failed(control, work)
    if together:
        plan_together(control, work, Hopes(shortest_route(control, work)), partial(check_stop, run, job))
    if not work.dry:
        try_again(control, work, partial(check_stop, run, job))
        look_again(control, work, partial(check_stop, run, job))
    with control.transaction():
        return finish_job(control, job, run.importer)


def _all_or_nothing(run: Run, control: Connection[Any], work: Work) -> Job:
    """All batches and the end of the job in one transaction. Should a row fail after all, the job is checked again."""
    staging.prepare(control, work.layout)
    hopes = Hopes(shortest_route(control, work))
    check, drifted = partial(check_stop, run, work.job), 0
    with control.transaction():
        while commit_next(control, work, hopes):
            check()
        look_again(control, work, check)
        if not balance_of(control, work.job).failed:
            return finish_job(control, work.job, run.importer)
        drifted = count_drifted(control, work.job)
        raise psycopg.Rollback
    return plan_again(control, work.job, drifted)
