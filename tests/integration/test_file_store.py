"""What every file store does, and that hosts which share one work on the same files."""

import hashlib
import os
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.config import Settings, settings_from
from rowcall.errors import Final, Retryable
from rowcall.export import known_resources
from rowcall.model import Code
from rowcall.store.db import Database
from rowcall.store.files import bucket, folder
from rowcall.store.files.bucket import BucketStore
from rowcall.store.files.filestore import FileStore, StoredFile, file_store
from rowcall.store.files.folder import FolderStore
from rowcall.store.files.marks import bind
from rowcall.store.leftovers import remove_unknown
from rowcall.worker.exports import Exporter
from rowcall.worker.worker import Worker

from ..api.cutting import Cut, proxy_before
from ..api.town import prepared, served
from ..database import Server, installed
from .s3 import CREDENTIALS, s3_server

SMALL = b"email,name,role,active\nann@example.org,Ann,admin,true\n"
LARGE = SMALL + b"".join(b"p%07d@example.org,%s,reader,true\n" % (n, b"x" * 500) for n in range(33_000))
"""More than two parts."""


@pytest.fixture(scope="module")
def endpoint() -> Generator[str]:
    with s3_server() as url, pytest.MonkeyPatch.context() as environment:
        for name, value in CREDENTIALS.items():
            environment.setenv(name, value)
        store = BucketStore("s3://rowcall-test", url, Path("nowhere"))
        store.s3.create_bucket(Bucket="rowcall-test")
        yield url


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "store")
    return BucketStore(f"s3://rowcall-test/{tmp_path.name}", request.getfixturevalue("endpoint"), tmp_path / "incoming")


def kept(store: FileStore, content: bytes) -> StoredFile:
    with store.kept(BytesIO(content)) as file:
        return file


def under_way(store: FileStore) -> int:
    """Files that came half."""
    if isinstance(store, BucketStore):
        prefix = store.key("")["Key"]
        return len(store.s3.list_multipart_uploads(Bucket=store.bucket, Prefix=prefix).get("Uploads", []))
    return sum(location.startswith("incoming") for location in store.locations())


@pytest.mark.parametrize("content", [b"", SMALL, LARGE])
def test_what_is_kept_comes_back(store: FileStore, tmp_path: Path, content: bytes) -> None:
    file = kept(store, content)
    assert (file.sha256, file.size) == (hashlib.sha256(content).hexdigest(), len(content))
    assert not Path(file.location).is_absolute()
    assert list(store.locations()) == [file.location]
    assert store.has(file.location)
    with store.opened(file, copies=tmp_path / "copies") as path:
        assert path.read_bytes() == content
    assert not (tmp_path / "copies").exists()
    store.remove(file.location)
    store.remove(file.location)
    assert (list(store.locations()), store.has(file.location)) == ([], False)


def test_the_same_small_file_is_stored_once(store: FileStore) -> None:
    assert kept(store, SMALL) == kept(store, SMALL)
    assert len(list(store.locations())) == 1


@pytest.mark.parametrize("content", [SMALL, LARGE])
def test_what_is_not_kept_leaves_nothing(store: FileStore, content: bytes) -> None:
    with closing(store.begin()) as incoming:
        incoming.write(content)
    with closing(store.begin(most=len(content) - 1)) as incoming:
        incoming.write(content[:20])
        with pytest.raises(Final) as refused:
            incoming.write(content[20:])
    assert refused.value.code == Code.FILE_TOO_LARGE
    assert (list(store.locations()), under_way(store)) == ([], 0)


@pytest.mark.parametrize("content", [SMALL, LARGE])
def test_an_upload_that_waited_is_adopted_and_found_again(store: FileStore, tmp_path: Path, content: bytes) -> None:
    store.uploads.mkdir(parents=True)
    path = store.uploads / "one"
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    file = store.adopt(path, sha256, len(content))
    path.unlink(missing_ok=True)
    assert store.adopt(path, sha256, len(content)) == file
    with store.opened(file, copies=tmp_path / "copies") as found:
        assert found.read_bytes() == content
    store.remove(file.location)
    with pytest.raises(Final, match="is gone"):
        store.adopt(path, sha256, len(content))


