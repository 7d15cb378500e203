"""The files, and how many rows each has."""

from dataclasses import dataclass
from pathlib import Path

from measuring.files import folder

_BYTES_PER_ROW = 15_000
"""All that lies on the disk at the worst moment: the tenfold file, its copy in the file store, its rows, users,
outcomes and their WAL in PostgreSQL; estimated from ten times 1.4 KB."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files for one number of rows."""

    rows: int

    @property
    def bad_rows(self) -> int:
        """Rows with an error, or that PostgreSQL refuses."""
        return self.rows // 20

    @property
    def changed_rows(self) -> int:
        return self.rows // 10

    @property
    def fewer_rows(self) -> int:
        """Rows of the formats that are compared with a CSV of the same rows."""
        return min(self.rows // 5, 200_000)

    @property
    def few_rows(self) -> int:
        """Rows for those who would take most of the benchmark's time."""
        return max(1_000, self.rows // 100)

    @property
    def bytes_needed(self) -> int:
        return self.rows * _BYTES_PER_ROW

    def path(self, name: str) -> Path:
        return folder(self.rows) / name


CLEAN, ERRORS, CHANGED, TENFOLD = "clean.csv", "errors.csv", "changed.csv", "tenfold-people.csv"
RIVALS = "rivals.csv"
"""People that stand in the table already with the id or the e-mail of one in the clean file."""
FEWER_CSV, FEWER_XLSX, FEWER_NDJSON, FEW = "fewer.csv", "fewer.xlsx", "fewer.ndjson", "few.csv"
EXPORTED = "exported"
