"""Whether what a job wrote can be taken back at all, and what is said where it can't."""

from typing import Any

from psycopg import Connection

from rowcall.errors import Final
from rowcall.importer import Importer, ItemImporter, Version, WholeFileImporter
from rowcall.model import Code
from rowcall.store import undos
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job
from rowcall.store.referrers import referrers_of
from rowcall.store.targets import describe
from rowcall.store.undoing.slices import Undoing, Versions
from rowcall.words import counted


def why_not(importer: type[Importer]) -> str | None:
    """Why nothing that an importer did can be taken back; None if it can."""
    if importer.undo is not True:
        return importer.undo or f"{importer.name} doesn't let its imports be taken back."
    if issubclass(importer, WholeFileImporter | ItemImporter):
        return f"{importer.name} processes rows by its own code: Rowcall doesn't know what that changed."
    return None


def require_possible(importer: type[Importer]) -> None:
    """Refuse what can't be taken back for what the importer is."""
    if why := why_not(importer):
        raise Final(Code.UNDO_NOT_POSSIBLE, why)


def require_keys(connection: Connection[Any], job: Job, importer: type[Importer]) -> None:
    """Refuse a job whose rows had no primary key when they were written."""
    if undos.asks(connection, "keys_lacking", job.id):
        raise _without_keys(importer, "has no primary key")


def _without_keys(importer: type[Importer], lacking: str) -> Final:
    told = f"{importer.target} {lacking}: which row became which of its rows is not known."
    return Final(Code.UNDO_NOT_POSSIBLE, told, hint="Take them back by a statement of your own, in the database.")


def require_stamps(connection: Connection[Any], job: Job) -> None:
    """Refuse a job of which it can't be told any more who wrote its rows last."""
    told = None
    if undos.asks(connection, "stamps_lacking", job.id):
        told = f"Job {job.number} was imported before Rowcall kept who wrote a row last: it can't be told."
    elif undos.asks(connection, "stamps_off", job.id):
        told = f"The database was restored from a dump since job {job.number}: who wrote a row last can't be told."
    if told:
        raise Final(Code.UNDO_NOT_POSSIBLE, told, hint="Import a file that says what the rows should be.")


def what_of(connection: Connection[Any], job: Job, importer: type[Importer], which: Wanted) -> Undoing:
    """What is to be taken back, where that can be."""
    require_possible(importer)
    target = describe(connection, importer.target)
    if not target.primary_key or target.kind == "f":
        raise _without_keys(importer, "is a foreign table" if target.kind == "f" else "has no primary key")
    require_keys(connection, job, importer)
    require_stamps(connection, job)
    return Undoing(
        job_id=job.id,
        target=target,
        referrers=referrers_of(connection, target),
        which=which,
        versions=_versions(importer),
    )


def _versions(importer: type[Importer]) -> Versions | None:
    if not isinstance(importer.on_match, Version):
        return None
    keys = tuple(tuple(importer.fields[name].column for name in key) for key in importer.keys)
    return Versions(importer.on_match.column, keys)


def nothing_to_undo(job: Job) -> Final:
    """What is said where a job has nothing that could be taken back."""
    return Final(Code.UNDO_NOT_POSSIBLE, f"Job {job.number} has written no row that is not taken back already.")


def none_fits() -> Final:
    """What is said where none of the rows that could be taken back is wanted."""
    told = "No row that was created or updated, and not taken back since, fits."
    return Final(Code.BAD_REQUEST, told, hint="Look at the job's items.")


def incomplete(importer: type[Importer], kept: int) -> Final:
    """What is said where an import that is all or nothing would be taken back in part."""
    stay = counted(kept, "row")
    told = f"{importer.name} is imported as a whole and taken back as a whole, and {stay} would have to stay."
    return Final(
        Code.UNDO_INCOMPLETE, told, hint="Look at the preview; ask for a partial undo to take back the others."
    )
