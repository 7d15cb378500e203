"""From what clients saw to figures and musts, and to `api.json`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import msgspec
from rich.table import Table

from measuring.machine import machine
from measuring.musts import Must, at_least, at_most
from measuring.tables import titled_table
from serving.load import EVERY, Seen

_PACKAGES = ("rowcall", "fastapi", "starlette", "uvicorn", "psycopg")
_MB = 1_000_000
_EDGE = 6
"""Samples of memory, three seconds, that the start, the middle and the end are told from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that was measured in one run."""

    rows: int
    clients: int
    uploads: int
    engine: Sequence[float]
    """Seconds of `rowcall import`, in each round."""
    service: Sequence[float]
    """Seconds of the same file through the service."""
    seen: Seen
    errors: Sequence[str]
    postgresql: str
    load: float
    """Processes that wanted a processor before anything was measured; of others, that is."""

    @property
    def facts(self) -> dict[str, float]:
        """What is told, in this order; times of requests in milliseconds."""
        seen, percent = self.seen, quantiles(self.seen.reads, n=100)
        start, middle, end = self._memory
        return {
            "clients": self.clients,
            "uploads": self.uploads,
            "reads": len(seen.reads),
            "readsPerSecond": round(len(seen.reads) / seen.seconds, 1),
            "errors": len(self.errors),
            "readP50Ms": _ms(percent[49]),
            "readP95Ms": _ms(percent[94]),
            "readP99Ms": _ms(percent[98]),
            "acceptedP50Ms": _ms(median(seen.accepted)),
            "acceptedMaxMs": _ms(max(seen.accepted)),
            "completedP50Seconds": round(median(seen.completed), 1),
            "completedMaxSeconds": round(max(seen.completed), 1),
            "rssStartMb": start,
            "rssMiddleMb": middle,
            "rssEndMb": end,
            "connections": max(seen.sessions),
            "engineSeconds": round(median(self.engine), 2),
            "serviceSeconds": round(median(self.service), 2),
            "serviceRatio": self._ratio,
        }

    @property
    def musts(self) -> list[Must]:
        _, middle, end = self._memory
        return [
            at_most("errors", 0, len(self.errors)),
            at_most("answer to an upload, seconds after its last byte", 1, round(max(self.seen.accepted), 3)),
            at_most("growth of the server's RSS, middle to end", 1.1, round(end / middle, 3)),
            at_least("the same file through the service, times rowcall import", 0.8, self._ratio),
        ]

    @property
    def _ratio(self) -> float:
        return round(median(self.engine) / median(self.service), 3)

    @property
    def _memory(self) -> tuple[int, int, int]:
        """In MB: at the start, in the middle, at the end."""
        rss, half = self.seen.rss, len(self.seen.rss) // 2
        return _mb(rss[:_EDGE]), _mb(rss[half : half + _EDGE]), _mb(rss[-_EDGE:])

    def table(self) -> Table:
        table = titled_table(f"{self.clients} clients ask once in {EVERY:g} s, {self.uploads} bring files", 1, "", "")
        for name, value in self.facts.items():
            table.add_row(_words(name), f"{value:,}")
        return table

    def write(self, path: Path) -> None:
        facts = {
            "machine": {**machine(_PACKAGES, postgresql=self.postgresql), "load": self.load},
            "rows": self.rows,
            **self.facts,
            "musts": self.musts,
        }
        path.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n")


def _words(name: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def _mb(sizes: Sequence[int]) -> int:
    return round(median(sizes) / _MB)
