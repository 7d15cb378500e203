"""Back to the columns: from each state in which somebody waits or looks, and never under a worker's hands (X5)."""

from pathlib import Path
from typing import Any

import pytest

from rowcall import Fingerprint, Importer, Integer, Lookup, Text, Update
from rowcall.engine import moves
from rowcall.engine.columns.reopen import reopen_columns
from rowcall.engine.run import held
from rowcall.engine.values import answering as values
from rowcall.engine.values.answering import ValueUpdate
from rowcall.errors import Final, WrongState
from rowcall.model import Code, State, Wish
from rowcall.store import jobs, value_answers, value_decisions
from rowcall.store.db import Database
from rowcall.store.fingerprints import check_of
from rowcall.store.jobs import Job
from rowcall.store.plans import plan_of
from rowcall.store.value_answers import WantedValues

from .asked import Asked, ColumnUpdate

_TABLES = """
    CREATE TABLE country (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE);
    CREATE TABLE shop (id int PRIMARY KEY, title text, note text, country_id int);
    INSERT INTO country (name) VALUES ('Germany'), ('USA');
    INSERT INTO shop (id, title) SELECT n, 'T' || n FROM generate_series(1, 20) n;
"""


class Shops(Importer):
    target = "shop"
    key = "id"
    on_match = Update()
    id_ = Integer(required=True)
    title = Text()
    note = Text()
    country_id = Lookup("country", by="name", on_missing="ask")


class Known(Shops):
    fingerprint = Fingerprint(identity=("title",), least=2)


@pytest.fixture
def shops(database: Database) -> Database:
    with database.connect() as connection:
        connection.execute(_TABLES)
    return database


def reopened(asked: Asked) -> Job:
    with asked.database.connect() as connection, connection.transaction():
        asked.job = reopen_columns(connection, jobs.get_job(connection, str(asked.job.id)), asked.importer)
    return asked.job


def warned(shops: Database, folder: Path) -> Asked:
    """A job of which somebody has to say that the file is the right one."""
    lines = [f"{n},{'other' if n <= 2 else f'T{n}'}" for n in range(1, 21)]
    asked = Asked(shops, folder, Known, "\n".join(["id,title", *lines]) + "\n")
    assert asked.job.state is State.FINGERPRINT_WARN
    return asked


def test_from_values_that_are_asked_for(shops: Database, tmp_path: Path) -> None:
    """The question goes with the column: nobody is asked about values that no field takes."""
    asked = Asked(shops, tmp_path, Shops, "id,country_id\n31,Gondor\n")
    assert asked.job.state is State.CELL_MAPPING
    job = reopened(asked)
    assert (job.state, job.wish) == (State.COLUMN_MAPPING, Wish.HOLD)
    asked.says(ColumnUpdate(position=1, target_field="note"))
    result = asked.confirms()
    assert result.job.state is State.COMPLETED
    with shops.connect() as connection:
        assert connection.execute("SELECT note, country_id FROM shop WHERE id = 31").fetchall() == [("Gondor", None)]


def test_values_are_asked_for_again_when_their_column_stays(shops: Database, tmp_path: Path) -> None:
    asked = Asked(shops, tmp_path, Shops, "id,country_id\n31,Gondor\n")
    reopened(asked)
    assert asked.goes_on().state is State.CELL_MAPPING


def test_from_a_file_that_differs_from_the_target(shops: Database, tmp_path: Path) -> None:
    """A7: what was found was of another mapping; it is looked for anew, and nobody's word is taken for it."""
    asked = warned(shops, tmp_path)
    assert reopened(asked).state is State.COLUMN_MAPPING
    asked.says(ColumnUpdate(position=1, target_field="note"))
    assert asked.goes_on().state is State.COMPLETED
    asked = warned(shops, tmp_path / "again")
    reopened(asked)
    assert asked.goes_on().state is State.FINGERPRINT_WARN
    with shops.connect() as connection:
        found = check_of(connection, asked.job.id)
    assert found
    assert found.acknowledged_at is None


def test_what_was_acknowledged_is_asked_again_for_other_columns(shops: Database, tmp_path: Path) -> None:
    lines = [f"{n},{'other' if n <= 2 else f'T{n}'}" for n in range(1, 21)]
    asked = Asked(shops, tmp_path, Known, "\n".join(["id,title", *lines]) + "\n", preview=True)
    with shops.connect() as connection, connection.transaction():
        asked.job = moves.acknowledge(connection, asked.job, "ann")
    assert asked.run().state is State.VALIDATED
    reopened(asked)
    with shops.connect() as connection:
        assert plan_of(connection, asked.job.id) is None
    assert asked.goes_on().state is State.FINGERPRINT_WARN


