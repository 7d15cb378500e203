"""Cursors: where a page ended, as a text that means nothing to whoever carries it, and only fits where it came from."""

import base64
import binascii
import hashlib
from typing import Any, TypeVar

import msgspec

from rowcall.decoding import from_json
from rowcall.errors import Final
from rowcall.model import Code

_DIGEST = 6
_Kind = TypeVar("_Kind")


def encoded(about: str, values: Any) -> str:
    """A cursor of the list that `about` names."""
    text = msgspec.json.encode(values)
    return base64.urlsafe_b64encode(_digest(about, text) + text).rstrip(b"=").decode()


def decoded(about: str, cursor: str, kind: type[_Kind]) -> _Kind:
    """What a cursor of this list holds; one that was changed or comes from another list is refused."""
    try:
        whole = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        if whole[:_DIGEST] == _digest(about, whole[_DIGEST:]):
            return from_json(whole[_DIGEST:], kind)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        pass
    told = "The cursor is none that this list has given out."
    raise Final(Code.BAD_CURSOR, told, hint="Take the `next` of the page before, with the same filters and order.")


def _digest(about: str, text: bytes) -> bytes:
    return hashlib.blake2b(about.encode() + b"\0" + text, digest_size=_DIGEST).digest()
