"""Keys: who is let in, for what, how often; and what every answer carries."""

import asyncio
import re
from collections.abc import Generator
from typing import Any

import httpx
import pytest

from rowcall.api import auth, events
from rowcall.api.app import create_app
from rowcall.api.auth import Gate
from rowcall.api.guards import server_config
from rowcall.api.service import Service
from rowcall.config import settings_from
from rowcall.errors import Final
from rowcall.store import accounts

from .conftest import Site
from .town import UNKNOWN, Town, routes_of, served

PUBLIC = re.compile(r"/openapi\.json|/health/.*|/metrics")
NOBODY = [None, "unknown", "wrong", "revoked", "expired", "disabled", "x", "rowcall_", "ä"]
SECURE = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def filled(path: str, job: str = UNKNOWN) -> str:
    return re.sub(r"\{\w+\}", "1", re.sub(r"\{(\w*id)(:\w+)?\}", job, path))


def guarded(town: Town) -> list[tuple[str, str]]:
    return [(method, path) for method, path in routes_of(town.app) if path.startswith("/v1")]


def test_all_that_is_served_is_behind_the_gate_or_meant_to_be_public(town: Town) -> None:
    assert [path for _, path in routes_of(town.app) if not path.startswith("/v1/") and not PUBLIC.fullmatch(path)] == []
    assert ("POST", "/v1/imports") in guarded(town)


def test_every_route_asks_for_a_good_key(town: Town) -> None:
    before = jobs_in(town)
    for method, path in guarded(town):
        for who in NOBODY:
            answer = refused(town, who, method, filled(path))
            assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED"), (method, path, who)
            assert answer.headers["www-authenticate"].startswith('Bearer realm="rowcall"')
            assert answer.headers["content-type"] == "application/problem+json"
            assert SECURE.items() <= dict(answer.headers).items()
    assert jobs_in(town) == before


def refused(town: Town, who: str | None, method: str, path: str) -> httpx.Response:
    gate = gate_of(town)
    gate._failures._levels.clear()  # that too many are throttled is another test's
    if who == "ä":
        return town.client.request(method, path, headers=[(b"Authorization", b"Bearer \xe4")])
    return town.ask(who, method, path)


def gate_of(town: Town) -> Gate:
    found: Any = town.app.middleware_stack
    while not isinstance(found, Gate):
        found = getattr(found, "app", None) or found._app
    return found


def jobs_in(town: Town) -> int:
    with town.database.connect() as connection:
        return connection.execute("SELECT count(*) FROM rowcall.job").fetchall()[0][0]


def test_every_route_asks_for_the_scope(town: Town) -> None:
    """Keys that lack the scope which a route needs are told so, and a key that has it is let through."""
    can = {
        "reader": {"imports:read"},
        "writer": {"imports:read", "imports:write"},
        "exporter": {"exports:read"},
        "ada as operator": {"imports:read", "imports:write", "exports:read"},
    }
    assert auth.scope_of("POST", "/v1/imports/{job_id}/export") == auth.scope_of("POST", "/v1/exports")
    for method, path in guarded(town):
        needed = auth.scope_of(method, path)
        for who, scopes in can.items():
            answer = town.ask(who, method, filled(path))
            assert (answer.status_code == 403) is (needed not in scopes), (method, path, who, answer.text)
            if answer.status_code == 403:
                assert answer.json()["code"] == "FORBIDDEN"
                assert f'scope="{needed}"' in answer.headers["www-authenticate"]


def test_a_key_is_taken_however_bearer_is_written_and_only_alone(town: Town) -> None:
    key = town.keys["ann"]
    assert town.client.get("/v1/imports", headers={"Authorization": f"bearer   {key}"}).status_code == 200
    twice = [("Authorization", f"Bearer {key}"), ("Authorization", f"Bearer {key}")]
    assert town.client.get("/v1/imports", headers=twice).status_code == 401
    assert town.client.get("/v1/imports", headers={"Authorization": f"Basic {key}"}).status_code == 401
    assert town.client.get("/v1/imports", params={"key": key}).status_code == 401


def test_a_key_that_is_revoked_or_demoted_counts_at_once(town: Town) -> None:
    with town.database.connect() as connection:
        account = accounts.ensure_account(connection, "eve", organisation="acme", role=accounts.Role.ADMIN)
        key, made = accounts.create_key(connection, account, name="", scopes=frozenset(accounts.Scope), expires=None)
        assert town.ask(key, "GET", "/v1/audit").status_code == 200
        accounts.change_account(connection, account, role=accounts.Role.OPERATOR, disabled=None)
        answer = town.ask(key, "GET", "/v1/audit")
        assert (answer.status_code, answer.json()["detail"]) == (403, "Only admins may do that.")
        accounts.revoke_key(connection, made)
    answer = town.ask(key, "GET", "/v1/imports")
    assert (answer.status_code, answer.json()["detail"]) == (401, "The key was revoked.")


