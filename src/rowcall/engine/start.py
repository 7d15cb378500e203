"""A file becomes a job."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import PurePath
from typing import Any, BinaryIO

from psycopg import Connection

from rowcall.config import Settings
from rowcall.engine.columns.constants import read_constants
from rowcall.engine.columns.usable import check_usable
from rowcall.engine.context import scope_of, with_context
from rowcall.errors import DoesNotFit
from rowcall.importer import Importer
from rowcall.importer.declaration import did_you_mean
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


def _refuse_unknown(importer: type[Importer], config: JobConfig) -> None:
    """Refuse fields that constants and columns are to go to, and that there are none of."""
    meant = {f"constants/{name}": name for name in config.constants}
    meant |= {f"mapping/{header}": name for header, name in config.mapping.items() if name}
    unknown = {at: name for at, name in meant.items() if name not in importer.fields}
    if not unknown:
        return
    hints = {name: did_you_mean(name, importer.fields) for name in unknown.values()}
    wrong = [{"at": at, "message": f"There is no field {name!r}. {hints[name]}"} for at, name in unknown.items()]
    told = f"Importer {importer.name} has no field {', '.join(map(repr, hints))}."
    hint = next(iter(hints.values())) if len(hints) == 1 else f"It has {', '.join(importer.fields)}."
    raise DoesNotFit(Code.BAD_MAPPING, told, hint=hint, errors=wrong)


def _refuse_twice(config: JobConfig) -> None:
    """Refuse a value for all rows of a field that a column is to go to, too."""
    for header, name in config.mapping.items():
        if name in config.constants and name not in config.context:
            told = f"Field {name!r} is to have the column {header!r} and one value for all rows."
            wrong = [{"at": f"constants/{name}", "message": f"The column {header!r} goes to this field."}]
            raise DoesNotFit(Code.BAD_MAPPING, told, hint="Leave one of them out.", errors=wrong)


def settled_config(importer: type[Importer], config: JobConfig) -> JobConfig:
    """The configuration of a job, its context and constants read. Refuses what can't be done, before there is a job."""
    config = with_context(importer, config)
    _refuse_unknown(importer, config)
    _refuse_twice(config)
    for name in config.constants:
        check_usable(importer, name, config)
    if config.mode is Mode.UPSERT and not importer.keys:
        told = f"Importer {importer.name} has no key to know a row by, so that it can't update what is there."
        wrong = [{"at": "mode", "message": "Rows can't be updated without a key."}]
        raise DoesNotFit(Code.BAD_OPTION, told, hint="Give it a `key`, or import in mode insert.", errors=wrong)
    return replace(config, constants=config.constants | _own_constants(importer, config))


def _own_constants(importer: type[Importer], config: JobConfig) -> dict[str, str]:
    """The constants that no context tells, which is read already."""
    own = {name: text for name, text in config.constants.items() if name not in config.context}
    return read_constants(importer, own, config.read)
