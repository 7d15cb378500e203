"""`python -m tests.faults.storm --minutes 5 --seed 1`: see the package."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from .account import in_calm_weather
from .clients import Organisation, Tally
from .faults import Storm, blow_until
from .fleet import ORGANISATIONS, Fleet, a_fleet
from .judge import Judge
from .report import say, write_report
from .takeover import Takeovers


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--programs", type=int, default=2, help="of each organisation, that send files at a time")
    parser.add_argument("--logs", type=Path, help="keep the logs of all processes in this folder")
    parser.add_argument("--verbose", action="store_true", help="tell each fault as it happens")
    given = parser.parse_args()
    seed = random.randrange(1_000_000) if given.seed is None else given.seed
    signal.signal(signal.SIGTERM, _leave)
    say(f"storm of {given.minutes:g} minutes, SEED={seed}")
    with tempfile.TemporaryDirectory(prefix="rowcall-storm-") as folder, a_fleet(Path(folder)) as (fleet, calm):
        judge = Judge(fleet, in_calm_weather(calm, fleet.registry, Path(folder) / "calm"))
        try:
            return _storm(fleet, judge, seed, given)
        finally:
            for log in Path(folder).glob("*.log") if given.logs else ():
                shutil.copy(log, given.logs)


def _leave(*_: object) -> None:
    sys.exit(1)  # everything is cleared away then


def _storm(fleet: Fleet, judge: Judge, seed: int, given: argparse.Namespace) -> int:
    fleet.start()
    tally, faults, over, began = Tally(), Counter[str](), threading.Event(), time.monotonic()
    takeovers = Takeovers(fleet)

    def told(what: str) -> None:
        if given.verbose:
            say(f"{time.monotonic() - began:7.1f} s  {what}")

    storm = Storm(fleet, random.Random(seed), takeovers, told)
    organisations = [
        Organisation(name, fleet, judge, tally, random.Random(f"{seed} {name} {program}"), over)
        for name in ORGANISATIONS
        for program in range(given.programs)
    ]
    clients = [threading.Thread(target=one.run, name=one.name, daemon=True) for one in organisations]
    for client in clients:
        client.start()
    timer = threading.Timer(60 * given.minutes, over.set)
    timer.start()
    try:
        blow_until(storm, over, lambda name: faults.update([name]))
    finally:
        over.set()
        timer.cancel()
        storm.mend(all_of_it=True)
    told("calm")
    while any(client.is_alive() for client in clients):
        storm.mend(all_of_it=True)
        time.sleep(0.2)
    takeovers.finish()
    judge.all_of_it()
    return write_report(fleet, judge, tally, faults, takeovers, seed=seed, seconds=time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
