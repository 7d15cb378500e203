"""Parquet from frames, in row groups."""

from collections.abc import Sequence
from typing import Any, cast

import polars as pl
import pyarrow as arrow
import pyarrow.parquet as arrow_parquet

from rowcall.errors import FileRefused
from rowcall.formats.output import Output, OutputFile
from rowcall.formats.writing import Comments, Refused, WriteColumn, WriteOptions, slices
from rowcall.model import Code

pa, pq = cast("Any", arrow), cast("Any", arrow_parquet)  # they have no annotations
_GROUP_ROWS = 100_000
_TEXT_INSTEAD = (pl.Null, pl.Categorical, pl.Enum, pl.Int128, pl.UInt128)
"""Types that Parquet doesn't have, or that would tie a file to one batch's values."""


class ParquetEncoder:
    """Columns with the types of the first frame; texts stay texts."""

    def __init__(self, output: Output, columns: Sequence[WriteColumn], options: WriteOptions) -> None:
        self._sink = OutputFile(output)
        self._schema = pl.Schema({column.name: pl.String for column in columns})
        self._most = options.row_group
        self._writer: Any = None
        self._parts: list[pl.DataFrame] = []
        self._rows = self._bytes = 0

    def write(self, frame: pl.DataFrame, _comments: Comments, /) -> tuple[Refused, ...]:
        if self._writer is None:
            self._begin(frame.schema)
        for _, part in slices(self._conformed(frame)):
            if self._rows + part.height > _GROUP_ROWS or self._bytes > self._most:
                self._flush()
            self._parts.append(part)
            self._rows += part.height
            self._bytes += int(part.estimated_size())
        return ()

    def finish(self) -> None:
        writer = self._writer or self._begin(self._schema)
        self._flush()
        writer.close()

    def discard(self) -> None:
        self._sink.close()  # or else the writer, once forgotten, would send a footer after all

    def _begin(self, schema: pl.Schema) -> Any:
        kinds = {name: pl.String() if isinstance(kind, _TEXT_INSTEAD) else kind for name, kind in schema.items()}
        self._schema = pl.Schema(kinds)
        types = _table(self._schema.to_frame()).schema
        self._writer = pq.ParquetWriter(self._sink, types, compression="zstd")
        return self._writer

    def _conformed(self, frame: pl.DataFrame) -> pl.DataFrame:
        if frame.schema == self._schema:
            return frame
        try:
            return frame.cast(self._schema)
        except pl.exceptions.PolarsError as error:
            changed = [name for name, kind in frame.schema.items() if kind != self._schema[name]]
            raise FileRefused(
                Code.FORMAT_LIMIT,
                f"A Parquet column has one type; {changed[0]!r} began as {self._schema[changed[0]]} and is "
                f"{frame.schema[changed[0]]} now.",
                hint="Give every frame the same types, or text.",
            ) from error

    def _flush(self) -> None:
        if self._parts:
            self._writer.write_table(_table(pl.concat(self._parts)), row_group_size=_GROUP_ROWS)
        self._parts = []
        self._rows = self._bytes = 0


def _table(frame: pl.DataFrame) -> Any:
    """The frame as an Arrow table, with plain strings: Polars' large ones are only large in memory."""
    table = cast("Any", frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    fields = [pa.field(field.name, plain.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))
