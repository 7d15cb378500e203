"""The part of the client that takes back what jobs wrote."""

from rowcall.client.answers import Job, UndoPreview, UndoReceipt, View
from rowcall.client.calls.calls import AnyJob, Calls, given, query, which


class UndoCalls(Calls):
    """What `Client` can be asked of undos."""

    def preview_undo(
        self, job: AnyJob, view: View | None = None, *, rows: list[int] | None = None, partial: bool = False
    ) -> UndoPreview:
        """What an undo of a job would do now, or of the rows of a view, or of those with these numbers."""
        asked = {name: value for name, value in query(view or View()).items() if name != "sort"}
        params = given({**asked, "rows": rows, "partial": "true" if partial else None})
        return self._asking.ask(UndoPreview, "GET", f"{self._path(job)}/undo", params=params)

    def undo(
        self, job: AnyJob, view: View | None = None, *, rows: list[int] | None = None, partial: bool = False
    ) -> Job:
        """Take back what a job wrote, or the rows of a view, or those with these numbers; `wait` for it.

        `partial`: of an import that is all or nothing, also if some rows have to stay.
        """
        order = {**which(view or View()), "rows": rows, "partial": partial}
        return self._tell(Job, "POST", f"{self._path(job)}/undo", order)

    def undo_receipt(self, job: AnyJob, number: int | None = None) -> UndoReceipt:
        """What an undo of a job did, the latest unless another is named."""
        params = given({"number": number})
        return self._asking.ask(UndoReceipt, "GET", f"{self._path(job)}/undo/receipt", params=params)
