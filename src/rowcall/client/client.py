"""The client: jobs, their rows, and exports of a server."""

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, BinaryIO, Generic, Literal, Self, TypeVar
from uuid import UUID, uuid4

import msgspec

from rowcall.client.answers import (
    CellEdit,
    Edited,
    Export,
    ExportOrder,
    Fingerprint,
    ImportConfig,
    Importer,
    ImporterSummary,
    Item,
    Job,
    Merged,
    PendingItem,
    Preview,
    Readiness,
    Receipt,
    Replaced,
    Replacement,
    Reprocessed,
    Summary,
    UndoPreview,
    UndoReceipt,
    View,
    Wire,
)
from rowcall.client.asking import Asking
from rowcall.client.columns import ColumnCalls
from rowcall.client.downloading import Received, Target, download, stream_to
from rowcall.client.uploading import Sent, opened, send_unsized, upload
from rowcall.client.values import ValueCalls
from rowcall.client.waiting import looks_at, not_done_yet
from rowcall.errors import RequestRefused
from rowcall.model import Code, ExportState

_T = TypeVar("_T")
_PAGE = 1000
_LONGEST_LOOK = 2.0
_EXPORT_ENDED = frozenset(ExportState) - {ExportState.QUEUED, ExportState.RUNNING}
AnyJob = Job | UUID | str
"""A job, its id, or its number."""


class _Page(Wire, Generic[_T], frozen=True):
    items: list[_T]
    next: str | None = None


