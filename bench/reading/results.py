"""From samples to figures, ratios and musts, and to `readers.json`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from measuring.machine import machine
from measuring.musts import Must, at_least
from reading.files import Defects
from reading.trial import Sample, Tally, Trial

_PACKAGES = ("rowcall", "polars", "pyarrow", "duckdb", "openpyxl", "python-calamine", "xlsxwriter")
_MB = 1_000_000
_TO_PYARROW, _TO_STDLIB_RAW = 0.22, 4.0
_DIRTY_TO_PYARROW = round(0.15 / 4.5, 3)
"""150,000 rows/s where pyarrow reads 4.5 million of the clean file."""
_RSS_MB = 150


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A contender's medians; the peak of memory is the highest."""

    label: str
    rows: int
    rows_per_second: int
    rss_mb: int
    children_rss_mb: int = 0
    error: str = ""


class Accounting(Figures, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Figures on the dirty file, and what became of its lines."""

    good: int
    bad: int | None
    blank: int | None
    lines_accounted: int
    lines_lost: int
    exact: bool
    """Good, bad and blank are each what the generator made, in every round."""


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was measured in one run."""

    rows: int
    clean: Mapping[str, Figures]
    dirty: Mapping[str, Accounting]
    formats: Mapping[str, Mapping[str, Figures]]
    writers: Mapping[str, Mapping[str, Figures]]
    tenfold: Figures

    @property
    def truth(self) -> Defects:
        return Defects(self.rows)

    @property
    def best_pyarrow(self) -> int:
        return max(self.clean[key].rows_per_second for key in ("pyarrowStream", "pyarrowRead"))

    @property
    def ratios(self) -> dict[str, float]:
        own = self.clean["rowcall"].rows_per_second
        return {
            "toPyarrow": _ratio(own, self.best_pyarrow),
            "toStdlibRaw": _ratio(own, self.clean["stdlibRaw"].rows_per_second),
            "dirtyToCleanPyarrow": _ratio(self.dirty["rowcall"].rows_per_second, self.best_pyarrow),
        }

    @property
    def musts(self) -> list[Must]:
        ratios, dirty = self.ratios, self.dirty["rowcall"]
        return [
            at_least("clean CSV, times pyarrow", _TO_PYARROW, ratios["toPyarrow"]),
            at_least("clean CSV, times csv.reader with raw text", _TO_STDLIB_RAW, ratios["toStdlibRaw"]),
            at_least("dirty CSV, times pyarrow on the clean one", _DIRTY_TO_PYARROW, ratios["dirtyToCleanPyarrow"]),
            Must(
                name="dirty CSV, lines accounted for as generated",
                must=self.truth.lines,
                value=dirty.lines_accounted,
                holds=dirty.exact,
            ),
            _fits("peak RSS in MB", self.clean["rowcall"]),
            _fits("peak RSS in MB at ten times the rows", self.tenfold),
        ]

    def write(self, path: Path) -> None:
        truth = self.truth
        facts: dict[str, object] = {
            "machine": machine(_PACKAGES),
            "rows": self.rows,
            "clean": {**self.clean, "ratios": self.ratios},
            "dirty": {
                "truth": {"lines": truth.lines, "good": truth.good, "bad": truth.bad, "blank": truth.blank},
                **self.dirty,
            },
            "memory": {"rows": self.clean["rowcall"], "tenfold": self.tenfold},
            "formats": self.formats,
            "writers": self.writers,
            "musts": self.musts,
        }
        path.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n")


def collect(samples: Mapping[Trial, list[Sample]], rows: int, tenfold: Trial, grown: list[Sample]) -> Results:
    """Put each trial's figures into its place."""
    sections: dict[str, dict[str, Figures]] = {}
    dirty: dict[str, Accounting] = {}
    for trial, taken in samples.items():
        if trial.section == "dirty":
            dirty[trial.key] = _accounting(trial, taken, Defects(rows))
        else:
            sections.setdefault(trial.section, {})[trial.key] = _figures(trial, taken, _error(trial, taken))
    return Results(
        rows=rows,
        clean=sections["clean"],
        dirty=dirty,
        formats=_below("formats.", sections),
        writers=_below("writers.", sections),
        tenfold=_figures(tenfold, grown, _error(tenfold, grown)),
    )


def _below(prefix: str, sections: dict[str, dict[str, Figures]]) -> dict[str, dict[str, Figures]]:
    return {name.removeprefix(prefix): section for name, section in sections.items() if name.startswith(prefix)}


def _error(trial: Trial, taken: list[Sample]) -> str:
    """What the contender stopped with, or that it didn't give every row of a file without defects."""
    wrong = (f"{sample.tally.good:,} rows" for sample in taken if sample.tally.good != trial.rows)
    return _stopped(taken) or next(wrong, "")


def _stopped(taken: list[Sample]) -> str:
    return next((sample.error for sample in taken if sample.error), "")


def _figures(trial: Trial, taken: list[Sample], error: str) -> Figures:
    return Figures(
        label=trial.label,
        rows=trial.rows,
        rows_per_second=0 if error else round(trial.rows / median(sample.seconds for sample in taken)),
        rss_mb=math.ceil(max(sample.rss for sample in taken) / _MB),
        children_rss_mb=math.ceil(max(sample.children_rss for sample in taken) / _MB),
        error=error,
    )


def _accounting(trial: Trial, taken: list[Sample], truth: Defects) -> Accounting:
    stopped = _stopped(taken)
    tally = sorted((sample.tally for sample in taken), key=lambda tally: tally.lines)[len(taken) // 2]
    accounted = 0 if stopped else 1 + tally.lines
    generated = Tally(truth.good, truth.bad, truth.blank)
    return Accounting(
        **msgspec.structs.asdict(_figures(trial, taken, stopped)),
        good=tally.good,
        bad=tally.bad,
        blank=tally.blank,
        lines_accounted=accounted,
        lines_lost=truth.lines - accounted,
        exact=all(sample.tally == generated for sample in taken),
    )


def _ratio(own: int, other: int) -> float:
    return round(own / other, 3) if other else 0.0


def _fits(name: str, figures: Figures) -> Must:
    holds = not figures.error and figures.rss_mb <= _RSS_MB
    return Must(name=name, must=_RSS_MB, value=figures.rss_mb, holds=holds)
