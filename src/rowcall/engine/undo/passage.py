"""Which slices of a round are in whose hands."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rowcall.store.undos import Slice


class Passage:
    """Slices that are taken one after the other, by several workers, and how far all of them are together."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        """The last rows go first."""
        self.waiting = list(reversed(slices))
        self._under_way: list[Slice] = []
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Generator[Slice | None]:
        """The next slice, to be done; None when all are taken. What ends in an error waits again."""
        with self._lock:
            piece = self.waiting.pop() if self.waiting else None
            if piece:
                self._under_way.append(piece)
        try:
            yield piece
        except BaseException:
            if piece:
                with self._lock:
                    self.waiting.append(piece)
                    self.waiting.sort(key=lambda each: each.last)
            raise
        finally:
            if piece:
                with self._lock:
                    self._under_way.remove(piece)

    def below(self, piece: Slice) -> int:
        """The last row that is to be done yet when this slice is: all rows above are."""
        with self._lock:
            others = [each.last for each in (*self._under_way, *self.waiting) if each != piece]
        return max(others, default=0)
