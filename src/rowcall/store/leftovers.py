"""Stored files that no job has: refused after they came, or left by a process that was killed before it made a job."""

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.errors import Retryable
from rowcall.store.files.filestore import FileStore, StoredFile, content_of
from rowcall.store.queries import query

Connected = Callable[[], AbstractContextManager[Connection[Any]]]
"""How to come by a connection that sees all jobs, when there is need of one."""
_AT_ONCE = 1_000
_log = logging.getLogger(__name__)


@contextmanager
def unless_refused(store: FileStore, file: StoredFile, connected: Connected) -> Generator[None]:
    """Delete a file if this fails, unless it is held, or its job may have been made: a COMMIT can lose its answer."""
    try:
        yield
    except (psycopg.OperationalError, Retryable):
        raise
    except BaseException:
        if not file.held:
            discard(store, file, connected)
        raise


def discard_unless_of(store: FileStore, location: str | None, file: StoredFile, connected: Connected) -> None:
    """Delete what came if its job has the same bytes from elsewhere."""
    if location != file.location:
        discard(store, file, connected)


def discard(store: FileStore, file: StoredFile, connected: Connected) -> None:
    """Delete a file that no job was made from, unless another has it. If that fails, it is left over for a while."""
    try:
        with connected() as connection:
            remove_unused(connection, store, file.location, file.sha256)
    except (psycopg.Error, OSError, Retryable) as error:  # it was refused for another reason, which is to be told
        _log.warning("%s is left over: %s", file.location, type(error).__name__)


def remove_unused(connection: Connection[Any], store: FileStore, location: str, sha256: str) -> bool:
    """Delete what is stored at a location, if no job has it; whether it went.

    It goes while the row of its content is locked, as in retention: an upload of the same content that is about to
    become a job comes before, and keeps it, or after, and puts it back.
    """
    given = {"sha256": sha256, "size": 0, "location": location}
    with connection.transaction():
        known = connection.cursor(row_factory=scalar_row).execute(query("lock_file"), given).fetchone() or ""
        goes = _forgotten(connection, sha256) or store.within(known) != location
        if goes:
            store.remove(location)
    return goes


def _forgotten(connection: Connection[Any], sha256: str) -> bool:
    try:
        with connection.transaction():
            return connection.execute(query("remove_file"), {"sha256": sha256}).rowcount == 1
    except psycopg.errors.ForeignKeyViolation:
        return False


def remove_unknown(connection: Connection[Any], store: FileStore, *, older_than: float) -> int:
    """Delete stored files that no job has, and that nobody wrote to for so many seconds; how many.

    Only where the store is known to be this database's: in one that others share, theirs would go.
    """
    if store.owner is None:
        return 0
    store.require_own()
    return sum(_removed(connection, store, location) for location in list(_unknown(connection, store, older_than)))


def _unknown(connection: Connection[Any], store: FileStore, older_than: float) -> Iterator[str]:
    cursor = connection.cursor(row_factory=scalar_row)
    locations = store.locations(older_than=older_than)
    while found := list(islice(locations, _AT_ONCE)):
        yield from cursor.execute(query("unknown_files"), {"found": found}).fetchall()


def _removed(connection: Connection[Any], store: FileStore, location: str) -> bool:
    if sha256 := content_of(location):
        return remove_unused(connection, store, location, sha256)
    store.remove(location)  # named by chance: nobody else can come to it by its content
    return True
