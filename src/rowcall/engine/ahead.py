"""Makes the next thing while the last one is being used."""

import threading
from collections.abc import Iterator
from queue import Full, Queue
from typing import TypeVar

T = TypeVar("T")


def ahead(things: Iterator[T]) -> Iterator[T]:
    """The same things, made in a thread of their own: one lies ready while another is made."""
    made: Queue[T | _End] = Queue(1)
    abandoned = threading.Event()

    def make() -> None:
        end = _End()
        try:
            for thing in things:
                if not _put(made, thing, abandoned):
                    return
        except BaseException as error:
            end = _End(error)
        _put(made, end, abandoned)

    maker = threading.Thread(target=make, name="ahead", daemon=True)
    maker.start()
    try:
        while not isinstance(thing := made.get(), _End):
            yield thing
    finally:
        abandoned.set()
        maker.join()
    if thing.error:
        raise thing.error


class _End:
    """There is no more, or no more can be made."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def _put(made: "Queue[T | _End]", thing: "T | _End", abandoned: threading.Event) -> bool:
    """Whether it is still wanted."""
    while not abandoned.is_set():
        try:
            made.put(thing, timeout=0.1)
        except Full:
            continue
        return True
    return False
