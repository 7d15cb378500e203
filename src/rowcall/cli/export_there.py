"""An export from a server: written there in the background and then downloaded, or streamed to standard output."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rowcall.client.answers import Export, ExportOrder
from rowcall.errors import Final, RowcallError
from rowcall.model import Code, ExportState

if TYPE_CHECKING:  # those who export from here needn't wait for it
    from rowcall.client import Client

_NOT_THERE = {".gz", ".bz2", ".xz", ".zst", ".tsv", ".tab"}


def check_name(out: str) -> None:
    """Refuse names that promise what a server doesn't write."""
    if _NOT_THERE & {suffix.lower() for suffix in Path(out).suffixes}:
        told = f"{out!r} would be compressed, or divided by tabs; a server writes neither."
        raise Final(Code.BAD_OPTION, told, hint="Leave that to `rowcall convert`.")


def stream_there(client: "Client", order: ExportOrder) -> str:
    """Write what is ordered to standard output; what to tell of it."""
    return f"{client.export(order, sys.stdout.buffer):,} bytes written"


def export_there(client: "Client", order: ExportOrder, out: str, progress: Callable[[int], None]) -> int:
    """Write what is ordered to a file; how many rows."""
    export = client.create_export(order)
    try:
        done = client.wait_export(export, progress=lambda now: progress(now.progress.rows))
    except (KeyboardInterrupt, SystemExit):
        with suppress(RowcallError):  # nobody else waits for it; else it expires
            client.cancel_export(export)
        raise
    if done.state != ExportState.COMPLETED:
        raise _failed(done)
    client.download(done, out)
    return done.progress.rows


def _failed(export: Export) -> Final:
    if export.error:
        return export.error.failure()
    return Final(Code.WRONG_STATE, f"The export is {export.state}: it has no file.", hint="Ask for it again.")
