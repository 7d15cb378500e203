"""Completes an importer's class from what it declares, or says at once what is wrong with it."""

import datetime as dt
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints
from zoneinfo import available_timezones

import polars as pl
from polars.exceptions import ComputeError

from rowcall.errors import Final
from rowcall.importer.conditions import MODE, values_of
from rowcall.importer.fields import Field, Misdeclared, folded
from rowcall.importer.fingerprint import MOST_SAMPLED, Fingerprint
from rowcall.importer.hooks import hook_mistakes
from rowcall.importer.lookups import Lookup
from rowcall.importer.matching import Ask, Fail, Flow, Skip, Update, Version
from rowcall.importer.numbers import Decimal
from rowcall.importer.options import expected, fits, option_mistakes
from rowcall.importer.rules import Rule, RuleDeclaration, rule_mistakes
from rowcall.importer.texts import Choice, Text
from rowcall.importer.trials import trial_mistakes
from rowcall.model import Code, Mode

if TYPE_CHECKING:
    from rowcall.importer.importer import Importer

_DERIVED = {
    "fields": "an attribute per field",
    "rules": "@rule",
    "keys": "key",
    "context_fields": "context",
    "scope_keys": "scope",
    "description": "a docstring",
}
_BY_TYPE = frozenset(
    {"name", "target", "key", "natural_key", "atomic", "once", "timezone", "concurrency", "attempts", "lease_seconds"}
)
"""Settings that are checked by their annotation alone."""
_NUMBER = "number"  # the row's own number stands under this name beside the fields
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MOST_CONTEXT = 20
_Kind = TypeVar("_Kind")
Class = type["Importer"]


def declare(importer: Class) -> None:
    """Set what follows from the declaration, or raise BAD_DECLARATION."""
    if importer.__module__.startswith("rowcall.importer."):
        return
    _raise_for(importer, _attribute_mistakes(importer))
    _raise_for(importer, hook_mistakes(importer))
    _raise_for(importer, _type_mistakes(importer))
    importer.name = vars(importer).get("name") or _snake_case(importer.__name__)
    importer.description = (importer.__doc__ or "").strip().partition("\n")[0]
    _raise_for(importer, _setting_mistakes(importer))
    importer.fields = MappingProxyType(_fields(importer))
    _raise_for(importer, _field_mistakes(importer))
    importer.keys = tuple(key for key in (_names(importer.key), _names(importer.natural_key)) if key)
    _raise_for(importer, _key_mistakes(importer))
    importer.context_fields = MappingProxyType(_context_fields(importer))
    importer.scope_keys = _names(importer.scope or ())
    _raise_for(importer, _context_mistakes(importer))
    _raise_for(importer, _only_when_mistakes(importer))
    if isinstance(importer.fingerprint, Fingerprint):
        _raise_for(importer, fingerprint_mistakes(importer, importer.fingerprint))
    elif importer.fingerprint is not None and not callable(importer.fingerprint):  # pyright: ignore[reportUnnecessaryComparison] (anything may stand there)
        _raise_for(importer, [".fingerprint: a Fingerprint is expected, or a method that gives one for a job."])
    importer.rules = tuple(_rule(importer, declared) for declared in _members(importer, RuleDeclaration).values())


def _raise_for(importer: Class, mistakes: Iterable[str]) -> None:
    if told := list(mistakes):
        raise Final(Code.BAD_DECLARATION, "\n".join(f"{importer.__name__}{mistake}" for mistake in told))


def nearest(name: str, known: Iterable[str]) -> str:
    """The question that helps with a misspelt name, if there is one like it."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"Did you mean {near[0]!r}?" if near else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The sentence that helps with a misspelt name: the nearest known one, or all of them."""
    choices = sorted(known)
    if near := nearest(name, choices):
        return near
    return f"There are {', '.join(choices)}." if choices else "There are none."


