"""What comes out does not depend on how the work is divided, nor on who else does it (FAULTS.md, K33 and K34)."""

from collections.abc import Callable

import pytest

from .conftest import NewTrial
from .gate import gate_at
from .invariants import Account, account_of, differences, violations_at_the_end
from .parcels import faultless_parcels

_ROWS = 8_000
Expected = Callable[..., Account]


@pytest.mark.parametrize("importer", ["parcels", "parcel_updates"])
@pytest.mark.parametrize(("workers", "batch_rows"), [(1, 10), (8, 10), (2, 1_000), (8, 1_000), (4, 7_777)])
def test_outcomes_do_not_depend_on_workers_and_batches(
    new_trial: NewTrial, expected: Expected, importer: str, batch_rows: int, workers: int
) -> None:
    rows = _ROWS if batch_rows > 10 else _ROWS // 10
    trial = new_trial(importer, rows=rows)
    trial.run_to_the_end(workers=workers, batch_rows=batch_rows)
    assert violations_at_the_end(trial) == {}
    assert differences(account_of(trial), expected(importer, rows=rows)) == []


@pytest.mark.parametrize(
    ("importer", "batch_rows"),
    [
        ("parcels", (50, 1_000)),
        ("parcels", (1_000, 50)),
        ("parcel_updates", (1_000, 50)),
        ("parcels_once", (50, 1_000)),
    ],
)
def test_two_imports_of_the_same_rows_at_the_same_time_create_each_once(
    new_trial: NewTrial, importer: str, batch_rows: tuple[int, int]
) -> None:
    content = faultless_parcels(2_000)
    trial = new_trial(importer, content=content)
    other = trial.add_job(content + b"\n")  # not the same file, which would be the same job
    start = "TRIGGER stop BEFORE UPDATE ON rowcall.job FOR EACH ROW WHEN (NEW.state = 'PROCESSING')"
    with gate_at(trial, start) as gate:
        both = [
            trial.start(job=job, BATCH_ROWS_MIN=size, BATCH_ROWS_MAX=size)
            for job, size in zip((trial.job, other), batch_rows, strict=True)
        ]
        gate.wait(2)
    assert [importing.state() for importing in both] == ["COMPLETED"] * 2
    assert violations_at_the_end(trial) == {}
    assert trial.sql("SELECT count(*) FROM rowcall.outcome WHERE status = 'created'") == [1_900]
    assert trial.sql("SELECT count(*) FROM parcel") == [2_000]
