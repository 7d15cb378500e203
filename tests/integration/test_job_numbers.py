"""Numbers of jobs: BU, the day, and a count that begins anew each day."""

from concurrent.futures import ThreadPoolExecutor

from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig


def made(database: Database) -> Job:
    with database.connect() as connection:
        return jobs.create_job(connection, "people", None, file_name="a.csv", config=JobConfig())


def test_they_count_from_one_each_day(database: Database) -> None:
    with database.connect() as connection:
        (day,) = connection.execute("SELECT to_char(current_date, 'YYYYMMDD')").fetchone() or ("",)
        assert [made(database).number for _ in range(2)] == [f"BU{day}0001", f"BU{day}0002"]
        connection.execute("UPDATE rowcall.job_day SET day = day - 1")
        connection.execute("UPDATE rowcall.job SET number = 'BU2000' || right(number, 4)")
        assert [made(database).number for _ in range(2)] == [f"BU{day}0001", f"BU{day}0002"]


def test_they_go_on_after_9999(database: Database) -> None:
    made(database)
    with database.connect() as connection:
        connection.execute("SELECT setval('rowcall.job_counter', 9998)")
    assert [made(database).number[10:] for _ in range(2)] == ["9999", "10000"]


def test_nobody_waits_for_whoever_has_taken_one_and_not_committed_yet(database: Database) -> None:
    made(database)
    with database.connect() as connection, connection.transaction():
        slow = jobs.create_job(connection, "people", None, file_name="a.csv", config=JobConfig())
        with ThreadPoolExecutor(8) as pool:
            numbers = {job.number for job in pool.map(made, [database] * 20)}
    assert len(numbers | {slow.number}) == 21


def test_the_first_ones_of_a_day_are_different(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = sorted(job.number[10:] for job in pool.map(made, [database] * 20))
    assert numbers == [f"{n:04}" for n in range(1, 21)]
