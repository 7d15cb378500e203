"""From the stored file to rows in the database, batch by batch, each with its checkpoint."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from psycopg import Connection

from rowcall.engine.pace import Pace
from rowcall.formats import Batch, Reading, open_rows
from rowcall.store import files
from rowcall.store.copying import cells_text
from rowcall.store.jobs import Job, set_ingested
from rowcall.store.rows import Checkpoint, RowBatch, add_batch, checkpoint_of

_RAW_KEPT = 10_000
Told = Callable[[int, int, int], None]
"""Takes rows so far, bytes so far, bytes in all."""


def open_file(job: Job) -> Reading:
    """The job's file, which must be what was stored."""
    location = Path(job.file_location)
    files.check(location, job.file_sha256, job.file_size)
    return open_rows(location, options=job.config.read, name=job.file_name)


def ingest(connection: Connection[Any], job: Job, reading: Reading, pace: Pace, tell: Told) -> None:
    """Bring in what is not in yet. The reader counts rows the same way each time, so a row number is a checkpoint."""
    done = checkpoint_of(connection, job.id)
    batch = done.batch
    for part in _parts(reading, done, pace):
        batch += 1
        first, last = part.rows.item(0, "number"), part.rows.item(-1, "number")
        with pace.step(part.size):
            add_batch(connection, job.id, RowBatch(batch, first, last), part.rows)
        tell(last, reading.position, reading.file.size)
    counts = reading.counts
    set_ingested(connection, job, counts)


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows ready to be stored, and about how many bytes they are."""

    rows: pl.DataFrame

    @property
    def size(self) -> int:
        return int(self.rows.estimated_size())


def _parts(reading: Reading, done: Checkpoint, pace: Pace) -> Iterator[_Part]:
    """The rows behind the checkpoint in pieces of the pace's size."""
    waiting: list[pl.DataFrame] = []
    height = 0
    for batch in reading:
        rows = _rows(batch)
        rows = rows.filter(pl.col("number") > done.row) if rows.height and rows.item(0, "number") <= done.row else rows
        waiting.append(rows)
        height += rows.height
        while height >= pace.rows:
            whole = pl.concat(waiting)
            size = pace.rows
            yield _Part(whole.head(size))
            waiting = [whole.slice(size)]
            height -= size
    if height:
        yield _Part(pl.concat(waiting))


def _rows(batch: Batch) -> pl.DataFrame:
    """Good and bad records of a batch together, in order: each has a number and is accounted for."""
    good = pl.DataFrame({"number": batch.numbers, "line": batch.lines, "cells": cells_text(batch.frame)}).with_columns(
        pl.lit(None, pl.String).alias("problems")
    )
    if not batch.bad and not batch.issues:
        return good
    return pl.concat([_with_issues(good, batch), _bad(batch)]).sort("number")


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
    texts = {number: _json({"cells": cells}) for number, cells in problems.items()}
    found = pl.DataFrame({"number": list(texts), "found": list(texts.values())}, schema_overrides={"number": pl.Int64})
    return good.join(found, on="number", how="left", maintain_order="left").select(
        "number", "line", "cells", pl.col("found").alias("problems")
    )


def _bad(batch: Batch) -> pl.DataFrame:
    records = [
        {
            "number": bad.number,
            "line": bad.line,
            "cells": _cells(bad.cells),
            "problems": _json({"record": {"code": bad.code, "message": bad.message, "raw": _text(bad.raw)}}),
        }
        for bad in batch.bad
    ]
    return pl.DataFrame(
        records, schema={"number": pl.Int64, "line": pl.Int64, "cells": pl.String, "problems": pl.String}
    )


def _cells(cells: tuple[str, ...]) -> str:
    if not cells:
        return "{}"
    frame = pl.DataFrame({str(place): [_storable(cell)] for place, cell in enumerate(cells)})
    return cells_text(frame).item()


def _text(raw: bytes) -> str:
    return raw[:_RAW_KEPT].decode("utf-8", "replace")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode().replace("\\u0000", "\\ufffd")


def _storable(text: str) -> str:
    """PostgreSQL holds no NUL."""
    return text.replace("\0", "\ufffd")
