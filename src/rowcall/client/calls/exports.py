"""The part of the client that is about exports: streamed, or written on the server first."""

import time
from collections.abc import Callable
from uuid import UUID

from rowcall.client.answers import Export, ExportOrder, View
from rowcall.client.calls.calls import Calls, given, nobody, query
from rowcall.client.downloading import Received, Target, download, stream_to
from rowcall.client.waiting import not_done_yet
from rowcall.model import ExportState

_LONGEST_LOOK = 2.0
_ENDED = frozenset(ExportState) - {ExportState.QUEUED, ExportState.RUNNING}


class ExportCalls(Calls):
    """What `Client` can be asked of exports."""

    def export(self, order: ExportOrder, target: Target, *, progress: Received | None = None) -> int:
        """Write rows to a file or stream as the server reads them; how many bytes. A file is whole or not there."""
        if order.job is not None:
            path, asked = f"/v1/imports/{order.job}/results/export", query(order.view or View())
        else:
            path = "/v1/exports"
            asked = {"resource": order.resource, "fields": ",".join(order.fields), "filter": list(order.filters)}
        params = {"format": order.format, "bom": str(order.bom).lower(), **asked}
        return stream_to(self._asking, path, given(params), target, progress or nobody)

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
            if now.state in _ENDED:
                return now
            if time.monotonic() >= deadline:
                raise not_done_yet(f"Export {now.id}", timeout or 0)
            time.sleep(max(0, min(pause, deadline - time.monotonic())))
            pause = min(_LONGEST_LOOK, 1.5 * pause)

    def read_export(self, export: Export | UUID) -> Export:
        """An export as it is now."""
        return self._asking.ask(Export, "GET", _path_of(export))

    def download(self, export: Export | UUID, target: Target, *, progress: Received | None = None) -> int:
        """Write the file of an export, whole or not at all; how many bytes. After a cut the rest is asked for."""
        now = self.read_export(export)
        size, path = now.progress.bytes, f"{_path_of(export)}/download"
        return download(self._asking, path, size, target, progress or nobody)

    def cancel_export(self, export: Export | UUID) -> Export:
        """Stop an export that hasn't ended."""
        return self._asking.ask(Export, "POST", f"{_path_of(export)}/cancel", safe=False)


def _path_of(export: Export | UUID) -> str:
    return f"/v1/exports/{export.id if isinstance(export, Export) else export}"
