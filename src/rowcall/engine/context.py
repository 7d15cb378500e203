"""What a file is about, beyond its rows: told at upload, demanded and read as the importer declares it."""

import types
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import msgspec
import polars as pl

from rowcall.engine.verify import verify
from rowcall.errors import Final
from rowcall.importer import Importer
from rowcall.importer.conditions import usable_fields
from rowcall.model import Code
from rowcall.store.jobs import JobConfig

_MOST = 2_000
"""Bytes of a context as JSON: what PostgreSQL can keep unique."""


def with_context(importer: type[Importer], config: JobConfig) -> JobConfig:
    """The configuration with its context as the importer reads it, and as constants of fields with the same names."""
    told = _told(importer, config.context)
    if (size := len(msgspec.json.encode(told))) > _MOST:
        raise _refused(importer, f"is too long: {size:,} bytes, and {_MOST:,} are the most")
    if reason := importer().refuse(types.MappingProxyType(told)):
        raise Final(Code.BAD_CONTEXT, reason, hint=_hint(importer))
    fields = usable_fields(importer, config.mode, told)
    constants = {name: text for name, text in told.items() if name in fields}
    for name, text in config.constants.items():
        if constants.setdefault(name, text) != text:
            raise _refused(importer, f"says {constants[name]!r} for {name}, and a constant says {text!r}")
    return replace(config, context=told, constants=constants)


def scope_of(importer: type[Importer], config: JobConfig) -> str | None:
    """What a job has to itself: the values of its scope. None for importers without, and for dry runs."""
    if importer.scope is None or config.dry_run:
        return None
    values = [config.context.get(name, "") for name in importer.scope_keys]
    return "".join(values) if len(values) < 2 else msgspec.json.encode(values).decode()


def _told(importer: type[Importer], context: Mapping[str, str]) -> dict[str, str]:
    for name in context:
        if name not in importer.context_fields:
            raise _refused(importer, f"has no {name!r}")
    if not importer.context_fields:
        return {}
    if nul := [name for name, text in context.items() if "\0" in text]:
        raise _refused(importer, f"has a NUL in {nul[0]!r}")
    form = _form(importer)
    texts = {name: [_composed(context.get(name))] for name in form.fields}
    rows = pl.DataFrame({"number": [1], **texts}, schema={"number": pl.Int64, **dict.fromkeys(texts, pl.String)})
    found = verify(form, rows)
    if found.issues.height:
        wrong = [f"{field}: {told.rstrip('.')}" for field, told in found.issues.select("field", "message").iter_rows()]
        raise _refused(importer, f"doesn't fit: {'; '.join(wrong)}")
    values = found.frame.drop("number").row(0, named=True)
    return {name: text for name, value in values.items() if (text := _text(value)) is not None}


def _composed(text: str | None) -> str | None:
    """One way to write a letter with its accent: what looks the same is the same scope."""
    return None if text is None else unicodedata.normalize("NFC", text)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


@lru_cache(maxsize=256)
def _form(importer: type[Importer]) -> type[Importer]:
    """The context as an importer of one row: its fields are read and checked like any."""
    fields = {f"{name}_": field for name, field in importer.context_fields.items()}
    made = types.new_class(importer.__name__, (Importer,), {"abstract": True}, lambda body: body.update(fields))
    return cast("type[Importer]", made)  # made of one


def _refused(importer: type[Importer], what: str) -> Final:
    return Final(Code.BAD_CONTEXT, f"The context for {importer.name} {what}.", hint=_hint(importer))


def _hint(importer: type[Importer]) -> str:
    fields = importer.context_fields
    if not fields:
        return "It takes none."
    needed = [name for name, field in fields.items() if field.required and field.default is None]
    others = [f"{name} if you like" for name in fields if name not in needed]
    return f"It has {', '.join([*needed, *others])}."
