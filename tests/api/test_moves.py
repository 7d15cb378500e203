"""Jobs are held, paused, resumed, cancelled and tried again as somebody asks, whoever works on them."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.requests import Request

from rowcall.api.refused import as_of_now
from rowcall.errors import RowcallError
from rowcall.importer.registry import Registry
from rowcall.store.jobs import LOCAL, new_id
from rowcall.store.queries import query
from rowcall.worker import worker
from rowcall.worker.worker import Worker

from .conftest import Site
from .test_imports import sent

ROWS = 60
MANY = "email,name,role,active\n" + "".join(f"p{n}@example.org,P{n},reader,true\n" for n in range(ROWS))
SLOW = """
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION slow();
"""


def ask(site: Site, job: dict[str, Any], move: str, **given: Any) -> Any:
    return site.client.post(f"/v1/imports/{job['id']}/{move}", **given)


def look(site: Site, job: dict[str, Any]) -> dict[str, Any]:
    return site.client.get(f"/v1/imports/{job['id']}").json()


def until(site: Site, job: dict[str, Any], holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 30
    while not holds(now := look(site, job)):
        assert time.monotonic() < deadline, now
        time.sleep(0.05)
    return now


@contextmanager
def working(site: Site, job: dict[str, Any]) -> Generator[None]:
    """A worker that works on a job meanwhile, each row of which takes its time."""
    thread = threading.Thread(target=site.worker.advance, args=[job["id"]])
    thread.start()
    yield
    thread.join()


@pytest.fixture
def slow(site: Site) -> Site:
    with site.database.connect() as connection:
        connection.execute(SLOW.format("users").encode())
    return site


def test_c7_a_paused_job_stops_where_it_is_and_goes_on_from_there(slow: Site) -> None:
    job = sent(slow, MANY).json()
    with working(slow, job):
        until(slow, job, lambda now: now["counts"]["created"] > 0)
        asked = ask(slow, job, "pause")
        assert (asked.status_code, asked.json()["wish"]) == (202, "pause")
    paused = look(slow, job)
    assert (paused["state"], paused["wish"], paused["allowed"]) == ("PAUSED", None, ["resume", "kickoff", "cancel"])
    assert 0 < paused["counts"]["created"] < ROWS
    slow.worker.advance(job["id"])
    assert look(slow, job)["counts"] == paused["counts"]
    resumed = ask(slow, job, "resume")
    assert (resumed.status_code, resumed.json()["state"]) == (202, "PROCESSING")
    slow.worker.advance(job["id"])
    done = look(slow, job)
    assert (done["state"], done["counts"]["created"], done["allowed"]) == (
        "COMPLETED",
        ROWS,
        ["edit", "reprocess", "undo"],
    )


def test_b7_a_cancelled_job_keeps_what_is_done(slow: Site) -> None:
    job = sent(slow, MANY).json()
    with working(slow, job):
        until(slow, job, lambda now: now["counts"]["created"] > 0)
        assert slow.client.delete(f"/v1/imports/{job['id']}").json()["wish"] == "cancel"
    ended = look(slow, job)
    counts = ended["counts"]
    assert (ended["state"], ended["allowed"], counts["rows"]) == ("CANCELLED", ["undo"], ROWS)
    assert 0 < counts["created"] < ROWS
    assert counts["created"] + counts["cancelled"] == ROWS
    receipt = slow.client.get(f"/v1/imports/{job['id']}/receipt").json()
    assert (receipt["balanced"], receipt["counts"]) == (True, counts)
    rest = slow.client.get(f"/v1/imports/{job['id']}/items", params={"statuses": "cancelled", "pageSize": 1000}).json()
    assert len(rest["items"]) == counts["cancelled"]
    with slow.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (counts["created"],)
    again = ask(slow, job, "cancel")
    assert (again.status_code, again.json()["state"], again.json()["allowed"]) == (409, "CANCELLED", ["undo"])


def test_c7_a_slice_of_time_is_worked_and_no_more(slow: Site) -> None:
    job = sent(slow, MANY, config='{"hold": true}').json()
    slow.worker.advance(job["id"])
    assert (look(slow, job)["state"], look(slow, job)["allowed"]) == (
        "UPLOADED",
        ["start", "pause", "kickoff", "cancel"],
    )
    assert ask(slow, job, "kickoff", params={"durationMs": 500}).status_code == 202
    slow.worker.advance(job["id"])
    paused = look(slow, job)
    assert paused["state"] == "PAUSED"
    assert paused["counts"]["created"] < ROWS
    ask(slow, job, "resume")
    slow.worker.advance(job["id"])
    assert look(slow, job)["counts"]["created"] == ROWS


def test_held_job_begins_when_told(site: Site) -> None:
    job = sent(site, config='{"hold": true}').json()
    assert ask(site, job, "start").json()["wish"] is None
    site.worker.advance(job["id"])
    assert look(site, job)["state"] == "COMPLETED_WITH_ERRORS"
    assert ask(site, job, "start").status_code == 409


def test_job_that_nobody_works_on_is_moved_at_once(site: Site) -> None:
    job = sent(site).json()
    assert ask(site, job, "pause").json()["state"] == "PAUSED"
    assert ask(site, job, "pause").json()["allowed"] == ["resume", "kickoff", "cancel"]
    assert ask(site, job, "cancel").json()["state"] == "CANCELLED"
    refused = ask(site, job, "resume")
    assert (refused.status_code, refused.json()["code"], refused.json()["state"]) == (409, "WRONG_STATE", "CANCELLED")
    site.worker.advance(job["id"])
    assert look(site, job)["state"] == "CANCELLED"


def test_refusal_of_a_job_that_has_moved_on_since_tells_of_one_moment(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = sent(site).json()

    def late(request: Request, error: RowcallError) -> RowcallError:
        assert ask(site, job, "pause").status_code == 202
        return as_of_now(request, error)

    with monkeypatch.context() as patch:
        patch.setattr("rowcall.api.problems.as_of_now", late)
        refused = ask(site, job, "resume").json()
    assert refused["detail"] == f"Job {job['number']} is UPLOADED; resume is not possible now."
    assert (refused["state"], refused["allowed"]) == ("UPLOADED", ["pause", "cancel"])


def test_refusal_over_http_tells_no_command_though_the_job_is_one_of_the_command_line(site: Site) -> None:
    job = sent(site).json()
    with site.database.connect() as connection:
        connection.execute("UPDATE rowcall.job SET background = false")
    refused = ask(site, job, "resume").json()
    assert (refused["hint"], "commandHint" in refused) == ("Possible is: pause, cancel.", False)


ARTICLES = "slug,title,body,author,status\n" + "".join(
    f"a-{n},T,B,{'ann' if n % 2 else 'eve'}@example.org,draft\n" for n in range(6)
)


def test_c7_rows_are_tried_again_and_only_they(site: Site) -> None:
    site.worker.advance(sent(site).json()["id"])
    job = sent(site, ARTICLES, importer="articles").json()
    site.worker.advance(job["id"])
    assert look(site, job)["counts"]["failed"] == 3
    site.worker.advance(sent(site, "email,name,role,active\neve@example.org,Eve,admin,true\n").json()["id"])
    some = ask(site, job, "reprocess", json={"rows": [1, 2]})
    assert (some.status_code, some.json()["rows"], some.json()["job"]["state"]) == (202, 1, "PROCESSING")
    items = site.client.get(f"/v1/imports/{job['id']}/items").json()["items"]
    assert [item["status"] for item in items] == ["pending", "created", "failed", "created", "failed", "created"]
    site.worker.advance(job["id"])
    now = look(site, job)
    assert (now["state"], now["counts"]["created"], now["counts"]["failed"]) == ("COMPLETED_WITH_ERRORS", 4, 2)
    assert ask(site, job, "reprocess", json={"text": "A-4"}).json()["rows"] == 1
    site.worker.advance(job["id"])
    assert look(site, job)["counts"]["failed"] == 1
    assert ask(site, job, "reprocess", json={"code": "NOT_FOUND"}).json()["rows"] == 1
    site.worker.advance(job["id"])
    assert (look(site, job)["state"], look(site, job)["counts"]["created"]) == ("COMPLETED", 6)
    attempts = site.client.get(f"/v1/imports/{job['id']}/items/1/attempts").json()
    assert [(one["attempt"], one["status"]) for one in attempts] == [(2, "created"), (1, "failed")]
    nothing = ask(site, job, "reprocess", json={})
    assert (nothing.status_code, nothing.json()["code"]) == (400, "BAD_REQUEST")


def test_cancelled_reprocessing_leaves_the_job_as_it_was(site: Site) -> None:
    job = sent(site).json()
    site.worker.advance(job["id"])
    before = look(site, job)
    ask(site, job, "reprocess", json={})
    assert ask(site, job, "cancel").json()["state"] == "COMPLETED_WITH_ERRORS"
    after = look(site, job)
    assert after["counts"] == before["counts"]


@pytest.mark.parametrize("sort", ["row", "-row", "updated", "-updated"])
def test_pages_have_every_row_once(site: Site, sort: str) -> None:
    job = sent(site, MANY).json()
    site.worker.advance(job["id"])
    place, rows = f"/v1/imports/{job['id']}/items", list[int]()
    after: dict[str, str] = {}
    while True:
        page = site.client.get(place, params={"sort": sort, "pageSize": 7, **after}).json()
        rows += [item["row"] for item in page["items"]]
        if not page["next"]:
            break
        after = {"after": page["next"]}
    assert sorted(rows) == list(range(1, ROWS + 1))
    assert rows == sorted(rows, reverse=sort == "-row") or "updated" in sort


def test_rows_are_found_by_what_is_in_them_and_wrong_with_them(site: Site) -> None:
    job = sent(site, MANY + ",Nobody,reader,true\nx@example.org,X,king,true\n").json()
    site.worker.advance(job["id"])

    def rows(**asked: str) -> list[int]:
        answer = site.client.get(f"/v1/imports/{job['id']}/items", params=asked)
        return [item["row"] for item in answer.json()["items"]]

    assert rows(statuses="failed") == [ROWS + 1, ROWS + 2]
    assert rows(code="REQUIRED") == [ROWS + 1]
    assert rows(field="role", statuses="failed,skipped") == [ROWS + 2]
    assert rows(text="P7@EXAMPLE") == [8]
    assert rows(text="%") == rows(statuses="cancelled") == rows(statuses="updated") == []
    summary = site.client.get(f"/v1/imports/{job['id']}/results/summary").json()
    assert summary["counts"]["failed"] == sum(issue["count"] for issue in summary["issues"]) == 2
    pending = site.client.get("/v1/pending", params={"userId": "all"}).json()["items"]
    assert [(item["jobId"], item["row"]) for item in pending] == [(job["id"], ROWS + 1), (job["id"], ROWS + 2)]
    unknown = site.client.get(f"/v1/imports/{job['id']}/items", params={"statuses": "gone"})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "BAD_REQUEST")


def test_cursors_fit_only_where_they_come_from(site: Site) -> None:
    first, second = (sent(site, text).json() for text in (MANY, MANY + "q@example.org,Q,reader,true\n"))
    site.worker.advance(first["id"])
    site.worker.advance(second["id"])
    page = site.client.get(f"/v1/imports/{first['id']}/items", params={"pageSize": 5}).json()["next"]
    bent = page[:-3] + ("A" if page[-3] != "A" else "B") + page[-2:]
    for place, asked in [
        (first, {"after": bent}),
        (first, {"after": "é"}),
        (first, {"after": page, "sort": "-row"}),
        (second, {"after": page}),
    ]:
        answer = site.client.get(f"/v1/imports/{place['id']}/items", params=asked)
        assert (answer.status_code, answer.json()["code"]) == (400, "BAD_CURSOR")
    assert site.client.get("/v1/imports", params={"after": page}).status_code == 400


def test_organisations_take_turns(slow: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_TURN", 0.0)
    large, small = sent(slow, MANY).json(), sent(slow).json()
    other = new_id()
    with slow.database.connect() as connection:
        connection.execute("INSERT INTO rowcall.organisation (id, name) VALUES (%s, 'other')", [other])
        connection.execute("UPDATE rowcall.job SET organisation_id = %s WHERE id = %s", [other, small["id"]])
        connection.execute("DELETE FROM rowcall_queue.procrastinate_jobs")
    slow.worker.advance(large["id"])
    assert look(slow, large)["state"] == "PROCESSING"
    with slow.database.connect() as connection:
        told = connection.execute("SELECT args ->> 'job_id' FROM rowcall_queue.procrastinate_jobs").fetchall()
        assert told == [(large["id"],)]
        connection.execute("UPDATE rowcall.job SET wish = 'hold' WHERE id = %s", [small["id"]])
    slow.worker.advance(large["id"])
    assert (look(slow, large)["state"], look(slow, large)["counts"]["created"]) == ("COMPLETED", ROWS)


def test_an_organisation_has_so_many_places(site: Site) -> None:
    jobs = [sent(site, MANY + f"x{n}@example.org,X,reader,true\n").json()["id"] for n in range(6)]
    with site.database.connect() as connection, site.database.connect() as busy:
        connection.execute("DELETE FROM rowcall_queue.procrastinate_jobs")
        for place in range(4):
            given = {"organisation": LOCAL, "place": place}
            busy.execute(query("take_place"), given)
        site.worker.advance(jobs[0])
        assert site.client.get(f"/v1/imports/{jobs[0]}").json()["state"] == "UPLOADED"
        site.worker.recover()
        told = connection.execute(
            "SELECT args ->> 'job_id' FROM rowcall_queue.procrastinate_jobs ORDER BY id"
        ).fetchall()
        assert told == [(job,) for job in jobs[:4]]


def test_b13_a_worker_told_to_stop_ends_its_batches_and_tells_others(slow: Site) -> None:
    job = sent(slow, MANY).json()
    with working(slow, job):
        until(slow, job, lambda now: now["counts"]["created"] > 0)
        slow.worker.halt()
    stopped = look(slow, job)
    assert (stopped["state"], stopped["error"]) == ("PROCESSING", None)
    assert 0 < stopped["counts"]["created"] < ROWS
    with slow.database.connect() as connection:
        told = connection.execute("SELECT args ->> 'job_id' FROM rowcall_queue.procrastinate_jobs").fetchall()
    assert (job["id"],) in told
    Worker(slow.database, slow.worker.registry, slow.worker.settings).advance(job["id"])
    assert (look(slow, job)["state"], look(slow, job)["counts"]["created"]) == ("COMPLETED", ROWS)


def test_k20_what_a_person_has_to_mend_pauses_the_job_with_the_reason(site: Site) -> None:
    with site.database.connect() as connection:
        connection.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$;"
            "CREATE TRIGGER stop BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION full_disk()"
        )
    job = sent(site, MANY).json()
    site.worker.advance(job["id"])
    paused = look(site, job)
    assert (paused["state"], paused["error"]["code"]) == ("PAUSED", "DATABASE_FULL")
    with site.database.connect() as connection:
        connection.execute("DROP TRIGGER stop ON users")
    assert ask(site, job, "resume").json()["error"] is None
    site.worker.advance(job["id"])
    assert look(site, job)["state"] == "COMPLETED"


def test_k30_a_job_is_worked_on_once_however_often_it_is_told_of(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nudges at once used to make two runs, of which only the second could be told to stop."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow_work(self: Worker, job: Any, importer: Any) -> None:
        begun.release()
        go_on.wait(30)

    monkeypatch.setattr(Worker, "_work", slow_work)
    job = sent(site).json()
    threads = [threading.Thread(target=site.worker.advance, args=[job["id"]]) for _ in range(10)]
    threads[0].start()
    assert begun.acquire(timeout=30)
    for thread in threads[1:]:
        thread.start()
    for thread in threads[1:]:
        thread.join()
    go_on.set()
    threads[0].join()
    assert not begun.acquire(blocking=False)


def test_a_job_whose_importer_is_gone_is_for_a_person(site: Site) -> None:
    job = sent(site).json()
    Worker(site.database, Registry(()), site.worker.settings).advance(job["id"])
    paused = site.client.get(f"/v1/imports/{job['id']}").json()
    assert (paused["state"], paused["error"]["code"]) == ("PAUSED", "UNKNOWN_IMPORTER")
    assert site.client.post(f"/v1/imports/{job['id']}/resume").status_code == 202
    site.worker.advance(job["id"])
    assert site.client.get(f"/v1/imports/{job['id']}").json()["state"].startswith("COMPLETED")


def test_k32_nudges_in_the_hands_of_a_worker_that_is_gone_are_made_good(site: Site) -> None:
    job = sent(site).json()
    with site.database.connect() as connection:
        connection.execute("UPDATE rowcall_queue.procrastinate_jobs SET status = 'doing', worker_id = NULL")
        site.worker.recover()
        found = connection.execute("SELECT status::text, args ->> 'job_id' FROM rowcall_queue.procrastinate_jobs")
        assert found.fetchall() == [("todo", job["id"])]
