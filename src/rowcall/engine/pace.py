"""How many rows to take at once: small at first, larger while it goes well."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rowcall.engine.observe import stored
from rowcall.formats.reading import MIB

_TARGET_SECONDS = 0.5
_WEIGHT = 0.3
_MOST_BYTES = 16 * MIB


@dataclass(slots=True)
class Pace:
    """The size of the next batch. Doubles until a batch takes too long, weighs too much, or the most is reached.

    How long a batch takes is followed as a moving average, so that one slow batch doesn't halve the next.
    """

    least: int
    most: int
    rows: int = 0
    _seconds: float = 0.0

    def __post_init__(self) -> None:
        self.rows = self.rows or self.least

    @contextmanager
    def step(self, size: int) -> Generator[None]:
        """Time a batch of so many bytes and set the size of the next by it."""
        started = time.monotonic()
        try:
            yield
        except BaseException:
            self.rows = max(self.least, self.rows // 2)
            raise
        stored(time.monotonic() - started)
        self._adapt(time.monotonic() - started, size)

    def _adapt(self, seconds: float, size: int) -> None:
        self._seconds = seconds if not self._seconds else _WEIGHT * seconds + (1 - _WEIGHT) * self._seconds
        if self._seconds > _TARGET_SECONDS or size > _MOST_BYTES:
            self.rows = max(self.least, self.rows // 2)
        elif self._seconds < _TARGET_SECONDS / 2 and size < _MOST_BYTES / 2:
            self.rows = min(self.most, self.rows * 2)
