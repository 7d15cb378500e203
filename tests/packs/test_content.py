"""Pack content, from file to outcome."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rowcall.config import Settings
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.export import export_to, select_rows
from rowcall.formats import WriteFormat
from rowcall.model import Issue, State, Status
from rowcall.packs import content
from rowcall.packs.content.generate import Content, generate
from rowcall.packs.content.generate import content as generated
from rowcall.store.db import Database
from rowcall.store.jobs import Job, JobConfig
from rowcall.store.migrate import migrate

from .content_expected import CLEAN, CLEAN_ROWS, EXPECTED, MESSY, SAMPLES, Expected

IMPORTERS = {importer.name: importer for importer in (content.Users, content.Articles, content.Comments)}
RESOURCES = {resource.name: resource for resource in content.resources}
Import = Callable[[str, Path], Job]


@pytest.fixture
def import_file(database: Database, tmp_path: Path) -> Import:
    """Imports a file into the tables of the pack."""
    settings = Settings(database_url=database.url, data_dir=tmp_path / "data")
    with database.connect() as connection:
        migrate(connection, Path(content.__file__).parent / "migrations", table="content_migration")

    def import_file(name: str, path: Path) -> Job:
        with database.connect() as connection, path.open("rb") as stream:
            job = start_job(connection, settings, IMPORTERS[name], stream, file_name=path.name, config=JobConfig())
        return run_job(Run(database, IMPORTERS[name], settings), job)

    return import_file


def outcomes(database: Database, job: Job) -> dict[int, Expected]:
    """What became of each row, with the issues in the order of the fields."""
    places: dict[str | None, int] = {name: place for place, name in enumerate(IMPORTERS[job.importer].fields)}

    def known(issues: list[dict[str, Any]] | None) -> tuple[tuple[str | None, str], ...]:
        found = [Issue(**issue) for issue in issues or ()]
        return tuple((i.field, i.code) for i in sorted(found, key=lambda i: places.get(i.field, -1)))

    with database.connect() as connection:
        rows = connection.execute(
            "SELECT number, status, issues FROM rowcall.row_status WHERE job_id = %s ORDER BY number", [job.id]
        )
        return {number: Expected(Status(status), known(issues)) for number, status, issues in rows}


def test_clean_samples_are_created_whole_and_a_second_import_changes_nothing(
    database: Database, import_file: Import
) -> None:
    for status in (Status.CREATED, Status.UNCHANGED):
        for name, file in CLEAN.items():
            job = import_file(name, SAMPLES / file)
            assert job.state is State.COMPLETED
            found = list(outcomes(database, job).values())
            assert found == [Expected(status)] * CLEAN_ROWS[name]


def test_messy_samples_end_as_expected_row_by_row(database: Database, import_file: Import) -> None:
    for name, file in CLEAN.items():
        import_file(name, SAMPLES / file)
    for name, file in MESSY.items():
        job = import_file(name, SAMPLES / file)
        assert job.state is State.COMPLETED_WITH_ERRORS
        assert outcomes(database, job) == EXPECTED[name]


@pytest.mark.parametrize("kind", [WriteFormat.CSV, WriteFormat.NDJSON, WriteFormat.XLSX])
def test_what_is_exported_comes_back_unchanged(
    database: Database, import_file: Import, tmp_path: Path, kind: WriteFormat
) -> None:
    for name, file in [*CLEAN.items(), *MESSY.items()]:
        import_file(name, SAMPLES / file)
    for name, resource in RESOURCES.items():
        path = tmp_path / f"{name}.{kind}"
        with database.connect() as connection:
            rows = export_to(connection, select_rows(connection, resource), path, kind)
        job = import_file(name, path)
        assert list(outcomes(database, job).values()) == [Expected(Status.UNCHANGED)] * rows


def test_resources_and_importers_have_the_same_fields() -> None:
    for name, importer in IMPORTERS.items():
        assert RESOURCES[name].fields == tuple(field.column for field in importer.fields.values())


def test_generated_files_are_the_same_each_time_and_refer_to_each_other(import_file: Import, tmp_path: Path) -> None:
    for what in Content:
        path, again = tmp_path / f"{what}.ndjson", tmp_path / "again.ndjson"
        for out in (path, again):
            generate(what, 300, out, seed=7, users=300, articles=300)
        assert path.read_bytes() == again.read_bytes()
        assert import_file(what, path).state is State.COMPLETED


def test_clean_samples_are_generated(tmp_path: Path) -> None:
    for name, file in CLEAN.items():
        generate(Content(name), CLEAN_ROWS[name], tmp_path / file, users=60, articles=40)
        assert (tmp_path / file).read_bytes() == (SAMPLES / file).read_bytes()


@pytest.mark.parametrize("what", Content)
def test_a_share_of_generated_rows_is_wrong(what: Content) -> None:
    clean = generated(what, 0, 2_000, users=2_000, articles=2_000)
    wrong = generated(what, 0, 2_000, users=2_000, articles=2_000, errors=0.05)
    assert 70 <= sum(one != other for one, other in zip(clean.rows(), wrong.rows(), strict=True)) <= 130
