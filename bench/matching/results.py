"""From suggestions to figures, and to `mapping.json`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.table import Table

from matching.files import ASK, Labelled
from measuring.machine import machine
from measuring.musts import Must, at_least, at_most
from measuring.tables import titled_table
from rowcall.engine.columns.suggest import LIKELY, SURE, Suggestion

_PACKAGES = ("rowcall", "rapidfuzz", "polars", "numpy")


@dataclass(frozen=True, slots=True)
class Judged:
    """One column: what was expected and what was suggested."""

    file: Labelled
    header: str
    expected: str | None
    found: Suggestion

    @property
    def is_right(self) -> bool:
        if self.expected == ASK:
            return self.found.field is None and bool(self.found.others)
        return self.found.field == self.expected

    @property
    def is_sure(self) -> bool:
        return self.found.field is not None and self.found.confidence >= SURE

    @property
    def is_asked(self) -> bool:
        """Whether a person has to look: at a proposal, or at a question with something to choose from."""
        return not self.is_sure and (self.found.field is not None or bool(self.found.others))


class Figures(msgspec.Struct, frozen=True, rename="camel"):
    """How well some columns were matched; rates in percent."""

    columns: int
    top1: float
    wrong_but_sure: float
    sure: int
    proposed: int
    questions: int


def figures(judged: Sequence[Judged]) -> Figures:
    asked = [each for each in judged if each.is_asked]
    proposed = sum(each.found.field is not None for each in asked)
    return Figures(
        columns=len(judged),
        top1=_percent(sum(each.is_right for each in judged), len(judged)),
        wrong_but_sure=_percent(sum(each.is_sure and not each.is_right for each in judged), len(judged)),
        sure=sum(each.is_sure for each in judged),
        proposed=proposed,
        questions=len(asked) - proposed,
    )


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def grouped(judged: Sequence[Judged], key: Callable[[Judged], str]) -> dict[str, Figures]:
    names = sorted({key(each) for each in judged})
    return {name: figures([each for each in judged if key(each) == name]) for name in names}


def musts(parts: Mapping[str, Sequence[Judged]]) -> list[Must]:
    """What is promised, of each part of the files."""
    found = {part: figures(judged) for part, judged in parts.items()}
    return [
        must
        for part, told in found.items()
        for must in (
            at_least(f"{part}: top-1, percent", 95, told.top1),
            at_most(f"{part}: wrong but sure, percent", 0.5, told.wrong_but_sure),
        )
    ]


def table(title: str, rows: Mapping[str, Figures]) -> Table:
    made = titled_table(title, 1, "", "columns", "top-1 %", "wrong but sure %", "sure", "proposed", "questions")
    for name, told in rows.items():
        made.add_row(name, *(f"{value:,}" for value in msgspec.structs.astuple(told)))
    return made


def write(path: Path, parts: Mapping[str, Sequence[Judged]]) -> None:
    told = {
        part: {
            "all": figures(judged),
            "importers": grouped(judged, lambda each: each.file.importer),
            "languages": grouped(judged, lambda each: each.file.language),
        }
        for part, judged in parts.items()
    }
    facts = {"machine": machine(_PACKAGES), "sure": SURE, "likely": LIKELY, **told, "musts": musts(parts)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n")
