"""The chart of the CSV readers: rows per second on the clean file, lines not accounted for on the dirty one."""

from collections.abc import Sequence

from measuring.chart import OTHER, OWN, STOPPED, Bar, Panel
from reading.results import Accounting, Figures, Results


def panels(results: Results) -> list[Panel]:
    clean, dirty = list(results.clean.values()), list(results.dirty.values())
    return [
        Panel(f"Clean CSV, {results.rows:,} rows: rows per second", _speeds(clean)),
        Panel(f"Dirty CSV, {results.truth.lines:,} lines: those not accounted for", _losses(dirty)),
    ]


def _speeds(contenders: Sequence[Figures]) -> list[Bar]:
    most = max(figures.rows_per_second for figures in contenders)
    return [
        Bar(figures.label, figures.rows_per_second / most, f"{figures.rows_per_second:,}", _colour(figures))
        for figures in contenders
    ]


def _losses(contenders: Sequence[Accounting]) -> list[Bar]:
    """Lines not accounted for. After a stop these are all, and the bar is as long as the longest of the others."""
    most = max((found.lines_lost for found in contenders if not found.error), default=0) or 1
    return [Bar(found.label, min(1.0, found.lines_lost / most), _loss(found), _colour(found)) for found in contenders]


def _loss(found: Accounting) -> str:
    if found.error:
        return "all: stopped"
    speed = f"{found.rows_per_second:,} rows/s"
    return f"{found.lines_lost:,} ({speed})" if found.lines_lost else f"none ({speed})"


def _colour(figures: Figures) -> str:
    return STOPPED if figures.error else OWN if figures.label == "Rowcall" else OTHER
