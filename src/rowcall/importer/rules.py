"""Rules: what must hold between the fields of a row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

import polars as pl

Condition = Callable[[Any], pl.Expr]


@dataclass(frozen=True, slots=True)
class RuleDeclaration:
    """A method of an importer that was marked with `@rule`."""

    condition: Condition
    name: str
    field: str | None
    code: str
    message: str


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
) -> RuleDeclaration | Callable[[Condition], RuleDeclaration]:
    """Mark a method of an importer as a rule: it gives an expression over the fields that is true for a good row.

    Without a code, the method's name in capitals is taken; without a message, the first line of its docstring.
    """

    def declare(condition: Condition) -> RuleDeclaration:
        name = condition.__name__
        return RuleDeclaration(condition, name, field, code or name.upper(), message or _told_by(condition))

    return declare if condition is None else declare(condition)


def _told_by(condition: Condition) -> str:
    documented = (condition.__doc__ or "").strip().partition("\n")[0]
    return documented or f"The rule “{condition.__name__.replace('_', ' ')}” does not hold."
