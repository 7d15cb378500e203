"""A job, and a person who is asked about it."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from rowcall import Importer
from rowcall.engine.columns import answering
from rowcall.engine.columns.answering import ColumnAnswers, ColumnUpdate, Join
from rowcall.engine.columns.warnings import ColumnWarning, warnings_of
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.engine.work import needed_by
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig
from rowcall.store.mappings import ColumnMapping, columns_of

from .importing import Result, result_of, settings_for


class Asked:
    """A job that was begun, as far as it goes by itself."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        importer: type[Importer],
        text: str,
        *,
        batch_rows: int = 1000,
        **config: Any,
    ) -> None:
        self.database, self.importer = database, importer
        self.settings = settings_for(database, folder, batch_rows=batch_rows)
        with database.connect() as connection:
            stream = BytesIO(text.encode())
            self.job = start_job(
                connection, self.settings, importer, stream, file_name="rows.csv", config=JobConfig(**config)
            )
        self.run()

    def run(self) -> Job:
        self.job = run_job(Run(self.database, self.importer, self.settings), self.job)
        return self.job

    def columns(self) -> list[ColumnMapping]:
        with self.database.connect() as connection:
            return columns_of(connection, self.job.id)

    def told(self) -> list[tuple[str, str | None, str]]:
        return [(column.header, column.target_field, column.status) for column in self.columns()]

    def warnings(self) -> list[ColumnWarning]:
        with self.database.connect() as connection:
            return warnings_of(connection, self.job, self.importer, {}).warnings

    def says(
        self, *updates: ColumnUpdate, joins: Sequence[Join] = (), constants: dict[str, str | None] | None = None
    ) -> None:
        said = ColumnAnswers(updates=updates, joins=joins, constants=constants or {})
        with self.database.connect() as connection, connection.transaction():
            answering.update(connection, self.job, self.importer, said, "ann")

    def confirms(self) -> Result:
        return result_of(self.database, self.importer, self.goes_on())

    def goes_on(self) -> Job:
        with self.database.connect() as connection, connection.transaction():
            self.job = answering.confirm(
                connection, self.job, self.importer, needed_by(connection, self.importer, self.job.config.mode), "ann"
            )
        return self.run()

    def result(self) -> Result:
        return result_of(self.database, self.importer, self.job)
