"""`rowcall.Client` against a service, over networks good and bad."""

import hashlib
import logging
import os
import pickle
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rowcall import Client, RequestRefused, ServerUnavailable
from rowcall.api import events
from rowcall.client import ExportOrder, ImportConfig, Job, View, waiting
from rowcall.client.calls import calls
from rowcall.errors import FileRefused
from rowcall.export import known_resources
from rowcall.model import Mode
from rowcall.worker.exports import Exporter

from ..web import serving
from .conftest import Site
from .cutting import Cut, Proxy, proxy_before
from .test_exports import add_users, run
from .town import USERS, Town

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
LARGE = USERS.encode() + b"".join(b"p%d@example.org,%s,reader,true\n" % (n, b"P" * 900) for n in range(100))


@pytest.fixture
def at(site: Site) -> Generator[Client]:
    with Client(str(site.client.base_url)) as one:
        yield one


@contextmanager
def through(site: Site, *cuts: Cut) -> Generator[tuple[Client, Proxy]]:
    """A client on the other side of a bad network."""
    with proxy_before(str(site.client.base_url), *cuts) as proxy, Client(proxy.url) as one:
        yield one, proxy


def work(site: Site, job: Job) -> None:
    site.worker.advance(str(job.id))


def export_work(site: Site) -> None:
    Exporter(site.database, known_resources(site.worker.registry), site.worker.settings).work()


# ---------------------------------------------------------------------------------------------------------- all is well


def test_a_file_is_brought_waited_for_and_looked_at(site: Site, at: Client, tmp_path: Path) -> None:
    file = tmp_path / "üsers 100%41.csv"
    file.write_text(USERS)
    sent: list[tuple[int, int]] = []
    looks: list[Job] = []
    job = at.import_file(file, "users", progress=lambda done, total: sent.append((done, total)))
    assert (job.state, job.file.name, sent[-1]) == ("UPLOADED", file.name, (len(USERS), len(USERS)))
    work(site, job)
    done = at.wait(job, progress=looks.append)
    assert (done.state, done.counts.created, done.counts.failed) == ("COMPLETED_WITH_ERRORS", 1, 1)
    assert looks[-1] == done == at.job(job.number) == at.job(str(job.id))
    [failed] = at.items(job.number, View(statuses=("failed",)))
    assert (failed.row, failed.issues[0].code, failed.issues[0].field) == (2, "REQUIRED", "name")
    assert [item.row for item in at.results(job, "created")] == [1]
    assert [(item.job_number, item.row) for item in at.pending()] == [(job.number, 2)]
    assert at.receipt(job).balanced
    assert at.summary(job).issues[0].count == 1
    assert [one.number for one in at.jobs(state="COMPLETED_WITH_ERRORS")] == [job.number]
    assert "users" in {one.name for one in at.importers()}
    assert at.importer("users").fields[0].type == "uuid"


def test_pages_are_asked_for_as_they_are_needed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_PAGE", 20)
    with through(site) as (at, proxy):
        job = at.import_file(LARGE, "users")
        work(site, job)
        items = at.items(job)
        first = [next(items) for _ in range(20)]
        assert len(proxy.asked(f"GET /v1/imports/{job.id}/items".encode())) == 1
        assert [item.row for item in [*first, *items]] == list(range(1, 103))
        assert len(list(at.items(job, most=30))) == 30


def test_a_stream_of_unknown_length_is_sent_as_it_comes(site: Site, at: Client) -> None:
    read, write = os.pipe()
    sent: list[int] = []
    with os.fdopen(read, "rb") as stream, os.fdopen(write, "wb") as end:
        threading.Thread(target=lambda: (end.write(LARGE), end.close())).start()
        job = at.import_file(stream, "users", name="50%25.csv", progress=lambda done, _: sent.append(done))
    assert (job.file.sha256, job.file.name) == (hashlib.sha256(LARGE).hexdigest(), "50%25.csv")
    assert sent[-1] == len(LARGE)


def test_a_file_is_fetched_and_read_as_it_is_said(site: Site, at: Client) -> None:
    config = ImportConfig(
        mode=Mode.UPSERT, mapping={"mail": "email"}, delimiter="~", quote="'", comment="#", dry_run=True
    )
    with serving() as web:
        url = web.at("/u.txt", "mail~name~role\n# none\nx@example.org~'X~Y'~reader\n", content_type="text/plain")
        job = at.import_url(url, "users", config)
        work(site, job)
    done = at.wait(job)
    assert (done.state, done.dry_run, done.counts.created, done.counts.other) == ("VALIDATED", True, 1, 1)
    assert next(at.items(job)).values["name"] == "X~Y"
    assert at.receipt(job).mode == "upsert"