def test_the_stream_of_a_key_that_is_revoked_ends(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_STILL_WELCOME", 0)
    monkeypatch.setattr(events, "_SIGN_OF_LIFE", 0.2)
    with town.database.connect() as connection:
        account = accounts.get_account(connection, "ann")
        key, made = accounts.create_key(connection, account, name="", scopes=frozenset(accounts.Scope), expires=None)
        job = town.send(key).json()["id"]
        headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
        with town.client.stream("GET", f"/v1/imports/{job}/events", headers=headers, timeout=10) as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if line.startswith("event:"))
            accounts.revoke_key(connection, made)
            assert [line for line in lines if line.startswith("event: state")] == []  # and then it is over


def test_when_a_key_was_used_is_written_at_most_once_a_minute(town: Town) -> None:
    with town.database.connect() as connection:
        state = "SELECT last_used_at, xmin::text FROM rowcall.api_key WHERE prefix = %s"
        prefix = [accounts.prefix_of(town.keys["ben"])]
        town.ask("ben", "GET", "/v1/imports")
        used = connection.execute(state, prefix).fetchone()
        town.ask("ben", "GET", "/v1/imports")
        assert connection.execute(state, prefix).fetchone() == used
        connection.execute("UPDATE rowcall.api_key SET last_used_at = now() - interval '2 minutes'")
        town.ask("ben", "GET", "/v1/imports")
        assert (connection.execute(state, prefix).fetchone() or [None])[0] != used[0] if used else False


def test_keys_are_not_kept(town: Town) -> None:
    with town.database.connect() as connection:
        kept = str(connection.execute("SELECT k::text, encode(hash, 'escape') FROM rowcall.api_key k").fetchall())
    assert all(key[-43:] not in kept for who, key in town.keys.items() if who != "unknown")
    assert re.fullmatch(r"rowcall_[0-9a-z]{12}_[0-9A-Za-z]{43}", town.keys["ann"])  # 62 ** 43 > 2 ** 256


# ------------------------------------------------------------------------------------------------------ without keys


def test_without_keys_this_machine_is_the_local_admin_until_there_is_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_RECHECK", 0)
    assert site.client.get("/v1/audit").status_code == 200
    assert site.client.get("/v1/imports", headers={"Origin": "http://localhost:5173"}).status_code == 200
    for elsewhere in (
        {"Host": "evil.example"},
        {"Host": "["},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"X-Forwarded-For": "203.0.113.9"},
    ):
        assert site.client.get("/v1/imports", headers=elsewhere).status_code == 401, elsewhere
    with site.database.connect() as connection:
        account = accounts.ensure_account(connection, "ann", organisation=None, role=None)
        key, made = accounts.create_key(connection, account, name="", scopes=frozenset(accounts.Scope), expires=None)
        assert site.client.get("/v1/imports").status_code == 401
        assert site.client.get("/v1/imports", headers={"Authorization": f"Bearer {key}"}).status_code == 200
        accounts.revoke_key(connection, made)
    assert site.client.get("/v1/imports").status_code == 401


# ------------------------------------------------------------------------------------------------------------ limits


@pytest.fixture
def strict(town: Town) -> Generator[tuple[Town, httpx.Client]]:
    """The same town behind a service with other settings."""
    given = {
        "ROWCALL_RATE_LIMIT": "3",
        "ROWCALL_TRUSTED_PROXIES": "127.0.0.0/8",
        "ROWCALL_CORS_ORIGINS": "https://app.example.org",
        "ROWCALL_HSTS": "31536000",
        "ROWCALL_MAX_BODY": "2KB",
        "ROWCALL_DATA_DIR": str(town.service.settings.data_dir),
    }
    app = create_app(Service(settings_from(given), town.service.registry, town.database.pool("strict", 2)))

    @app.post("/v1/echo")
    def echo(body: dict[str, Any]) -> int:  # pyright: ignore[reportUnusedFunction] (a route)
        return len(body)

    @app.get("/broken")
    def broken() -> None:  # pyright: ignore[reportUnusedFunction] (a route)
        raise KeyError("a secret")

    with served(app) as url, httpx.Client(base_url=url) as client:
        yield town, client


