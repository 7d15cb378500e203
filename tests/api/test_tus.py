"""Files that come piece by piece: whatever is cut, killed or lost in between, each becomes one job."""

import base64
import hashlib
import os
import socket
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest

from rowcall.api import visits
from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.errors import Retryable
from rowcall.importer.registry import load_registry
from rowcall.model import Code
from rowcall.store import uploads
from rowcall.store.files import pieces, synced
from rowcall.store.files.filestore import file_store
from rowcall.store.jobs import new_id

from .conftest import Site
from .test_imports import stored
from .town import USERS, served

CONTENT = USERS.encode() + b"".join(b"p%d@example.org,P%d,reader,true\n" % (n, n) for n in range(400))
pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
TUS = {"Tus-Resumable": "1.0.0"}
BODY = {**TUS, "Content-Type": "application/offset+octet-stream"}


def metadata(**told: str) -> str:
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in told.items())


def created(site: Site, content: bytes = CONTENT, **told: str) -> str:
    """A new upload's address."""
    given = metadata(**{"importer": "users", "filename": "users.csv", **told})
    headers = {**TUS, "Upload-Length": str(len(content)), "Upload-Metadata": given}
    answer = site.client.post("/v1/uploads", headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


def patched(client: httpx.Client, place: str, piece: bytes, at: int, **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.patch(place, content=piece, headers={**BODY, "Upload-Offset": str(at), **given})


def asked(client: httpx.Client, place: str) -> httpx.Response:
    answer = client.head(place, headers=TUS)
    assert answer.status_code == 200
    return answer


def offset(client: httpx.Client, place: str) -> int:
    return int(asked(client, place).headers["upload-offset"])


def jobs_of(site: Site) -> list[Any]:
    return site.client.get("/v1/imports").json()["items"]


def cut_off(site: Site, place: str, piece: bytes, at: int, announced: int) -> None:
    """Send some of what was announced, and hang up."""
    url = site.client.base_url
    head = "".join(
        f"{name}: {value}\r\n"
        for name, value in {**BODY, "Upload-Offset": at, "Host": url.host, "Content-Length": announced}.items()
    )
    for patience in (0.1, 1, 5):  # uvicorn gives nothing of what it has read to one who comes for it after the end
        with socket.create_connection((url.host, url.port or 80)) as connection:
            connection.sendall(f"PATCH {place} HTTP/1.1\r\n{head}\r\n".encode() + piece)
            await_lock(site, place)
            time.sleep(patience)
        await_lock(site, place, locked=False)
        if offset(site.client, place) == at + len(piece):
            return
    raise AssertionError(offset(site.client, place))


@pytest.fixture
def other(site: Site) -> Generator[httpx.Client]:
    """A client of a second server on the same database and folder, which remembers nothing of the first one's."""
    settings = site.worker.settings
    app = create_app(Service(settings, load_registry(), site.database.pool("serve", 4)))
    with served(app) as url, httpx.Client(base_url=url) as client:
        yield client


def test_what_the_server_can_do_is_told(site: Site) -> None:
    answer = site.client.options("/v1/uploads")
    assert answer.status_code == 204
    assert (answer.headers["tus-version"], answer.headers["tus-max-size"]) == ("1.0.0", "100000")
    assert answer.headers["tus-extension"].split(",") == [
        *("creation", "creation-with-upload", "expiration", "checksum", "termination")
    ]
    assert answer.headers["tus-checksum-algorithm"] == "sha1,sha256"


def test_pieces_become_one_import(site: Site) -> None:
    place = created(site, config='{"mode": "upsert"}')
    first = patched(site.client, place, CONTENT[:100], 0)
    assert (first.status_code, first.headers["upload-offset"], first.headers["tus-resumable"]) == (204, "100", "1.0.0")
    assert "GMT" in first.headers["upload-expires"]
    assert jobs_of(site) == []
    last = patched(site.client, place, CONTENT[100:], 100)
    assert (last.status_code, last.headers["upload-offset"]) == (204, str(len(CONTENT)))
    job = site.client.get(last.headers["rowcall-import"]).json()
    assert job["file"] == {
        "name": "users.csv",
        "size": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
    }
    assert stored(site) == [job["file"]["sha256"]]
    site.worker.advance(job["id"])
    assert site.client.get(last.headers["rowcall-import"]).json()["counts"]["created"] == 401
    head = asked(site.client, place)
    assert head.headers["rowcall-import"] == last.headers["rowcall-import"]
    assert (head.headers["cache-control"], head.headers["upload-length"]) == ("no-store", str(len(CONTENT)))
    told = site.client.get(place).json()
    assert (told["importAddress"], told["offset"]) == (last.headers["rowcall-import"], len(CONTENT))
    assert patched(site.client, place, b"", len(CONTENT)).headers["rowcall-import"] == told["importAddress"]


@pytest.mark.parametrize("length", [0, len(CONTENT)])
def test_the_first_piece_may_come_with_the_beginning(site: Site, length: int) -> None:
    headers = {**BODY, "Upload-Length": str(length), "Upload-Metadata": metadata(importer="users")}
    answer = site.client.post("/v1/uploads", headers=headers, content=CONTENT[:length])
    assert (answer.status_code, answer.headers["upload-offset"]) == (201, str(length))
    assert jobs_of(site)[0]["file"]["size"] == length
    assert answer.headers["rowcall-import"].endswith(jobs_of(site)[0]["id"])


@pytest.mark.parametrize("cuts", [(1,), (37, 5_000), (len(CONTENT) - 1,), (len(CONTENT) // 2, len(CONTENT) - 1)])
def test_what_came_before_a_cut_is_kept_and_another_server_goes_on(
    site: Site, other: httpx.Client, cuts: tuple[int, ...]
) -> None:
    place = created(site)
    at = 0
    for cut in cuts:
        cut_off(site, place, CONTENT[at:cut], at, len(CONTENT) - at)
        at = cut
    assert jobs_of(site) == []
    answer = patched(other, place, CONTENT[at:], at)
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, str(len(CONTENT)))
    (job,) = jobs_of(site)
    assert job["file"]["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def test_a_server_that_saw_nothing_of_it_hashes_what_is_there(site: Site) -> None:
    place = created(site)
    patched(site.client, place, CONTENT[:700], 0)
    pieces._digests._kept.clear()
    patched(site.client, place, CONTENT[700:900], 700)
    patched(site.client, place, CONTENT[900:], 900)
    assert jobs_of(site)[0]["file"]["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def test_wrong_offsets_are_refused(site: Site) -> None:
    place = created(site)
    patched(site.client, place, CONTENT[:50], 0)
    for at in (0, 49, 51):
        answer = patched(site.client, place, CONTENT[at : at + 10], at)
        assert (answer.status_code, answer.json()["code"], answer.headers["tus-resumable"]) == (
            *(409, "WRONG_OFFSET", "1.0.0"),
        )
    assert offset(site.client, place) == 50


def test_one_of_two_at_once_is_told_to_wait(site: Site, other: httpx.Client) -> None:
    place = created(site)
    begun, go_on = threading.Event(), threading.Event()

    def slowly() -> Generator[bytes]:
        yield CONTENT[:10]
        begun.set()
        go_on.wait(20)
        yield CONTENT[10:]

    with ThreadPoolExecutor(1) as thread:
        sending = thread.submit(
            lambda: site.client.patch(place, content=slowly(), headers={**BODY, "Upload-Offset": "0"})
        )
        begun.wait(20)
        await_lock(site, place)
        for answer in (patched(other, place, CONTENT, 0), other.delete(place, headers=TUS)):
            assert (answer.status_code, answer.json()["code"]) == (423, "UPLOAD_BUSY")
        go_on.set()
        assert sending.result().status_code == 204
    assert len(jobs_of(site)) == 1


def await_lock(site: Site, place: str, *, locked: bool = True) -> None:
    """Wait until some request has the upload's file to itself, or none has."""
    folder, upload_id = file_store(site.worker.settings).uploads, UUID(place.rpartition("/")[2])
    for _ in range(400):
        if file := pieces.Pieces.of(folder, upload_id):
            is_free = file.lock()
            file.close()
            if is_free != locked:
                return
        time.sleep(0.02)
    raise AssertionError(place)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_piece_that_its_checksum_does_not_fit_is_dropped(site: Site, algorithm: str) -> None:
    place = created(site)
    good = base64.b64encode(hashlib.new(algorithm, CONTENT).digest()).decode()
    half = len(CONTENT) // 2
    patched(site.client, place, CONTENT[:half], 0)
    bad = patched(site.client, place, CONTENT[half:], half, Upload_Checksum=f"{algorithm} {good}")
    assert (bad.status_code, bad.json()["code"]) == (460, "CHECKSUM_MISMATCH")
    assert offset(site.client, place) == half
    rest = base64.b64encode(hashlib.new(algorithm, CONTENT[half:]).digest()).decode()
    assert patched(site.client, place, CONTENT[half:], half, Upload_Checksum=f"{algorithm} {rest}").status_code == 204
    assert jobs_of(site)[0]["file"]["sha256"] == hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Tus-Resumable": "0.2.2"}, 412),
        ({"Tus-Resumable": ""}, 412),
        ({"Upload-Offset": "-1"}, 400),
        ({"Upload-Offset": "x"}, 400),
        ({"Upload-Offset": "99999999999999999999"}, 400),
        ({"Content-Type": "text/csv"}, 415),
        ({"Upload-Checksum": "md5 x"}, 400),
        ({"Upload-Checksum": "sha1 ?"}, 400),
    ],
)
def test_headers_that_can_not_be_understood_are_refused(site: Site, headers: dict[str, str], status: int) -> None:
    place = created(site)
    answer = patched(site.client, place, b"x", 0, **headers)
    assert (answer.status_code, answer.headers["tus-resumable"]) == (status, "1.0.0")
    assert ("tus-version" in answer.headers) == (status == 412)
    assert offset(site.client, place) == 0


@pytest.mark.parametrize(
    ("length", "given", "status"),
    [
        (None, metadata(importer="users"), 400),
        ("-1", metadata(importer="users"), 400),
        ("100001", metadata(importer="users"), 413),
        ("5", metadata(filename="users.csv"), 400),
        ("5", "importer ???", 400),
        ("5", metadata(importer="user"), 404),
        ("5", metadata(importer="users", config="{"), 422),
        ("5", metadata(importer="users", config='{"constants": {"nope": "1"}}'), 422),
        ("5", metadata(importer="users", idempotencyKey="x" * 256), 400),
    ],
)
def test_what_can_not_become_an_import_is_refused_at_once(
    site: Site, length: str | None, given: str, status: int
) -> None:
    headers = {**TUS, "Upload-Metadata": given, **({"Upload-Length": length} if length else {})}
    assert site.client.post("/v1/uploads", headers=headers).status_code == status
    with site.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM rowcall.upload").fetchone() == (0,)


def test_other_bytes_that_another_server_took_meanwhile_are_hashed_anew(site: Site) -> None:
    """Two servers share the folder, and what the sender sends differs between attempts."""
    place, half = created(site), len(CONTENT) // 2
    assert patched(site.client, place, CONTENT[:half], 0).status_code == 204
    time.sleep(0.02)
    with (site.files / "incoming" / place.rpartition("/")[2]).open("r+b") as another:
        another.write(b"EMAIL")
    assert patched(site.client, place, CONTENT[half:], half).status_code == 204
    (job,) = jobs_of(site)
    assert job["file"]["sha256"] == hashlib.sha256(b"EMAIL" + CONTENT[5:]).hexdigest()
    site.worker.advance(job["id"])
    assert site.client.get(f"/v1/imports/{job['id']}").json()["error"] is None


def test_more_than_was_announced_is_refused(site: Site) -> None:
    place = created(site, b"12345")
    assert patched(site.client, place, b"123456", 0).status_code == 413
    unannounced = site.client.patch(place, content=iter([b"1234", b"56"]), headers={**BODY, "Upload-Offset": "0"})
    assert unannounced.status_code == 413
    assert offset(site.client, place) == 0


def test_an_upload_can_be_given_up(site: Site) -> None:
    place = created(site)
    patched(site.client, place, CONTENT[:10], 0)
    assert site.client.delete(place, headers=TUS).status_code == 204
    assert site.client.head(place, headers=TUS).status_code == 404
    assert patched(site.client, place, CONTENT[10:], 10).status_code == 404
    assert stored(site) == []


def test_another_organisation_does_not_find_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    place = created(site)
    other = new_id()
    with site.database.connect() as connection:
        connection.execute("INSERT INTO rowcall.organisation (id, name) VALUES (%s, 'other')", [other])
        connection.execute("UPDATE rowcall.upload SET organisation_id = %s", [other])
    assert site.client.head(place, headers=TUS).status_code == 404
    assert patched(site.client, place, CONTENT, 0).status_code == 404
    assert site.client.get(place).status_code == 404
    assert site.client.delete(place, headers=TUS).status_code == 404


def test_methods_may_be_named_in_a_header(site: Site) -> None:
    place = created(site)
    given = {**BODY, "Upload-Offset": "0", "X-HTTP-Method-Override": "PATCH"}
    assert site.client.post(place, content=CONTENT[:9], headers=given).headers["upload-offset"] == "9"
    assert site.client.post(place, headers={**TUS, "X-HTTP-Method-Override": "DELETE"}).status_code == 204
    assert site.client.post(place, headers={**TUS, "X-HTTP-Method-Override": "PUT"}).status_code == 400


def test_expired_uploads_are_gone_and_taken_away(site: Site) -> None:
    place, living = created(site), created(site)
    for each in (place, living):
        patched(site.client, each, CONTENT[:10], 0)
    folder = file_store(site.worker.settings).uploads
    (folder / str(new_id())).write_bytes(b"of nobody")
    os.utime(max(folder.iterdir()), (1, 1))
    with site.database.connect() as connection:
        gone = UUID(place.rpartition("/")[2])
        connection.execute("UPDATE rowcall.upload SET expires_at = now() WHERE id = %s", [gone])
        assert site.client.head(place, headers=TUS).status_code == 410
        assert patched(site.client, place, CONTENT[10:], 10).status_code == 410
        assert uploads.remove_expired(connection, file_store(site.worker.settings), expires=60) == 2
    assert site.client.head(place, headers=TUS).status_code == 404
    assert [file.name for file in folder.iterdir()] == [living.rpartition("/")[2]]


def test_k2_k3_an_answer_that_is_lost_can_be_asked_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes are durable and no job is made of them; then it is made and nobody was told."""
    place = created(site)
    monkeypatch.setattr(visits, "begin_import", _gone)
    assert patched(site.client, place, CONTENT, 0).status_code == 503
    assert jobs_of(site) == []
    monkeypatch.undo()
    for _ in range(2):
        assert asked(site.client, place).headers["rowcall-import"] == f"/v1/imports/{jobs_of(site)[0]['id']}"
    assert (len(jobs_of(site)), len(stored(site))) == (1, 1)


def _gone(*_: object) -> None:
    raise Retryable(Code.DATABASE_GONE, "as if the process were killed")


def test_many_who_come_back_at_once_find_one_job(site: Site, other: httpx.Client) -> None:
    place = created(site)
    patched(site.client, place, CONTENT[:-1], 0)
    with site.database.connect() as connection:
        folder = file_store(site.worker.settings).uploads
        with (folder / place.rpartition("/")[2]).open("ab") as file:
            file.write(CONTENT[-1:])
        connection.execute("UPDATE rowcall.upload SET received = length")
    clients: list[httpx.Client] = [site.client, other] * 8
    with ThreadPoolExecutor(8) as threads:
        told = [answer.headers for answer in threads.map(partial(asked, place=place), clients)]
    addresses = {
        each["rowcall-import"] for each in (*told, asked(site.client, place).headers) if "rowcall-import" in each
    }
    assert addresses == {f"/v1/imports/{job['id']}" for job in jobs_of(site)}
    assert len(addresses) == 1


def test_the_same_key_gives_the_same_import_and_another_file_is_told(site: Site) -> None:
    first = created(site, idempotencyKey="k")
    again = created(site, idempotencyKey='"k"')
    other = created(site, CONTENT[:-1], idempotencyKey="k")
    made = patched(site.client, first, CONTENT, 0).headers["rowcall-import"]
    assert patched(site.client, again, CONTENT, 0).headers["rowcall-import"] == made
    refused = patched(site.client, other, CONTENT[:-1], 0)
    assert (refused.status_code, refused.json()["code"]) == (422, "KEY_REUSED")
    assert asked(site.client, other).headers["upload-offset"] == str(len(CONTENT) - 1)
    assert site.client.get(other).json()["error"]["code"] == "KEY_REUSED"
    assert len(jobs_of(site)) == 1
    assert sum(path.is_file() for path in site.files.glob("*/*")) == 1
    told = {"importer": "users", "filename": "other.csv", "idempotencyKey": "k"}
    begun = site.client.post("/v1/uploads", headers={**TUS, "Upload-Length": "1", "Upload-Metadata": metadata(**told)})
    assert (begun.status_code, begun.json()["code"]) == (422, "KEY_REUSED")


@pytest.mark.parametrize("fault", ["write", "fdatasync", "fsync"])
def test_k21_bytes_that_are_not_durable_do_not_count(site: Site, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    place = created(site)
    patched(site.client, place, CONTENT[:20], 0)
    monkeypatch.setattr(synced, "_STRETCH", 1)
    monkeypatch.setattr(synced.os, fault, _disk_full_for(synced.os.fstat, getattr(os, fault)))
    failed = patched(site.client, place, CONTENT[20:], 20)
    assert (failed.status_code, failed.json()["code"]) == (500, "SYSTEM_ERROR")
    monkeypatch.undo()
    assert (offset(site.client, place), jobs_of(site)) == (20, [])
    assert patched(site.client, place, CONTENT[20:], 20).status_code == 204
    assert jobs_of(site)[0]["file"]["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def _disk_full_for(stat: Any, real: Any) -> Any:
    """Fails for files; the pipes and sockets of this process go on."""

    def fails(handle: int, *given: Any) -> Any:
        if stat(handle).st_mode & 0o170000 == 0o100000:
            raise OSError(28, "No space left on device")
        return real(handle, *given)

    return fails


def test_what_would_be_misunderstood_begins_no_upload(site: Site) -> None:
    given = {**TUS, "Upload-Length": "5", "Upload-Metadata": metadata(importer="users")}
    doubled = f"{metadata(importer='users')},{metadata(importer='articles')}"
    for headers in (
        {**given, "Upload-Concat": "partial"},
        {**TUS, "Upload-Concat": "final;/v1/uploads/a"},
        {**given, "Upload-Metadata": doubled},
    ):
        answer = site.client.post("/v1/uploads", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")
    place = created(site)
    answer = patched(site.client, place, CONTENT + b"more", 0)
    assert (answer.status_code, answer.json()["code"]) == (413, "FILE_TOO_LARGE")
    assert "Upload-Length" in answer.json()["detail"]
