"""What the storm was like, and what it did."""

import statistics
import sys
from collections import Counter

from .clients import Tally
from .fleet import Fleet
from .judge import Judge
from .takeover import Takeovers

_SHOWN = 20


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write_report(
    fleet: Fleet,
    judge: Judge,
    tally: Tally,
    faults: Counter[str],
    takeovers: Takeovers,
    *,
    seed: int,
    seconds: float,
) -> int:
    """Tell it all; the exit code: 1 if anything is not as it must be."""
    violations = [*judge.violations, *tally.violations, *fleet.trouble]
    say(f"{faults.total()} faults within {seconds:.0f} s")
    for name, count in faults.most_common():
        say(f"  {count:5}  {name}")
    say(f"{tally.jobs.total()} jobs ended: {_listed(tally.jobs)}; stories: {_listed(tally.stories)}")
    say(f"{judge.verified} verified, {judge.rows:,} rows accounted for")
    say(f"{tally.repeated} requests were repeated, {tally.resumed} jobs resumed after a full disk")
    say(f"next claim after kill -9: {_spread(takeovers.seconds)}")
    say(f"{len(violations)} violations" + (f" with SEED={seed}:" if violations else ""))
    for violation in violations[:_SHOWN]:
        say(f"  {violation}")
    return 1 if violations else 0


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counted.most_common())


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return "never waited for"
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    middle = statistics.median(ordered)
    return f"median {middle:.2f} s, p95 {p95:.2f} s, max {ordered[-1]:.2f} s of {len(ordered)}"
