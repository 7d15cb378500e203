"""The rows of a batch, judged: those that can go to the target, and an outcome for those that can't."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import polars as pl
from psycopg import Connection

from rowcall.engine.meaning import meant
from rowcall.engine.resolve import ISSUES, Resolved
from rowcall.engine.values.answers import Unsettled
from rowcall.engine.verify import verify
from rowcall.engine.work import Work
from rowcall.importer import Lookup
from rowcall.model import Category, Code, Status
from rowcall.store.queries import query
from rowcall.store.rows import PROBLEMS, RowBatch, Sources, brought, read_rows

OUTCOMES = {"row_number": pl.Int64, "status": pl.String, "target_key": pl.String, "issues": pl.String}
NO_OUTCOMES = pl.DataFrame(schema=OUTCOMES)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a batch comes to before the target is asked."""

    good: pl.DataFrame
    """`number` and a typed column per field."""
    settled: pl.DataFrame
    """Outcomes of the rows that go no further: row_number, status, target_key, issues (as JSON)."""
    late: frozenset[int] = frozenset()
    """The rows of whose values somebody said something since the plan of the job was agreed to."""


def judge(connection: Connection[Any], work: Work, batch: RowBatch) -> Judged:
    """Read a batch's rows, look up, verify, and drop those that lose against another row of the file."""
    rows = rows_of(connection, work, batch, work.sources)
    waiting = _waiting(connection, work, batch)
    if waiting.height:
        rows = rows.filter(~pl.col("number").is_in(waiting["row_number"].implode()))
    judged = judge_rows(connection, work, rows, duplicates(connection, work, rows))
    return replace(judged, settled=pl.concat([waiting, judged.settled]))


def _waiting(connection: Connection[Any], work: Work, batch: RowBatch) -> pl.DataFrame:
    """Outcomes, for now, of the rows that are judged when others are in."""
    if not work.own_lookups:
        return NO_OUTCOMES
    given = {"id": work.job.id, "first": batch.first_row, "last": batch.last_row}
    numbers = [number for (number,) in connection.execute(query("batch_waiting"), given)]
    return failures(
        pl.DataFrame({"number": numbers}, schema={"number": pl.Int64}).select(
            "number",
            pl.lit(Code.NOT_FOUND.value).alias("code"),
            pl.lit(work.own_lookups[0]).alias("field"),
            pl.lit(None, pl.String).alias("value"),
            pl.lit("It waits for other rows of this file.").alias("message"),
        ),
        {},
    )


def rows_of(connection: Connection[Any], work: Work, batch: RowBatch, sources: Sources) -> pl.DataFrame:
    """The rows of a batch, from beside this process if it brought them in, else from the database."""
    rows = None if work.edited else work.scratch.get(batch, sources)
    if rows is not None:
        return rows
    return read_rows(connection, work.job.id, sources, first=batch.first_row, last=batch.last_row, edited=work.edited)


def numbered(
    connection: Connection[Any], work: Work, numbers: Sequence[int], sources: Sources | None = None
) -> pl.DataFrame:
    """Some rows, given in order, from the database: the texts from these sources, or all that are mapped."""
    sources = work.sources if sources is None else sources
    first, last = numbers[0], numbers[-1]
    return read_rows(connection, work.job.id, sources, first=first, last=last, numbers=numbers, edited=work.edited)


def judge_rows(
    connection: Connection[Any],
    work: Work,
    rows: pl.DataFrame,
    lost: pl.DataFrame,
    *,
    hopeful: bool = False,
    asking: bool = True,
) -> Judged:
    """Judge rows as `read_rows` gives them; `lost` are outcomes of rows that another row of the file beats.

    `hopeful`: a row that refers to a row of the same file is good, though that one is not in the target yet.
    Raises `Unsettled` where somebody has to be asked about values; not `asking`, that is an issue of the row.
    """
    broken, unusable = problems_of(work, rows)
    texts = rows.drop(PROBLEMS).with_columns(
        pl.lit(text).alias(name) for name, text in work.job.config.constants.items()
    )
    if broken.height:
        texts = texts.filter(~pl.col("number").is_in(broken["row_number"].implode()))
    found = meant(connection, work, texts)
    texts, unresolved = _refer_to_themselves(work, found.rows, found.issues)
    if found.questions.height and (open_ := _open(work, found, unusable)).height:
        unresolved = pl.concat([unresolved, _unanswered(work, open_)])
        asked, _ = _without_scope(work, open_, pl.concat([unresolved, unusable]))
        if asking and asked.height:
            raise Unsettled(asked)
    skipped = failures(found.skipped, work.lookups, status=Status.SKIPPED)
    if skipped.height:
        texts, unresolved, unusable = (
            frame.filter(~pl.col("number").is_in(skipped["row_number"].implode()))
            for frame in (texts, unresolved, unusable)
        )
    awaited = _awaited(connection, work, unresolved) if hopeful else None
    if awaited is not None:
        unresolved = unresolved.join(awaited, on=["number", "field"], how="anti", maintain_order="left")
    unresolved, silent = _without_scope(work, unresolved, pl.concat([unresolved, unusable]))
    if silent.height:
        awaited = silent if awaited is None else pl.concat([awaited, silent])
    without_value = pl.concat([unusable, unresolved])
    verified = verify(
        work.importer,
        texts,
        readings=work.readings,
        limits=work.limits,
        unresolved=without_value if without_value.height else None,
        awaited=awaited,
    )
    good = verified.frame
    failed = failures(verified.issues, work.lookups)
    if lost.height:
        lost = lost.filter(pl.col("row_number").is_in(good["number"].implode()))
        good = good.filter(~pl.col("number").is_in(lost["row_number"].implode()))
    return Judged(good, pl.concat([broken, skipped, failed, lost]), found.late)


