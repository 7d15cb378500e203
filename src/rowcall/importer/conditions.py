"""Fields that only some jobs have: by their mode, or by what is said of their file."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rowcall.importer.fields import Field
from rowcall.importer.matching import Update
from rowcall.model import Mode

if TYPE_CHECKING:
    from rowcall.importer.importer import Importer

MODE = "mode"
"""Beside the names of the context: what a job does with rows that are there."""


def mode_for(importer: "type[Importer]", mode: Mode | None) -> Mode:
    """What a job does with rows that are there already: as it was told, else as its importer says."""
    return mode or (Mode.UPSERT if isinstance(importer.on_match, Update) else Mode.INSERT)


def usable_fields(importer: "type[Importer]", mode: Mode | None, context: Mapping[str, str]) -> dict[str, Field]:
    """The fields that a job of this mode and context has."""
    told = {**context, MODE: mode_for(importer, mode)}
    return {
        name: field
        for name, field in importer.fields.items()
        if all(told.get(what) in values_of(wanted) for what, wanted in importer.only_when.get(name, {}).items())
    }


def condition_of(importer: "type[Importer]", name: str) -> str:
    """When a field is there, for a person."""
    parts = [f"{what} is {' or '.join(values_of(wanted))}" for what, wanted in importer.only_when[name].items()]
    return " and ".join(parts)


def values_of(wanted: str | tuple[str, ...]) -> tuple[str, ...]:
    """The values of a condition that may be one alone."""
    return (wanted,) if isinstance(wanted, str) else wanted
