"""`rowcall.Client` and servers that refuse, are busy, old, or something else."""

import subprocess
import sys

import pytest

from rowcall import Client, Final, RequestRefused, ServerUnavailable, client

from ..web import answer, serving


def test_who_cannot_be_reached_is_told_soon() -> None:
    with serving() as web:
        pass
    with Client(web.url("/rowcall"), patience=0.3) as at, pytest.raises(ServerUnavailable) as told:
        at.importers()
    assert told.value.code == "SERVER_UNREACHABLE"
    assert f"http://127.0.0.1:{web.port}/rowcall can't be reached" in told.value.message


@pytest.mark.parametrize(
    ("status", "kind", "body", "code"),
    [
        (404, "text/html", "<h1>Not found</h1>", "NOT_ROWCALL"),
        (200, "text/html", "<h1>Welcome</h1>", "NOT_ROWCALL"),
        (200, "application/json", '{"jobs": []}', "NOT_ROWCALL"),
        (302, "text/html", "", "NOT_ROWCALL"),
        (404, "application/problem+json", '{"code": "NO_SUCH_PLACE", "detail": "Not Found"}', "SERVER_TOO_OLD"),
    ],
)
def test_other_servers_and_old_ones_are_told_apart(status: int, kind: str, body: str, code: str) -> None:
    with serving() as web, Client(web.url("")) as at:
        web.at("/v1/imports", body, status=status, content_type=kind, connection="close", location="http://x.org/")
        with pytest.raises(RequestRefused) as told:
            next(at.jobs())
    assert told.value.code == code


def test_a_server_that_has_no_time_is_asked_again() -> None:
    busy = {"content_type": "application/problem+json", "connection": "close"}
    told = '{"code": "TOO_MANY_REQUESTS", "detail": "Too often.", "hint": "Later."}'
    answers = [
        answer(told, status=429, retry_after="1", **busy),
        answer("bad gateway", status=502, connection="close"),
        answer('{"items": [], "next": null}', content_type="application/json", connection="close"),
    ]
    with serving() as web, Client(web.url("")) as at:
        web.routes["/v1/imports"] = lambda request, to: answers.pop(0)(request, to)
        assert list(at.jobs()) == []
    assert (answers, len(web.requests)) == ([], 3)
    with serving() as web, Client(web.url(""), patience=0) as at:
        web.at("/v1/imports", told, status=429, retry_after="3600", **busy)
        with pytest.raises(ServerUnavailable) as refused:
            list(at.jobs())
    assert (refused.value.code, refused.value.status, refused.value.retry_after) == ("TOO_MANY_REQUESTS", 429, 3600)
    assert (refused.value.message, refused.value.hint) == ("Too often.", "Later.")


def test_fields_that_nobody_knows_yet_are_passed_over() -> None:
    body = '{"items": [{"name": "x", "description": "", "target": "t", "colour": "red"}]}'
    with serving() as web, Client(web.url("")) as at:
        listed = body.partition(": ")[2][:-1]
        web.at("/v1/importers", listed, content_type="application/json", connection="close")
        assert [one.name for one in at.importers()] == ["x"]


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("rowcall.example.org", None),
        ("ftp://rowcall.example.org", None),
        ("http://ann:secret@rowcall.example.org", None),
        ("http://rowcall.example.org:99999", None),
        ("http://rowcall.example.org", "a\nb"),
        ("http://rowcall.example.org", ""),
    ],
)
def test_addresses_and_keys_that_are_none_are_refused(url: str, key: str | None) -> None:
    with pytest.raises(Final, match=r"address|key") as told:
        Client(url, key)
    assert "secret" not in str(told.value)


def test_what_the_client_takes_is_where_the_client_is() -> None:
    taken = {"ColumnAnswers", "ColumnUpdate", "Join", "Replacement", "TemplateName", "ValueSaid"}
    assert taken <= set(client.__all__)
    assert all(getattr(client, name).__name__ == name for name in client.__all__)


def test_who_asks_no_server_waits_for_no_client() -> None:
    loaded = "import rowcall, rowcall.cli.import_, rowcall.cli.jobs, rowcall.cli.export, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True, text=True).stdout.split()
    assert "rowcall.client.answers" in modules
    assert {"httpx", "rowcall.client.client", "rowcall.cli.local"}.isdisjoint(modules)
