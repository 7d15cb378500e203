"""The methods of an importer that Rowcall calls: whether they take what they are given."""

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowcall.importer.importer import Importer

_HOOKS = {
    "before": ("connection", "job"),
    "after": ("connection", "job"),
    "compare": ("connection", "job", "rows"),
    "refuse": ("context",),
    "fingerprint": ("job",),
}


def hook_mistakes(importer: "type[Importer]") -> Iterator[str]:
    """What is wrong with the methods that an importer has of its own."""
    for name, given in _HOOKS.items():
        if name != "fingerprint" or callable(importer.fingerprint):
            yield from _mistakes(importer, name, given)
    if hasattr(importer, "process"):
        yield from _process_mistakes(importer)


def _process_mistakes(importer: "type[Importer]") -> Iterator[str]:
    ours = next(base for base in importer.__mro__ if base.__module__ == "rowcall.importer.importer")
    declared: Any = vars(ours).get("process")
    if declared is None:  # a method of that name means nothing to other importers
        return
    _, *given = inspect.signature(declared).parameters
    yield from _mistakes(importer, "process", tuple(given), is_async=inspect.iscoroutinefunction(declared))


def _mistakes(
    importer: "type[Importer]", name: str, given: tuple[str, ...], *, is_async: bool | None = None
) -> Iterator[str]:
    method: object = inspect.getattr_static(importer, name)
    written = f"{'async ' if is_async else ''}def {name}({', '.join(('self', *given))})"
    if not callable(getattr(importer, name)):
        yield f".{name} is {method!r}; a method is expected: {written}."
    elif not _takes(importer, name, len(given)):
        yield f".{name} doesn't take what it is given; write {written}."
    elif is_async is not None and isinstance(method, type(_takes)) and _is_awaited(method) is not is_async:
        yield f".{name} is {'' if is_async else 'not '}to be awaited; write {written}."


def _takes(importer: "type[Importer]", name: str, count: int) -> bool:
    try:
        called = inspect.signature(getattr(importer.__new__(importer), name))
    except ValueError:  # of something built in
        return True
    try:
        called.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _is_awaited(method: object) -> bool:
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
