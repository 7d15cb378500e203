"""Reads Parquet and Arrow files batch by batch, each value as text. Runs in the guarded child.

Files come from anywhere: what they say about themselves is checked before it is believed, and whatever the library
raises about their content is a refusal.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pyarrow.parquet

from rowcall.errors import FileRefused, RowcallError
from rowcall.formats.arrow.leaves import is_binary, is_text, pa, types, values_type
from rowcall.formats.arrow.messages import BadRow, Ended, Field, OddCell, Opened, Rows
from rowcall.formats.arrow.text import depth_of, leaves_of, native_of, text_of
from rowcall.formats.columns import check_width
from rowcall.formats.reading import KIB, MIB, Limits
from rowcall.model import Code

_MOST_ROWS, _MOST_CELLS, _MOST_BYTES = 8_192, 1_000_000, 2 * MIB
_BELIEVED_ROWS, _BELIEVED_CELLS, _PER_BYTE = 10_000_000, 100_000_000, 1_000
_BELIEVED_BYTES = 64 * MIB
_END = b"\xff\xff\xff\xff\0\0\0\0"
_MESSAGES = {
    Code.INVALID_ENCODING: "A text of this row is not UTF-8.",
    Code.NUL_CHARACTER: "A text of this row holds a NUL character, which no database text can hold.",
}


def read_parquet(path: str, limits: Limits) -> Iterator[Opened | Rows]:
    """Yield a Parquet file's columns, then its rows."""
    parquet: Any = pyarrow.parquet
    with _refusing("Parquet"):
        _use_little()
        file = parquet.ParquetFile(path, buffer_size=256 * KIB, pre_buffer=False, page_checksum_verification=True)
        metadata, schema = file.metadata, file.schema_arrow
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        if metadata.num_rows != sum(group.num_rows for group in groups):
            raise _corrupt("Parquet", "its row groups have other numbers of rows than the file")
        check_width(metadata.num_columns, limits)
        _check_size(
            path, metadata.num_rows, metadata.num_columns, limits, sum(group.total_byte_size for group in groups)
        )
        yield _opened(schema, metadata.num_rows, limits)
        for index, group in enumerate(groups):
            size = _batch_rows(group.num_rows, group.total_byte_size, metadata.num_columns)
            rows = 0
            for batch in file.iter_batches(batch_size=size, row_groups=[index], use_threads=False):
                rows += batch.num_rows
                yield _rows(batch)
            if rows != group.num_rows:
                raise _corrupt("Parquet", f"row group {index + 1} has {rows:,} rows instead of {group.num_rows:,}")


def read_arrow(path: str, limits: Limits) -> Iterator[Opened | Rows | Ended]:
    """Yield the columns of an Arrow file or stream, then its rows."""
    ipc: Any = pyarrow.ipc
    with _refusing("Arrow"), pa.memory_map(path) as source:  # a batch as large as the file takes no memory of ours
        _use_little()
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = ipc.open_file(source) if is_file else ipc.open_stream(source)
        columns = sum(leaves_of(field.type) for field in reader.schema)
        yield _opened(reader.schema, None, limits)
        rows = 0
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            rows += batch.num_rows
            _check_size(path, rows, columns, limits)
            _validate(batch)
            size = _batch_rows(batch.num_rows, batch.nbytes, columns)
            for start in range(0, batch.num_rows, size):
                yield _rows(batch.slice(start, size))
        if not is_file:
            end = source.tell()
            source.seek(max(0, end - len(_END)))
            yield Ended(source.read(len(_END)) == _END, source.size() - end)


@contextmanager
def _refusing(kind: str) -> Generator[None]:
    try:
        yield
    except (RowcallError, MemoryError):  # out of memory: the guard knows what to say
        raise
    except Exception as error:  # the library's own, or an OSError, OverflowError, UnicodeDecodeError from broken fields
        text = str(error).partition("\n")[0][:300].rstrip(".")
        if "crypt" in text.lower():
            raise FileRefused(
                Code.PASSWORD_PROTECTED, f"The {kind} file is encrypted.", hint="Save it again without encryption."
            ) from error
        raise _corrupt(kind, text) from error