def _members(importer: Class, kind: type[_Kind]) -> dict[str, _Kind]:
    """The attributes of this kind, those of base classes first; what a subclass sets anew counts."""
    found: dict[str, _Kind] = {}
    for base in reversed(importer.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, kind):
                found[name] = value
            else:
                found.pop(name, None)
    return found


def _fields(importer: Class) -> dict[str, Field]:
    declared = _members(importer, Field).items()
    return {_field_name(name): field.named(_field_name(name), importer.timezone) for name, field in declared}


def _field_name(attribute: str) -> str:
    return attribute.removesuffix("_")


def _names(key: str | tuple[str, ...]) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


# -- attributes of the class


def _api(importer: Class) -> set[str]:
    """The names that Rowcall gives a meaning."""
    ours = [base for base in importer.__mro__ if base.__module__.startswith("rowcall.importer.")]
    return {name for base in ours for name in vars(base) if not name.startswith("_")}


def _attribute_mistakes(importer: Class) -> Iterator[str]:
    api = _api(importer)
    for name, value in vars(importer).items():
        if isinstance(value, type) and issubclass(value, Field):
            yield f".{name}: {value.__name__} is a class; write {name} = {value.__name__}()."
        elif isinstance(value, Misdeclared):
            yield f".{name}: {_misdeclared(value)}"
        elif isinstance(value, (Field, RuleDeclaration)) and name in api:
            yield (
                f".{name}: an importer's own {name!r} has this name. Write {name}_ instead: "
                "a field's name is taken without the underscore at the end."
            )
        elif isinstance(value, Field) and _field_name(name) == _NUMBER:
            yield f".{name}: rows have their own number under this name. Call it otherwise, with column={_NUMBER!r}."
        elif name in _DERIVED:
            yield f".{name} can't be set: it follows from the declaration. Write {_DERIVED[name]}."
        elif not isinstance(value, (Field, RuleDeclaration)) and name not in api and not name.startswith("_"):
            yield from _misspelling(name, api)


def _misdeclared(value: Misdeclared) -> str:
    if value.option:
        return f"{value.kind} has no option {value.option!r}. {did_you_mean(value.option, value.known)}"
    return f"{value.kind} {value.told}. There are {', '.join(value.known)}."


def _misspelling(name: str, api: set[str]) -> Iterator[str]:
    if near := get_close_matches(name, api, n=1, cutoff=0.8):
        yield f".{name} means nothing to Rowcall. Did you mean {near[0]!r}? If not, call it _{name}."


def _type_mistakes(importer: Class) -> Iterator[str]:
    """Settings that are not what their annotation says; of some, others say more."""
    ours = [base for base in importer.__mro__ if base.__module__ == "rowcall.importer.importer"]
    hints = {name: hint for base in reversed(ours) for name, hint in get_type_hints(base).items()}
    for name, hint in hints.items():
        value, (declared,) = getattr(importer, name), get_args(hint)
        if name in _BY_TYPE and not fits(value, declared):
            yield f".{name} is {value!r}; {expected(declared)} is expected."
    for name in ("on_match", "flow", "fingerprint"):
        value = getattr(importer, name)
        if is_dataclass(value) and not isinstance(value, type):
            yield from (f".{name}: {mistake}" for mistake in option_mistakes(value))