def test_jobs_are_moved(site: Site, at: Client) -> None:
    job = at.import_file(USERS.encode(), "users", ImportConfig(hold=True))
    assert at.wait(job).wish == "hold"
    assert at.start(job).wish is None
    assert at.pause(job).state == "PAUSED"
    assert at.wait(job).state == "PAUSED"
    assert at.kickoff(job, milliseconds=60_000).state == "UPLOADED"
    work(site, job)
    assert at.wait(job).counts.failed == 1
    again = at.reprocess(job, View(statuses=("failed",), code="REQUIRED"))
    assert (again.rows, again.job.state) == (1, "PROCESSING")
    at.pause(job)
    assert at.resume(job).state == "PROCESSING"
    assert at.cancel(job).state == "COMPLETED_WITH_ERRORS"
    with pytest.raises(RequestRefused) as refused:
        at.submit(job)
    assert (refused.value.code, refused.value.status, refused.value.allowed) == (
        "WRONG_STATE",
        409,
        ["edit", "reprocess", "undo"],
    )
    assert refused.value.request_id
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_errors_are_of_the_documented_classes(site: Site, at: Client) -> None:
    for wrong in ("nowhere", "ftp://example.org", "http://user:secret@example.org"):
        with pytest.raises(RequestRefused) as told:
            Client(wrong)
        assert (told.value.code, told.value.status) == ("BAD_OPTION", None)
        assert "secret" not in str(told.value)
    with pytest.raises(RequestRefused, match="no key has"):
        Client(at.url, "a key")
    for job in ("BU209901010001", "00000000-0000-7000-8000-000000000000"):
        with pytest.raises(RequestRefused) as told:
            at.job(job)
        assert (told.value.code, told.value.status) == ("JOB_NOT_FOUND", 404)
    with pytest.raises(RequestRefused, match="body/config/encoding: ") as told:
        at.import_url("https://example.org/a.csv", "users", ImportConfig(encoding="\0"))
    assert [each["at"] for each in told.value.errors] == ["body/config/encoding"]
    with pytest.raises(FileRefused, match="can't be opened"):
        at.import_file("/nowhere/at/all.csv", "users")


def test_waiting_ends_when_its_time_is_over(site: Site, at: Client) -> None:
    job = at.import_file(USERS.encode(), "users")
    with pytest.raises(ServerUnavailable) as told:
        at.wait(job, timeout=0.2)
    assert told.value.code == "NOT_DONE_YET"
    assert at.job(job).state == "UPLOADED"


# ------------------------------------------------------------------------------------------------------- bad networks


def test_an_upload_goes_on_where_it_was_cut(site: Site) -> None:
    offsets: list[int] = []
    for patience in (0.2, 1, 5):  # uvicorn gives nothing of what it has read to one who comes for it after the end
        with through(site, Cut(b"PATCH", there=50_000, patience=patience)) as (at, proxy):
            job = at.import_file(LARGE, "users")
        offsets = [int(said.lower().split(b"upload-offset: ")[1].split()[0]) for said in proxy.asked(b"PATCH")]
        assert job.file.sha256 == hashlib.sha256(LARGE).hexdigest()
        assert len(offsets) == 2
        if offsets[1]:
            break
    assert offsets[0] == 0 < offsets[1] < len(LARGE)


@pytest.mark.parametrize("lost", [b"POST", b"PATCH", b"GET"])
def test_a_lost_answer_makes_no_second_job(site: Site, lost: bytes) -> None:
    with through(site, Cut(lost, back=0), Cut(lost, back=0)) as (at, proxy):
        job = at.import_file(LARGE, "users")
        assert len(proxy.asked(lost)) == (1 if lost == b"PATCH" else 3)  # HEAD tells of the job
        assert [one.id for one in at.jobs()] == [job.id]


def test_a_lost_answer_makes_no_second_export_and_no_second_job_by_url(site: Site) -> None:
    with (
        serving() as web,
        through(site, Cut(b"POST /v1/exports", back=0), Cut(b"POST /v1/imports", back=10)) as (
            at,
            proxy,
        ),
    ):
        at.create_export(ExportOrder(resource="users"))
        job = at.import_url(web.at("/u.csv", USERS, content_type="text/csv"), "users")
        assert len(proxy.asked(b"POST")) == 4
        assert [one.id for one in at.jobs()] == [job.id]
    assert len(site.client.get("/v1/exports/jobs").json()["items"]) == 1


def test_a_move_whose_answer_is_lost_is_not_repeated(site: Site) -> None:
    with through(site, Cut(b"POST /v1/imports/", back=0)) as (at, proxy):
        job = at.import_file(USERS.encode(), "users")
        with pytest.raises(ServerUnavailable, match="is not known") as told:
            at.cancel(job)
        assert told.value.code == "SERVER_UNREACHABLE"
        assert len(proxy.asked(b"POST /v1/imports/")) == 1
        assert at.job(job).state == "CANCELLED"


