"""A file that has the keys of others is noticed before anything is written, by a sample of its rows (A7)."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rowcall import Compared, Date, Final, Fingerprint, Flow, Importer, Integer, Mismatch, Text, Update
from rowcall.engine import moves
from rowcall.engine.fingerprint import sampled
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.errors import WrongState
from rowcall.model import Code, State
from rowcall.store import jobs
from rowcall.store.db import Database
from rowcall.store.fingerprints import FingerprintCheck, check_of
from rowcall.store.jobs import Job, JobConfig

from .importing import declared, settings_for, sql

TABLE = """
    CREATE TABLE people (id int PRIMARY KEY, first_name text, born date, shoe int);
    INSERT INTO people SELECT n, 'Zoë  Ann ' || n, date '1990-01-01' + n, n FROM generate_series(1, 40) n
"""
LOOK = Fingerprint(identity=("first_name", "born"), by=("id",))
FIELDS: dict[str, Any] = {
    "key": "id",
    "on_match": Update(),
    "id": Integer(required=True),
    "first_name": Text(),
    "born": Date(),
    "shoe": Integer(),
}
PEOPLE = declared("people", fingerprint=LOOK, **FIELDS)


def rows(*, wrong: int = 0, count: int = 40) -> str:
    """People as they are in the table, in other letters; the first of them are others."""
    lines = [
        f"{n},{'Bob' if n <= wrong else f' zoe ANN {n} '},{'' if n > 30 else f'1990-01-{1 + n:02}'},44"
        for n in range(1, count + 1)
    ]
    return "\n".join(["id,first_name,born,shoe", *lines, ""])


class Asked:
    """A job, and a person who is asked whether it is the right file."""

    def __init__(
        self, database: Database, folder: Path, text: str, importer: type[Importer] = PEOPLE, **config: Any
    ) -> None:
        self.database, self.importer = database, importer
        self.settings = settings_for(database, folder, batch_rows=config.pop("batch_rows", 1000))
        with database.connect() as connection:
            self.job = start_job(
                connection,
                self.settings,
                importer,
                BytesIO(text.encode()),
                file_name="people.csv",
                config=JobConfig(**config),
            )
        self.run()

    def run(self) -> Job:
        self.job = run_job(Run(self.database, self.importer, self.settings), self.job)
        return self.job

    def does(self, move: Callable[..., Job], *more: Any) -> Job:
        with self.database.connect() as connection, connection.transaction():
            self.job = move(connection, jobs.get_job(connection, str(self.job.id)), *more)
        return self.job

    @property
    def found(self) -> FingerprintCheck:
        with self.database.connect() as connection:
            found = check_of(connection, self.job.id)
        assert found
        return found


@pytest.fixture
def people(database: Database) -> Database:
    sql(database, TABLE)
    return database


def shoes(database: Database) -> int:
    return sql(database, "SELECT count(*) FROM people WHERE shoe = 44")[0][0]


def test_a7_the_same_people_in_other_letters_pass(people: Database, tmp_path: Path) -> None:
    asked = Asked(people, tmp_path, rows())
    assert (asked.job.state, asked.found.verdict) == (State.COMPLETED, "pass")
    assert (asked.found.sampled, asked.found.matched, asked.found.mismatched) == (40, 40, 0)
    assert shoes(people) == 40


def test_a7_some_others_are_a_question_and_who_answers_is_kept(people: Database, tmp_path: Path) -> None:
    asked = Asked(people, tmp_path, rows(wrong=3))
    assert (asked.job.state, moves.allowed(asked.job)) == (State.FINGERPRINT_WARN, ["acknowledge", "cancel", "reopen"])
    found = asked.found
    assert (found.verdict, found.mismatched, found.acknowledged_by) == ("warn", 3, None)
    finding = found.findings[0]
    assert (finding.row, finding.line, finding.key, finding.field) == (1, 2, ["1"], "first_name")
    assert (finding.found, finding.expected) == ("Bob", "Zoë  Ann 1")
    assert asked.run().state is State.FINGERPRINT_WARN  # whoever works on it in between changes nothing
    assert shoes(people) == 0
    assert asked.does(moves.acknowledge, "ann").state is State.FINGERPRINT_CHECK
    assert (asked.run().state, asked.found.acknowledged_by) == (State.COMPLETED, "ann")
    assert (shoes(people), asked.found.acknowledged_at is not None) == (40, True)
    with pytest.raises(WrongState):
        asked.does(moves.acknowledge, "ben")


def test_a7_many_others_end_it_with_what_was_found(people: Database, tmp_path: Path) -> None:
    asked = Asked(people, tmp_path, rows(wrong=12))
    assert (asked.job.state, asked.found.verdict) == (State.FINGERPRINT_ABORT, "abort")
    assert asked.job.last_error
    assert asked.job.last_error["code"] == Code.FINGERPRINT_MISMATCH
    assert moves.allowed(asked.job) == ["cancel"]
    for move in (moves.resume, moves.pause):
        with pytest.raises(WrongState):
            asked.does(move)
    with pytest.raises(WrongState):
        asked.does(moves.acknowledge, "ann")
    ended = asked.does(moves.cancel)
    assert (ended.state, (ended.last_error or {})["code"]) == (State.FAILED, Code.FINGERPRINT_MISMATCH)
    assert (len(asked.found.findings), shoes(people)) == (12, 0)


def test_a_warned_job_can_be_cancelled(people: Database, tmp_path: Path) -> None:
    asked = Asked(people, tmp_path, rows(wrong=3))
    assert (asked.does(moves.cancel).state, shoes(people)) == (State.CANCELLED, 0)


def test_dates_are_compared_as_values_and_what_is_missing_says_nothing(people: Database, tmp_path: Path) -> None:
    sql(people, "UPDATE people SET first_name = NULL WHERE id > 20")
    text = "id,born\n" + "".join(f"{n},{n + 1}.1.1990\n" for n in range(1, 21)) + "21,31.12.2001\n"
    checked = Asked(people, tmp_path, text)
    assert (checked.found.matched, checked.found.mismatched, checked.job.state) == (21, 1, State.COMPLETED)


def test_too_few_rows_that_match_say_nothing(people: Database, tmp_path: Path) -> None:
    asked = Asked(people, tmp_path, rows(wrong=9, count=9))
    assert (asked.job.state, asked.found.verdict, asked.found.matched) == (State.COMPLETED, "pass", 9)
    assert "Only 9 rows" in asked.found.note


def test_rows_that_are_new_don_t_count(people: Database, tmp_path: Path) -> None:
    asked = Asked(people, tmp_path, rows(count=60))
    assert (asked.found.sampled, asked.found.matched) == (60, 40)


@pytest.mark.parametrize("text", ["first_name,shoe\nAnn,44\n", "id\n", "id,shoe\n1,44\n"])
def test_files_without_keys_rows_or_names_pass(people: Database, tmp_path: Path, text: str) -> None:
    importer = declared("people", fingerprint=LOOK, **{**FIELDS, "id": Integer(default=77)})
    asked = Asked(people, tmp_path, text, importer)
    assert (asked.job.state, asked.found.verdict, asked.found.matched) == (State.COMPLETED, "pass", 0)


def test_the_sample_follows_from_the_file_in_whatever_batches(people: Database, tmp_path: Path) -> None:
    few = declared("people", fingerprint=Fingerprint(identity=("first_name",), sample=15), **FIELDS)
    text = rows(wrong=8)
    found = {
        (asked.found.matched, asked.found.mismatched, tuple(each.row for each in asked.found.findings))
        for size in (1, 7, 1000)
        for asked in [Asked(people, tmp_path, text, few, batch_rows=size, dry_run=True)]
    }
    assert len(found) == 1


@pytest.mark.parametrize(("count", "most"), [(0, 5), (5, 5), (6, 5), (20, 5), (1_000_000, 200)])
def test_samples_are_drawn_by_the_seed_alone(count: int, most: int) -> None:
    drawn = sampled("a" * 64, count, most)
    assert drawn == sampled("a" * 64, count, most) == sorted(set(drawn))
    assert (len(drawn), all(1 <= number <= count for number in drawn)) == (min(count, most), True)
    if count > 10:
        assert drawn != sampled("b" * 64, count, most)


class Trusted(Importer):
    """Only where the source is trusted with our keys."""

    target = "people"
    key = "id"
    on_match = Update()
    context = ("trust_keys",)

    id = Integer(required=True)
    first_name = Text()
    shoe = Integer()

    def fingerprint(self, job: Any) -> Fingerprint | None:  # pyright: ignore[reportIncompatibleVariableOverride] (as importers are written)
        return Fingerprint(identity=("first_name",)) if job.context["trust_keys"] == "yes" else None


@pytest.mark.parametrize(("trusted", "state"), [("yes", State.FINGERPRINT_ABORT), ("no", State.COMPLETED)])
def test_a7_the_check_may_depend_on_the_context(people: Database, tmp_path: Path, trusted: str, state: State) -> None:
    text = "id,first_name,shoe\n" + "".join(f"{n},Bob,44\n" for n in range(1, 31))
    assert Asked(people, tmp_path, text, Trusted, context={"trust_keys": trusted}).job.state is state


class Own(Importer):
    """Compares in its own way."""

    target = "people"
    key = "id"
    on_match = Update()
    fingerprint = Fingerprint(least=1)

    id = Integer(required=True)
    shoe = Integer()

    def compare(self, connection: Any, job: Any, rows: pl.DataFrame) -> Compared:
        connection.execute("DELETE FROM people")  # what it writes doesn't stay
        large = rows.filter(pl.col("shoe") > 50)["number"].to_list()
        found = [Mismatch(row=number, field="shoe", found="large", expected=None) for number in large]
        return Compared(matched=rows.height, mismatches=found)


def test_importers_compare_in_their_own_way(people: Database, tmp_path: Path) -> None:
    asked = Asked(people, tmp_path, "id,shoe\n" + "".join(f"{n},{40 + n}\n" for n in range(1, 13)), Own)
    assert (asked.job.state, [each.row for each in asked.found.findings]) == (State.FINGERPRINT_WARN, [11, 12])
    assert sql(people, "SELECT count(*) FROM people") == [(40,)]


def test_a_preview_comes_after_the_check(people: Database, tmp_path: Path) -> None:
    importer = declared("people", fingerprint=LOOK, flow=Flow(preview=True), **FIELDS)
    asked = Asked(people, tmp_path, rows(wrong=3), importer)
    assert asked.job.state is State.FINGERPRINT_WARN
    asked.does(moves.acknowledge, "ann")
    assert (asked.run().state, shoes(people)) == (State.VALIDATED, 0)


def test_another_mapping_is_looked_at_anew(people: Database, tmp_path: Path) -> None:
    asked = Asked(people, tmp_path, rows(wrong=3))
    asked.does(moves.acknowledge, "ann")
    with people.connect() as connection:
        connection.execute("UPDATE rowcall.job SET state = 'COLUMN_MAPPING' WHERE id = %s", [asked.job.id])
    assert (asked.run().state, asked.found.acknowledged_by) == (State.FINGERPRINT_WARN, None)


@pytest.mark.parametrize("wrong", [3, 12])
def test_a_newer_job_takes_the_place_of_one_that_was_stopped(people: Database, tmp_path: Path, wrong: int) -> None:
    importer = declared("people", fingerprint=LOOK, scope=(), **FIELDS)
    first = Asked(people, tmp_path, rows(wrong=wrong), importer)
    second = Asked(people, tmp_path, rows(), importer)
    assert (second.job.state, second.job.supersedes[0]["number"]) == (State.COMPLETED, first.job.number)
    with pytest.raises(WrongState, match="superseded"):
        first.does(moves.acknowledge, "ann")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Fingerprint(identity=("frist_name",)), "there is no field 'frist_name'. Did you mean 'first_name'?"),
        (Fingerprint(), "identity names no field"),
        (Fingerprint(identity=("born",), by=("shoe",)), "by is to be the importer's key"),
        (Fingerprint(identity=("born",), warn=0.5, abort=0.3), "0 <= warn <= abort <= 1"),
        (Fingerprint(identity=("born",), sample=0), "a sample of 1 to 10,000 rows"),
        ("always", "a Fingerprint is expected"),
    ],
)
def test_mistakes_in_declarations_are_told(wanted: Any, told: str) -> None:
    with pytest.raises(Final) as caught:
        declared("people", fingerprint=wanted, **FIELDS)
    assert (caught.value.code, told in caught.value.message) == (Code.BAD_DECLARATION, True)
