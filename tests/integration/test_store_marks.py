"""A process whose file store is not the database's says so, and harms no job."""

import threading
from collections.abc import Generator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from rowcall.config import Settings
from rowcall.errors import Retryable
from rowcall.model import Code, State
from rowcall.store import jobs
from rowcall.store.bucket import BucketStore
from rowcall.store.db import Database
from rowcall.store.files import MARK, FileStore, file_store
from rowcall.store.folder import FolderStore
from rowcall.store.jobs import JobConfig, Origin
from rowcall.store.marks import adopt_store, bind, known_mark
from rowcall.worker.worker import Worker

from ..api.town import prepared
from .command import rowcall
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


def test_commands_refuse_another_store_and_the_doctor_tells(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_bytes(USERS)
    own: dict[str, Any] = {"ROWCALL_DATABASE_URL": database.url, "ROWCALL_DATA_DIR": str(tmp_path)}
    other: dict[str, Any] = {**own, "ROWCALL_FILE_STORE": str(tmp_path / "other")}
    assert rowcall("import", file, "--into", "users", **own).status == 0
    assert (tmp_path / "files" / MARK).is_file()
    for words in (["worker"], ["serve", "--port", "0"], ["import", file, "--into", "users"]):
        refused = rowcall(*words, **other)
        assert (refused.status, "FOREIGN_FILE_STORE" in refused.err) == (1, True), refused.err
    told = rowcall("doctor", **other)
    assert (told.status, "is not the one that the database belongs to" in told.out) == (1, True)
    assert "the database's own" in rowcall("doctor", **own).out
    assert rowcall("migrate", "--new-file-store", **other).status == 0
    assert rowcall("import", file, "--into", "users", **other).status == 0