def _open(work: Work, found: Resolved, unusable: pl.DataFrame) -> pl.DataFrame:
    """The questions, apart from those about cells that hold no usable value, and about rows that are skipped anyway."""
    usable = found.questions.join(unusable, on=["number", "field"], how="anti", maintain_order="left")
    skipped, _ = _without_scope(work, found.skipped, usable)
    return usable.join(skipped, on="number", how="anti", maintain_order="left")


def _without_scope(work: Work, told: pl.DataFrame, issues: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What is told of fields, apart from look-ups within what has an issue itself: that is not their fault."""
    scopes = {name: lookup.within for name, lookup in work.lookups.items() if lookup.within}
    if not scopes or not told.height:
        return told, told.clear()
    scope = pl.col("field").replace_strict(scopes, default=None, return_dtype=pl.String)
    lost = issues.select("number", pl.col("field").alias("_within"))
    told = told.with_columns(scope.alias("_within"))
    heard = told.join(lost, on=["number", "_within"], how="anti", maintain_order="left").drop("_within")
    return heard, told.join(lost, on=["number", "_within"], how="semi", maintain_order="left").drop("_within")


def _unanswered(work: Work, questions: pl.DataFrame) -> pl.DataFrame:
    """An issue for each value that somebody will be asked about."""
    code = pl.when(pl.col("field").is_in([*work.lookups])).then(pl.lit(Code.NOT_FOUND.value))
    told = pl.format("Nobody has said yet what '{}' stands for; the job asks when it comes to it.", "value")
    cut = questions.with_columns(pl.col("value").str.head(200))
    return cut.select(
        "number",
        code.otherwise(pl.lit(Code.NOT_A_CHOICE.value)).alias("code"),
        "field",
        "value",
        told.alias("message"),
    )


def _refer_to_themselves(
    work: Work, texts: pl.DataFrame, unresolved: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Look-ups that found nothing because the row itself is what they look for: they get the key that it brings."""
    fields = {field.column: name for name, field in work.importer.fields.items() if name in texts.columns}
    for name in work.own_lookups:
        lookup = work.lookups[name]
        key, sought = fields.get(lookup.to), [fields[column] for column in lookup.by if column in fields]
        missed = unresolved.filter((pl.col("field") == name) & (pl.col("code") == Code.NOT_FOUND.value))
        if key is None or not sought or not missed.height:
            continue
        same = pl.any_horizontal(pl.col(other).str.strip_chars() == pl.col("value?") for other in sought)
        own = texts.join(missed.select("number", pl.col("value").alias("value?")), on="number").filter(same)
        texts = texts.update(own.select("number", pl.col(key).str.strip_chars().alias(name)), on="number")
        theirs = (pl.col("field") == name) & pl.col("number").is_in(own["number"].implode())
        unresolved = unresolved.filter(~theirs)
    return texts, unresolved


def _awaited(connection: Connection[Any], work: Work, unresolved: pl.DataFrame) -> pl.DataFrame | None:
    """Of look-ups that found nothing: those in the target itself, for a text that a row of the file brings to it."""
    found: list[pl.DataFrame] = []
    for name in work.own_lookups:
        missed = unresolved.filter((pl.col("field") == name) & (pl.col("code") == Code.NOT_FOUND.value))
        fields = [other for other, field in work.importer.fields.items() if field.column in work.lookups[name].by]
        sources = [work.sources[other] for other in fields if other in work.sources]
        if missed.height and sources:
            texts = missed["value"].str.to_lowercase()
            there = brought(connection, work.job.id, sources, texts.unique().to_list())
            found.append(missed.filter(texts.is_in(there)))
    return pl.concat(found) if found else None


def failures(issues: pl.DataFrame, lookups: Mapping[str, Lookup], *, status: Status = Status.FAILED) -> pl.DataFrame:
    """One outcome per row, with all of its issues."""
    if not issues.height:
        return NO_OUTCOMES
    return (
        issues.select("number", _issue_text(issues, lookups).alias("issue"))
        .group_by("number", maintain_order=True)
        .agg(pl.col("issue").str.join(","))
        .select(
            pl.col("number").alias("row_number"),
            pl.lit(status.value).alias("status"),
            pl.lit(None, pl.String).alias("target_key"),
            pl.concat_str(pl.lit("["), "issue", pl.lit("]")).alias("issues"),
        )
    )


def _issue_text(issues: pl.DataFrame, lookups: Mapping[str, Lookup]) -> pl.Expr:
    """Issues as JSON. Those of look-ups tell in `metadata` which table has no row for which value."""
    plain = pl.struct("code", "field", "value", "message").struct.json_encode()
    mismatch = pl.col("code").is_in([Code.NOT_FOUND.value, Code.NOT_UNIQUE.value]) & pl.col("field").is_in([*lookups])
    if not lookups or not issues.select(mismatch.any()).item():
        return plain
    tables = {name: lookup.table for name, lookup in lookups.items()}
    metadata = pl.struct(
        pl.lit(Category.FK_MISMATCH.value).alias("category"),
        pl.col("field").replace_strict(tables, default=None, return_dtype=pl.String).alias("fkType"),
        pl.col("value").alias("fkValue"),
    ).alias("metadata")
    told = pl.struct("code", "field", "value", "message", metadata).struct.json_encode()
    return pl.when(mismatch).then(told).otherwise(plain)


def problems_of(work: Work, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What the reader said: outcomes of records that could not be read, issues of cells that hold no usable value."""
    broken: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    fields = {position: name for name, source in work.sources.items() for position in source.positions}
    for number, text in rows.filter(pl.col(PROBLEMS).is_not_null()).select("number", PROBLEMS).iter_rows():
        said = msgspec.json.decode(text)
        if record := said.get("record"):
            issue = {"code": record["code"], "field": None, "value": record["raw"][:200], "message": record["message"]}
            issues = msgspec.json.encode([issue]).decode()
            broken.append({"row_number": number, "status": Status.FAILED.value, "target_key": None, "issues": issues})
        for cell in said.get("cells", ()):
            if name := fields.get(cell["position"]):
                about = {"code": cell["code"], "value": cell["value"], "message": cell["message"]}
                cells.append({"number": number, "field": name, **about})
    return pl.DataFrame(broken, schema=OUTCOMES), pl.DataFrame(cells, schema=ISSUES)


def duplicates(connection: Connection[Any], work: Work, rows: pl.DataFrame) -> pl.DataFrame:
    """Outcomes of the rows, which are in order, that lose against another row of the file."""
    if not rows.height:
        return NO_OUTCOMES
    given = {"id": work.job.id, "first": rows.item(0, "number"), "last": rows.item(-1, "number")}
    found = connection.execute(query("batch_duplicates"), given).fetchall()
    if not found:
        return NO_OUTCOMES
    numbers = [number for number, *_ in found]
    texts = rows.filter(pl.col("number").is_in(numbers)).rows_by_key("number", named=True, unique=True)
    constants = work.job.config.constants
    lost = [_lost({**texts[number], **constants}, number, *about) for number, *about in found if number in texts]
    return pl.DataFrame(lost, schema=OUTCOMES)


def _lost(texts: dict[str, str | None], number: int, winner: int, fields: list[str], refused: bool) -> dict[str, Any]:
    said = "comes later: the last one is taken" if winner > number else "comes first: the first one is taken"
    what = ", ".join(fields)
    issue = {
        "code": Code.DUPLICATE_IN_FILE,
        "field": what or None,
        "value": ", ".join(texts.get(name) or "" for name in fields)[:200] or None,
        "message": f"Row {winner:,} has the same {what or 'content'} and {said}.",
        "metadata": {"row": winner},
    }
    status = Status.FAILED if refused else Status.SKIPPED
    issues = msgspec.json.encode([issue]).decode()
    return {"row_number": number, "status": status.value, "target_key": None, "issues": issues}