def _setting_mistakes(importer: Class) -> Iterator[str]:
    if not isinstance(importer.on_match, (Skip, Update, Version, Fail)):  # pyright: ignore[reportUnnecessaryIsInstance] (anything may stand there)
        yield ".on_match: one of Skip(), Update(), Version() and Fail() is expected."
    if not isinstance(importer.flow, Flow):  # pyright: ignore[reportUnnecessaryIsInstance] (as above)
        yield ".flow: a Flow is expected, such as Flow(preview=True)."
    elif importer.flow.columns not in get_args(Ask):
        listed = ", ".join(get_args(Ask))
        yield f".flow: columns is {importer.flow.columns!r}; one of {listed} is expected."
    if not _NAME.fullmatch(importer.name):
        yield f".name is {importer.name!r}; small letters, digits and underscores are expected."
    if importer.target and (importer.target.count(".") > 1 or not all(importer.target.split("."))):
        yield f'.target is {importer.target!r}; "table" or "schema.table" is expected.'
    for name, key in (("key", importer.key), ("natural_key", importer.natural_key)):
        if len(set(_names(key))) < len(_names(key)):
            yield f".{name} names {', '.join(_names(key))}; each is needed once."
    undo: object = importer.undo
    if not isinstance(undo, bool | str) or undo == "":  # pyright: ignore[reportUnnecessaryIsInstance] (as above)
        yield f".undo is {undo!r}; True, False, or the reason why not is expected."
    yield from _context_setting_mistakes(importer)
    days: object = importer.retention_days
    if days is not None and (not isinstance(days, int) or days < 1):  # pyright: ignore[reportUnnecessaryIsInstance] (as above)
        yield f".retention_days is {days!r}; a number of days from 1 is expected."
    yield from _timezone_mistakes(importer.timezone)
    if not importer.abstract:
        yield from _missing(importer)


def _timezone_mistakes(timezone: str) -> Iterator[str]:
    try:
        pl.select(pl.lit(dt.datetime(2024, 1, 1)).dt.replace_time_zone(timezone))  # noqa: DTZ001 (the zone is what is tried)
    except ComputeError:
        near = get_close_matches(timezone, available_timezones(), n=1)
        meant = f"Did you mean {near[0]!r}?" if near else "A name such as 'Europe/Berlin' is expected."
        yield f".timezone: there is no {timezone!r}. {meant}"


def _missing(importer: Class) -> Iterator[str]:
    process: Any = getattr(importer, "process", None)
    if process is None and not importer.target:
        base = f"class {importer.__name__}(Importer, abstract=True)"
        yield f' has no target. Write target = "table", or {base} if it is a base of others.'
    elif process is not None and process.__module__.startswith("rowcall.importer."):
        yield " has no process method, which says what becomes of the rows."


# -- fields and keys


def _field_mistakes(importer: Class) -> Iterator[str]:
    headers: dict[str, str] = {}
    columns: dict[str, str] = {}
    for name, field in importer.fields.items():
        wrong = list(option_mistakes(field))
        found = wrong or list(field.mistakes()) or list(field.default_mistakes())
        yield from (f".{name}: {mistake}" for mistake in found)
        if wrong:
            continue
        if (other := columns.setdefault(field.column, name)) != name:
            yield f".{name}: the column {field.column!r} is taken by {other!r} already."
        for header in (name, *field.aliases):
            if (other := headers.setdefault(folded(header), name)) != name:
                yield f".{name}: {header!r} is a name of {other!r} too; a file's column could be meant for either."
        if isinstance(field, Lookup) and field.within is not None and field.within not in importer.fields:
            meant = did_you_mean(field.within, importer.fields)
            yield f".{name}: within is {field.within!r}, which is no field. {meant}"
        elif isinstance(field, Lookup) and (round_ := _circle(importer.fields, name)):
            yield f".{name}: it is looked up within itself: {' within '.join(round_)}."
        yield from (f".{name}: {mistake}" for mistake in _missing_mistakes(importer, field))


def _circle(fields: Mapping[str, Field], name: str) -> list[str]:
    """The fields that a look-up is within, if it is among them."""
    chain = [name]
    while isinstance(field := fields.get(chain[-1]), Lookup) and field.within and field.within not in chain:
        chain.append(field.within)
    return [*chain, name] if isinstance(field, Lookup) and field.within == name else []


