"""From the stored file to rows in the database, batch by batch, each with its checkpoint."""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from queue import Queue
from secrets import token_hex
from typing import Any

import polars as pl
from psycopg import Connection
from psycopg.errors import UniqueViolation

from rowcall.config import Settings
from rowcall.engine.ahead import ahead
from rowcall.engine.pace import Pace
from rowcall.engine.scratch import Scratch
from rowcall.errors import Final, Retryable
from rowcall.formats import Batch, Reading, open_rows
from rowcall.formats.reading import expecting
from rowcall.model import Code
from rowcall.store.binary import NO_TEXTS, text_arrays
from rowcall.store.copying import jsonb_text
from rowcall.store.db import Database
from rowcall.store.files.filestore import StoredFile, file_store
from rowcall.store.jobs import Job, set_ingested
from rowcall.store.mappings import columns_of
from rowcall.store.rows import Checkpoint, RowBatch, add_batch, checkpoint_of, filled_before

_STORED = ["number", "line", "cells", "problems"]
_RAW_KEPT = 10_000
Told = Callable[[int, int, int], None]
"""Takes rows so far, bytes so far, bytes in all."""


@contextmanager
def open_file(settings: Settings, job: Job, names: frozenset[str]) -> Generator[Reading]:
    """The job's file, which must be what was stored. Its columns may be called by these names."""
    if job.file_location is None or job.file_sha256 is None or job.file_size is None:
        raise Final(Code.FILE_CORRUPT, f"Job {job.number} has no file yet.")
    stored = StoredFile(job.file_sha256, job.file_size, job.file_location)
    copies = settings.data_dir / "copies" / str(job.id) / token_hex(4)  # one that was taken for dead may wake up
    with (
        file_store(settings).opened(stored, copies=copies) as path,
        open_rows(path, options=expecting(job.config.read, names), name=job.file_name) as reading,
    ):
        yield reading


