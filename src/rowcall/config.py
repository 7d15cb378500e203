"""Settings, from the environment. A wrong one stops the program at once and says why."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from pathlib import Path

from rowcall.errors import Final
from rowcall.formats.reading import GIB, KIB, MIB, Limits
from rowcall.model import Code

_UNITS = {"": 1, "k": KIB, "kb": KIB, "m": MIB, "mb": MIB, "g": GIB, "gb": GIB}
_SIZE = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)
_COUNT = re.compile(r"[1-9]\d{0,8}")
_ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]+[^/]", re.IGNORECASE)
_SECONDS = re.compile(r"\d{1,6}(\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How Rowcall runs: where its database and files are, how many work at once, how large their batches are."""

    database_url: str | None = field(default=None, repr=False)  # it may hold a password
    """PostgreSQL's address; None for the embedded server."""
    data_dir: Path
    """Where the embedded server and stored files live."""
    workers: int = 2
    """Threads that commit."""
    batch_rows_min: int = 1_000
    batch_rows_max: int = 20_000
    patience: float = 60
    """Seconds to keep trying when the database is away."""
    limits: Limits = field(default_factory=Limits)
    max_upload: int = 10 * GIB
    """Bytes of the largest file that is taken over HTTP."""
    jobs_at_once: int = 2
    """Jobs that one worker process works on."""
    jobs_per_organisation: int = 4
    """Jobs of one organisation that are worked on at the same time, by all workers together."""
    export_days: int = 7
    """Days that the file of an export stays."""
    max_body: int = MIB
    """Bytes of the largest body of a request that isn't a file."""
    rate_limit: int = 6_000
    """Requests of a key in a minute."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose X-Forwarded-For is believed."""
    cors_origins: tuple[str, ...] = ()
    """Where pages may come from that call us from a browser."""
    hsts: int | None = None
    """Seconds for which browsers are told to come by TLS only; None where there is none."""


def settings_from(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings: `ROWCALL_DATABASE_URL`, `ROWCALL_WORKERS=4` and so on; what is unset has its default."""
    settings = Settings(
        database_url=environment.get("ROWCALL_DATABASE_URL") or None,
        data_dir=_data_dir(environment),
        workers=_count(environment, "ROWCALL_WORKERS", 2),
        batch_rows_min=_count(environment, "ROWCALL_BATCH_ROWS_MIN", 1_000),
        batch_rows_max=_count(environment, "ROWCALL_BATCH_ROWS_MAX", 20_000),
        patience=_seconds(environment, "ROWCALL_DATABASE_PATIENCE", 60),
        limits=limits_from(environment),
        max_upload=_number("ROWCALL_MAX_UPLOAD", environment.get("ROWCALL_MAX_UPLOAD") or "10GB"),
        jobs_at_once=_count(environment, "ROWCALL_JOBS_AT_ONCE", 2),
        jobs_per_organisation=_count(environment, "ROWCALL_JOBS_PER_ORGANISATION", 4),
        export_days=_count(environment, "ROWCALL_EXPORT_DAYS", 7),
        max_body=_number("ROWCALL_MAX_BODY", environment.get("ROWCALL_MAX_BODY") or "1MB"),
        rate_limit=_count(environment, "ROWCALL_RATE_LIMIT", 6_000),
        trusted_proxies=_networks(environment, "ROWCALL_TRUSTED_PROXIES"),
        cors_origins=_origins(environment, "ROWCALL_CORS_ORIGINS"),
        hsts=_count(environment, "ROWCALL_HSTS", 0) or None,
    )
    if settings.batch_rows_min > settings.batch_rows_max:
        raise Final(
            Code.BAD_SETTING,
            f"ROWCALL_BATCH_ROWS_MIN ({settings.batch_rows_min}) is above ROWCALL_BATCH_ROWS_MAX "
            f"({settings.batch_rows_max}).",
            hint="Set both, the smaller one first.",
        )
    return settings


def limits_from(environment: Mapping[str, str] = os.environ) -> Limits:
    """The limits of reading: `ROWCALL_LIMIT_RECORD_BYTES=32MB` and so on, one per field of `Limits`."""
    given = {name: environment[setting(name)] for name in limit_names() if environment.get(setting(name))}
    return Limits(**{name: _number(setting(name), text) for name, text in given.items()})


def limit_names() -> list[str]:
    return [field.name for field in fields(Limits)]


def setting(name: str) -> str:
    """The environment variable of a limit."""
    return f"ROWCALL_LIMIT_{name.upper()}"


def _data_dir(environment: Mapping[str, str]) -> Path:
    if given := environment.get("ROWCALL_DATA_DIR"):
        return Path(given).expanduser().absolute()
    if os.geteuid() == 0:  # the server then runs under an account that has no way into root's home
        return Path("/var/lib/rowcall")
    home = environment.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "rowcall"


def _number(variable: str, text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or int(match[1]) < 1:
        raise _wrong(variable, text, "a whole number from 1 is expected, with KB, MB or GB behind it if you like")
    return int(match[1]) * unit


def _count(environment: Mapping[str, str], variable: str, default: int) -> int:
    text = environment.get(variable, "").strip()
    if text and not _COUNT.fullmatch(text):
        raise _wrong(variable, text, "a whole number from 1 is expected")
    return int(text or default)


def _seconds(environment: Mapping[str, str], variable: str, default: float) -> float:
    text = environment.get(variable, "").strip()
    if text and not _SECONDS.fullmatch(text):
        raise _wrong(variable, text, "a number of seconds is expected, such as 60 or 2.5")
    return float(text or default)


def _listed(environment: Mapping[str, str], variable: str) -> list[str]:
    return [part.strip() for part in environment.get(variable, "").split(",") if part.strip()]


def _networks(environment: Mapping[str, str], variable: str) -> tuple[str, ...]:
    given = _listed(environment, variable)
    for text in given:
        try:
            ip_network(text)
        except ValueError:
            raise _wrong(variable, text, "addresses or networks such as 10.0.0.0/8 are expected") from None
    return tuple(given)


def _origins(environment: Mapping[str, str], variable: str) -> tuple[str, ...]:
    given = _listed(environment, variable)
    for text in given:
        if not _ORIGIN.fullmatch(text):
            raise _wrong(variable, text, "origins such as https://app.example.org are expected, with commas between")
    return tuple(given)


def _wrong(variable: str, text: str, expected: str) -> Final:
    return Final(Code.BAD_SETTING, f"{variable} is {text!r}; {expected}.", hint="Correct it or unset it.")