def test_what_is_missing_or_changed_is_refused(store: FileStore, tmp_path: Path) -> None:
    file = kept(store, SMALL)
    for damage in (_truncated, _flipped, _missing):
        damage(store, file.location)
        with pytest.raises(Final) as refused, store.opened(file, copies=tmp_path / "copies"):
            pass
        assert refused.value.code == Code.FILE_CORRUPT
        assert not (tmp_path / "copies").exists()


def _truncated(store: FileStore, location: str) -> None:
    _put(store, location, SMALL[:-1])


def _flipped(store: FileStore, location: str) -> None:
    _put(store, location, SMALL[:9] + bytes([SMALL[9] ^ 1]) + SMALL[10:])


def _missing(store: FileStore, location: str) -> None:
    store.remove(location)


def _put(store: FileStore, location: str, content: bytes) -> None:
    if isinstance(store, BucketStore):
        store.s3.put_object(**store.key(location), Body=content)
    else:
        (file_store_folder(store) / location).write_bytes(content)


def file_store_folder(store: FileStore) -> Path:
    assert isinstance(store, FolderStore)
    return store.folder


def test_files_noted_by_their_path_are_still_found(store: FileStore, tmp_path: Path) -> None:
    old = tmp_path / hashlib.sha256(SMALL).hexdigest()
    old.write_bytes(SMALL)
    file = replace(kept(store, SMALL), location=str(old))
    with store.opened(file, copies=tmp_path / "copies") as path:
        assert path == old
    assert store.has(file.location)
    store.remove(file.location)
    assert not store.has(file.location)


