"""The client: a server, asked from Python. What it can be asked is in `calls`, by noun."""

from types import TracebackType
from typing import Self

from rowcall.client.asking import Asking
from rowcall.client.calls.columns import ColumnCalls
from rowcall.client.calls.edits import EditCalls
from rowcall.client.calls.exports import ExportCalls
from rowcall.client.calls.importers import ImporterCalls
from rowcall.client.calls.items import ItemCalls
from rowcall.client.calls.jobs import JobCalls
from rowcall.client.calls.moves import MoveCalls
from rowcall.client.calls.undos import UndoCalls
from rowcall.client.calls.values import ValueCalls


class Client(JobCalls, ItemCalls, MoveCalls, ColumnCalls, ValueCalls, EditCalls, UndoCalls, ExportCalls, ImporterCalls):
    """A Rowcall server, asked from Python.

    Requests that may be repeated are, for `patience` seconds, when the connection breaks or the server has no time.
    Each import and export is made with an idempotency key, so that repeating makes no second one. What the server
    refuses is raised as `RequestRefused`; when it can't be reached, `ServerUnavailable`.
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60, patience: float = 60) -> None:
        """`url` is the server's address; `timeout` the seconds that it may be silent."""
        super().__init__(Asking(url, key, timeout=timeout, patience=patience))

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
