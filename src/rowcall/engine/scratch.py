"""What a process keeps beside it on disk while it works on a job: the rows of batches, and what it plans for them.

Only a shortcut: rows that are not here are read from `rowcall.row`, which is the truth.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import polars as pl

from rowcall.store.rows import PROBLEMS, RowBatch, Sources


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder with the rows of each batch: number, problems, and the cells of the mapped columns by position."""

    folder: Path

    def clear(self) -> None:
        """Begin anew, and take away what processes left that worked on the job before and were killed."""
        shutil.rmtree(self.folder.parent, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Take away what this process kept."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # another process has something there
            self.folder.parent.rmdir()

    def put(self, batch: int, rows: pl.DataFrame) -> None:
        """Keep the rows of a batch that is durable."""
        self._write(self.file(batch), rows)

    def put_plan(self, batch: int, outcomes: pl.DataFrame, found: pl.DataFrame) -> None:
        """Keep the outcomes that a batch would have, and what its look-ups found."""
        self._write(self._part(batch, "plan"), outcomes)
        self._write(self._part(batch, "found"), found)

    def plan(self, batch: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The outcomes that a batch would have, and what its look-ups found."""
        outcomes, found = (pl.read_ipc(self._part(batch, part).read_bytes()) for part in ("plan", "found"))
        return outcomes, found

    def _write(self, file: Path, frame: pl.DataFrame) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)  # a process that goes on with a job brought nothing in
        frame.write_ipc(file, compression="uncompressed")

    def _part(self, batch: int, part: str) -> Path:
        return self.folder / f"{batch}-{part}.arrow"

    def get(self, batch: RowBatch, sources: Sources) -> pl.DataFrame | None:
        """The rows of a batch under the names of these sources; None if they are not all here.

        Columns are joined by the database only: so there is one way to do it.
        """
        file = self.file(batch.number)
        if not file.exists() or any(source.is_joined for source in sources.values()):
            return None
        positions = {name: source.positions[0] for name, source in sources.items()}
        content = file.read_bytes()  # read, not mapped: pages of the file would count as ours
        needed = ["number", "problems", *{str(position) for position in positions.values()}]
        if not set(needed) <= set(pl.read_ipc_schema(BytesIO(content))):
            return None
        rows = pl.read_ipc(content, columns=needed)
        rows = rows.select(
            "number",
            pl.col("problems").alias(PROBLEMS),
            *(pl.col(str(at)).alias(name) for name, at in positions.items()),
        )
        return rows.filter(pl.col("number").is_between(batch.first_row, batch.last_row))

    def file(self, batch: int) -> Path:
        """Where the rows of a batch are kept."""
        return self.folder / f"{batch}.arrow"


NO_SCRATCH = Scratch(Path(os.devnull))
"""Of who keeps nothing beside the database."""
