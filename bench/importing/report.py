"""The figures as tables on the terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from importing.results import Figures
from measuring.tables import titled_table


def section_table(title: str, section: Sequence[Figures]) -> Table:
    """One section, each contender beside the first."""
    first = section[0]
    table = titled_table(title, 1, "", "rows", "seconds", "rows/s", f"× {first.label}", "RSS MB", "child MB")
    for figures in section:
        table.add_row(
            figures.label,
            f"{figures.rows:,}",
            "" if figures.seconds is None else f"{figures.seconds:,.2f}",
            _speed(figures),
            _times(figures, first),
            str(figures.rss or ""),
            str(figures.children_rss or ""),
        )
    return table


def complaints(section: Sequence[Figures]) -> list[Text]:
    """Who did not end as it had to, or could not take part, and why."""
    wrong = [Text(f"{figures.label}: {figures.error}", "red") for figures in section if figures.error]
    absent = [Text(f"{figures.label}: {figures.unavailable}", "yellow") for figures in section if figures.unavailable]
    return [*wrong, *absent]


def _speed(figures: Figures) -> Text:
    if figures.unavailable:
        return Text("not here", "yellow")
    return Text("failed", "red") if figures.rows_per_second is None else Text(f"{figures.rows_per_second:,}")


def _times(figures: Figures, first: Figures) -> str:
    if not figures.rows_per_second or not first.rows_per_second:
        return ""
    return f"{figures.rows_per_second / first.rows_per_second:.2f}"