def _corrupt(kind: str, found: str) -> FileRefused:
    return FileRefused(
        Code.PARQUET_CORRUPT,
        f"The {kind} file is damaged: {found}.",
        hint="Write it again, or fetch it again if it was cut off on its way.",
    )


def _use_little() -> None:
    pa.set_memory_pool(pa.system_memory_pool())  # the others keep what was freed, and reserve more than they use
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _check_size(path: str, rows: int, columns: int, limits: Limits, inflated: int = 0) -> None:
    """Refuse a small file that says it holds very much."""
    size = max(1, Path(path).stat().st_size)
    many_rows = rows > _BELIEVED_ROWS and rows > _PER_BYTE * size
    many_cells = rows * columns > _BELIEVED_CELLS and rows * columns > _PER_BYTE * size
    dense = inflated > _BELIEVED_BYTES and inflated > limits.inflate_ratio * size
    if many_rows or many_cells or dense or inflated > limits.inflated_bytes:
        raise FileRefused(
            Code.PARQUET_TOO_LARGE,
            f"The file of {size:,} bytes says it holds {rows:,} rows ({inflated or size:,} bytes unpacked).",
            hint="It may be damaged or made to exhaust memory. If it is right, write it in several files.",
        )


def _batch_rows(rows: int, size: int, columns: int) -> int:
    by_size = _MOST_BYTES * rows // max(1, size)
    return max(1, min(_MOST_ROWS, _MOST_CELLS // max(1, columns), by_size))


def _opened(schema: Any, rows: int | None, limits: Limits) -> Opened:
    kinds = [field.type for field in schema]
    check_width(sum(map(leaves_of, kinds)), limits)
    if not kinds:
        raise FileRefused(Code.NO_RECORDS, "The file has no columns.", hint="Check how it was written.")
    if max(map(depth_of, kinds)) > limits.json_depth:
        raise FileRefused(
            Code.JSON_TOO_DEEP, f"A column is nested deeper than {limits.json_depth} levels.", hint="Flatten it."
        )
    fields = [Field(field.name, native_of(field.type), is_binary(values_type(field.type))) for field in schema]
    return Opened(tuple(fields), rows)


def _validate(batch: Any) -> None:
    """Check offsets and indices before anything follows them. Texts may be no UTF-8: that is a matter of their rows."""
    for column in batch.columns:
        column.validate()
        if is_text(column.type):
            column = column.view(_bytes_type(column.type))
        column.validate(full=True)


def _bytes_type(kind: Any) -> Any:
    if types.is_string_view(kind):
        return pa.binary_view()
    return pa.binary() if types.is_string(kind) else pa.large_binary()


def _rows(batch: Any) -> Rows:
    texts = [text_of(column) for column in batch.columns]
    bad: dict[int, Code] = {}
    for text in texts:
        bad = {**text.bad, **bad}
    odd = [OddCell(row, column, value) for column, text in enumerate(texts) for row, value in text.odd.items()]
    arrays = [text.array for text in texts]
    found = [
        BadRow(row, bad[row], _MESSAGES[bad[row]], tuple(array[row].as_py() or "" for array in arrays))
        for row in sorted(bad)
    ]
    if bad:
        good = pa.array([row not in bad for row in range(batch.num_rows)])
        arrays = [array.filter(good) for array in arrays]
    return Rows(_stream(arrays), batch.num_rows, tuple(found), tuple(cell for cell in odd if cell.index not in bad))


def _stream(arrays: list[Any]) -> bytes:
    ipc: Any = pyarrow.ipc
    texts = pa.RecordBatch.from_arrays(arrays, [str(index) for index in range(len(arrays))])
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, texts.schema) as writer:
        writer.write_batch(texts)
    return sink.getvalue().to_pybytes()