def ingest(database: Database, connection: Connection[Any], job: Job, reading: Reading, ingesting: "Ingesting") -> None:
    """Bring in what is not in yet. The reader counts rows the same way each time, so a row number is a checkpoint.

    Batches are stored by several connections at once. After a crash, those behind the first gap are brought in again.
    """
    mapped = [column.position for column in columns_of(connection, job.id) if column.target_field]
    done = checkpoint_of(connection, job.id)
    if done.row:
        ingesting.seen.update(ingesting.watched)  # in the part that was read before, anything may have stood
    ingesting.filled.update(filled_before(connection, job.id, len(reading.columns), done))
    with ExitStack() as stack:
        free: Queue[Connection[Any]] = Queue()
        for _ in range(ingesting.writers):
            free.put(stack.enter_context(database.reconnect("ingest")))
        pool = stack.enter_context(ThreadPoolExecutor(ingesting.writers))
        under_way: deque[Future[int]] = deque()
        for number, part in enumerate(ahead(_parts(reading, done, ingesting, mapped)), done.batch + 1):
            rows, position = part
            under_way.append(pool.submit(_store, free, job, number, rows, ingesting))
            if len(under_way) > ingesting.writers:
                ingesting.tell(under_way.popleft().result(), position, reading.file.size)
        for last in under_way:
            ingesting.tell(last.result(), reading.position, reading.file.size)
    set_ingested(connection, job, reading.counts, reading.detected.format.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingesting:
    """How rows are brought in."""

    pace: Pace
    scratch: Scratch
    writers: int
    tell: Told
    watched: Mapping[int, str]
    """Columns by position, each with a pattern."""
    blank_is_none: frozenset[int] = frozenset()
    """Columns by position in which a blank cell is no value, where a field would take it for an empty text."""
    seen: set[int] = field(default_factory=set[int])
    """Those of them that may have values of their pattern."""
    filled: dict[int, int] = field(default_factory=dict[int, int])
    """How many rows have a value in each column, by position."""


def _store(free: "Queue[Connection[Any]]", job: Job, number: int, rows: pl.DataFrame, ingesting: Ingesting) -> int:
    """Store a batch; returns its last row."""
    first, last = rows.item(0, "number"), rows.item(-1, "number")
    connection = free.get()
    try:
        with ingesting.pace.step(int(rows["cells"].estimated_size())):
            add_batch(connection, job.id, RowBatch(number, first, last), rows.select(_STORED))
    except UniqueViolation as error:  # a process that was killed had sent its COMMIT, and it is only done now
        raise Retryable(Code.DATABASE_BUSY, "Another process was bringing in the same rows.") from error
    finally:
        free.put(connection)
    ingesting.scratch.put(number, rows.drop("line", "cells"))
    for position, pattern in ingesting.watched.items():
        if position not in ingesting.seen and rows[str(position)].str.contains(pattern).any():
            ingesting.seen.add(position)
    return last


def _parts(
    reading: Reading, done: Checkpoint, ingesting: Ingesting, mapped: Sequence[int]
) -> Iterator[tuple[pl.DataFrame, int]]:
    """The rows behind the checkpoint in pieces of the pace's size, each with how far in the file it was made.

    Only the thread that reads may ask for that: it closes the file when it is through.
    """
    waiting: list[pl.DataFrame] = []
    height = 0
    for batch in reading:
        _count_filled(batch, done, ingesting.filled)
        rows = _rows(_without_blanks(batch, ingesting.blank_is_none), mapped)
        rows = rows.filter(pl.col("number") > done.row) if rows.height and rows.item(0, "number") <= done.row else rows
        waiting.append(rows)
        height += rows.height
        while height >= (size := ingesting.pace.rows):  # other threads change it
            whole = pl.concat(waiting)
            yield whole.head(size), reading.position
            waiting = [whole.slice(size)]
            height -= size
    if height:
        yield pl.concat(waiting), reading.position


def _count_filled(batch: Batch, done: Checkpoint, filled: dict[int, int]) -> None:
    frame = batch.frame
    if batch.numbers.len() and batch.numbers[0] <= done.row:
        frame = frame.filter(batch.numbers > done.row)
    counts = frame.select(pl.all().str.contains(r"\S").sum()).row(0) if frame.height else ()
    for position, count in enumerate(counts):
        filled[position] = filled.get(position, 0) + count


def _without_blanks(batch: Batch, columns: frozenset[int]) -> Batch:
    names = [name for at, name in enumerate(batch.frame.columns) if at in columns]
    if not names:
        return batch
    return replace(batch, frame=batch.frame.with_columns(pl.col(names).replace("", None)))


def _rows(batch: Batch, mapped: Sequence[int]) -> pl.DataFrame:
    """Good and bad records of a batch together, in order: each has a number and is accounted for."""
    none = pl.repeat(None, batch.frame.height, dtype=pl.String, eager=True)
    good = pl.DataFrame(
        {
            "number": batch.numbers,
            "line": batch.lines,
            "cells": text_arrays(batch.frame),
            "problems": none,
            **{str(at): batch.frame.to_series(at) if at < batch.frame.width else none for at in mapped},
        }
    )
    if not batch.bad and not batch.issues:
        return good
    return pl.concat([_with_issues(good, batch), _bad(batch)], how="diagonal").sort("number")


def _with_issues(good: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    if not batch.issues:
        return good
    problems: dict[int, list[dict[str, object]]] = {}
    for issue in batch.issues:
        cell: dict[str, object] = {
            "code": issue.code,
            "message": issue.message,
            "value": issue.value,
            "position": issue.column,
        }
        problems.setdefault(issue.number, []).append(cell)
    texts = {number: jsonb_text({"cells": cells}) for number, cells in problems.items()}
    found = pl.DataFrame({"number": list(texts), "found": list(texts.values())}, schema_overrides={"number": pl.Int64})
    joined = good.join(found, on="number", how="left", maintain_order="left")
    return joined.with_columns(pl.col("found").alias("problems")).drop("found")


def _bad(batch: Batch) -> pl.DataFrame:
    records = [
        {
            "number": bad.number,
            "line": bad.line,
            "cells": _cells(bad.cells),
            "problems": jsonb_text({"record": {"code": bad.code, "message": bad.message, "raw": _text(bad.raw)}}),
        }
        for bad in batch.bad
    ]
    return pl.DataFrame(
        records, schema={"number": pl.Int64, "line": pl.Int64, "cells": pl.Binary, "problems": pl.String}
    )


def _cells(cells: tuple[str, ...]) -> bytes:
    if not cells:
        return NO_TEXTS
    frame = pl.DataFrame({str(place): [_storable(cell)] for place, cell in enumerate(cells)})
    return text_arrays(frame).item()


def _text(raw: bytes) -> str:
    return raw[:_RAW_KEPT].decode("utf-8", "replace")


def _storable(text: str) -> str:
    """PostgreSQL holds no NUL."""
    return text.replace("\0", "\ufffd")
