"""Files are fetched whole or not at all, within bounds of size and time, from where the guard said."""

import gzip
import os
import ssl
import subprocess
import time
from collections.abc import Generator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from rowcall.errors import Final, RowcallError
from rowcall.sources import url
from rowcall.sources.addresses import Allowed
from rowcall.sources.guard import Guard
from rowcall.sources.place import parsed
from rowcall.sources.url import Fetching, fetch, post

from ..web import Request, Web, answer, dripping, serving, silent


@pytest.fixture
def web() -> Generator[Web]:
    with serving() as web:
        yield web


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url, "PAUSES", (0.01, 0.01))


def got(where: str, *, guard: Guard | None = None, **how: Any) -> bytes:
    out = BytesIO()
    bounds: dict[str, Any] = {"most": 100_000, "seconds": 10.0, "quiet": 5.0, **how}
    fetch(parsed(where), out, Fetching(guard=guard or Guard(Allowed.of("127.0.0.1:*")), **bounds))
    return out.getvalue()


def code(where: str, **how: Any) -> str:
    with pytest.raises(RowcallError) as caught:
        got(where, **how)
    assert "secret" not in str(caught.value)
    return caught.value.code


def test_a_file_is_fetched(web: Web) -> None:
    assert got(web.at("/a.csv", "a,b\n1,2\n")) == b"a,b\n1,2\n"
    (request,) = web.requests
    assert request.headers["host"] == f"127.0.0.1:{web.port}"
    assert request.headers["accept-encoding"] == "identity"


def test_the_connection_goes_where_the_check_looked(web: Web) -> None:
    """A name that means a public place when it is checked, and us when it is connected to."""
    asked: list[str] = []

    def changing(name: str, _: int) -> list[str]:
        asked.append(name)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    web.at("/x", "ok")
    guard = Guard(Allowed.of(f"127.0.0.1:{web.port}"), changing)
    assert got(web.url("/x", host="data.example"), guard=guard) == b"ok"
    assert asked == ["data.example"], "it is resolved once"
    assert web.requests[0].headers["host"] == f"data.example:{web.port}"


def test_each_redirect_is_checked_anew(web: Web) -> None:
    web.at("/end", "ok")
    assert got(web.at("/start", status=302, location="/end")) == b"ok"
    for place in ("http://169.254.169.254/latest", "http://[::1]/", "file:///etc/passwd", "http://127.0.0.2/"):
        assert code(web.at("/away", status=307, location=place)) == "URL_REFUSED"
    rebinding = iter([["127.0.0.1"], ["10.0.0.1"]])
    guard = Guard(Allowed.of("127.0.0.1:*"), lambda _, __: next(rebinding))
    web.at("/back", status=302, location=web.url("/end", host="data.example"))
    assert code(web.url("/back", host="data.example"), guard=guard) == "URL_REFUSED"


def test_redirects_are_few(web: Web) -> None:
    for number in range(7):
        web.at(f"/{number}", status=301, location=f"/{number + 1}")
    web.at("/7", "ok")
    assert got(web.url("/2")) == b"ok"
    assert code(web.url("/1")) == "URL_REFUSED"
    assert code(web.at("/round", status=308, location="/round")) == "URL_REFUSED"


def test_a_login_goes_to_its_own_server_only(web: Web) -> None:
    with serving() as other:
        other.at("/end", "ok")
        web.at("/start", status=302, location=other.url("/end"))
        assert got(web.url("/start", login="ann:secret@")) == b"ok"
        assert web.requests[0].headers["authorization"] == "Basic YW5uOnNlY3JldA=="
        assert "authorization" not in other.requests[0].headers


def test_proxies_of_the_environment_are_ignored(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert got(web.at("/x", "ok")) == b"ok"


def test_what_is_too_large_is_refused_by_its_length_and_by_its_bytes(web: Web) -> None:
    assert code(web.at("/a", b"x" * 2000), most=1000) == "FILE_TOO_LARGE"
    web.routes["/b"] = dripping(b"x" * 500)
    began = time.monotonic()
    assert code(web.url("/b"), most=1000) == "FILE_TOO_LARGE"
    assert time.monotonic() - began < 2


def test_what_is_endless_or_silent_is_given_up(web: Web) -> None:
    web.routes |= {"/slow": dripping(), "/silent": silent}
    began = time.monotonic()
    assert code(web.url("/slow"), seconds=0.5) == "URL_UNREACHABLE"
    assert code(web.url("/silent"), quiet=0.1) == "URL_UNREACHABLE"
    assert code(web.url("/silent"), seconds=0.5) == "URL_UNREACHABLE"
    assert time.monotonic() - began < 6


def test_fetching_ends_when_somebody_wants_it_to(web: Web) -> None:
    web.routes["/silent"] = silent
    until = time.monotonic() + 0.3

    def check() -> None:
        if time.monotonic() > until:
            raise Final("INTERRUPTED", "enough")

    assert code(web.url("/silent"), check=check) == "INTERRUPTED"
    assert time.monotonic() < until + 1


@pytest.mark.parametrize("length", ["20", "9999999999999999999999", "-1", "x", "5, 6"])
def test_a_wrong_length_is_noticed(web: Web, length: str) -> None:
    assert code(web.at("/short", "a,b\n1,2\n", content_length=length)) in ("URL_UNREACHABLE", "FILE_TOO_LARGE")


def test_chunks_that_end_too_early_are_noticed(web: Web) -> None:
    assert code(web.at("/cut", b"5\r\nabcde\r\n", content_length="", transfer_encoding="chunked")) == "URL_UNREACHABLE"
    assert got(web.at("/x", b"5\r\nabcde\r\n0\r\n\r\n", content_length="", transfer_encoding="chunked")) == b"abcde"


def test_packed_answers_stay_packed_and_others_are_refused(web: Web) -> None:
    packed = gzip.compress(b"a,b\n1,2\n")
    assert got(web.at("/gz", packed, content_encoding="gzip")) == packed
    assert code(web.at("/br", b"xyz", content_encoding="br")) == "CONTENT_MISMATCH"
    assert code(web.at("/two", b"xyz", content_encoding="gzip, gzip")) == "CONTENT_MISMATCH"


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("\ufeff\n <!DOCTYPE html><title>Log in</title>", "text/html; charset=utf-8"),
        ("<html><body>Sorry", "text/csv"),
        ("<!-- x --><p>Sorry", "TEXT/HTML"),
    ],
)
def test_a_web_page_is_no_file(web: Web, page: str, kind: str) -> None:
    assert code(web.at("/page", page, content_type=kind)) == "CONTENT_MISMATCH"


