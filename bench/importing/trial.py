"""One measurement: a whole command, from its start to its end, on a fresh database; then a look at what it left."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from importing.server import Server, Start
from measuring.files import DATA
from measuring.process import Ended, run_afresh, warm

_TIMEOUT = 3_600
_STORE = DATA / "store"
_DONE, _DONE_WITH_ERRORS = 0, 2
_OUTCOMES = ("created", "updated", "unchanged", "skipped", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A contender with its work, and what must be true when it ends."""

    key: str
    label: str
    entry: str
    """`module:function`"""
    arguments: tuple[str, ...]
    rows: int
    start: Start = Start.EMPTY
    file: Path | None = None
    users: int
    """That the table holds in the end."""
    outcomes: Mapping[str, int] = field(default_factory=dict[str, int])
    """That Rowcall has to tell, among an outcome for each row."""
    written: Path | None = None
    lines: int = 0
    """Of the file written."""
    unavailable: str = ""
    """Why the contender can't take part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one process measured; RSS as in `Ended`."""

    seconds: float
    rss: int
    children_rss: int
    phases: Mapping[str, float]
    """State to seconds, of Rowcall's job."""
    error: str = ""


class _Told(msgspec.Struct):
    """What `rowcall import --json` says."""

    state: str
    counts: dict[str, int]


def measure(server: Server, trial: Trial) -> Sample:
    """Run the trial: the file in the page cache, the database on disk, Rowcall's file store empty."""
    address = server.begin(trial.start)
    shutil.rmtree(_STORE, ignore_errors=True)
    if trial.file:
        warm(trial.file)
    settings = {"ROWCALL_DATABASE_URL": address, "ROWCALL_DATA_DIR": str(_STORE)}
    ended = run_afresh(trial.entry, *trial.arguments, timeout=_TIMEOUT, extra=settings)
    wrong = _wrong(trial, ended, server)
    shutil.rmtree(_STORE, ignore_errors=True)
    if trial.written:
        trial.written.unlink(missing_ok=True)
    return Sample(
        seconds=ended.seconds,
        rss=ended.rss,
        children_rss=ended.children_rss,
        phases=server.phases(),
        error=wrong,
    )


def _wrong(trial: Trial, ended: Ended, server: Server) -> str:
    """What is not as it must be, or nothing."""
    if ended.status not in (_DONE, _DONE_WITH_ERRORS if trial.outcomes else _DONE):
        return ended.failure
    if trial.outcomes and (wrong := _wrong_outcomes(trial, ended)):
        return wrong
    if (users := server.users()) != trial.users:
        return f"{users:,} users in the table, {trial.users:,} expected"
    if trial.written and (lines := _lines(trial.written)) != trial.lines:
        return f"{lines:,} lines written, {trial.lines:,} expected"
    return ""


def _wrong_outcomes(trial: Trial, ended: Ended) -> str:
    try:
        told = msgspec.json.decode(ended.output, type=_Told)
    except msgspec.DecodeError:
        return ended.failure
    if not told.state.startswith("COMPLETED"):
        return f"{told.state}, COMPLETED expected"
    for status, count in trial.outcomes.items():
        if told.counts.get(status, 0) != count:
            return f"{told.counts.get(status, 0):,} {status}, {count:,} expected"
    balance = sum(told.counts.get(status, 0) for status in _OUTCOMES)
    return "" if balance == trial.rows else f"{balance:,} outcomes for {trial.rows:,} rows"


def _lines(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(1 for _ in lines)
