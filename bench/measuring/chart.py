"""Bar charts as SVG, legible on light and dark pages: no background, colours of middle brightness."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

OWN, OTHER, STOPPED = "#2f81f7", "#8b949e", "#d9534f"
_TEXT = "#7a828c"
_WIDTH, _STEP, _BAR = 760, 24, 14
_NAMES, _LONGEST = 224, 330
_FONT = 'font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif" font-size="13"'


@dataclass(frozen=True, slots=True)
class Bar:
    """One contender: `length` is a share of the longest bar."""

    label: str
    length: float
    caption: str
    colour: str


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    bars: Sequence[Bar]


def write_chart(panels: Sequence[Panel], path: Path) -> None:
    """The panels, one below the other."""
    drawn: list[str] = []
    top = 0
    for panel in panels:
        drawn += _drawn(panel.title, panel.bars, top)
        top += (len(panel.bars) + 2) * _STEP
    described = "; ".join(panel.title for panel in panels)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" height="{top}"'
    svg = (f'{head} role="img" aria-label="{escape(described)}" {_FONT} fill="{_TEXT}">', *drawn, "</svg>", "")
    path.write_text("\n".join(svg), encoding="utf-8")


def _drawn(title: str, bars: Iterable[Bar], top: int) -> list[str]:
    drawn = [f'<text x="0" y="{top + 18}" font-weight="600">{escape(title)}</text>']
    for place, bar in enumerate(bars, start=1):
        y = top + place * _STEP + 6
        length = max(2, round(bar.length * _LONGEST))
        weight = ' font-weight="600"' if bar.colour == OWN else ""
        drawn += [
            f'<text x="{_NAMES - 8}" y="{y + 11}" text-anchor="end"{weight}>{escape(bar.label)}</text>',
            f'<rect x="{_NAMES}" y="{y}" width="{length}" height="{_BAR}" rx="2" fill="{bar.colour}"/>',
            f'<text x="{_NAMES + length + 8}" y="{y + 11}"{weight}>{escape(bar.caption)}</text>',
        ]
    return drawn
