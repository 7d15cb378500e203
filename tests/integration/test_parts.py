"""Resumable uploads go to a bucket while they come: whatever is killed, dropped or away, the object is the file."""

import base64
import hashlib
import signal
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from rowcall.store.db import Database
from rowcall.store.files.bucket import BucketStore
from rowcall.store.files.filestore import StoredFile
from rowcall.store.files.parts import Parts
from rowcall.store.files.pieces import Pieces

from ..forking import Forked
from .command import serving
from .s3 import CREDENTIALS, s3_server

MB = 1 << 20
CONTENT = b"email,name,role,active,notes\n" + b"".join(
    b"p%07d@example.org,Pat,reader,true,%s\n" % (n, b"x" * 5_400) for n in range(4_800)
)
"""Three parts and a rest."""
OTHER = CONTENT[::-1]
TUS = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}


@pytest.fixture(scope="module")
def endpoint() -> Generator[str]:
    with s3_server() as url, pytest.MonkeyPatch.context() as environment:
        for name, value in CREDENTIALS.items():
            environment.setenv(name, value)
        BucketStore("s3://parts", url, Path("nowhere")).s3.create_bucket(Bucket="parts")
        yield url


@pytest.fixture
def store(tmp_path: Path, endpoint: str) -> BucketStore:
    (tmp_path / "incoming").mkdir()
    return BucketStore(f"s3://parts/{tmp_path.name}", endpoint, tmp_path / "incoming")


