"""A job whose rows somebody corrects."""

from io import BytesIO
from pathlib import Path
from typing import Any

from rowcall import Importer
from rowcall.engine import moves
from rowcall.engine.corrections.edit import Edited, edit_row, undo_edits
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.store.db import Database
from rowcall.store.edits import row_of
from rowcall.store.grid import RowResult, Wanted
from rowcall.store.jobs import Job, JobConfig

from .importing import Result, result_of, settings_for


class Desk:
    """A job, and a person who looks after its rows."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        importer: type[Importer],
        text: str,
        *,
        batch: int = 1_000,
        **config: Any,
    ) -> None:
        self.database, self.importer = database, importer
        self.settings = settings_for(database, folder, batch_rows=batch)
        with database.connect() as connection:
            stream = BytesIO(text.encode())
            self.job = start_job(
                connection, self.settings, importer, stream, file_name="rows.csv", config=JobConfig(**config)
            )
        self.run()

    def run(self) -> Job:
        self.job = run_job(Run(self.database, self.importer, self.settings), self.job)
        return self.job

    def edit(self, number: int, revision: int = 0, who: str = "ann", **cells: str | None) -> Edited:
        with self.database.connect() as connection, connection.transaction():
            edited = edit_row(connection, self.job, self.importer, number, cells, who=who, revision=revision)
        self.job = edited.job
        return edited

    def undo(self, number: int, revision: int) -> Edited:
        with self.database.connect() as connection, connection.transaction():
            edited = undo_edits(connection, self.job, self.importer, number, who="ann", revision=revision)
        self.job = edited.job
        return edited

    def row(self, number: int) -> RowResult:
        with self.database.connect() as connection:
            found = row_of(connection, self.job.id, number)
        assert found
        return found

    def submit(self) -> Result:
        with self.database.connect() as connection, connection.transaction():
            self.job, _ = moves.submit(connection, self.job, {moves.ANY_PLAN}, self.importer)
        self.run()
        return self.result()

    def again(self, *statuses: str, edited: bool = False) -> Result:
        wanted = Wanted(statuses=statuses, edited=edited)
        with self.database.connect() as connection, connection.transaction():
            self.job, _ = moves.reprocess(connection, self.job, self.importer, wanted)
        self.run()
        return self.result()

    def result(self) -> Result:
        return result_of(self.database, self.importer, self.job)
