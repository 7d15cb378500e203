"""From samples to figures, ratios and musts, and to `results.json`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from importing import pgloader
from importing.trial import Sample, Trial
from measuring.machine import machine
from measuring.musts import Must, at_least, at_most

_PACKAGES = ("rowcall", "polars", "psycopg", "django", "django-import-export")
_MB = 1_000_000
PEERS = {"pgloader", "django"}


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A contender's medians; the peak of memory, in MB, is the highest. Who has an error has no speed."""

    section: str
    key: str
    label: str
    rows: int
    seconds: float | None
    rows_per_second: int | None
    rss: int
    children_rss: int = 0
    phases: dict[str, float] = {}
    """State to seconds, of Rowcall's job."""
    error: str = ""
    unavailable: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was measured in one run."""

    rows: int
    figures: Mapping[tuple[str, str], Figures]
    postgresql: str

    @property
    def ratios(self) -> dict[str, float | None]:
        """Speeds as multiples of each other; 0 where Rowcall failed, none where there is nothing to compare with."""
        return {
            "copyRatio": self._ratio("clean", "rowcall", "copy"),
            "pgloaderRatio": self._ratio("clean", "rowcall", "pgloader"),
            "djangoRatio": self._ratio("clean", "rowcall", "django"),
            "errorsRatio": self._ratio("errors", "errors", "rowcall"),
            "refusedRatio": self._ratio("errors", "refused", "rowcall"),
            "upsertRatio": self._ratio("upsert", "rowcall", "copy"),
            "xlsxRatio": self._ratio("formats", "xlsx", "csv"),
            "ndjsonRatio": self._ratio("formats", "ndjson", "csv"),
            "exportRatio": self._ratio("export", "csv", "copy"),
            "exportNdjsonRatio": self._ratio("export", "ndjson", "copy"),
            "previewRatio": self._share("previewed", "VALIDATING"),
            "previewUpsertRatio": self._share("upsert", "VALIDATING"),
            "undoRatio": self._share("undone", "REVERTING"),
        }

    @property
    def rss(self) -> dict[str, float | None]:
        """Peak memory of the importing process in MB. After an error it says nothing, and is not told."""
        rows, tenfold = (self._rss(key) for key in ("rowcall", "tenfold"))
        return {"rows": rows, "tenfold": tenfold, "growth": round(tenfold / rows, 3) if rows and tenfold else None}

    @property
    def musts(self) -> list[Must]:
        ratios, rss = self.ratios, self.rss
        return [
            at_least("clean CSV, times raw COPY", 0.55, ratios["copyRatio"], aim=0.8),
            at_least("clean CSV, times pgloader", 2.5, ratios["pgloaderRatio"]),
            at_least("clean CSV, times django-import-export", 100, ratios["djangoRatio"]),
            at_least("5 % errors, times clean", 0.8, ratios["errorsRatio"]),
            at_least("upsert, times raw COPY", 0.3, ratios["upsertRatio"]),
            at_least("XLSX, times CSV of the same rows", 0.4, ratios["xlsxRatio"]),
            at_least("export, times raw COPY", 0.4, ratios["exportRatio"]),
            at_most("preview, of the time of its commit", 0.7, ratios["previewRatio"]),
            at_most("preview of an upsert, of the time of its commit", 0.7, ratios["previewUpsertRatio"]),
            at_most("peak RSS in MB", 500, rss["rows"], aim=300),
            at_most("peak RSS in MB at ten times the rows", 500, rss["tenfold"], aim=300),
            at_most("growth of peak RSS at ten times the rows", 1.1, rss["growth"]),
        ]

    @property
    def hold(self) -> bool:
        """Every must that could be measured holds, and every trial ended as it had to; peers may fail in theirs."""
        failed = (figures for figures in self.figures.values() if figures.error and figures.key not in PEERS)
        return all(must.holds is not False for must in self.musts) and not any(failed)

    def write(self, path: Path) -> None:
        facts: dict[str, object] = {
            "machine": machine(_PACKAGES, postgresql=self.postgresql, pgloader=pgloader.release()),
            "rows": self.rows,
            **self.ratios,
            "rss": {**self.rss, "unit": "MB"},
            "musts": self.musts,
            "trials": list(self.figures.values()),
        }
        path.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n")

    def _ratio(self, section: str, own: str, other: str) -> float | None:
        mine, peer = self.figures.get((section, own)), self.figures.get((section, other))
        if not mine or not peer or not peer.rows_per_second:
            return None
        return round((mine.rows_per_second or 0) / peer.rows_per_second, 3)

    def _share(self, key: str, state: str) -> float | None:
        """The time in a state, beside that in which the rows were committed."""
        found = self.figures.get(("preview", key))
        if not found or found.error or not found.phases.get("PROCESSING"):
            return None
        return round(found.phases.get(state, 0) / found.phases["PROCESSING"], 3)

    def _rss(self, key: str) -> int | None:
        found = self.figures.get(("memory", key))
        return found.rss if found and not found.error else None


def figures_of(section: str, trial: Trial, taken: Sequence[Sample]) -> Figures:
    """A contender's figures from its rounds. One wrong round spoils them all."""
    error = next((sample.error for sample in taken if sample.error), "")
    seconds = None if error or not taken else median(sample.seconds for sample in taken)
    return Figures(
        section=section,
        key=trial.key,
        label=trial.label,
        rows=trial.rows,
        seconds=None if seconds is None else round(seconds, 3),
        rows_per_second=None if seconds is None else round(trial.rows / seconds),
        rss=math.ceil(max((sample.rss for sample in taken), default=0) / _MB),
        children_rss=math.ceil(max((sample.children_rss for sample in taken), default=0) / _MB),
        phases=_phases(taken),
        error=error,
        unavailable=trial.unavailable,
    )


def _phases(taken: Sequence[Sample]) -> dict[str, float]:
    states = {state for sample in taken for state in sample.phases}
    return {state: round(median(sample.phases.get(state, 0) for sample in taken), 3) for state in sorted(states)}
