"""Settings, from the environment or `rowcall.toml`. A wrong one stops the program at once and says why."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from rowcall.errors import Final
from rowcall.formats.reading import GIB, KIB, MIB, Limits
from rowcall.model import Code
from rowcall.project import find_project, near_miss
from rowcall.sources.addresses import Allowed

_UNITS = {"": 1, "k": KIB, "kb": KIB, "m": MIB, "mb": MIB, "g": GIB, "gb": GIB}
_SIZE = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)
_COUNT = re.compile(r"[1-9]\d{0,8}")
_ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]+[^/]", re.IGNORECASE)
_SECONDS = re.compile(r"\d{1,6}(\.\d+)?")
BUCKET = re.compile(
    r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[\w-][\w.-]*(?:/[\w-][\w.-]*)*))?/?"
)
_ENDPOINT = re.compile(r"https?://[^/\s@]+/?")
_LEVELS = ("debug", "info", "warning", "error")
_PREFIX = "ROWCALL_"
# Kubernetes tells every pod where a service called rowcall is, in variables that look like ours
_OF_KUBERNETES = re.compile(r"ROWCALL_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_\w+)?)")
_NO_SETTINGS = ("ROWCALL_FAULT_SEED",)
"""Variables that only our tests know."""


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
    pool_size: int = 20
    """Connections of the HTTP service."""
    log_level: str = "info"
    metrics_token: str | None = field(default=None, repr=False)
    """What a reader of /metrics has to show; None: only this machine may read them."""
    retention_ended_days: int | None = 7
    """Days after its end that a job is kept; None for ever."""
    retention_abandoned_days: int | None = 90
    """Days that an unfinished job is kept after anybody touched it; None for ever."""
    url_allow: Allowed = field(default_factory=Allowed)
    """Hosts that may be fetched from and posted to, beside public ones."""
    url_timeout: float = 1800
    """Seconds that fetching a file may take."""
    server: str | None = None
    """The service that commands are for, instead of the database."""
    key: str | None = field(default=None, repr=False)
    """What commands show to that service."""
    file_store: str = ""
    """A folder or `s3://bucket/prefix`, the same for all processes; empty for `files` in the data directory."""
    s3_endpoint: str | None = None
    """Where S3 is, if not at Amazon."""
    upload_expires: float = 86_400
    """Seconds after which a resumable upload that nobody goes on with is removed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One of the settings, as a person sets it and reads about it."""

    name: str
    default: str
    about: str
    read: Callable[[str, str], Any]
    """Takes where the setting stands, for the message, and its text."""
    field: str = ""
    """What `Settings` calls it, if otherwise."""
    in_file: bool = True
    """Whether it may stand in `rowcall.toml`."""

    @property
    def variable(self) -> str:
        return _PREFIX + self.name.upper()


def _text(_: str, text: str) -> str:
    return text


def _path(_: str, text: str) -> Path:
    return Path(text).expanduser().absolute()


def _number(where: str, text: str) -> int:
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or int(match[1]) < 1:
        raise _wrong(where, text, "a whole number from 1 is expected, with KB, MB or GB behind it if you like")
    return int(match[1]) * unit


def _count(where: str, text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise _wrong(where, text, "a whole number from 1 is expected")
    return int(text)


def _seconds(where: str, text: str) -> float:
    if not _SECONDS.fullmatch(text):
        raise _wrong(where, text, "a number of seconds is expected, such as 60 or 2.5")
    return float(text)


def _days(where: str, text: str) -> int | None:
    if text.lower() == "never":
        return None
    if not _COUNT.fullmatch(text):
        raise _wrong(where, text, "a number of days from 1 is expected, or never")
    return int(text)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _networks(where: str, text: str) -> tuple[str, ...]:
    given = _listed(text)
    for part in given:
        try:
            ip_network(part)
        except ValueError:
            raise _wrong(where, part, "addresses or networks such as 10.0.0.0/8 are expected") from None
    return tuple(given)


def _origins(where: str, text: str) -> tuple[str, ...]:
    given = _listed(text)
    for part in given:
        if not _ORIGIN.fullmatch(part):
            raise _wrong(where, part, "origins such as https://app.example.org are expected, with commas between")
    return tuple(given)


def _allowed(where: str, text: str) -> Allowed:
    try:
        return Allowed.of(text)
    except ValueError:
        raise _wrong(
            where, text, "hosts, addresses and networks are expected, such as files.internal, 10.1.0.0/16:8080"
        ) from None


def _level(where: str, text: str) -> str:
    if text.lower() not in _LEVELS:
        raise _wrong(where, text, f"one of {', '.join(_LEVELS)} is expected")
    return text.lower()


def _file_store(where: str, text: str) -> str:
    if BUCKET.fullmatch(text):
        return text
    if "://" in text or not Path(text).expanduser().is_absolute():
        raise _wrong(where, text, "a folder from the root on, or s3://bucket/prefix, is expected")
    return str(Path(text).expanduser())


def _s3_endpoint(where: str, text: str) -> str:
    if not _ENDPOINT.fullmatch(text):
        raise _wrong(where, text, "an address such as https://s3.example.org:9000 is expected")
    return text


def _wrong(where: str, text: str, expected: str) -> Final:
    return Final(Code.BAD_SETTING, f"{where} is {text!r}; {expected}.", hint="Correct it or unset it.")


_HOME = "`~/.local/share/rowcall`; `/var/lib/rowcall` for root"
SETTINGS = (
    Setting(
        "database_url",
        "",
        "PostgreSQL 15 or later; unset: an embedded server is started under the data directory",
        _text,
    ),
    Setting("data_dir", _HOME, "the embedded server, and the files of jobs", _path),
    Setting(
        "file_store",
        "`files` in the data directory",
        "the files of jobs, for all servers and workers: a folder that they share, or `s3://bucket/prefix`",
        _file_store,
    ),
    Setting("s3_endpoint", "", "an S3 server that isn't Amazon's; credentials by AWS's own variables", _s3_endpoint),
    Setting("config", "`rowcall.toml` here or above", "the file with importers and settings", _text, in_file=False),
    Setting("workers", "2", "connections that bring rows in and commit them", _count),
    Setting("batch_rows_min", "1000", "rows of the first batch; it grows from there while batches are quick", _count),
    Setting("batch_rows_max", "20000", "rows of the largest batch", _count),
    Setting("database_patience", "60", "seconds to keep trying when the database is away", _seconds, "patience"),
    Setting("max_upload", "10GB", "the largest file that is taken over HTTP", _number),
    Setting("upload_expires", "86400", "seconds that a resumable upload is kept after the last byte came", _seconds),
    Setting("jobs_at_once", "2", "jobs that one worker process works on at the same time", _count),
    Setting(
        "jobs_per_organisation",
        "4",
        "jobs of one organisation that all workers together work on at the same time",
        _count,
    ),
    Setting("export_days", "7", "days that the file of an export in the background stays", _count),
    Setting(
        "rate_limit", "6000", "requests that one key may send in a minute, to each process of `rowcall serve`", _count
    ),
    Setting("max_body", "1MB", "the largest body of a request that isn't a file", _number),
    Setting(
        "trusted_proxies",
        "",
        "addresses and networks, with commas between, whose `X-Forwarded-For` is believed",
        _networks,
    ),
    Setting(
        "cors_origins",
        "",
        "origins such as `https://app.example.org`, with commas between, whose pages may call the API",
        _origins,
    ),
    Setting(
        "hsts", "", "seconds for which browsers are told to come by TLS only; set it where a proxy has TLS", _count
    ),
    Setting(
        "url_allow",
        "",
        "hosts, addresses and networks that may be fetched from and posted to, beside public ones",
        _allowed,
    ),
    Setting("url_timeout", "1800", "seconds that fetching a file may take, all attempts together", _seconds),
    Setting("pool_size", "20", "connections that the HTTP service may have to the database", _count),
    Setting("log_level", "info", "what `serve` and `worker` log: debug, info, warning or error", _level),
    Setting(
        "metrics_token", "", "the bearer token that `/metrics` asks for; unset: only this machine may read it", _text
    ),
    Setting("retention_ended_days", "7", "days that an ended job is kept, with its rows and file; or never", _days),
    Setting("retention_abandoned_days", "90", "days that an unfinished job is kept untouched; or never", _days),
    Setting("server", "", "the address of a service that commands with `--server` ask, as if it was given", _text),
    Setting("key", "", "the key that they show to it; keep it out of files that others read", _text),
    Setting("debug", "", "set to anything: an unexpected error prints its trace", _text, in_file=False),
)
"""All settings but the limits. `docs/reference.md` shows this table."""

LIMITS = {
    "record_bytes": ("16MB", "one record (line, JSON object, sheet row); a longer one is a bad record"),
    "columns": ("16384", "columns of a file"),
    "header_bytes": ("1MB", "the first line of a text file"),
    "inflated_bytes": ("20GB", "what a compressed file may inflate to"),
    "inflate_ratio": ("250", "times its own size, once past 64 MB"),
    "zip_entries": ("10000", "entries of a zip archive or workbook"),
    "json_depth": ("64", "nesting of JSON values"),
    "child_memory": ("400MB", "memory of the child process that reads XLS, XLSB, ODS, Parquet and Arrow"),
}
LIMIT_SETTINGS = tuple(Setting(f"limit_{name}", default, about, _number) for name, (default, about) in LIMITS.items())
"""The settings of `Limits`, one per field."""
_BESIDE = ("config", "debug")
"""Read elsewhere."""


def settings_from(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings: `ROWCALL_WORKERS=4` in the environment, else `workers = 4` in `rowcall.toml`, else the default."""
    given = _given(environment)
    values: dict[str, Any] = {
        setting.field or setting.name: setting.read(*given[setting.name])
        for setting in SETTINGS
        if setting.name in given and setting.name not in _BESIDE
    }
    values.setdefault("data_dir", _home(environment))
    settings = Settings(**values, limits=_limits(given))
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
    return _limits(_given(environment))