class Coming:
    """An upload that comes to a store, one visit after the other."""

    def __init__(self, store: BucketStore) -> None:
        self.store, self.id = store, uuid4()
        self.path = store.uploads / str(self.id)

    @contextmanager
    def visit(self, received: int) -> Generator[Pieces]:
        pieces = Pieces.of(self.store.uploads, self.id, create=True)
        assert pieces is not None
        assert pieces.lock()
        try:
            pieces.go_on(received, self.ahead())
            yield pieces
        finally:
            pieces.close()

    def ahead(self) -> Parts:
        ahead = self.store.ahead(self.path, len(CONTENT))
        assert ahead is not None
        return ahead

    def bring(self, content: bytes, start: int, end: int) -> None:
        with self.visit(start) as pieces:
            _write(pieces, content[start:end])
            pieces.settle()

    def parts(self) -> int:
        """How many S3 has."""
        (upload,) = under_way(self.store)
        given = {"Bucket": self.store.bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
        return len(self.store.s3.list_parts(**given).get("Parts", []))

    def adopted(self) -> StoredFile:
        return self.store.adopt(self.path, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


def _write(pieces: Pieces, content: bytes) -> None:
    for at in range(0, len(content), MB):
        pieces.write(content[at : at + MB], most=len(CONTENT))


def under_way(store: BucketStore) -> list[dict[str, str]]:
    prefix = store.key("")["Key"]
    return store.s3.list_multipart_uploads(Bucket=store.bucket, Prefix=prefix).get("Uploads", [])


def object_at(store: BucketStore, location: str) -> bytes:
    return store.s3.get_object(**store.key(location))["Body"].read()


def test_parts_are_in_the_bucket_as_soon_as_they_are_whole(store: BucketStore, monkeypatch: pytest.MonkeyPatch) -> None:
    coming = Coming(store)
    coming.bring(CONTENT, 0, 9 * MB)
    assert coming.parts() == 1
    coming.bring(CONTENT, 9 * MB, 24 * MB)
    assert coming.parts() == 3
    coming.bring(CONTENT, 24 * MB, len(CONTENT))
    assert (coming.parts(), list(store.locations())) == (4, [])
    monkeypatch.setattr(store.s3, "upload_part", None)
    file = coming.adopted()
    assert (object_at(store, file.location) == CONTENT, under_way(store)) == (True, [])
    assert coming.adopted() == file
    store.abandon(coming.path)
    assert (list(store.uploads.iterdir()), list(store.locations())) == ([], [file.location])


def test_bytes_that_were_dropped_are_not_in_the_object(store: BucketStore) -> None:
    """Their parts were sent; those that come in their place may be others."""
    coming = Coming(store)
    with coming.visit(0) as pieces:
        _write(pieces, CONTENT[: 10 * MB])
        _write(pieces, OTHER[10 * MB : 20 * MB])
        pieces.drop(10 * MB)
    coming.bring(CONTENT, 10 * MB, len(CONTENT))
    assert object_at(store, coming.adopted().location) == CONTENT


def test_a_kill_leaves_parts_that_are_gone_on_with(store: BucketStore) -> None:
    """As the process leaves it: bytes that nobody noted, and a line that was cut."""
    coming = Coming(store)
    with coming.visit(0) as pieces:
        _write(pieces, CONTENT[: 9 * MB])
        _write(pieces, OTHER[9 * MB : 17 * MB])
        pieces.settle()
    journal = coming.path.with_name(f"{coming.path.name}.parts")
    with journal.open("a") as file:
        file.write('3 "12')
    coming.bring(CONTENT, 9 * MB, len(CONTENT))
    assert object_at(store, coming.adopted().location) == CONTENT


@pytest.mark.parametrize("when", ["while it comes", "at its end"])
def test_what_the_bucket_has_given_up_is_sent_again(store: BucketStore, when: str) -> None:
    coming = Coming(store)
    coming.bring(CONTENT, 0, 17 * MB if when == "while it comes" else len(CONTENT))
    (upload,) = under_way(store)
    store.s3.abort_multipart_upload(Bucket=store.bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    if when == "while it comes":
        coming.bring(CONTENT, 17 * MB, len(CONTENT))
    assert object_at(store, coming.adopted().location) == CONTENT
    assert under_way(store) == []


def test_k2_an_object_that_nobody_noted_is_found_again(store: BucketStore) -> None:
    coming = Coming(store)
    coming.bring(CONTENT, 0, len(CONTENT))
    journal = coming.path.with_name(f"{coming.path.name}.parts")
    before = journal.read_text()
    file = coming.adopted()
    journal.write_text(before)  # killed between the two
    assert coming.adopted() == file
    assert (under_way(store), list(store.locations())) == ([], [file.location])


def test_k21_an_upload_goes_on_while_the_bucket_is_away(store: BucketStore, monkeypatch: pytest.MonkeyPatch) -> None:
    coming = Coming(store)
    coming.bring(CONTENT, 0, 9 * MB)
    with monkeypatch.context() as away:
        away.setattr(store, "bucket", "nowhere")
        coming.bring(CONTENT, 9 * MB, 20 * MB)
    assert coming.parts() == 1
    coming.bring(CONTENT, 20 * MB, len(CONTENT))
    assert coming.parts() == 4
    assert object_at(store, coming.adopted().location) == CONTENT


def test_an_upload_that_is_given_up_leaves_no_parts(store: BucketStore) -> None:
    coming = Coming(store)
    coming.bring(CONTENT, 0, 17 * MB)
    store.abandon(coming.path)
    assert (under_way(store), list(store.uploads.iterdir())) == ([], [])


# -------------------------------------------------------------------------------------------------------- for real


@contextmanager
def served(database: Database, folder: Path, **settings: str) -> Generator[tuple[Forked, httpx.Client]]:
    environment = {"ROWCALL_DATABASE_URL": database.url, "ROWCALL_DATA_DIR": str(folder), **settings}
    with serving(**environment) as (process, url), httpx.Client(base_url=url, timeout=60) as client:
        yield process, client


@pytest.mark.parametrize("kind", ["folder", "bucket"])
@pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
def test_k1_a_server_that_is_killed_has_kept_what_was_durable(
    database: Database, tmp_path: Path, endpoint: str, kind: str
) -> None:
    settings = {}
    if kind == "bucket":
        settings = {"ROWCALL_FILE_STORE": f"s3://parts/{tmp_path.name}", "ROWCALL_S3_ENDPOINT": endpoint}
    told = ",".join(f"{name} {base64.b64encode(value).decode()}" for name, value in (("importer", b"users"),))
    begin = {**TUS, "Upload-Length": str(len(CONTENT)), "Upload-Metadata": told}
    with served(database, tmp_path, **settings) as (service, client):
        place = client.post("/v1/uploads", headers=begin).headers["location"]
        with sending_some(client, place, CONTENT[: 20 * MB]):
            while not (kept := offset_of(client, place)):
                time.sleep(0.1)
            service.send_signal(signal.SIGKILL)
            service.wait(60)
    with served(database, tmp_path, **settings) as (_, client):
        offset = offset_of(client, place)
        assert kept <= offset <= 20 * MB
        answer = client.patch(place, headers={**TUS, "Upload-Offset": str(offset)}, content=CONTENT[offset:])
        assert answer.status_code == 204, answer.text
        job = answer.headers["rowcall-import"]
        while (seen := client.get(job).json())["state"] not in ("COMPLETED", "FAILED", "PAUSED"):
            time.sleep(0.2)
        assert (seen["state"], seen["counts"]["rows"]) == ("COMPLETED", 4_800)
        assert [path for path in tmp_path.glob("**/incoming/*") if path.is_file()] == []


@contextmanager
def sending_some(client: httpx.Client, place: str, content: bytes) -> Generator[None]:
    """As much as that, and then no more for as long as this lasts."""
    url = client.base_url
    asked = {**TUS, "Upload-Offset": 0, "Host": url.host, "Content-Length": len(CONTENT)}
    head = "".join(f"{name}: {value}\r\n" for name, value in asked.items())
    with socket.create_connection((url.host, url.port or 80)) as connection:
        connection.sendall(f"PATCH {place} HTTP/1.1\r\n{head}\r\n".encode() + content)
        yield


def offset_of(client: httpx.Client, place: str) -> int:
    return int(client.head(place, headers=TUS).headers["upload-offset"])
