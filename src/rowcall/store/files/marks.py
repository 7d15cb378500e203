"""Which file store a database belongs to: both have the same mark, written when they are first used together.

A process with another store (another folder, a disk that isn't mounted) would find none of the files of good jobs, and
store new ones where nobody finds them.
"""

from typing import Any
from uuid import uuid4

from psycopg import Connection
from psycopg.rows import scalar_row

from rowcall.store.files.filestore import FileStore, foreign
from rowcall.store.migrate import take_turns
from rowcall.store.queries import query


def known_mark(connection: Connection[Any]) -> str | None:
    """The mark of the store that the database belongs to; None if it was never used with one."""
    return connection.cursor(row_factory=scalar_row).execute(query("mark_known")).fetchone()


def bind(connection: Connection[Any], store: FileStore) -> None:
    """Refuse a store that isn't the database's. From then on, the store sees for itself that it stays the same.

    Processes that are the first take turns, so that one of them decides.
    """
    known = known_mark(connection)
    if known is None:
        with connection.transaction():
            take_turns(connection)
            known = known_mark(connection) or _first(connection, store)
    store.owner = known
    store.require_own()


def adopt_store(connection: Connection[Any], store: FileStore) -> None:
    """Have the database belong to this store, whichever it belonged to: its files were moved there."""
    with connection.transaction():
        take_turns(connection)
        store.owner = _marked(store)
        connection.execute(query("set_mark"), {"mark": store.owner})


def _first(connection: Connection[Any], store: FileStore) -> str:
    """A database from before there were marks has files: they tell its store from others."""
    locations = connection.cursor(row_factory=scalar_row).execute(query("mark_of_known_files")).fetchall()
    if locations and not any(store.has(location) for location in locations):
        raise foreign(store.where)
    mark = _marked(store)
    connection.execute(query("set_mark"), {"mark": mark})
    return mark


def _marked(store: FileStore) -> str:
    """The store's mark; it gets one if it has none."""
    return store.mark() or store.set_mark(str(uuid4()))