def _missing_mistakes(importer: Class, field: Field) -> Iterator[str]:
    """What is wrong with what becomes of values that nothing matches, in this importer."""
    if not isinstance(field, (Lookup, Choice)):
        return
    by_itself: Any = getattr(importer, "process", None)
    whole = by_itself is not None and not inspect.iscoroutinefunction(by_itself)
    if field.on_missing == "ask" and whole:
        yield 'on_missing is "ask"; a file that is processed as a whole waits for nobody.'
    if not isinstance(field, Lookup):
        return
    scope = importer.fields.get(field.within or "")
    if field.on_missing != "fail" and field.table.rpartition(".")[2] == importer.target.rpartition(".")[2]:
        yield f"on_missing is {field.on_missing!r}; it looks in its own target, where rows of the file are yet to come."
    elif field.creates and by_itself is not None:
        yield "creates is for importers that write to a target."
    elif field.on_missing == "ask" and isinstance(scope, Lookup) and scope.creates:
        yield f"it asks within {field.within!r}, of which rows may yet be created. Leave out one of them."


def _key_mistakes(importer: Class) -> Iterator[str]:
    for attribute, key in (("key", importer.key), ("natural_key", importer.natural_key)):
        for name in _names(key):
            if name not in importer.fields:
                yield f".{attribute}: there is no field {name!r}. {did_you_mean(name, importer.fields)}"
    policy = importer.on_match
    if isinstance(policy, (Update, Version)) and not importer.keys and not importer.abstract:
        yield f'.on_match: {type(policy).__name__} needs a key to know a match by. Write key = "...".'
    if isinstance(policy, Version) and policy.column in {field.column for field in importer.fields.values()}:
        yield f".on_match: the column {policy.column!r} counts versions and can't be a field's too."
    if isinstance(policy, Version) and not policy.column:
        yield ".on_match: the column that counts versions has no name."


# -- context and scope


def _context_setting_mistakes(importer: Class) -> Iterator[str]:
    context: object = importer.context
    names = list(context) if isinstance(context, Mapping) else _names(importer.context)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType, reportUnknownVariableType] (as above)
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance] (as above)
        yield '.context: names in small letters are expected, such as context = "registration" or a dict of fields.'
    elif len(names) > _MOST_CONTEXT:
        yield f".context has {len(names)} names; {_MOST_CONTEXT} are the most."
    if isinstance(context, Mapping):
        for name, field in context.items():  # pyright: ignore[reportUnknownVariableType] (as above)
            if not isinstance(field, Field) or isinstance(field, Lookup):  # pyright: ignore[reportUnnecessaryIsInstance] (as above)
                yield f".context: {name} is {field!r}; a field that reads it is expected, such as Text(required=True)."
    if importer.scope is not None and not all(isinstance(name, str) for name in _names(importer.scope)):  # pyright: ignore[reportUnnecessaryIsInstance] (as above)
        yield '.scope: names of the context are expected, such as scope = "registration"; () for one job at a time.'


def _context_fields(importer: Class) -> dict[str, Field]:
    """The context's fields. A name alone is read as the importer's field of that name, else as a text."""
    if isinstance(importer.context, Mapping):
        return {name: field.named(name, importer.timezone) for name, field in importer.context.items()}
    known = {name: field for name, field in importer.fields.items() if not isinstance(field, Lookup)}
    return {
        name: replace(known.get(name) or Text(), required=True, default=None).named(name, importer.timezone)
        for name in _names(importer.context)
    }


def _context_mistakes(importer: Class) -> Iterator[str]:
    for name, field in importer.context_fields.items():
        wrong = list(option_mistakes(field)) or list(field.mistakes())
        yield from (f".context: {name}: {mistake}" for mistake in wrong)
    for name in importer.scope_keys:
        if name not in importer.context_fields:
            meant = did_you_mean(name, importer.context_fields)
            yield f".scope: {name!r} is not of the context. {meant}"
        elif not importer.context_fields[name].required and importer.context_fields[name].default is None:
            yield f".scope: {name!r} may be missing. Make it required, or give it a default."


