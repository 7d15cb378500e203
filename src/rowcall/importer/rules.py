"""Rules: what must hold between the fields of a row."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, overload

import polars as pl

from rowcall.model import Code

_OPTIONS = ("field", "code", "message")
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
Condition = Callable[[Any], pl.Expr]


@dataclass(frozen=True, slots=True)
class RuleDeclaration:
    """A method of an importer that was marked with `@rule`."""

    condition: Condition
    name: str
    field: str | None
    code: str
    message: str
    unknown: tuple[str, ...] = ()
    """Options that there aren't."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that every row must fulfil. Where it is null, it holds."""

    name: str
    field: str | None
    """The field that an operator would correct."""
    code: str
    message: str
    expression: pl.Expr
    reads: tuple[str, ...]
    """The fields that it looks at; a row in which one of them can't be read is not judged."""


@overload
def rule(condition: Condition, /) -> RuleDeclaration: ...
@overload
def rule(
    *, field: str | None = None, code: str | None = None, message: str | None = None
) -> Callable[[Condition], RuleDeclaration]: ...
def rule(
    condition: Condition | None = None,
    /,
    *,
    field: str | None = None,
    code: str | None = None,
    message: str | None = None,
    **unknown: Any,
) -> RuleDeclaration | Callable[[Condition], RuleDeclaration]:
    """Mark a method of an importer as a rule: it gives an expression over the fields that is true for a good row.

    Without a code, the method's name in capitals is taken; without a message, the first line of its docstring.
    """

    def declare(condition: Condition) -> RuleDeclaration:
        name = condition.__name__
        told = message or _told_by(condition)
        return RuleDeclaration(condition, name, field, name.upper() if code is None else code, told, tuple(unknown))

    return declare if condition is None else declare(condition)


def rule_mistakes(declared: RuleDeclaration) -> Iterator[str]:
    """What is wrong with what is said of a rule, besides its expression."""
    for option in declared.unknown:
        near = get_close_matches(option, _OPTIONS, n=1) or _OPTIONS
        yield f": rule has no option {option!r}. Did you mean {' or '.join(map(repr, near))}?"
    code: object = declared.code
    if not isinstance(code, str) or not _CODE.fullmatch(code):  # pyright: ignore[reportUnnecessaryIsInstance] (anything may stand there)
        yield f": the code {code!r} is not a name; letters, digits and underscores are expected, such as TOO_OLD."
    elif code in Code.__members__:
        yield f': {code} is a code of Rowcall\'s own, and says something else. Give it another: code="...".'


def _told_by(condition: Condition) -> str:
    documented = (condition.__doc__ or "").strip().partition("\n")[0]
    return documented or f"The rule “{condition.__name__.replace('_', ' ')}” does not hold."
