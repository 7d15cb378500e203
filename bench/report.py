"""The figures as tables on the terminal."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from results import Accounting, Figures, Results

_LABELS = {"csvGz": "csv.gz", "rows": "clean.csv", "tenfold": "tenfold.csv"}

_MUSTS_ROWS = 1_000_000


def show(console: Console, results: Results) -> None:
    """Print everything that was measured, the musts last."""
    memory = {"rows": {"rowcall": results.clean["rowcall"]}, "tenfold": {"rowcall": results.tenfold}}
    console.print(_speeds("Clean CSV", {"csv": results.clean}))
    console.print(_accounts(results))
    console.print(_speeds("Other formats", results.formats))
    console.print(_speeds("Writers, from a frame in memory (Rowcall ends with fsync)", results.writers))
    console.print(_speeds("Memory", memory))
    console.print(_musts(results))


def _speeds(title: str, sections: Mapping[str, Mapping[str, Figures]]) -> Table:
    table = _table(title, 2, "file", "contender", "rows", "rows/s", "× Rowcall", "RSS MB", "child MB")
    for name, section in sections.items():
        own = section["rowcall"].rows_per_second
        for figures in section.values():
            table.add_row(
                _LABELS.get(name, name),
                figures.label,
                f"{figures.rows:,}",
                _speed(figures),
                f"{figures.rows_per_second / own:.2f}" if own else "",
                str(figures.rss_mb),
                str(figures.children_rss_mb or ""),
            )
        table.add_section()
    return table


def _accounts(results: Results) -> Table:
    truth = results.truth
    defects = f"{truth.open_quotes} open quotes, {truth.short} short, {truth.long} long, {truth.blank} blank"
    title = f"Dirty CSV: {defects}"
    table = _table(title, 1, "contender", "rows/s", "good", "bad", "blank", "lines lost", "exact")
    generated = [f"{count:,}" for count in (truth.good, truth.bad, truth.blank, 0)]
    table.add_row("(as generated)", "", *generated, "", style="dim", end_section=True)
    for found in results.dirty.values():
        table.add_row(found.label, _speed(found), *_found(found), Text("yes", "green") if found.exact else "no")
    return table


def _found(found: Accounting) -> list[str]:
    if found.error:
        return ["", "", "", f"{found.lines_lost:,}"]
    told = (found.good, found.bad, found.blank, found.lines_lost)
    return ["not told" if count is None else f"{count:,}" for count in told]


def _musts(results: Results) -> Table:
    table = _table("Musts", 1, "", "must", "measured", "")
    if results.rows < _MUSTS_ROWS:
        table.caption = f"Set for {_MUSTS_ROWS:,} rows: with fewer, opening the file weighs more."
    for must in results.musts:
        verdict = Text("holds", "green") if must.holds else Text("fails", "bold red")
        table.add_row(must.name, f"{must.must:,}", f"{must.measured:,}", verdict)
    return table


def _speed(figures: Figures) -> Text:
    if figures.error:
        return Text(figures.error, "red", no_wrap=True, overflow="ellipsis")
    return Text(f"{figures.rows_per_second:,}")


def _table(title: str, names: int, *columns: str) -> Table:
    """A table whose first columns are names, the others numbers."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < names else "right", max_width=44)
    return table
