"""A file becomes a job."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import PurePath
from typing import Any, BinaryIO

from psycopg import Connection

from rowcall.config import Settings
from rowcall.engine.columns.usable import check_usable
from rowcall.engine.context import scope_of, with_context
from rowcall.errors import DoesNotFit
from rowcall.importer import Importer
from rowcall.model import Code, Mode
from rowcall.store import jobs
from rowcall.store.files.filestore import file_store
from rowcall.store.jobs import LOCAL, Job, JobConfig
from rowcall.store.leftovers import discard_unless_of, unless_refused
from rowcall.store.templates import find_template


def start_job(
    connection: Connection[Any],
    settings: Settings,
    importer: type[Importer],
    stream: BinaryIO,
    *,
    file_name: str,
    config: JobConfig,
    known_as: str | None = None,
) -> Job:
    """Store the file and make a job for it, or find the interrupted job that was to do the same.

    `known_as` is what the importer is found by again, where its name alone would not do.
    """
    known_as = known_as or importer.name
    config = settled_config(importer, config)
    if config.template:
        find_template(connection, LOCAL, known_as, config.template)
    store = file_store(settings)

    def connected() -> AbstractContextManager[Connection[Any]]:
        return nullcontext(connection)

    with store.kept(stream) as stored, unless_refused(store, stored, connected):
        job = jobs.take_interrupted(connection, known_as, stored.sha256, config)
        if job is None:
            name = PurePath(file_name).name
            job = jobs.create_job(
                connection, known_as, stored, file_name=name, config=config, scope=scope_of(importer, config)
            )
        else:
            jobs.unlock(connection, job.id)
        discard_unless_of(store, job.file_location, stored, connected)
    return job


def settled_config(importer: type[Importer], config: JobConfig) -> JobConfig:
    """The configuration of a job, its context read. Refuses what the importer can't do, before there is a job."""
    config = with_context(importer, config)
    if unknown := [name for name in config.constants if name not in importer.fields]:
        wrong = [{"at": f"constants/{name}", "message": f"There is no field {name!r}."} for name in unknown]
        told = f"Importer {importer.name} has no field {', '.join(map(repr, unknown))} to set."
        raise DoesNotFit(Code.BAD_MAPPING, told, hint=f"It has {', '.join(importer.fields)}.", errors=wrong)
    for name in config.constants:
        check_usable(importer, name, config)
    if config.mode is Mode.UPSERT and not importer.keys:
        told = f"Importer {importer.name} has no key to know a row by, so that it can't update what is there."
        wrong = [{"at": "mode", "message": "Rows can't be updated without a key."}]
        raise DoesNotFit(Code.BAD_OPTION, told, hint="Give it a `key`, or import in mode insert.", errors=wrong)
    return config
