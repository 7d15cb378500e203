"""Who does what. Each section has its own measure of comparison, so that the two alternate and a drift hits both."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from importing import django_peer, files, pgloader
from importing.files import Files
from importing.server import Start
from importing.trial import Trial

_ROUNDS = 3
_ROWCALL = "rowcall.cli:main"


@dataclass(frozen=True, slots=True)
class Section:
    """Trials that alternate. The first is what the others are compared with."""

    name: str
    title: str
    trials: tuple[Trial, ...]
    rounds: int = _ROUNDS


def sections(wanted: Files) -> list[Section]:
    """All that is measured, in this order."""
    return [
        _clean(wanted),
        _errors(wanted),
        _upsert(wanted),
        _preview(wanted),
        _formats(wanted),
        _export(wanted),
        _memory(wanted),
    ]


def _clean(wanted: Files) -> Section:
    django = Trial(
        key="django",
        label="django-import-export",
        entry="importing.django_peer:main",
        arguments=(str(wanted.path(files.FEW)),),
        file=wanted.path(files.FEW),
        rows=wanted.few_rows,
        users=wanted.few_rows,
        unavailable=django_peer.unavailable(),
    )
    loader = Trial(
        key="pgloader",
        label="pgloader",
        entry="importing.pgloader:main",
        arguments=(str(wanted.path(files.CLEAN)),),
        file=wanted.path(files.CLEAN),
        rows=wanted.rows,
        users=wanted.rows,
        unavailable=pgloader.unavailable(),
    )
    title = "Clean CSV into a constrained table"
    return Section("clean", title, (_raw_copy(wanted), _insert(wanted), loader, django))


def _errors(wanted: Files) -> Section:
    created, refused = wanted.rows - wanted.bad_rows, wanted.bad_rows
    errors = _rowcall(
        "errors",
        "5 % with errors",
        wanted.path(files.ERRORS),
        wanted.rows,
        users=created,
        outcomes={"created": created, "failed": refused},
    )
    rivals = _rowcall(
        "refused",
        "5 % that PostgreSQL refuses",
        wanted.path(files.CLEAN),
        wanted.rows,
        start=Start.RIVALS,
        users=wanted.rows,
        outcomes={"created": created},
    )
    return Section("errors", "Rows with errors", (_insert(wanted, "Rowcall, clean"), errors, rivals))


def _upsert(wanted: Files) -> Section:
    upsert = _changed(wanted, "rowcall", "Rowcall, upsert")
    return Section("upsert", "Every row matches, 10 % change", (_raw_copy(wanted), upsert))


def _changed(wanted: Files, key: str, label: str) -> Trial:
    return _rowcall(
        key,
        label,
        wanted.path(files.CHANGED),
        wanted.rows,
        mode="upsert",
        start=Start.FULL,
        users=wanted.rows,
        outcomes={"updated": wanted.changed_rows, "unchanged": wanted.rows - wanted.changed_rows},
    )


def _preview(wanted: Files) -> Section:
    inserted = replace(
        _insert(wanted, "Rowcall, preview and submit"),
        key="previewed",
        entry="importing.previewed:main",
        arguments=(str(wanted.path(files.CLEAN)), "insert"),
    )
    changed = replace(
        _changed(wanted, "upsert", "Rowcall, upsert, preview and submit"),
        entry="importing.previewed:main",
        arguments=(str(wanted.path(files.CHANGED)), "upsert"),
    )
    undone = replace(
        _insert(wanted, "Rowcall, import and undo"),
        key="undone",
        entry="importing.previewed:main_undone",
        arguments=(str(wanted.path(files.CLEAN)),),
        users=0,
    )
    title = "Shown before it is committed, and taken back"
    return Section("preview", title, (_insert(wanted), inserted, changed, undone))


def _formats(wanted: Files) -> Section:
    def trial(key: str, label: str, file: str) -> Trial:
        rows = wanted.fewer_rows
        return _rowcall(key, label, wanted.path(file), rows, users=rows, outcomes={"created": rows})

    trials = (
        trial("csv", "Rowcall, CSV", files.FEWER_CSV),
        trial("xlsx", "Rowcall, XLSX", files.FEWER_XLSX),
        trial("ndjson", "Rowcall, NDJSON", files.FEWER_NDJSON),
    )
    return Section("formats", "The same rows in other formats", trials)


def _export(wanted: Files) -> Section:
    def trial(key: str, label: str, entry: str, *arguments: str, suffix: str, header: int) -> Trial:
        target = wanted.path(f"{files.EXPORTED}.{suffix}")
        return Trial(
            key=key,
            label=label,
            entry=entry,
            arguments=(*arguments, str(target)),
            rows=wanted.rows,
            start=Start.FULL,
            users=wanted.rows,
            written=target,
            lines=wanted.rows + header,
        )

    def rowcall(kind: str, label: str, header: int) -> Trial:
        arguments = ("export", "users", "--format", kind, "--out")
        return trial(kind, f"Rowcall, {label}", _ROWCALL, *arguments, suffix=kind, header=header)

    raw = trial("copy", "raw COPY TO", "importing.raw_copy:main_out", suffix="csv", header=1)
    return Section("export", "Export", (raw, rowcall("csv", "CSV", 1), rowcall("ndjson", "NDJSON", 0)))


def _memory(wanted: Files) -> Section:
    rows = 10 * wanted.rows
    file = wanted.path(files.TENFOLD)
    tenfold = _rowcall("tenfold", "Rowcall, ten times the rows", file, rows, users=rows, outcomes={"created": rows})
    return Section("memory", "Memory", (_insert(wanted), tenfold), rounds=1)


def _raw_copy(wanted: Files) -> Trial:
    return Trial(
        key="copy",
        label="raw COPY",
        entry="importing.raw_copy:main",
        arguments=(str(wanted.path(files.CLEAN)),),
        file=wanted.path(files.CLEAN),
        rows=wanted.rows,
        users=wanted.rows,
    )


def _insert(wanted: Files, label: str = "Rowcall") -> Trial:
    rows = wanted.rows
    return _rowcall("rowcall", label, wanted.path(files.CLEAN), rows, users=rows, outcomes={"created": rows})


def _rowcall(
    key: str,
    label: str,
    file: Path,
    rows: int,
    *,
    mode: str = "insert",
    start: Start = Start.EMPTY,
    users: int,
    outcomes: Mapping[str, int],
) -> Trial:
    return Trial(
        key=key,
        label=label,
        entry=_ROWCALL,
        arguments=("import", str(file), "--into", "users", "--mode", mode, "--json"),
        file=file,
        rows=rows,
        start=start,
        users=users,
        outcomes=outcomes,
    )
