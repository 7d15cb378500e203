"""Importers that process rows themselves: the whole file at once, and item by item."""

import threading
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from psycopg import Connection

from rowcall import (
    Final,
    Importer,
    Integer,
    Issue,
    ItemImporter,
    ItemResult,
    Retryable,
    RowOutcome,
    Status,
    Text,
    WholeFileImporter,
)
from rowcall.config import Settings
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.model import State
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig


class RaceResults(WholeFileImporter):
    """Finishing times; the rank of each depends on all the others."""

    runner = Text(required=True)
    seconds = Integer(required=True, min=1)

    def process(self, rows: pl.DataFrame, connection: Connection[Any]) -> Iterable[RowOutcome]:
        connection.execute("CREATE TABLE IF NOT EXISTS ranking (runner text PRIMARY KEY, rank int)")
        ranked = rows.with_columns(pl.col("seconds").rank("min").cast(pl.Int64).alias("rank"))
        for row in ranked.iter_rows(named=True):
            connection.execute("INSERT INTO ranking VALUES (%s, %s)", [row["runner"], row["rank"]])
            yield RowOutcome(row["number"], Status.CREATED, (row["runner"],), result={"rank": row["rank"]})


class Forgetful(WholeFileImporter):
    """Leaves a row out."""

    runner = Text()

    def process(self, rows: pl.DataFrame, connection: Connection[Any]) -> Iterable[RowOutcome]:
        return [RowOutcome(number, Status.CREATED) for number in rows["number"][1:]]


class Barcodes(ItemImporter):
    """Asks a catalogue about each barcode."""

    concurrency = 4
    attempts = 3
    barcode = Text(required=True)
    calls: ClassVar[dict[str, int]] = {}
    guard: ClassVar[threading.Lock] = threading.Lock()

    async def process(self, row: Mapping[str, object]) -> ItemResult:
        barcode = str(row["barcode"])
        with self.guard:
            self.calls[barcode] = self.calls.get(barcode, 0) + 1
        if barcode == "unknown":
            return ItemResult(Status.FAILED, issues=(Issue("NOT_FOUND", "The catalogue has no such barcode."),))
        if barcode == "down" or (barcode == "shaky" and self.calls[barcode] < 3):
            raise Retryable("CATALOGUE_AWAY", "The catalogue gives no answer.")
        return ItemResult(Status.CREATED, (barcode,), result={"title": f"Title of {barcode}"})


def run(database: Database, tmp_path: Path, importer: type[Importer], text: str, **config: Any) -> Job:
    settings = Settings(data_dir=tmp_path, batch_rows_min=2, batch_rows_max=2)
    with database.connect() as connection:
        stream = BytesIO(text.encode())
        job = start_job(connection, settings, importer, stream, file_name="f.csv", config=JobConfig(**config))
    return run_job(Run(database, importer, settings), job)


def outcomes(database: Database, job: Job) -> list[tuple[Any, ...]]:
    with database.connect() as connection:
        return connection.execute(
            "SELECT row_number, status::text, issues->0->>'code', result FROM rowcall.outcome "
            "WHERE job_id = %s ORDER BY row_number",
            [job.id],
        ).fetchall()


TIMES = "runner,seconds\nann,62\nbob,59\ncy,zero\ndan,62\n"


def test_a_whole_file_is_processed_together(database: Database, tmp_path: Path) -> None:
    job = run(database, tmp_path, RaceResults, TIMES)
    assert job.state is State.COMPLETED_WITH_ERRORS
    assert outcomes(database, job) == [
        (1, "created", None, {"rank": 2}),
        (2, "created", None, {"rank": 1}),
        (3, "failed", "INVALID_INTEGER", None),
        (4, "created", None, {"rank": 2}),
    ]


def test_a_dry_run_of_a_whole_file_leaves_only_outcomes(database: Database, tmp_path: Path) -> None:
    job = run(database, tmp_path, RaceResults, TIMES, dry_run=True)
    assert job.state is State.VALIDATED
    assert [status for _, status, _, _ in outcomes(database, job)] == ["created", "created", "failed", "created"]
    with database.connect() as connection:
        assert connection.execute("SELECT to_regclass('ranking')").fetchone() == (None,)


def test_a_row_without_outcome_stops_the_import(database: Database, tmp_path: Path) -> None:
    with pytest.raises(Final, match=r"none for \[1\]"):
        run(database, tmp_path, Forgetful, "runner\nann\nbob\n")


class Faulty(WholeFileImporter):
    """Its code has a mistake until it is mended."""

    runner = Text()
    mended: ClassVar[bool] = False

    def process(self, rows: pl.DataFrame, connection: Connection[Any]) -> Iterable[RowOutcome]:
        for number in rows["number"]:
            if not self.mended:
                raise ValueError("no ranking today")
            yield RowOutcome(number, Status.SKIPPED)


