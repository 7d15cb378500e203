"""A job's file, from where its URL leads into the file store."""

import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, BinaryIO

from psycopg import Connection

from rowcall.config import Settings
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.sources.guard import Guard
from rowcall.sources.place import Place, parsed
from rowcall.sources.url import Fetching, fetch
from rowcall.store import jobs
from rowcall.store.files.filestore import file_store
from rowcall.store.jobs import Job
from rowcall.store.leftovers import discard_unless_of, unless_refused
from rowcall.store.queries import query

Told = Callable[[int, int], None]
"""Takes bytes so far and in all; 0 if that isn't known."""


def admitted(settings: Settings, url: str) -> Place:
    """The place that a URL names, unless it is plain that we won't go there."""
    place = parsed(url)
    Guard(settings.url_allow).admit(place)
    return place


def fetch_file(
    connection: Connection[Any], job: Job, settings: Settings, *, check: Callable[[], None], tell: Told
) -> Job:
    """The job with its file, which is durable then. Nothing is left of a file that was fetched in part."""
    (url,) = connection.execute(query("url_to_fetch"), {"id": job.id}).fetchone() or (None,)
    if url is None:
        raise Final(Code.FILE_CORRUPT, f"Job {job.number} has no file, and no URL to fetch it from.")
    store = file_store(settings)

    def connected() -> AbstractContextManager[Connection[Any]]:
        return nullcontext(connection)

    with (
        fetched(parsed(url), settings, check=check, tell=tell) as file,
        store.kept(file) as stored,
        unless_refused(store, stored, connected),
        connection.transaction(),
    ):
        location = jobs.add_file(connection, stored)
        connection.execute(query("set_file"), {"id": job.id, "sha256": stored.sha256})
    discard_unless_of(store, location, stored, connected)
    return jobs.get_job(connection, str(job.id))


@contextmanager
def fetched(
    place: Place, settings: Settings, *, check: Callable[[], None] = lambda: None, tell: Told = lambda _, __: None
) -> Generator[BinaryIO]:
    """What is at a place, as a file without a name: it is gone with the process, however that ends."""
    how = Fetching(
        guard=Guard(settings.url_allow),
        most=settings.max_upload,
        seconds=settings.url_timeout,
        check=check,
        tell=tell,
    )
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=settings.data_dir) as file:
        fetch(place, file, how)
        file.seek(0)
        yield file
