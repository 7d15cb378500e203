"""JSON and what comes of it, as values of our types, in whatever threads."""

import threading
from typing import TypeVar

import msgspec

_T = TypeVar("_T")
_learning = threading.Lock()
_learned: set[object] = set()


def converted(value: object, kind: type[_T]) -> _T:
    """Dictionaries, lists and texts as a value of this type."""
    _learn(kind)
    return msgspec.convert(value, kind)


def from_json(content: bytes | str, kind: type[_T]) -> _T:
    """JSON as a value of this type."""
    _learn(kind)
    return msgspec.json.decode(content, type=kind)


def _learn(kind: object) -> None:
    """Have msgspec look at a type, which it does when it meets it first.

    Two threads that have it do so at once end the process (SIGSEGV, msgspec 0.22).
    """
    if kind not in _learned:
        with _learning:
            msgspec.json.Decoder(kind)
            _learned.add(kind)