def bearer(town: Town, who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {town.keys[who]}"}


def test_each_key_has_its_rate(strict: tuple[Town, httpx.Client]) -> None:
    town, client = strict
    answers = [client.get("/v1/imports", headers=bearer(town, "ann")) for _ in range(6)]
    assert [answer.status_code for answer in answers[-2:]] == [429, 429]
    last = answers[-1]
    assert (last.json()["code"], int(last.headers["retry-after"])) == ("TOO_MANY_REQUESTS", 20)
    assert client.get("/v1/imports", headers=bearer(town, "ben")).status_code == 200


def test_settings_reach_the_answers(strict: tuple[Town, httpx.Client]) -> None:
    town, client = strict
    here, there = {"Origin": "https://app.example.org"}, {"Origin": "https://evil.example"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    assert client.options("/v1/imports", headers=here | asked).status_code == 200
    assert client.options("/v1/imports", headers=there | asked).status_code == 400
    answer = client.get("/v1/imports", headers=here | bearer(town, "ann"))
    assert answer.headers["access-control-allow-origin"] == "https://app.example.org"
    assert "access-control-allow-origin" not in client.get("/v1/imports", headers=there).headers
    assert answer.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
    assert "server" not in answer.headers
    assert SECURE.items() <= dict(answer.headers).items()
    broken = client.get("/broken")
    assert (broken.status_code, broken.json()["code"]) == (500, "INTERNAL_ERROR")
    assert SECURE.items() <= dict(broken.headers).items()
    assert broken.headers["x-request-id"] in broken.json()["hint"]
    assert "secret" not in broken.text


def test_bodies_have_a_limit(strict: tuple[Town, httpx.Client]) -> None:
    town, client = strict
    large = b'{"a": "' + b"x" * 5_000 + b'"}'
    headers = bearer(town, "zoe") | {"Content-Type": "application/json"}
    assert client.post("/v1/echo", content=b'{"a": 1}', headers=headers).json() == 1
    for body in (large, iter([large[:3_000], large[3_000:]])):
        answer = client.post("/v1/echo", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")


def test_forwarded_addresses_are_believed_of_trusted_proxies_only(strict: tuple[Town, httpx.Client]) -> None:
    town, client = strict
    claimed = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
    for sender, headers in ((client, claimed), (town.client, claimed)):
        sent = {"importer": "users", "fileName": "a.csv"}
        assert sender.post(
            "/v1/imports", params=sent, content="email\n", headers=headers | bearer(town, "ada")
        ).is_success
    entries = town.ask("ada", "GET", "/v1/audit", params={"pageSize": 2}).json()["items"]
    assert [entry["clientAddress"] for entry in entries] == ["127.0.0.1", "203.0.113.9"]


def test_ten_thousand_bad_keys_are_throttled_without_asking_the_database(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = accounts.find_key

    def counted(connection: Any, prefix: str, digest: bytes) -> Any:
        asked.append(prefix)
        return real(connection, prefix, digest)

    monkeypatch.setattr(auth, "find_key", counted)

    async def let_in(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    gate = Gate(let_in, service=town.service)

    async def ask(key: str, address: str = "203.0.113.1") -> int:
        answers: list[int] = []

        async def send(message: Any) -> None:
            answers.append(message.get("status"))

        headers = [(b"authorization", f"Bearer {key}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/v1/imports", "headers": headers, "query_string": b""}
        state = {"client": (address, 1), "state": {"request_id": "x"}}
        await gate({**scope, **state}, None, send)  # pyright: ignore[reportArgumentType] (nothing is read)
        return answers[0]

    async def attack() -> dict[int, int]:
        assert await ask(town.keys["ann"]) == 200
        told: dict[int, int] = {}
        for number in range(10_000):
            status = await ask(f"rowcall_{number:012}_{'A' * 43}")
            told[status] = told.get(status, 0) + 1
        assert await ask(town.keys["ann"]) == 200  # known before
        assert await ask(town.keys["ben"]) == 429  # not known, from there
        assert await ask(town.keys["ben"], "203.0.113.2") == 200
        for number in range(30):
            await ask("bad", f"2001:db8::{number}")  # one machine
        assert await ask("bad", "2001:db8::ffff") == 429
        return told

    told = asyncio.run(attack())
    assert told[401] + told[429] == 10_000
    assert told[401] <= 25
    assert len(asked) <= 30


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROWCALL_RATE_LIMIT", "0"),
        ("ROWCALL_TRUSTED_PROXIES", "*"),
        ("ROWCALL_TRUSTED_PROXIES", "10.0.0.1/8"),
        ("ROWCALL_CORS_ORIGINS", "*"),
        ("ROWCALL_CORS_ORIGINS", "https://app.example.org/"),
        ("ROWCALL_HSTS", "yes"),
        ("ROWCALL_MAX_BODY", "-1"),
    ],
)
def test_wrong_settings_are_refused(name: str, value: str) -> None:
    with pytest.raises(Final, match=name):
        settings_from({name: value})


def test_proxies_are_not_trusted_unless_told(town: Town) -> None:
    config = server_config(town.app, town.service.settings)
    assert (config.proxy_headers, config.server_header) == (False, False)
