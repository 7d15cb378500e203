"""The part of the client that is about corrections: of single rows, of many, and by workbook."""

from rowcall.client.answers import CellEdit, Edited, Merged, Replaced, Replacement
from rowcall.client.calls.calls import AnyFile, AnyJob, Calls, as_json, name_of, nobody
from rowcall.client.downloading import Received, Target, stream_to
from rowcall.client.uploading import opened


class EditCalls(Calls):
    """What `Client` can be asked of corrections."""

    def edit(self, job: AnyJob, row: int, cells: dict[str, str | None], *, revision: int = 0) -> Edited:
        """Correct cells of a row, named by header, field or `column 3`; None takes a correction back.

        `revision` is that of the item as you saw it. Has somebody corrected the row since, `RequestRefused` is raised,
        with the code EDITED_MEANWHILE.
        """
        order = as_json({"cells": cells})
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
        return self._tell(Replaced, "POST", path, asked, safe=token is None)

    def rejects(self, job: AnyJob, target: Target, *, progress: Received | None = None) -> int:
        """Write the workbook of the rows that failed; how many bytes. A file is whole or not there."""
        return stream_to(self._asking, f"{self._path(job)}/rejects.xlsx", {}, target, progress or nobody)

    def merge(self, job: AnyJob, file: AnyFile) -> Merged:
        """Bring back the workbook, corrected: what was changed is laid over the rows, and just these run again."""
        with opened(file) as stream:
            files = {"file": (name_of(file), stream)}
            return self._asking.ask(Merged, "POST", f"{self._path(job)}/rejects", safe=False, files=files)
