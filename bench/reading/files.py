"""The files, how many rows each has, and what is true of the dirty one."""

from dataclasses import dataclass
from pathlib import Path

from measuring.files import folder

_PER_MILLION_QUOTES, _PER_MILLION_SHORT, _PER_MILLION_LONG, _PER_MILLION_BLANK = 400, 100, 100, 200
_BYTES_PER_ROW = 2_300
"""All files together, the tenfold one included; measured."""


@dataclass(frozen=True, slots=True)
class Defects:
    """How many defects of each kind the dirty file has, and so what a reader has to find in it."""

    rows: int

    @property
    def open_quotes(self) -> int:
        return self._share(_PER_MILLION_QUOTES)

    @property
    def short(self) -> int:
        return self._share(_PER_MILLION_SHORT)

    @property
    def long(self) -> int:
        return self._share(_PER_MILLION_LONG)

    @property
    def blank(self) -> int:
        return self._share(_PER_MILLION_BLANK)

    @property
    def bad(self) -> int:
        return self.open_quotes + self.short + self.long

    @property
    def good(self) -> int:
        return self.rows - self.bad

    @property
    def lines(self) -> int:
        """Physical lines: the header, each row on one line, and the blank ones."""
        return 1 + self.rows + self.blank

    def _share(self, per_million: int) -> int:
        return max(1, self.rows * per_million // 1_000_000)


@dataclass(frozen=True, slots=True)
class Files:
    """The files for one number of rows."""

    rows: int

    @property
    def folder(self) -> Path:
        return folder(self.rows)

    @property
    def xlsx_rows(self) -> int:
        return min(self.rows // 5, 200_000)

    @property
    def openpyxl_rows(self) -> int:
        """openpyxl is read at fewer rows, because it would take most of the benchmark's time."""
        return min(self.xlsx_rows, 20_000)

    @property
    def written_xlsx_rows(self) -> int:
        return min(self.rows, 100_000)

    @property
    def bytes_needed(self) -> int:
        return self.rows * _BYTES_PER_ROW

    def path(self, name: str) -> Path:
        return self.folder / name


CLEAN, DIRTY, TENFOLD, GZIP = "clean.csv", "dirty.csv", "tenfold.csv", "clean.csv.gz"
NDJSON, JSON, PARQUET, XLSX, SMALL_XLSX = "rows.ndjson", "rows.json", "rows.parquet", "rows.xlsx", "small.xlsx"
TEXTS, FEW_TEXTS = "texts.parquet", "few-texts.parquet"
"""What the writers write: all columns are text."""
