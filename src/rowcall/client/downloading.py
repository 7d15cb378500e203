"""Files on their way from a server: whole, or not there."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import httpx

from rowcall.client.asking import Asking, Pauses
from rowcall.errors import ServerUnavailable
from rowcall.model import Code

if TYPE_CHECKING:
    from rowcall.formats.output import Output

Target = str | Path | BinaryIO
Received = Callable[[int], None]
"""Told how many bytes have come."""
_AS_IT_IS = {"Accept-Encoding": "identity"}  # bytes are counted


@contextmanager
def whole(target: Target) -> Generator["Output"]:
    """A file that has its name when all of it is written. A stream is written to as it is."""
    from rowcall.formats.output import Output  # loads Polars, which others needn't wait for

    output = Output(Path(target) if isinstance(target, str) else target)
    try:
        yield output
        output.commit()
    except BaseException:
        output.discard()
        raise


def stream_to(asking: Asking, path: str, params: dict[str, str | list[str]], target: Target, received: Received) -> int:
    """Write an answer as it comes; how many bytes. One that is cut off can't be gone on with."""
    count = 0
    with whole(target) as file, asking.stream("GET", path, params=params, headers=_AS_IT_IS) as response:
        try:
            for piece in response.iter_raw():
                file.write(piece)
                count += len(piece)
                received(count)
        except httpx.TransportError as error:
            raise _cut_off(f"The stream was cut off after {count:,} bytes.") from error
    return count


def download(asking: Asking, path: str, size: int, target: Target, received: Received) -> int:
    """Write a file of this size; after a cut, the rest of it. How many bytes."""
    count, tag = 0, None
    pauses = Pauses(asking.patience)
    with whole(target) as file:
        while count < size or tag is None:
            headers = {**_AS_IT_IS, **({"Range": f"bytes={count}-", "If-Range": tag} if count and tag else {})}
            try:
                with asking.stream("GET", path, headers=headers) as response:
                    if count and response.status_code != 206:
                        raise _cut_off("The file has changed on the server.")
                    tag = response.headers.get("etag") or ""
                    for piece in response.iter_raw():
                        file.write(piece)
                        count += len(piece)
                        pauses.begin_anew()
                        received(count)
            except httpx.TransportError as error:
                if not tag or not pauses.take():
                    raise asking.unreachable(error) from error
        if count != size:
            raise _cut_off(f"{count:,} bytes came of a file that has {size:,}.")
    return count


def _cut_off(what: str) -> ServerUnavailable:
    hint = "Nothing of it was kept. Have it written in the background: that can be downloaded in parts."
    return ServerUnavailable(Code.CUT_OFF, what, hint=hint)