def _limits(given: Mapping[str, tuple[str, str]]) -> Limits:
    found = ((name, f"limit_{name}") for name in (one.name for one in fields(Limits)))
    return Limits(**{name: _number(*given[setting]) for name, setting in found if setting in given})


def _given(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What is set: where it stands, and its text. The environment counts before the file."""
    return {**dict(_from_file(environment)), **dict(_from_environment(environment))}


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    known = {setting.variable: setting for setting in (*SETTINGS, *LIMIT_SETTINGS)}
    for variable, text in environment.items():
        if variable in known:
            if text.strip():
                yield known[variable].name, (variable, text.strip())
        elif variable.startswith(_PREFIX) and not _OF_KUBERNETES.fullmatch(variable) and variable not in _NO_SETTINGS:
            told = f"{variable} means nothing to Rowcall. {near_miss(variable, known)}".strip()
            raise Final(Code.BAD_SETTING, told, hint="Correct or unset it; docs/reference.md has the settings.")


def _from_file(environment: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    project = find_project(environment)
    known = {setting.name for setting in (*SETTINGS, *LIMIT_SETTINGS) if setting.in_file}
    for name, text in project.settings.items() if project else ():
        where = f"{project.path}: {name}" if project else name
        if name not in known:
            told = f"{where} means nothing to Rowcall. {near_miss(name, known)}".strip()
            raise Final(Code.BAD_SETTING, told, hint="Correct or remove it; docs/reference.md has the settings.")
        if name == "data_dir" and project and text.strip():  # beside the file, from wherever the command is called
            text = str(project.folder.absolute() / Path(text.strip()).expanduser())
        if text.strip():
            yield name, (where, text.strip())


def _home(environment: Mapping[str, str]) -> Path:
    if os.geteuid() == 0:  # the server then runs under an account that has no way into root's home
        return Path("/var/lib/rowcall")
    home = environment.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "rowcall"
