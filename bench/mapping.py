"""Measures how well columns are matched to fields: `python bench/mapping.py`.

The labelled files lie in `mapping/`: those in `tuned` were looked at while the matcher was made, those in `held-out`
only afterwards; what that first look showed was mended since (docs/decisions.md). Writes `mapping.json`, and ends with
1 when a must fails. `--wrong` shows the columns that went wrong.
"""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from matching.files import HELD_OUT, TUNED, labelled
from matching.importers import IMPORTERS
from matching.results import Judged, figures, grouped, musts, table, write
from measuring.files import HERE
from measuring.musts import musts_table
from rowcall.engine.columns.suggest import suggest


def main() -> int:
    options, console = _options(), Console()
    parts = {part: _judged(part) for part in options.parts}
    for part, judged in parts.items():
        _show(console, part, judged, wrong=options.wrong)
    console.print(musts_table(musts(parts)))
    if len(parts) > 1:
        write(HERE / "mapping.json", parts)
    return 0 if all(must.holds for must in musts(parts)) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how well columns are matched to fields.")
    parser.add_argument("--part", dest="parts", action="append", choices=(TUNED, HELD_OUT), help="these files only")
    parser.add_argument("--wrong", action="store_true", help="show each column that went wrong")
    given = parser.parse_args()
    given.parts = given.parts or [TUNED, HELD_OUT]
    return given


def _judged(part: str) -> list[Judged]:
    return [
        Judged(file, column.header, expected, found)
        for file in labelled(part)
        for column, expected, found in zip(
            file.columns, file.expected, suggest(IMPORTERS[file.importer].fields, file.columns), strict=True
        )
    ]


def _show(console: Console, part: str, judged: Sequence[Judged], *, wrong: bool) -> None:
    console.print(table(part, {"all": figures(judged)}))
    console.print(table("by importer", grouped(judged, lambda each: each.file.importer)))
    console.print(table("by language", grouped(judged, lambda each: each.file.language)))
    for each in judged if wrong else ():
        if not each.is_right:
            told = f"{each.file.name}: {each.header!r} is {each.expected}, found {each.found}"
            console.print(told, style="red" if each.is_sure else None, markup=False)


if __name__ == "__main__":
    sys.exit(main())
