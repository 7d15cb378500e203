"""A process whose file store is not the database's says so, and harms no job."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from rowcall.config import Settings
from rowcall.errors import Retryable
from rowcall.export import known_resources
from rowcall.formats import WriteFormat
from rowcall.model import ENDED, Code, ExportState, State
from rowcall.store import exports, jobs
from rowcall.store.db import Database
from rowcall.store.exports import ExportRequest
from rowcall.store.files.bucket import BucketStore
from rowcall.store.files.filestore import MARK, FileStore, file_store
from rowcall.store.files.folder import FolderStore
from rowcall.store.files.marks import adopt_store, bind, known_mark
from rowcall.store.jobs import JobConfig, Origin
from rowcall.worker.exports import Exporter
from rowcall.worker.queue import nudge
from rowcall.worker.worker import Worker

from ..api.town import prepared
from .command import COMMAND, rowcall
from .s3 import CREDENTIALS, s3_server

USERS = b"email,name,role,active\nann@example.org,Ann,admin,true\n"


@pytest.fixture(scope="module")
def endpoint() -> Generator[str]:
    with s3_server() as url, pytest.MonkeyPatch.context() as environment:
        for name, value in CREDENTIALS.items():
            environment.setenv(name, value)
        BucketStore("s3://marks", url, Path("nowhere")).s3.create_bucket(Bucket="marks")
        yield url


@pytest.fixture(params=["folder", "bucket"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> list[FileStore]:
    """Four objects: two for one store, two for another."""
    if request.param == "folder":
        return [FolderStore(tmp_path / name) for name in ("a", "a", "b", "b")]
    endpoint = request.getfixturevalue("endpoint")
    return [BucketStore(f"s3://marks/{tmp_path.name}/{name}", endpoint, tmp_path) for name in ("a", "a", "b", "b")]


def test_the_first_use_decides_and_another_store_is_refused(database: Database, stores: list[FileStore]) -> None:
    one, same, other, _ = stores
    with database.connect() as connection:
        bind(connection, one)
        bind(connection, same)
        assert one.mark() == same.mark() == known_mark(connection)
        with pytest.raises(Retryable) as refused:
            bind(connection, other)
        assert refused.value.code == Code.FOREIGN_FILE_STORE
        assert (other.mark(), list(one.locations())) == (None, [])
        adopt_store(connection, other)
        with pytest.raises(Retryable):
            bind(connection, one)
        adopt_store(connection, one)
        bind(connection, same)


def test_those_who_come_first_at_once_agree(database: Database, stores: list[FileStore]) -> None:
    refused: list[FileStore] = []

    def begin(store: FileStore) -> None:
        with database.connect() as connection:
            try:
                bind(connection, store)
            except Retryable:
                refused.append(store)

    threads = [threading.Thread(target=begin, args=[store]) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused in (stores[:2], stores[1::-1], stores[2:], stores[:1:-1])


def test_a_mark_is_given_once(stores: list[FileStore]) -> None:
    one, same, *_ = stores
    assert (one.set_mark("first"), same.set_mark("second"), one.mark()) == ("first", "first", "first")


def test_a_database_with_files_takes_no_store_for_its_own_that_has_none_of_them(
    database: Database, stores: list[FileStore]
) -> None:
    one, same, other, _ = stores
    with database.connect() as connection:
        with one.kept(BytesIO(USERS)) as stored:
            jobs.create_job(connection, "users", stored, file_name="users.csv", config=JobConfig())
        with pytest.raises(Retryable):
            bind(connection, other)
        bind(connection, same)


def test_a_worker_that_loses_its_store_leaves_its_jobs_to_others(database: Database, tmp_path: Path) -> None:
    registry = prepared(database)
    settings = Settings(database_url=database.url, data_dir=tmp_path, file_store=str(tmp_path / "mounted"))
    elsewhere = replace(settings, file_store=str(tmp_path / "same"))
    (tmp_path / "same").symlink_to(tmp_path / "there")
    (tmp_path / "there").mkdir()
    (tmp_path / "mounted").symlink_to(tmp_path / "there")
    with database.connect() as connection:
        bind(connection, file_store(settings))
        bind(connection, file_store(elsewhere))
        with file_store(settings).kept(BytesIO(USERS)) as stored:
            origin = Origin(background=True)
            job = jobs.create_job(connection, "users", stored, file_name="users.csv", config=JobConfig(), origin=origin)
        (tmp_path / "mounted").unlink()
        (tmp_path / "mounted").mkdir()
        worker = Worker(database, registry, settings)
        worker.advance(str(job.id))
        worker.advance(str(job.id))
        left = jobs.get_job(connection, str(job.id))
        assert (left.state, left.last_error) == (State.UPLOADED, None)
        with pytest.raises(Retryable, match="not the one that the database belongs to"):
            file_store(settings).begin()
        Worker(database, registry, elsewhere).advance(str(job.id))
        assert jobs.get_job(connection, str(job.id)).state is State.COMPLETED


def test_exports_are_not_written_to_another_store(database: Database, tmp_path: Path) -> None:
    registry = prepared(database)
    settings = Settings(database_url=database.url, data_dir=tmp_path, file_store=str(tmp_path / "mounted"))
    with database.connect() as connection:
        bind(connection, file_store(settings))
        request = ExportRequest(format=WriteFormat.CSV, resource="users")
        with connection.transaction():
            export, _ = exports.create_or_find(connection, request, "users.csv", Origin(background=True))
        (tmp_path / "mounted").rename(tmp_path / "elsewhere")
        (tmp_path / "mounted").mkdir()
        exporter = Exporter(database, known_resources(registry), settings)
        exporter.work()
        seen = exports.get_export(connection, export.id, export.organisation_id)
        assert (seen.state, list((tmp_path / "mounted").iterdir())) == (ExportState.QUEUED, [])
        (tmp_path / "mounted").rmdir()
        (tmp_path / "elsewhere").rename(tmp_path / "mounted")
        exporter.work()
        assert exports.get_export(connection, export.id, export.organisation_id).state is ExportState.COMPLETED


def test_a_worker_pauses_while_its_store_is_lost_and_goes_on_when_it_is_back(
    database: Database, tmp_path: Path
) -> None:
    """A real one, whose disk goes and comes back while it runs."""
    there, mounted = tmp_path / "there", tmp_path / "mounted"
    there.mkdir()
    mounted.symlink_to(there)
    environment = {
        **os.environ,
        "ROWCALL_DATABASE_URL": database.url,
        "ROWCALL_DATA_DIR": str(tmp_path),
        "ROWCALL_FILE_STORE": str(mounted),
    }
    prepared(database)
    store = FolderStore(there)
    log = tmp_path / "log"
    with (
        database.connect() as connection,
        log.open("w") as out,
        subprocess.Popen([COMMAND, "worker"], env=environment, stdout=out, stderr=out) as worker,
    ):
        try:
            assert _settled(connection, _brought(connection, store, b"ann")).state is State.COMPLETED
            mounted.unlink()
            mounted.mkdir()
            left = _brought(connection, store, b"bob")
            _await(lambda: "file store lost" in log.read_text())
            others = _brought(connection, store, b"cy")
            time.sleep(3)  # longer than it takes to look again, and for the next round of recovery
            for job in (left, others):
                seen = jobs.get_job(connection, str(job.id))
                assert (seen.state, seen.last_error) == (State.UPLOADED, None)
            assert (worker.poll(), list(mounted.iterdir())) == (None, [])
            mounted.rmdir()
            mounted.symlink_to(there)
            for job in (left, others):
                assert _settled(connection, job).state is State.COMPLETED
            assert "file store is back" in log.read_text()
        finally:
            worker.terminate()
    assert worker.returncode == 0


def _brought(connection: Connection[Any], store: FolderStore, name: bytes) -> jobs.Job:
    file = b"email,name,role,active\n%s@example.org,A,admin,true\n" % name
    with store.kept(BytesIO(file)) as stored:
        origin = Origin(background=True)
        job = jobs.create_job(connection, "users", stored, file_name="users.csv", config=JobConfig(), origin=origin)
    nudge(connection, job.id)
    return job


def _settled(connection: Connection[Any], job: jobs.Job) -> jobs.Job:
    _await(lambda: jobs.get_job(connection, str(job.id)).state in ENDED)
    return jobs.get_job(connection, str(job.id))


def _await(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_commands_refuse_another_store_and_the_doctor_tells(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_bytes(USERS)
    own: dict[str, Any] = {"ROWCALL_DATABASE_URL": database.url, "ROWCALL_DATA_DIR": str(tmp_path)}
    other: dict[str, Any] = {**own, "ROWCALL_FILE_STORE": str(tmp_path / "other")}
    assert rowcall("import", file, "--into", "users", **own).status == 0
    assert (tmp_path / "files" / MARK).is_file()
    for words in (["worker"], ["serve", "--port", "0"], ["import", file, "--into", "users"], ["retention"]):
        refused = rowcall(*words, **other)
        assert (refused.status, "FOREIGN_FILE_STORE" in refused.err) == (1, True), refused.err
    told = rowcall("doctor", **other)
    assert (told.status, "is not the one that the database belongs to" in told.out) == (1, True)
    assert "the database's own" in rowcall("doctor", **own).out
    assert rowcall("migrate", "--new-file-store", **other).status == 0
    assert rowcall("import", file, "--into", "users", **other).status == 0
