"""The part of the client that is about rows: what became of each."""

from collections.abc import Iterator
from typing import Literal

from rowcall.client.answers import Item, PendingItem, View
from rowcall.client.calls.calls import AnyJob, Calls, query


class ItemCalls(Calls):
    """What `Client` can be asked of rows."""

    def item(self, job: AnyJob, row: int) -> Item:
        """One row of a job, with what became of it."""
        return self._asking.ask(Item, "GET", f"{self._path(job)}/items/{row}")

    def items(self, job: AnyJob, view: View | None = None, *, most: int | None = None) -> Iterator[Item]:
        """The rows of a job with what became of each; pages are asked for as they are needed."""
        return self._pages(Item, f"{self._path(job)}/items", query(view or View()), most)

    def results(self, job: AnyJob, *outcomes: str, most: int | None = None) -> Iterator[Item]:
        """The rows of a job that came to one of these outcomes, or to any."""
        return self._pages(Item, f"{self._path(job)}/results", {"outcome": ",".join(outcomes) or None}, most)

    def pending(
        self, view: View | None = None, *, of: Literal["me", "all"] = "me", most: int | None = None
    ) -> Iterator[PendingItem]:
        """Rows of all jobs that wait for something or somebody, those that something happened to last first."""
        asked = {name: value for name, value in query(view or View()).items() if name != "sort"}
        return self._pages(PendingItem, "/v1/pending", {**asked, "userId": of}, most)
