"""Settings, from the environment. A wrong one stops the program at once and says why."""

import os
import re
from collections.abc import Mapping
from dataclasses import fields

from rowcall.errors import Final
from rowcall.formats.reading import GIB, KIB, MIB, Limits
from rowcall.model import Code

_UNITS = {"": 1, "k": KIB, "kb": KIB, "m": MIB, "mb": MIB, "g": GIB, "gb": GIB}
_SIZE = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)


def limits_from(environment: Mapping[str, str] = os.environ) -> Limits:
    """The limits of reading: `ROWCALL_LIMIT_RECORD_BYTES=32MB` and so on, one per field of `Limits`."""
    given = {name: environment[setting(name)] for name in limit_names() if environment.get(setting(name))}
    return Limits(**{name: _number(setting(name), text) for name, text in given.items()})


def limit_names() -> list[str]:
    return [field.name for field in fields(Limits)]


def setting(name: str) -> str:
    """The environment variable of a limit."""
    return f"ROWCALL_LIMIT_{name.upper()}"


def _number(variable: str, text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or int(match[1]) < 1:
        raise Final(
            Code.BAD_SETTING,
            f"{variable} is {text!r}; a whole number from 1 is expected, with KB, MB or GB behind it if you like.",
            hint="Correct it or unset it.",
        )
    return int(match[1]) * unit
