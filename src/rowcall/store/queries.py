"""The static SQL, from named blocks in `sql/*.sql`."""

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_BLOCK = re.compile(r"^-- (\w+) --\n-- .+\n", re.MULTILINE)


@cache
def _blocks() -> dict[str, str]:
    blocks: dict[str, str] = {}
    for file in sorted((files("rowcall.store") / "sql").iterdir(), key=lambda file: file.name):
        parts = _BLOCK.split(file.read_text())
        blocks |= dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))
    return blocks


def query(name: str) -> LiteralString:
    """The statement of that name."""
    return cast("LiteralString", _blocks()[name])  # our own files, as literal as code