class FaultyItems(ItemImporter):
    """The same, item by item."""

    runner = Text()
    mended: ClassVar[bool] = False

    async def process(self, row: Mapping[str, object]) -> ItemResult:
        if row["runner"] == "bob" and not self.mended:
            raise ValueError("no bob")
        return ItemResult(Status.SKIPPED)


@pytest.mark.parametrize(
    ("importer", "told"),
    [
        (Faulty, "process of importer faulty raised ValueError: no ranking today."),
        (FaultyItems, "process (row 2) of importer faulty_items raised ValueError: no bob."),
    ],
)
def test_an_importer_that_raises_stops_the_job_until_it_is_mended(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    importer: type[Faulty | FaultyItems],
    told: str,
) -> None:
    text = "runner\nann\nbob\ncy\n"
    with pytest.raises(Final) as raised:
        run(database, tmp_path, importer, text)
    assert (raised.value.code, raised.value.message) == ("IMPORTER_FAILED", told)
    with database.connect() as connection:
        noted = connection.execute("SELECT id, state, last_error ->> 'code' FROM rowcall.job").fetchone()
    monkeypatch.setattr(importer, "mended", True)
    job = run(database, tmp_path, importer, text)
    assert (job.id, "PROCESSING", "IMPORTER_FAILED") == noted
    assert [status for _, status, _, _ in outcomes(database, job)] == ["skipped"] * 3


def test_what_is_no_outcome_is_told(database: Database, tmp_path: Path) -> None:
    def process(self: object, rows: pl.DataFrame, connection: object) -> list[int]:
        return rows["number"].to_list()

    odd = type("Odd", (WholeFileImporter,), {"__module__": __name__, "runner": Text(), "process": process})
    with pytest.raises(Final, match="process of importer odd gave 1; a RowOutcome is expected for each row"):
        run(database, tmp_path, odd, "runner\nann\n")


def test_items_are_asked_about_and_tried_again(database: Database, tmp_path: Path) -> None:
    Barcodes.calls.clear()
    job = run(database, tmp_path, Barcodes, "barcode\na\nshaky\nunknown\ndown\nb\n")
    assert job.state is State.COMPLETED_WITH_ERRORS
    assert outcomes(database, job) == [
        (1, "created", None, {"title": "Title of a"}),
        (2, "created", None, {"title": "Title of shaky"}),
        (3, "failed", "NOT_FOUND", None),
        (4, "failed", "CATALOGUE_AWAY", None),
        (5, "created", None, {"title": "Title of b"}),
    ]
    assert Barcodes.calls == {"a": 1, "shaky": 3, "unknown": 1, "down": 3, "b": 1}


def test_a_dry_run_asks_nobody(database: Database, tmp_path: Path) -> None:
    Barcodes.calls.clear()
    job = run(database, tmp_path, Barcodes, "barcode\nb\n", dry_run=True)
    assert Barcodes.calls == {}
    assert outcomes(database, job)[0][1:3] == ("skipped", "NOT_APPLIED")


def test_a_result_that_comes_after_its_lease_is_not_wanted(database: Database, tmp_path: Path) -> None:
    class Overtaken(ItemImporter):
        """Loses its lease while it waits for the first answer."""

        barcode = Text()
        answers: ClassVar[list[object]] = []

        async def process(self, row: Mapping[str, object]) -> ItemResult:
            self.answers.append(row["barcode"])
            if len(self.answers) == 1:
                with database.connect() as connection:
                    connection.execute("UPDATE rowcall.batch SET claimed_by = 'another', lease_until = now()")
            return ItemResult(Status.CREATED, (f"answer {len(self.answers)}",))

    job = run(database, tmp_path, Overtaken, "barcode\nz\n")
    with database.connect() as connection:
        keys = connection.execute("SELECT target_key FROM rowcall.outcome WHERE job_id = %s", [job.id]).fetchall()
    assert keys == [(["answer 2"],)]


def test_a_batch_that_another_has_leased_is_waited_for_without_haste(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Leased(ItemImporter):
        """Finds its batch in the hands of somebody who died."""

        barcode = Text()
        tries: ClassVar[list[object]] = []

        async def process(self, row: Mapping[str, object]) -> ItemResult:
            self.tries.append(row["barcode"])
            if len(self.tries) == 1:
                with database.connect() as connection:
                    connection.execute(
                        "UPDATE rowcall.batch SET claimed_by = 'another', lease_until = now() + interval '1.5 s'"
                    )
            return ItemResult(Status.CREATED)

    sessions: list[str] = []
    reconnect = Database.reconnect

    def counted(self: Database, role: str = "command", *, idle_timeout: float = 5) -> Connection[Any]:
        sessions.append(role)
        return reconnect(self, role, idle_timeout=idle_timeout)

    monkeypatch.setattr(Database, "reconnect", counted)
    assert run(database, tmp_path, Leased, "barcode\nz\n").state is State.COMPLETED
    assert len(Leased.tries) == 2
    assert sessions.count("worker") < 25