def test_a_file_may_be_called_a_web_page(web: Web) -> None:
    assert got(web.at("/x", "a,b\n<,>\n", content_type="text/html")) == b"a,b\n<,>\n"


def test_what_may_pass_is_tried_again(web: Web) -> None:
    answers = [answer(status=503), answer(status=429, retry_after="0"), answer("a\n1\n")]
    web.routes["/x"] = lambda request, connection: answers.pop(0)(request, connection)
    assert got(web.url("/x")) == b"a\n1\n"
    assert len(web.requests) == 3


def test_bytes_of_an_attempt_that_failed_are_gone(web: Web) -> None:
    answers = [answer("a,b\n1,2\n3,4\n", content_length="100"), answer("a\n1\n")]
    web.routes["/x"] = lambda request, connection: answers.pop(0)(request, connection)
    assert got(web.url("/x")) == b"a\n1\n"


def test_what_will_not_pass_is_told_at_once(web: Web) -> None:
    assert code(web.at("/gone", status=404)) == "URL_FAILED"
    assert code(web.at("/part", "x", status=206)) == "URL_FAILED"
    assert len(web.requests) == 2
    assert code(web.at("/busy", status=503, retry_after="3600")) == "URL_FAILED"
    assert code(web.at("/later", status=503, retry_after="Fri, 31 Dec 2100 23:59:59 GMT")) == "URL_FAILED"
    assert len(web.requests) == 4
    assert code(web.at("/down", status=500)) == "URL_FAILED"
    assert len(web.requests) == 7


def test_nobody_there_is_told() -> None:
    assert code("http://127.0.0.1:1/") == "URL_UNREACHABLE"


@pytest.mark.parametrize("first", ["HTTP/9 nonsense", "", "x" * 200_000, "HTTP/1.1 200 OK\r\n" + "a: b\r\n" * 50_000])
def test_servers_that_talk_nonsense_are_given_up(web: Web, first: str) -> None:
    def nonsense(_: Request, connection: Any) -> None:
        connection.sendall(first.encode() + b"\r\n")

    web.routes["/x"] = nonsense
    assert code(web.url("/x")) == "URL_UNREACHABLE"


def test_an_answer_to_a_post_is_only_a_status(web: Web) -> None:
    web.routes["/slow"] = dripping()
    how = Fetching(guard=Guard(Allowed.of("127.0.0.1:*")), most=0, seconds=5)
    assert post(parsed(web.url("/slow")), b"{}", {"X-A": "1"}, how).status == 200
    moved = post(parsed(web.at("/moved", status=302, location="/slow", retry_after="7")), b"{}", {}, how)
    assert (moved.status, moved.retry_after) == (302, 7)
    assert [(request.method, request.body) for request in web.requests] == [("POST", b"{}")] * 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of data.example, by itself."""
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=data.example", "-addext", "subjectAltName=DNS:data.example"]
    kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    out = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    quiet = {**os.environ, "RANDFILE": str(folder / "rnd")}
    subprocess.run(["openssl", *kind, *subject, *out], check=True, capture_output=True, env=quiet)
    return folder


def test_certificates_are_checked_against_the_name(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    names: list[str | None] = []
    context.sni_callback = lambda _, name, __: names.append(name)
    trust = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    guard = Guard(Allowed.of("127.0.0.1:*"), lambda _, __: ["127.0.0.1"])
    with serving(context) as web, serving() as plain:
        web.at("/x", "ok")
        assert got(web.url("/x", host="data.example"), guard=guard, trust=trust) == b"ok"
        assert names == ["data.example"]
        assert code(web.url("/x", host="other.example"), guard=guard, trust=trust) == "URL_UNREACHABLE"
        assert code(web.url("/x", host="data.example"), guard=guard) == "URL_UNREACHABLE"
        web.at("/down", status=302, location=plain.at("/x", "ok"))
        assert code(web.url("/down", host="data.example"), guard=guard, trust=trust) == "URL_REFUSED"
        assert plain.requests == []