@pytest.mark.parametrize("state", [State.CELL_MAPPING, State.FINGERPRINT_WARN])
def test_not_while_a_worker_has_the_job(shops: Database, tmp_path: Path, state: State) -> None:
    if state is State.CELL_MAPPING:
        asked = Asked(shops, tmp_path, Shops, "id,country_id\n31,Gondor\n")
    else:
        asked = warned(shops, tmp_path)
    assert asked.job.state is state
    with held(shops, asked.job), pytest.raises(Final) as refused:
        reopened(asked)
    assert refused.value.code == Code.JOB_BUSY
    assert reopened(asked).state is State.COLUMN_MAPPING


def test_not_when_a_worker_went_on_meanwhile(shops: Database, tmp_path: Path) -> None:
    """Whoever saw the warning before it was acknowledged comes too late, and is told where the job is."""
    asked = warned(shops, tmp_path)
    seen = asked.job
    with shops.connect() as connection, connection.transaction():
        moves.acknowledge(connection, seen, "ann")
    assert asked.run().state is State.COMPLETED
    with shops.connect() as connection, pytest.raises(WrongState) as refused, connection.transaction():
        reopen_columns(connection, seen, Known)
    assert refused.value.state == State.COMPLETED


def test_not_once_rows_are_written(shops: Database, tmp_path: Path) -> None:
    """A correction may bring a new value when some rows are in: their columns stay as they are."""
    asked = Asked(shops, tmp_path, Shops, "id,country_id\n31,Germany\n")
    assert asked.job.state is State.COMPLETED
    with pytest.raises(WrongState):
        reopened(asked)


def stopped(shops: Database, folder: Path, importer: type[Shops], *, batch_rows: int = 1000) -> Asked:
    """A job that was planned and agreed to, and asks about a value that went since."""
    asked = Asked(
        shops, folder, importer, "id,country_id\n31,Gondor\n32,Germany\n", batch_rows=batch_rows, preview=True
    )
    said = ValueUpdate(field="country_id", value="Gondor", target="2")
    with shops.connect() as connection, connection.transaction():
        targets = values.find_targets(connection, importer, {("country_id", "2")})
        values.update(connection, asked.job, importer, [said], targets, "ann")
        asked.job = values.confirm(connection, asked.job)
    assert asked.run().state is State.VALIDATED
    with shops.connect() as connection, connection.transaction():
        connection.execute("DELETE FROM country WHERE name = 'Germany'")
        asked.job, _ = moves.submit(connection, asked.job, {moves.ANY_PLAN})
    assert asked.run().state is State.CELL_MAPPING
    return asked


def test_as_long_as_nothing_is_written_though_it_was_to_be(shops: Database, tmp_path: Path) -> None:
    asked = stopped(shops, tmp_path, Shops)
    reopened(asked)
    assert asked.goes_on().state is State.CELL_MAPPING
    with shops.connect() as connection:
        said = value_answers.page_of_values(connection, asked.job.id, WantedValues())
        assert {each.value: (each.status, each.fixed) for each in said} == {
            "Gondor": ("USER_OVERRIDDEN", False),
            "Germany": ("UNRESOLVED", False),
        }
    reopened(asked)
    with shops.connect() as connection, connection.transaction():
        ((decision,),) = connection.execute("SELECT id FROM rowcall.value_decision").fetchall()
        (used,) = value_decisions.revoke(connection, asked.job.organisation_id, decision).used
        assert not used.processed
    asked.says(ColumnUpdate(position=1, target_field="note"))
    assert asked.goes_on().state is State.VALIDATED
    with shops.connect() as connection, connection.transaction():
        asked.job, _ = moves.submit(connection, asked.job, {moves.ANY_PLAN})
    assert asked.run().state is State.COMPLETED
    with shops.connect() as connection:
        assert connection.execute("SELECT note FROM shop WHERE id > 30 ORDER BY id").fetchall() == [
            ("Gondor",),
            ("Germany",),
        ]


def test_not_when_rows_are_written_and_others_ask(shops: Database, tmp_path: Path) -> None:
    asked = stopped(shops, tmp_path, Shops, batch_rows=1)
    with pytest.raises(WrongState, match="are written already"):
        reopened(asked)


def test_not_once_an_importer_was_told_that_rows_are_written(shops: Database, tmp_path: Path) -> None:
    """What it does then is there exactly once."""

    class Told(Shops):
        def before(self, connection: Any, job: Any) -> None:
            connection.execute("UPDATE country SET name = name")

    asked = stopped(shops, tmp_path, Told)
    with pytest.raises(WrongState, match=r"`before` of .* has run"):
        reopened(asked)