def test_waiting_goes_on_behind_the_last_event_when_the_stream_is_cut(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_ASKED_EVERY", 0.05)
    monkeypatch.setattr(events, "_EVERY", 0.02)
    with through(site) as (at, proxy):
        job = at.import_file(USERS.encode(), "users")
        stream = b"GET /v1/imports/%s/events" % str(job.id).encode()
        proxy.cuts = [Cut(stream, back=2000)]
        working = threading.Thread(target=_work_after, args=[site, job, lambda: len(proxy.asked(stream)) > 1])
        working.start()
        assert at.wait(job).state == "COMPLETED_WITH_ERRORS"
        working.join()
        streams = proxy.asked(stream)
    assert b"last-event-id: " not in streams[0].lower()
    assert b"last-event-id: " in streams[-1].lower()


def _work_after(site: Site, job: Job, condition: Callable[[], bool]) -> None:
    """Work on a job, to which something happens again and again before that."""
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
        run(site, "UPDATE rowcall.job SET account = account || 'x'")
    work(site, job)


def test_where_no_stream_comes_through_it_is_asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_ASKED_EVERY", 0.1)
    with through(site) as (at, proxy):
        job = at.import_file(USERS.encode(), "users")
        look, stream = (f"GET /v1/imports/{job.id}{what}".encode() for what in (" ", "/events"))
        proxy.cuts = [Cut(stream, back=0) for _ in range(100)]
        working = threading.Thread(target=_work_after, args=[site, job, lambda: len(proxy.asked(look)) > 12])
        working.start()
        assert at.wait(job).state == "COMPLETED_WITH_ERRORS"
        working.join()
        assert 3 <= len(proxy.asked(stream)) < len(proxy.asked(look))


def test_a_download_goes_on_where_it_was_cut(site: Site, tmp_path: Path) -> None:
    add_users(site, 1000)
    got: list[int] = []
    with through(site) as (at, proxy):
        export = at.create_export(ExportOrder(resource="users", format="ndjson"))
        export_work(site)
        done = at.wait_export(export)
        assert (done.state, done.progress.rows) == ("COMPLETED", 1000)
        whole = site.client.get(f"/v1/exports/{done.id}/download").content
        proxy.cuts = [Cut(f"GET /v1/exports/{done.id}/download".encode(), back=50_000) for _ in range(2)]
        assert at.download(done, tmp_path / "users.ndjson", progress=got.append) == len(whole) == got[-1]
        ranges = [said for said in proxy.requests if b"range: bytes=" in said.lower()]
    assert (tmp_path / "users.ndjson").read_bytes() == whole
    assert len(ranges) == 2
    assert [path.name for path in tmp_path.glob("*users*")] == ["users.ndjson"]


def test_a_stream_that_is_cut_leaves_no_file(site: Site, tmp_path: Path) -> None:
    add_users(site, 3000)
    target = tmp_path / "users.csv"
    order = ExportOrder(resource="users", fields=("email",), filters=("role=author",))
    with through(site, Cut(b"GET /v1/exports", back=8000)) as (at, _):
        with pytest.raises(ServerUnavailable) as told:
            at.export(order, target)
        assert told.value.code == "CUT_OFF"
        assert list(tmp_path.glob("*users*")) == []
        size = at.export(order, target)
    assert (size, target.read_text().count("\n")) == (target.stat().st_size, 1501)


def test_results_are_exported_as_the_grid_shows_them(site: Site, at: Client, tmp_path: Path) -> None:
    job = at.import_file(USERS.encode(), "users")
    work(site, job)
    at.export(ExportOrder(job=job.id, view=View(statuses=("failed",))), tmp_path / "failed.csv")
    assert (tmp_path / "failed.csv").read_text().count("bob@example.org") == 1
    export = at.create_export(ExportOrder(job=job.id, format="ndjson", view=View(statuses=("created",))))
    assert at.cancel_export(export).state == "CANCELLED"
    assert at.wait_export(export).state == "CANCELLED"


def test_keys_are_shown_to_the_server_only(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url, key = str(town.client.base_url), town.keys["ann"]
    with Client(url, key) as at:
        list(at.jobs(most=1))
        assert key not in repr(at) + str(vars(at)) + caplog.text
    with Client(url, town.keys["revoked"]) as at, pytest.raises(RequestRefused, match="revoked") as told:
        list(at.jobs())
    assert (told.value.code, told.value.status) == ("UNAUTHENTICATED", 401)
    assert town.keys["revoked"] not in f"{told.value!r} {told.value}"
    with Client(url) as at, pytest.raises(RequestRefused, match="ROWCALL_KEY"):
        list(at.jobs())
