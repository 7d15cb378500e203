"""A chart of the CSV readers as SVG, legible on light and dark pages: no background, colours of middle brightness."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from results import Accounting, Figures, Results

_OWN, _OTHER, _STOPPED, _TEXT = "#2f81f7", "#8b949e", "#d9534f", "#7a828c"
_WIDTH, _STEP, _BAR = 760, 24, 14
_NAMES, _LONGEST = 196, 350
_FONT = 'font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif" font-size="13"'


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    length: float
    """As a share of the longest."""
    caption: str
    colour: str


def write_chart(results: Results, path: Path) -> None:
    """Two panels: rows per second on the clean file, lines not accounted for on the dirty one."""
    panels = (
        (f"Clean CSV, {results.rows:,} rows: rows per second", _speeds(list(results.clean.values()))),
        (f"Dirty CSV, {results.truth.lines:,} lines: those not accounted for", _losses(list(results.dirty.values()))),
    )
    drawn: list[str] = []
    top = 0
    for title, bars in panels:
        drawn += _panel(title, bars, top)
        top += (len(bars) + 2) * _STEP
    described = "; ".join(title for title, _ in panels)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" height="{top}"'
    svg = (f'{head} role="img" aria-label="{escape(described)}" {_FONT} fill="{_TEXT}">', *drawn, "</svg>", "")
    path.write_text("\n".join(svg), encoding="utf-8")


def _speeds(contenders: Sequence[Figures]) -> list[_Bar]:
    most = max(figures.rows_per_second for figures in contenders)
    return [
        _Bar(figures.label, figures.rows_per_second / most, f"{figures.rows_per_second:,}", _colour(figures))
        for figures in contenders
    ]


def _losses(contenders: Sequence[Accounting]) -> list[_Bar]:
    """Lines not accounted for. After a stop these are all, and the bar is as long as the longest of the others."""
    most = max((found.lines_lost for found in contenders if not found.error), default=0) or 1
    return [_Bar(found.label, min(1.0, found.lines_lost / most), _loss(found), _colour(found)) for found in contenders]


def _loss(found: Accounting) -> str:
    if found.error:
        return "all: stopped"
    speed = f"{found.rows_per_second:,} rows/s"
    return f"{found.lines_lost:,} ({speed})" if found.lines_lost else f"none ({speed})"


def _colour(figures: Figures) -> str:
    return _STOPPED if figures.error else _OWN if figures.label == "Rowcall" else _OTHER


def _panel(title: str, bars: Iterable[_Bar], top: int) -> list[str]:
    drawn = [f'<text x="0" y="{top + 18}" font-weight="600">{escape(title)}</text>']
    for place, bar in enumerate(bars, start=1):
        y = top + place * _STEP + 6
        length = max(2, round(bar.length * _LONGEST))
        weight = ' font-weight="600"' if bar.colour == _OWN else ""
        drawn += [
            f'<text x="{_NAMES - 8}" y="{y + 11}" text-anchor="end"{weight}>{escape(bar.label)}</text>',
            f'<rect x="{_NAMES}" y="{y}" width="{length}" height="{_BAR}" rx="2" fill="{bar.colour}"/>',
            f'<text x="{_NAMES + length + 8}" y="{y + 11}"{weight}>{escape(bar.caption)}</text>',
        ]
    return drawn
