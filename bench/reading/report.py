"""The figures as tables on the terminal."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from measuring.musts import musts_table
from measuring.tables import titled_table
from reading.results import Accounting, Figures, Results

_LABELS = {"csvGz": "csv.gz", "rows": "clean.csv", "tenfold": "tenfold.csv"}


def show(console: Console, results: Results) -> None:
    """Print everything that was measured, the musts last."""
    memory = {"rows": {"rowcall": results.clean["rowcall"]}, "tenfold": {"rowcall": results.tenfold}}
    console.print(_speeds("Clean CSV", {"csv": results.clean}))
    console.print(_accounts(results))
    console.print(_speeds("Other formats", results.formats))
    console.print(_speeds("Writers, from a frame in memory (Rowcall ends with fsync)", results.writers))
    console.print(_speeds("Memory", memory))
    console.print(musts_table(results.musts, results.rows))


def _speeds(title: str, sections: Mapping[str, Mapping[str, Figures]]) -> Table:
    table = titled_table(title, 2, "file", "contender", "rows", "rows/s", "× Rowcall", "RSS MB", "child MB")
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
    table = titled_table(title, 1, "contender", "rows/s", "good", "bad", "blank", "lines lost", "exact")
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


def _speed(figures: Figures) -> Text:
    if figures.error:
        return Text(figures.error, "red", no_wrap=True, overflow="ellipsis")
    return Text(f"{figures.rows_per_second:,}")
