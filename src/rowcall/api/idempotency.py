"""The key by which a repeated request is known."""

from typing import Annotated

from fastapi import Depends, Header, Request

from rowcall.errors import Final
from rowcall.model import Code

_LONGEST_KEY = 255
_HEADER = "Idempotency-Key"


async def _key(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias=_HEADER,
            description="Any text that names this request, bare or quoted. The same key with the same content gives "
            "what the first request made.",
            examples=["8e03978e-40d5-43e8-bc93-6894a57f9324"],
        ),
    ] = None,
) -> str | None:
    if len(request.headers.getlist(_HEADER)) > 1:
        raise Final(Code.BAD_REQUEST, f"There are several headers {_HEADER}; one is expected.")
    return bare_key(idempotency_key)


def bare_key(key: str | None) -> str | None:
    """A key without its quotes."""
    if key is None:
        return None
    bare = key[1:-1] if len(key) > 1 and key[0] == key[-1] == '"' else key
    if not 0 < len(bare) <= _LONGEST_KEY or not bare.isprintable():
        raise Final(Code.BAD_REQUEST, f"An {_HEADER} has 1 to {_LONGEST_KEY} visible characters.")
    return bare


TheKey = Annotated[str | None, Depends(_key)]
"""The request's idempotency key, without its quotes."""