class Client(ColumnCalls, ValueCalls):
    """A Rowcall server, asked from Python.

    Requests that may be repeated are, for `patience` seconds, when the connection breaks or the server has no time.
    Each import and export is made with an idempotency key, so that repeating makes no second one. What the server
    refuses is raised as `RequestRefused`; when it can't be reached, `ServerUnavailable`.
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60, patience: float = 60) -> None:
        """`url` is the server's address; `timeout` the seconds that it may be silent."""
        self._asking = Asking(url, key, timeout=timeout, patience=patience)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._asking.close()

    @property
    def url(self) -> str:
        return self._asking.url

    # ----------------------------------------------------------------------------------------------- bringing files

    def import_file(
        self,
        file: str | Path | bytes | BinaryIO,
        importer: str,
        config: ImportConfig | None = None,
        *,
        name: str | None = None,
        idempotency_key: str | None = None,
        progress: Sent | None = None,
    ) -> Job:
        """Bring a file: a path, bytes, or a stream. The job that this begins; `wait` for it.

        After a cut the rest is sent, but for a stream that can't be read again. `progress` is told how many bytes are
        sent, and of how many, 0 where that isn't known.
        """
        told = {"importer": importer, "config": msgspec.json.encode(config or ImportConfig()).decode()}
        name = name or _name(file)
        key = idempotency_key or str(uuid4())
        with opened(file) as stream:
            if not stream.seekable():
                answer = send_unsized(self._asking, stream, name, told, key, progress or _nobody)
                return msgspec.json.decode(answer.content, type=Job)
            place = upload(self._asking, stream, {**told, "filename": name, "idempotencyKey": key}, progress or _nobody)
        return self._asking.ask(Job, "GET", place)

    def import_url(
        self, url: str, importer: str, config: ImportConfig | None = None, *, idempotency_key: str | None = None
    ) -> Job:
        """Have the server fetch a file. The job that this begins; `wait` for it."""
        order = {"url": url, "importer": importer, "config": config or ImportConfig()}
        return self._create(Job, "/v1/imports", order, idempotency_key)

    # ------------------------------------------------------------------------------------------------------------- jobs

    def job(self, job: AnyJob) -> Job:
        """A job as it is now."""
        if isinstance(job, str) and (number := _number(job)):
            found = self._asking.ask(_Page[Job], "GET", "/v1/imports", params={"number": number}).items
            if not found:
                told = f"There is no job {job!r} on {self.url}."
                raise RequestRefused(Code.JOB_NOT_FOUND, told, hint="`jobs` lists them.", status=404)
            return found[0]
        return self._asking.ask(Job, "GET", self._path(job))

    def jobs(
        self,
        *,
        state: str | None = None,
        importer: str | None = None,
        scope: str | None = None,
        most: int | None = None,
    ) -> Iterator[Job]:
        """The jobs, the newest first; pages are asked for as they are needed."""
        return self._pages(Job, "/v1/imports", {"state": state, "importer": importer, "scope": scope}, most)

    def wait(self, job: AnyJob, *, timeout: float | None = None, progress: Callable[[Job], None] | None = None) -> Job:
        """The job when nothing more happens by itself: it has ended, is paused, or waits to be submitted.

        A job that has failed is returned, too: see its `state` and `error`. Past `timeout` seconds
        `ServerUnavailable` is raised, with the code NOT_DONE_YET; the job goes on.
        """
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        for now in looks_at(self._asking, self._path(job), deadline):
            if progress:
                progress(now)
            if now.rests:
                return now
            if time.monotonic() >= deadline:
                raise not_done_yet(f"Job {now.number}", timeout or 0)
        raise AssertionError("there is always another look")

    def preview(self, job: AnyJob) -> Preview:
        """What a job that was previewed would do."""
        return self._asking.ask(Preview, "GET", f"{self._path(job)}/preview")

    def receipt(self, job: AnyJob) -> Receipt:
        """A job on one page."""
        return self._asking.ask(Receipt, "GET", f"{self._path(job)}/receipt")

    def fingerprint(self, job: AnyJob) -> Fingerprint:
        """Whether its file is about the same things as the target, and what differs."""
        return self._asking.ask(Fingerprint, "GET", f"{self._path(job)}/fingerprint")

    def summary(self, job: AnyJob) -> Summary:
        """How many rows came to what, and what was wrong with how many."""
        return self._asking.ask(Summary, "GET", f"{self._path(job)}/results/summary")

    # ------------------------------------------------------------------------------------------------------------- rows

    def items(self, job: AnyJob, view: View | None = None, *, most: int | None = None) -> Iterator[Item]:
        """The rows of a job with what became of each; pages are asked for as they are needed."""
        return self._pages(Item, f"{self._path(job)}/items", _query(view or View()), most)

    def results(self, job: AnyJob, *outcomes: str, most: int | None = None) -> Iterator[Item]:
        """The rows of a job that came to one of these outcomes, or to any."""
        return self._pages(Item, f"{self._path(job)}/results", {"outcome": ",".join(outcomes) or None}, most)

    def pending(
        self, view: View | None = None, *, of: Literal["me", "all"] = "me", most: int | None = None
    ) -> Iterator[PendingItem]:
        """Rows of all jobs that wait for something or somebody, those that something happened to last first."""
        asked = {name: value for name, value in _query(view or View()).items() if name != "sort"}
        return self._pages(PendingItem, "/v1/pending", {**asked, "userId": of}, most)

    # ------------------------------------------------------------------------------------------------------ corrections

    def item(self, job: AnyJob, row: int) -> Item:
        """One row of a job, with what became of it."""
        return self._asking.ask(Item, "GET", f"{self._path(job)}/items/{row}")

    def edit(self, job: AnyJob, row: int, cells: dict[str, str | None], *, revision: int = 0) -> Edited:
        """Correct cells of a row, named by header, field or `column 3`; None takes a correction back.

        `revision` is that of the item as you saw it. Has somebody corrected the row since, `RequestRefused` is raised,
        with the code EDITED_MEANWHILE.
        """
        order = _json({"cells": cells})
        order["headers"]["If-Match"] = f'"{revision}"'
        return self._asking.ask(Edited, "PATCH", f"{self._path(job)}/items/{row}", safe=False, **order)

    def undo_edits(self, job: AnyJob, row: int, *, revision: int) -> Edited:
        """Take back all corrections of a row."""
        headers = {"If-Match": f'"{revision}"'}
        return self._asking.ask(Edited, "DELETE", f"{self._path(job)}/items/{row}/edits", safe=False, headers=headers)

    def edits(self, job: AnyJob, row: int) -> list[CellEdit]:
        """All corrections of a row, the latest first."""
        return self._asking.ask(list[CellEdit], "GET", f"{self._path(job)}/items/{row}/edits")

    def replace(self, job: AnyJob, what: Replacement, *, token: str | None = None) -> Replaced:
        """Count what a replacement would do; with the token of that, do just that."""
        view = what.view
        which = {
            "statuses": list(view.statuses) or None,
            "code": view.code,
            "field": view.field,
            "text": view.text,
            "edited": view.edited,
            "rows": what.rows,
        }
        match = "part" if what.part else "cell"
        order = {"filter": which, "field": what.field, "find": what.find, "with": what.text, "match": match}
        asked = {**order, "preview": token is None, "token": token}
        path = f"{self._path(job)}/items/replace"
        return self._asking.ask(Replaced, "POST", path, safe=token is None, **_json(asked))

    def rejects(self, job: AnyJob, target: Target, *, progress: Received | None = None) -> int:
        """Write the workbook of the rows that failed; how many bytes. A file is whole or not there."""
        return stream_to(self._asking, f"{self._path(job)}/rejects.xlsx", {}, target, progress or _nobody)

    def merge(self, job: AnyJob, file: str | Path | bytes | BinaryIO) -> Merged:
        """Bring back the workbook, corrected: what was changed is laid over the rows, and just these run again."""
        with opened(file) as stream:
            files = {"file": (_name(file), stream)}
            return self._asking.ask(Merged, "POST", f"{self._path(job)}/rejects", safe=False, files=files)

    # ------------------------------------------------------------------------------------------------------------ moves

    def start(self, job: AnyJob) -> Job:
        """Begin a job that was held back."""
        return self._move(job, "start")

    def submit(self, job: AnyJob, plan: Preview | str | None = None) -> Job:
        """Commit a job that waits after its preview: this plan, or its digest, and no other; None: whatever it is.

        Another plan by now is refused, with the code PLAN_STALE.
        """
        digest = plan.digest if isinstance(plan, Preview) else plan
        match = {"If-Match": "*" if digest is None else f'"{digest}"'}
        return self._asking.ask(Job, "POST", f"{self._path(job)}/submit", safe=digest is not None, headers=match)

    def acknowledge(self, job: AnyJob) -> Job:
        """Let a job go on though some of its rows differ from the target."""
        return self._move(job, "fingerprint/acknowledge")

    def pause(self, job: AnyJob) -> Job:
        """Stop a job for now."""
        return self._move(job, "pause")

    def resume(self, job: AnyJob) -> Job:
        """Let a paused job go on."""
        return self._move(job, "resume")

    def kickoff(self, job: AnyJob, *, milliseconds: int = 10_000) -> Job:
        """Let a held or paused job work for a while; then it pauses by itself."""
        return self._move(job, "kickoff", params={"durationMs": milliseconds})

    def cancel(self, job: AnyJob) -> Job:
        """Stop a job for good; what is done stays."""
        return self._move(job, "cancel")

    def reprocess(self, job: AnyJob, view: View | None = None, *, rows: list[int] | None = None) -> Reprocessed:
        """Try rows again that failed, or the failed and skipped ones of a view, or those with these numbers."""
        view = view or View()
        order = {**_which(view), "edited": view.edited, "rows": rows}
        return self._asking.ask(Reprocessed, "POST", f"{self._path(job)}/reprocess", safe=False, **_json(order))

    def preview_undo(
        self, job: AnyJob, view: View | None = None, *, rows: list[int] | None = None, partial: bool = False
    ) -> UndoPreview:
        """What an undo of a job would do now, or of the rows of a view, or of those with these numbers."""
        asked = {name: value for name, value in _query(view or View()).items() if name != "sort"}
        params = _given({**asked, "rows": rows, "partial": "true" if partial else None})
        return self._asking.ask(UndoPreview, "GET", f"{self._path(job)}/undo", params=params)

    def undo(
        self, job: AnyJob, view: View | None = None, *, rows: list[int] | None = None, partial: bool = False
    ) -> Job:
        """Take back what a job wrote, or the rows of a view, or those with these numbers; `wait` for it.

        `partial`: of an import that is all or nothing, also if some rows have to stay.
        """
        order = {**_which(view or View()), "rows": rows, "partial": partial}
        return self._move(job, "undo", **_json(order))

    def undo_receipt(self, job: AnyJob, number: int | None = None) -> UndoReceipt:
        """What an undo of a job did, the latest unless another is named."""
        params = _given({"number": number})
        return self._asking.ask(UndoReceipt, "GET", f"{self._path(job)}/undo/receipt", params=params)

    def _move(self, job: AnyJob, name: str, **more: Any) -> Job:
        return self._asking.ask(Job, "POST", f"{self._path(job)}/{name}", safe=False, **more)

    # ---------------------------------------------------------------------------------------------------------- exports

    def export(self, order: ExportOrder, target: Target, *, progress: Received | None = None) -> int:
        """Write rows to a file or stream as the server reads them; how many bytes. A file is whole or not there."""
        if order.job is not None:
            path, asked = f"/v1/imports/{order.job}/results/export", _query(order.view or View())
        else:
            path = "/v1/exports"
            asked = {"resource": order.resource, "fields": ",".join(order.fields), "filter": list(order.filters)}
        params = {"format": order.format, "bom": str(order.bom).lower(), **asked}
        return stream_to(self._asking, path, _given(params), target, progress or _nobody)

    def create_export(self, order: ExportOrder, *, idempotency_key: str | None = None) -> Export:
        """Have rows written to a file on the server, in the background; `wait_export`, then `download` it."""
        return self._create(Export, "/v1/exports", order, idempotency_key)

    def wait_export(
        self, export: Export | UUID, *, timeout: float | None = None, progress: Callable[[Export], None] | None = None
    ) -> Export:
        """The export when it has ended, in whatever way. Past `timeout` seconds as `wait`."""
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        pause = 0.1
        while True:
            now = self.read_export(export)
            if progress:
                progress(now)
            if now.state in _EXPORT_ENDED:
                return now
            if time.monotonic() >= deadline:
                raise not_done_yet(f"Export {now.id}", timeout or 0)
            time.sleep(max(0, min(pause, deadline - time.monotonic())))
            pause = min(_LONGEST_LOOK, 1.5 * pause)

    def read_export(self, export: Export | UUID) -> Export:
        """An export as it is now."""
        return self._asking.ask(Export, "GET", _export_path(export))

    def download(self, export: Export | UUID, target: Target, *, progress: Received | None = None) -> int:
        """Write the file of an export, whole or not at all; how many bytes. After a cut the rest is asked for."""
        now = self.read_export(export)
        size, path = now.progress.bytes, f"{_export_path(export)}/download"
        return download(self._asking, path, size, target, progress or _nobody)

    def cancel_export(self, export: Export | UUID) -> Export:
        """Stop an export that hasn't ended."""
        return self._asking.ask(Export, "POST", f"{_export_path(export)}/cancel", safe=False)

    # ------------------------------------------------------------------------------------- what there is to import into

    def importers(self) -> list[ImporterSummary]:
        """The importers that there are."""
        return self._asking.ask(list[ImporterSummary], "GET", "/v1/importers")

    def importer(self, name: str) -> Importer:
        """All about one: fields, rules, key."""
        return self._asking.ask(Importer, "GET", f"/v1/importers/{name}")

    def readiness(self) -> Readiness:
        """Whether the server can take files, and what it stands on."""
        return self._asking.ask(Readiness, "GET", "/health/ready", also=(503,))

    # -------------------------------------------------------------------------------------------------- how it is asked

    def _path(self, job: AnyJob) -> str:
        if isinstance(job, str) and _number(job):
            job = self.job(job)
        return f"/v1/imports/{job.id if isinstance(job, Job) else job}"

    def _create(self, kind: type[_T], path: str, order: object, key: str | None) -> _T:
        json = _json(order)
        json["headers"]["Idempotency-Key"] = key or str(uuid4())
        return self._asking.ask(kind, "POST", path, **json)

    def _pages(self, kind: type[_T], path: str, asked: dict[str, Any], most: int | None) -> Iterator[_T]:
        return islice(self._all(kind, path, asked, min(_PAGE, most or _PAGE)), most)

    def _all(self, kind: type[_T], path: str, asked: dict[str, Any], size: int) -> Iterator[_T]:
        params = _given({**asked, "pageSize": str(size)})
        while True:
            page = self._asking.ask(_Page[kind], "GET", path, params=params)
            yield from page.items
            if page.next is None:
                return
            params["after"] = page.next


def _name(file: str | Path | bytes | BinaryIO) -> str:
    named = file if isinstance(file, str | Path) else getattr(file, "name", None)
    return PurePath(os.fspath(named)).name if isinstance(named, str | Path) else "upload"


def _number(job: str) -> str | None:
    """The text, if it is a number; None if it is an id."""
    try:
        UUID(job)
    except ValueError:
        return job
    return None


def _export_path(export: Export | UUID) -> str:
    return f"/v1/exports/{export.id if isinstance(export, Export) else export}"


def _query(view: View) -> dict[str, str | None]:
    return {
        "statuses": ",".join(view.statuses) or None,
        "code": view.code,
        "field": view.field,
        "text": view.text,
        "edited": "true" if view.edited else None,
        "sort": view.sort,
    }


def _which(view: View) -> dict[str, Any]:
    return {"statuses": view.statuses or None, "code": view.code, "field": view.field, "text": view.text}


def _given(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value not in (None, "", [])}


def _json(order: object) -> dict[str, Any]:
    return {"content": msgspec.json.encode(order), "headers": {"Content-Type": "application/json"}}


def _nobody(*_: int) -> None:
    """Isn't told."""