def _only_when_mistakes(importer: Class) -> Iterator[str]:
    known = (MODE, *importer.context_fields)
    for name, conditions in importer.only_when.items():
        if name not in importer.fields:
            yield f".only_when: {name!r} is no field. {did_you_mean(name, importer.fields)}"
        elif importer.fields[name].default is not None:
            yield f".only_when: {name} has a default, which all jobs bring. Give it to the column of the table."
        elif importer.fields[name].required:
            yield f".only_when: {name} is required, which jobs without it can't fulfil."
        for what, wanted in conditions.items():
            if what not in known:
                yield f".only_when: {name}: {what!r} is not of the context. {did_you_mean(what, known)}"
            elif what == MODE and not set(values_of(wanted)) <= set(Mode):
                yield f".only_when: {name}: mode is {wanted!r}; insert or upsert is expected."
    if importer.only_when and MODE in importer.context_fields:
        yield f".context: {MODE!r} has a meaning in only_when. Call it otherwise."


def fingerprint_mistakes(importer: Class, wanted: Fingerprint) -> Iterator[str]:
    """What is wrong with what an importer wants compared."""
    own: Any = importer.compare
    for name in (*wanted.identity, *wanted.by):
        if name not in importer.fields:
            yield f".fingerprint: there is no field {name!r}. {did_you_mean(name, importer.fields)}"
    if own.__module__.startswith("rowcall.importer."):
        if not wanted.identity:
            yield ".fingerprint: identity names no field to compare. Name some, or write a method `compare`."
        if not importer.keys or (wanted.by and wanted.by not in importer.keys):
            yield ".fingerprint: by is to be the importer's key or natural_key."
    if not 0 <= wanted.warn <= wanted.abort <= 1:
        yield f".fingerprint: warn is {wanted.warn}, abort {wanted.abort}; 0 <= warn <= abort <= 1 is expected."
    if not 1 <= wanted.sample <= MOST_SAMPLED or wanted.least < 1:
        yield f".fingerprint: a sample of 1 to {MOST_SAMPLED:,} rows is expected, and least from 1 on."


# -- rules


def _rule(importer: Class, declared: RuleDeclaration) -> Rule:
    where = f".{declared.name}"
    if declared.field is not None and declared.field not in importer.fields:
        meant = did_you_mean(declared.field, importer.fields)
        _raise_for(importer, [f"{where}: there is no field {declared.field!r}. {meant}"])
    _raise_for(importer, (f"{where}{mistake}" for mistake in rule_mistakes(declared)))
    expression = _expression(importer, declared)
    _raise_for(importer, (f"{where}{mistake}" for mistake in _expression_mistakes(importer, expression)))
    reads = tuple(dict.fromkeys(expression.meta.root_names()))
    return Rule(declared.name, declared.field, declared.code, declared.message, expression, reads)


def _expression(importer: Class, declared: RuleDeclaration) -> pl.Expr:
    where = f"{importer.__name__}.{declared.name}"
    try:
        expression: object = declared.condition(importer.__new__(importer))
    except Exception as error:
        raise Final(Code.BAD_DECLARATION, f"{where} fails with {type(error).__name__}: {error}") from error
    if isinstance(expression, pl.Expr):  # pyright: ignore[reportUnnecessaryIsInstance] (a forgotten return gives None)
        return expression
    told = f"{where} gives {expression!r}; an expression is expected."
    raise Final(Code.BAD_DECLARATION, told, hint='Return one such as pl.col("a") <= pl.col("b").')


def _expression_mistakes(importer: Class, expression: pl.Expr) -> Iterator[str]:
    names = expression.meta.root_names()
    unknown = [name for name in names if name not in importer.fields]
    if not names:
        yield " reads no field by its name."
    yield from (f": there is no field {name!r}. {did_you_mean(name, importer.fields)}" for name in unknown)
    yield from (
        f": {name!r} is an exact Decimal, which is a text here. Leave exact=True off."
        for name in names
        if isinstance(field := importer.fields.get(name), Decimal) and field.exact
    )
    if names and not unknown:
        yield from trial_mistakes({name: importer.fields[name] for name in names}, expression)
