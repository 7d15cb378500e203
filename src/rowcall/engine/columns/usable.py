"""The fields that a job can use: those of its importer, less those that are for other modes or contexts."""

from difflib import get_close_matches

from rowcall.errors import Final
from rowcall.importer import Field, Importer
from rowcall.importer.conditions import condition_of, usable_fields
from rowcall.model import Code
from rowcall.store.jobs import JobConfig


def usable(importer: type[Importer], config: JobConfig) -> dict[str, Field]:
    """The fields that columns and constants of a job can go to."""
    return usable_fields(importer, config.mode, config.context)


def check_usable(importer: type[Importer], name: str, config: JobConfig) -> None:
    """Refuse a field that the importer doesn't have, or not for this job."""
    if name not in importer.fields:
        near = get_close_matches(name, list(importer.fields), 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(importer.fields)}."
        raise Final(Code.BAD_MAPPING, f"Importer {importer.name} has no field {name!r}.", hint=hint)
    if name not in usable(importer, config):
        told = f"This job has no field {name!r}: {importer.name} has it only where {condition_of(importer, name)}."
        raise Final(Code.BAD_MAPPING, told, hint="Leave it out, or upload the file with another mode or context.")


def check_free(name: str, config: JobConfig) -> None:
    """Refuse a field that the context of a job has told already: its scope goes by that."""
    if name in config.context:
        told = f"{name!r} is {config.context[name]!r} in all rows: the context of this job says so."
        raise Final(Code.BAD_MAPPING, told, hint="Leave it out, or upload the file with another context.")
