"""What a row may lack only until another row of the same file is in."""

from rowcall.engine.work import Work
from rowcall.model import Code

_BROKEN = (Code.FOREIGN_KEY_VIOLATION, Code.UNIQUE_VIOLATION)


def own_constraints(work: Work) -> list[str]:
    """The foreign keys by which rows of the target refer to others of it, through fields that the file brings."""
    own = (work.target.schema, work.target.name)
    return [
        key.name
        for key in work.target.foreign
        if (key.table_schema, key.table_name) == own and work.layout.given.issuperset(key.columns)
    ]


def values_that_move(work: Work) -> list[str]:
    """The constraints that a row may break only until another one is updated."""
    if work.layout.on_match != "update":
        return []
    changing = set(work.layout.compared)
    indexes = (*work.target.unique, *work.target.odd_unique)
    return [*(index.name for index in indexes if changing.intersection(index.columns)), *work.target.exclusions]


def for_want(work: Work, code: str, field: str | None, constraint: object) -> bool:
    """Whether such an issue may be gone when other rows of the file are in."""
    if code == Code.NOT_FOUND:
        return field in work.own_lookups
    return code in _BROKEN and constraint in (*own_constraints(work), *values_that_move(work))