def test_what_a_killed_process_left_is_swept(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(store, BucketStore):
        incoming = store.begin()
        incoming.write(LARGE)
    else:
        (file_store_folder(store)).mkdir()
        (file_store_folder(store) / "incoming-1").write_bytes(SMALL)
    small = kept(store, SMALL)
    for module in (folder, bucket):
        monkeypatch.setattr(module, "ABANDONED", 100 * 365 * 86_400)  # this S3 says that all began in 2010
    assert (store.sweep(), under_way(store)) == (0, 1)
    for module in (folder, bucket):
        monkeypatch.setattr(module, "ABANDONED", -1)
    assert store.sweep() == 1
    assert (under_way(store), list(store.locations())) == (0, [small.location])


def test_a_folder_that_knows_no_nameless_files_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on many network file systems."""
    monkeypatch.delattr(os, "O_TMPFILE")
    store = FolderStore(tmp_path)
    with closing(store.begin()) as incoming:
        incoming.write(SMALL)
    assert list(store.locations()) == []
    small = kept(store, SMALL)
    assert list(store.locations()) == [small.location]


@pytest.mark.parametrize(
    "setting", ["files", "ftp://host/x", "s3://", "s3://B/x", "s3://bucket/a//b", "s3://bucket/../x"]
)
def test_stores_that_can_not_be_are_refused(setting: str) -> None:
    with pytest.raises(Final, match="ROWCALL_FILE_STORE"):
        settings_from({"ROWCALL_FILE_STORE": setting})


# ------------------------------------------------------------------------------------------------------ several hosts


@pytest.fixture(scope="module")
def shared_server() -> Generator[Server]:
    """One version for all cases: nothing here depends on it."""
    server = Server(installed()["embedded18"])
    try:
        server.start()
        server.make_template()
        yield server
    finally:
        server.remove()


@dataclass(frozen=True)
class Hosts:
    """A server here, a worker there, and a bucket between them."""

    client: httpx.Client
    worker: Worker
    database: Database
    store: BucketStore
    folder: Path

    def sent(self, content: bytes, **headers: str) -> httpx.Response:
        asked = {"importer": "users", "fileName": "users.csv"}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post("/v1/imports", params=asked, content=content, headers=given, timeout=60)

    def worked_on(self, job: str) -> Any:
        self.worker.advance(job)
        return self.client.get(f"/v1/imports/{job}").json()


@pytest.fixture
def hosts(database: Database, tmp_path: Path, endpoint: str) -> Generator[Hosts]:
    settings = Settings(
        database_url=database.url,
        data_dir=tmp_path / "here",
        file_store=f"s3://rowcall-test/{tmp_path.name}",
        s3_endpoint=endpoint,
        batch_rows_min=5_000,
    )
    registry = prepared(database)
    store = file_store(settings)
    assert isinstance(store, BucketStore)
    app = create_app(Service(settings, registry, database.pool("serve", 4)))
    elsewhere = Worker(database, registry, replace(settings, data_dir=tmp_path / "there"))
    with served(app) as url, httpx.Client(base_url=url) as client:
        yield Hosts(client, elsewhere, database, store, tmp_path)


def test_a_worker_elsewhere_works_on_what_a_server_took(hosts: Hosts) -> None:
    for content, rows in ((SMALL, 1), (LARGE, 33_001)):
        answer = hosts.sent(content)
        assert answer.status_code == 202
        done = hosts.worked_on(answer.json()["id"])
        assert (done["state"], done["counts"]["rows"]) == ("COMPLETED", rows)
    left = [path for path in hosts.folder.rglob("*") if path.is_file()]
    assert (left, under_way(hosts.store), len(list(hosts.store.locations()))) == ([], 0, 2)


def test_an_export_of_a_worker_elsewhere_can_be_downloaded_here(hosts: Hosts) -> None:
    hosts.worked_on(hosts.sent(LARGE).json()["id"])
    ordered = hosts.client.post("/v1/exports", json={"resource": "users", "format": "csv"}).json()
    stale = hosts.client.post("/v1/exports", json={"resource": "users", "format": "ndjson"}).json()
    exporter = Exporter(hosts.database, known_resources(hosts.worker.registry), hosts.worker.settings)
    exporter.work()
    place = f"/v1/exports/{ordered['id']}/download"
    whole = hosts.client.get(place)
    told = hosts.client.get(f"/v1/exports/{ordered['id']}").json()
    assert (told["state"], told["progress"]["bytes"], whole.status_code) == ("COMPLETED", len(whole.content), 200)
    assert (whole.content.count(b"\n"), whole.headers["accept-ranges"]) == (33_002, "bytes")
    head = hosts.client.head(place)
    assert (head.status_code, head.headers["content-length"], head.content) == (
        200,
        str(told["progress"]["bytes"]),
        b"",
    )
    for asked, part in (("100-199", slice(100, 200)), ("-50", slice(-50, None)), ("9000000-", slice(9_000_000, None))):
        answer = hosts.client.get(place, headers={"Range": f"bytes={asked}"})
        assert (answer.status_code, answer.content) == (206, whole.content[part])
    last = int(told["progress"]["bytes"]) - 1
    assert answer.headers["content-range"] == f"bytes 9000000-{last}/{last + 1}"
    assert hosts.client.get(place, headers={"Range": f"bytes={last + 1}-"}).status_code == 416
    assert hosts.client.get(place, headers={"Range": "bytes=0-1,5-6"}).content == whole.content
    assert [path for path in hosts.folder.rglob("*") if path.is_file()] == []
    assert len(list(hosts.store.exports())) == 2

    with hosts.database.connect() as connection:
        connection.execute("UPDATE rowcall.export_job SET expires_at = now() WHERE id = %s", [stale["id"]])
    exporter.tidy()
    assert [location.partition("/")[0] for location in hosts.store.exports()] == [ordered["id"]]
    (location,) = hosts.store.exports()
    hosts.store.remove_export(location)
    assert hosts.client.get(place).json()["code"] == "EXPORT_EXPIRED"


def test_the_same_large_file_stays_stored_once(hosts: Hosts) -> None:
    first = hosts.sent(LARGE, Idempotency_Key="k")
    (kept,) = hosts.store.locations()
    assert hosts.sent(LARGE, Idempotency_Key="k").json()["id"] == first.json()["id"]
    assert hosts.sent(LARGE).json()["id"] != first.json()["id"]
    assert hosts.sent(LARGE + b"\n", Idempotency_Key="k").status_code == 422
    assert list(hosts.store.locations()) == [kept]
    hosts.store.remove(kept)
    assert hosts.sent(LARGE).status_code == 202
    assert [location for location in hosts.store.locations() if location != kept] != []


def test_objects_that_no_job_has_go_after_a_while(hosts: Hosts) -> None:
    hosts.sent(SMALL)
    hosts.sent(LARGE)
    jobs = sorted(hosts.store.locations())
    lost = [kept(hosts.store, content).location for content in (SMALL + b"\n", LARGE + b"\n")]
    with hosts.database.connect() as connection:
        bind(connection, hosts.store)
        assert remove_unknown(connection, hosts.store, older_than=3600) == 0
        assert sorted(hosts.store.locations()) == sorted([*jobs, *lost])
        assert remove_unknown(connection, hosts.store, older_than=-1) == 2
    assert sorted(hosts.store.locations()) == jobs


@pytest.mark.parametrize("damage", [_missing, _flipped])
def test_k27_a_damaged_object_is_refused_whole(hosts: Hosts, damage: Callable[[FileStore, str], None]) -> None:
    job = hosts.sent(SMALL).json()["id"]
    (location,) = hosts.store.locations()
    damage(hosts.store, location)
    done = hosts.worked_on(job)
    assert (done["state"], done["error"]["code"]) == ("FAILED", "FILE_CORRUPT")
    with hosts.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM rowcall.row").fetchone() == (0,)


def test_k21_a_bucket_that_is_away_makes_no_job_and_pauses_one(hosts: Hosts) -> None:
    job = hosts.sent(SMALL).json()["id"]
    with _away(hosts.store):
        for content in (SMALL, LARGE):
            answer = hosts.sent(content)
            assert (answer.status_code, answer.json()["code"]) == (503, "FILE_STORE_AWAY")
        with pytest.raises(Retryable):
            hosts.store.check()
    with _away(file_store(hosts.worker.settings)):
        done = hosts.worked_on(job)
        assert (done["state"], done["error"]["code"]) == ("PAUSED", "FILE_STORE_AWAY")
    assert len(hosts.client.get("/v1/imports").json()["items"]) == 1
    hosts.client.post(f"/v1/imports/{job}/resume")
    assert hosts.worked_on(job)["state"] == "COMPLETED"


def test_k21_a_job_waits_for_a_bucket_that_is_away_for_a_while(hosts: Hosts, endpoint: str) -> None:
    job = hosts.sent(SMALL).json()["id"]
    cuts = [Cut(b"GET", there=1) for _ in range(10)]  # more than S3's client itself puts up with
    with proxy_before(endpoint, *cuts) as proxy:
        settings = replace(hosts.worker.settings, s3_endpoint=proxy.url)
        Worker(hosts.database, hosts.worker.registry, settings).advance(job)
        assert proxy.cuts == []
    done = hosts.client.get(f"/v1/imports/{job}").json()
    assert (done["state"], done["error"]) == ("COMPLETED", None)


@contextmanager
def _away(store: FileStore) -> Generator[None]:
    """As if the bucket had been deleted."""
    assert isinstance(store, BucketStore)
    name, store.bucket = store.bucket, "rowcall-gone"
    try:
        yield
    finally:
        store.bucket = name


def test_pieces_wait_here_and_go_to_the_bucket_when_they_are_whole(hosts: Hosts) -> None:
    tus = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}
    begin = {**tus, "Upload-Length": str(len(LARGE)), "Upload-Metadata": "importer dXNlcnM="}
    place = hosts.client.post("/v1/uploads", headers=begin, content=LARGE[:1000]).headers["location"]
    assert list(hosts.store.locations()) == []
    with _away(hosts.store):
        answer = hosts.client.patch(place, headers={**tus, "Upload-Offset": "1000"}, content=LARGE[1000:])
        assert answer.status_code == 503
    told = hosts.client.get(place).json()
    assert told["offset"] == len(LARGE)
    done = hosts.worked_on(told["importAddress"].rpartition("/")[2])
    assert (done["state"], done["counts"]["rows"]) == ("COMPLETED", 33_001)
    assert [path for path in hosts.folder.rglob("*") if path.is_file()] == []
