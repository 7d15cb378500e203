"""The engine's chart: imports beside others, Rowcall's other work, exports, memory."""

from collections.abc import Sequence

from importing.results import PEERS, Figures, Results
from measuring.chart import OTHER, OWN, STOPPED, Bar, Panel

_OTHER_WORK = (
    ("errors", "errors"),
    ("errors", "refused"),
    ("upsert", "rowcall"),
    ("formats", "xlsx"),
    ("formats", "ndjson"),
)


def panels(results: Results) -> list[Panel]:
    found = results.figures
    clean = [figures for figures in found.values() if figures.section == "clean"]
    export = [figures for figures in found.values() if figures.section == "export"]
    memory = [figures for figures in found.values() if figures.section == "memory"]
    return [
        Panel(f"CSV of {results.rows:,} rows into a constrained table: rows per second", _speeds(clean)),
        Panel("Rowcall on other files: rows per second", _speeds([found[place] for place in _OTHER_WORK])),
        Panel("Export: rows per second", _speeds(export)),
        Panel("Peak memory of an import", _memory(memory)),
    ]


def _speeds(contenders: Sequence[Figures]) -> list[Bar]:
    most = max((figures.rows_per_second or 0 for figures in contenders), default=0) or 1
    return [
        Bar(figures.label, (figures.rows_per_second or 0) / most, _speed(figures), _colour(figures))
        for figures in contenders
    ]


def _memory(contenders: Sequence[Figures]) -> list[Bar]:
    most = max(figures.rss for figures in contenders) or 1
    return [
        Bar(f"{figures.rows:,} rows", figures.rss / most, f"{figures.rss:,} MB", _colour(figures))
        for figures in contenders
    ]


def _speed(figures: Figures) -> str:
    if figures.unavailable:
        return "not measured here"
    return "failed" if figures.rows_per_second is None else f"{figures.rows_per_second:,}"


def _colour(figures: Figures) -> str:
    if figures.error:
        return STOPPED
    return OTHER if figures.key in {"copy", *PEERS} else OWN
