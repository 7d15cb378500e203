"""Stops an importer at an exact moment: a trigger there asks for a lock that we hold."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import LiteralString, Protocol

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from .trial import Importing, wait_for, waiting

_FUNCTIONS: LiteralString = """
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(7007); RETURN NEW; END $$;

CREATE TABLE commit_gate (passed boolean);
CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON commit_gate DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION gate();
CREATE FUNCTION gate_in_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO commit_gate VALUES (true); RETURN NULL; END $$;
"""


class Gated(Protocol):
    """A database, and processes that may come to a gate in it."""

    @property
    def importings(self) -> list[Importing]: ...

    def connect(self) -> Connection[TupleRow]: ...


class Gate:
    """Holds whoever comes to it until it is opened."""

    def __init__(self, trial: Gated) -> None:
        self._trial = trial
        self._keeper = trial.connect()
        self._keeper.execute("SELECT pg_advisory_lock(7007)")

    def wait(self, many: int = 1) -> int:
        """Wait until so many stand before the gate; the process of the first one's session."""
        return wait_for(lambda: found if len(found := self._waiting()) >= many else None)[0]

    def open(self) -> None:
        """Let all pass. A server that died has done it already."""
        with suppress(psycopg.OperationalError):
            self._keeper.execute("SELECT pg_advisory_unlock_all()")
        self._keeper.close()

    def _waiting(self) -> list[int]:
        assert not any(importing.ends() for importing in self._trial.importings), "It ended and never came to the gate."
        return waiting(self._keeper, "advisory")


@contextmanager
def gate_at(trial: Gated, trigger: LiteralString) -> Generator[Gate]:
    """A closed gate: `trigger` is what stands between CREATE and EXECUTE, without the function for most."""
    function: LiteralString = "" if "EXECUTE" in trigger else " EXECUTE FUNCTION gate()"
    with trial.connect() as connection:
        connection.execute(_FUNCTIONS)
        connection.execute("CREATE " + trigger + function)  # pyright: ignore[reportArgumentType] (both are literals)
    gate = Gate(trial)
    try:
        yield gate
    finally:
        gate.open()
