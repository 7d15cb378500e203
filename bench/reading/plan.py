"""Who runs on which file."""

from reading import files
from reading.files import Files
from reading.trial import Trial

_CSV = {
    "rowcall": ("Rowcall", "rowcall"),
    "pyarrowStream": ("pyarrow open_csv", "pyarrow_stream"),
    "pyarrowRead": ("pyarrow read_csv", "pyarrow_read"),
    "polars": ("Polars read_csv", "polars"),
    "duckdb": ("DuckDB read_csv", "duckdb"),
    "stdlib": ("csv.reader", "stdlib"),
    "stdlibRaw": ("csv.reader with raw text", "stdlib_raw"),
}
_HAS_LENIENT_MODE = {"pyarrowStream", "pyarrowRead", "polars", "duckdb"}


def trials(wanted: Files) -> list[Trial]:
    """All that is measured in alternation."""
    return [*_csv(wanted), *_formats(wanted), *_writers(wanted)]


def tenfold(wanted: Files) -> Trial:
    """Rowcall on ten times the rows, for its memory."""
    return Trial(
        section="memory",
        key="tenfold",
        label="Rowcall",
        task="reading.csv_contenders:rowcall",
        file=wanted.path(files.TENFOLD),
        rows=10 * wanted.rows,
    )


def _csv(wanted: Files) -> list[Trial]:
    def trial(section: str, key: str, file: str, mode: str = "") -> Trial:
        label, function = _CSV[key]
        task = f"reading.csv_contenders:{function}{mode}"
        return Trial(section=section, key=key, label=label, task=task, file=wanted.path(file), rows=wanted.rows)

    clean = [trial("clean", key, files.CLEAN) for key in _CSV]
    dirty = [trial("dirty", key, files.DIRTY, "_lenient" if key in _HAS_LENIENT_MODE else "") for key in _CSV]
    packed = [trial("formats.csvGz", key, files.GZIP) for key in ("rowcall", "pyarrowRead", "polars")]
    return [*clean, *dirty, *packed]


def _formats(wanted: Files) -> list[Trial]:
    def trial(kind: str, key: str, label: str, function: str, file: str, rows: int = wanted.rows) -> Trial:
        module = "csv_contenders" if key == "rowcall" else "format_contenders"
        path = wanted.path(file)
        return Trial(
            section=f"formats.{kind}", key=key, label=label, task=f"reading.{module}:{function}", file=path, rows=rows
        )

    return [
        trial("ndjson", "rowcall", "Rowcall", "rowcall", files.NDJSON),
        trial("ndjson", "polars", "Polars read_ndjson", "polars_ndjson", files.NDJSON),
        trial("ndjson", "stdlib", "json.loads per line", "stdlib_ndjson", files.NDJSON),
        trial("json", "rowcall", "Rowcall", "rowcall", files.JSON),
        trial("json", "polars", "Polars read_json", "polars_json", files.JSON),
        trial("json", "stdlib", "json.load", "stdlib_json", files.JSON),
        trial("parquet", "rowcall", "Rowcall", "rowcall", files.PARQUET),
        trial("parquet", "pyarrow", "pyarrow iter_batches", "pyarrow_parquet", files.PARQUET),
        trial("xlsx", "rowcall", "Rowcall", "rowcall", files.XLSX, wanted.xlsx_rows),
        trial("xlsx", "calamine", "python-calamine", "calamine", files.XLSX, wanted.xlsx_rows),
        trial("xlsx", "openpyxl", "openpyxl read_only", "openpyxl", files.SMALL_XLSX, wanted.openpyxl_rows),
    ]


def _writers(wanted: Files) -> list[Trial]:
    def trial(kind: str, key: str, label: str) -> Trial:
        name, rows = (files.FEW_TEXTS, wanted.written_xlsx_rows) if kind == "xlsx" else (files.TEXTS, wanted.rows)
        task = f"reading.writer_contenders:{key}_{kind}"
        return Trial(section=f"writers.{kind}", key=key, label=label, task=task, file=wanted.path(name), rows=rows)

    return [
        trial("csv", "rowcall", "Rowcall"),
        trial("csv", "polars", "Polars write_csv"),
        trial("ndjson", "rowcall", "Rowcall"),
        trial("ndjson", "polars", "Polars write_ndjson"),
        trial("parquet", "rowcall", "Rowcall"),
        trial("parquet", "polars", "Polars write_parquet"),
        trial("xlsx", "rowcall", "Rowcall"),
        trial("xlsx", "xlsxwriter", "XlsxWriter constant_memory"),
    ]
