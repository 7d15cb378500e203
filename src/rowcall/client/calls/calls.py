"""How all parts of the client ask: of which job, page by page, with a key where that makes repeating safe."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Generic, TypeVar
from uuid import UUID, uuid4

import msgspec

from rowcall.client.answers import Job, View, Wire
from rowcall.client.asking import Asking
from rowcall.errors import RequestRefused
from rowcall.model import Code

_T = TypeVar("_T")
_PAGE = 1000
AnyJob = Job | UUID | str
"""A job, its id, or its number."""
AnyFile = str | Path | bytes | BinaryIO
"""A path, bytes, or a stream."""


class _Page(Wire, Generic[_T], frozen=True):
    items: list[_T]
    next: str | None = None


class Calls:
    """What the parts of the client have in common: each adds what can be asked of one noun."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def _path(self, job: AnyJob) -> str:
        if isinstance(job, str) and (number := number_in(job)):
            job = self._numbered(number)
        return f"/v1/imports/{job.id if isinstance(job, Job) else job}"

    def _numbered(self, number: str) -> Job:
        found = self._asking.ask(_Page[Job], "GET", "/v1/imports", params={"number": number}).items
        if not found:
            told = f"There is no job {number!r} on {self._asking.url}."
            raise RequestRefused(Code.JOB_NOT_FOUND, told, hint="`jobs` lists them.", status=404)
        return found[0]

    def _tell(self, kind: type[_T], method: str, path: str, said: object, *, safe: bool = False) -> _T:
        return self._asking.ask(kind, method, path, safe=safe, **as_json(said))

    def _create(self, kind: type[_T], path: str, order: object, key: str | None) -> _T:
        json = as_json(order)
        json["headers"]["Idempotency-Key"] = key or str(uuid4())
        return self._asking.ask(kind, "POST", path, **json)

    def _pages(self, kind: type[_T], path: str, asked: dict[str, Any], most: int | None) -> Iterator[_T]:
        return islice(self._all(kind, path, asked, min(_PAGE, most or _PAGE)), most)

    def _all(self, kind: type[_T], path: str, asked: dict[str, Any], size: int) -> Iterator[_T]:
        params = given({**asked, "pageSize": str(size)})
        while True:
            page = self._asking.ask(_Page[kind], "GET", path, params=params)
            yield from page.items
            if page.next is None:
                return
            params["after"] = page.next


def number_in(job: str) -> str | None:
    """The text, if it is a number; None if it is an id."""
    try:
        UUID(job)
    except ValueError:
        return job
    return None


def name_of(file: AnyFile) -> str:
    """What a file is called."""
    named = file if isinstance(file, str | Path) else getattr(file, "name", None)
    return PurePath(os.fspath(named)).name if isinstance(named, str | Path) else "upload"


def query(view: View) -> dict[str, str | None]:
    """A view as parameters."""
    return {
        "statuses": ",".join(view.statuses) or None,
        "code": view.code,
        "field": view.field,
        "text": view.text,
        "edited": "true" if view.edited else None,
        "sort": view.sort,
    }


def which(view: View) -> dict[str, Any]:
    """A view as part of a body."""
    return {"statuses": view.statuses or None, "code": view.code, "field": view.field, "text": view.text}


def given(asked: dict[str, Any]) -> dict[str, Any]:
    """What is said of it."""
    return {name: value for name, value in asked.items() if value not in (None, "", [])}


def as_json(order: object) -> dict[str, Any]:
    """A request's body, with its type."""
    return {"content": msgspec.json.encode(order), "headers": {"Content-Type": "application/json"}}


def nobody(*_: int) -> None:
    """Isn't told."""
