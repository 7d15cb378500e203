"""`rowcall keys` and `rowcall accounts`, and what `rowcall serve` wants of them."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from rowcall.cli.app import commands
from rowcall.errors import Final, RowcallError
from rowcall.model import Code
from rowcall.store.accounts import find_key, hash_of, prefix_of
from rowcall.store.db import Database

from ..integration.command import rowcall


@pytest.fixture
def settings(database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Database:
    monkeypatch.setenv("ROWCALL_DATABASE_URL", database.url)
    monkeypatch.setenv("ROWCALL_DATA_DIR", str(tmp_path))
    return database


def run(*words: str) -> str:
    done = CliRunner().invoke(commands(words[0]), list(words), prog_name="rowcall")
    if isinstance(done.exception, RowcallError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_key_is_made_listed_and_revoked(settings: Database) -> None:
    made = ("keys", "create", "--account", "ann@example.org", "--organisation", "acme", "--role", "admin")
    key = run(*made, "--expires", "90d", "--name", "nightly").strip()
    with settings.connect() as connection:
        found = find_key(connection, prefix_of(key) or "", hash_of(key))
        assert found is not None
        assert (found.account, found.role, len(found.scopes), found.refusal) == ("ann@example.org", "admin", 4, None)
    second = json.loads(run("keys", "create", "--account", "ann@example.org", "--scope", "imports:read", "--json"))
    assert (second["scopes"], second["organisation"], second["expiresAt"]) == (["imports:read"], "acme", None)
    listed = json.loads(run("keys", "list", "--organisation", "acme", "--json"))
    assert [(each["prefix"], each["state"]) for each in listed] == [
        (second["prefix"], "active"),
        (prefix_of(key), "active"),
    ]
    assert "nightly" in run("keys", "list")
    assert key[-43:] not in run("keys", "list", "--json")
    assert "is revoked" in run("keys", "revoke", f"rowcall_{second['prefix']}")
    assert "is already revoked" in run("keys", "revoke", second["key"])
    assert [each["state"] for each in json.loads(run("keys", "list", "--json"))] == ["revoked", "active"]
    assert "disabled" in run("accounts", "set", "ann@example.org", "--disabled")
    assert json.loads(run("accounts", "list", "--json"))[0]["state"] == "disabled"
    assert "operator of acme, active" in run("accounts", "set", "ann@example.org", "--enabled", "--role", "operator")
    with settings.connect() as connection:
        done = connection.execute("SELECT action, account <> '' FROM rowcall.audit ORDER BY id").fetchall()
    assert done == [
        (action, True)
        for action in ("key.create", "key.create", "key.revoke", "key.revoke", "account.set", "account.set")
    ]


WRONG = [
    (["--role", "god"], Code.BAD_OPTION, "--role is 'god'; expected operator, admin"),
    (["--scope", "imports"], Code.BAD_OPTION, "--scope is 'imports'"),
    (["--scope", "admin"], Code.BAD_OPTION, "can't have the scope admin"),
    (["--expires", "soon"], Code.BAD_OPTION, "--expires is 'soon'"),
    (["--expires", "2001-01-01"], Code.BAD_OPTION, "is over"),
    (["--role", "admin"], Code.ACCOUNT_EXISTS, "is there already, as operator"),
    (["--organisation", "zeta"], Code.ACCOUNT_EXISTS, "is of organisation local"),
]


def test_what_is_wrong_is_told(settings: Database) -> None:
    run("keys", "create", "--account", "ann")
    for name in ("", " ", "ann ", "a\nb", "*"):
        with pytest.raises(Final, match="a name is expected"):
            run("keys", "create", "--account", name)
        with pytest.raises(Final, match="--organisation is"):
            run("keys", "create", "--account", "ann", "--organisation", name)
    for words, code, told in WRONG:
        with pytest.raises(Final) as caught:
            run("keys", "create", "--account", "ann", *words)
        assert (caught.value.code, told in caught.value.message) == (code, True), words
    assert len(json.loads(run("keys", "list", "--json"))) == 1


def test_what_is_not_there_is_told(settings: Database) -> None:
    with pytest.raises(Final, match="no key with that prefix"):
        run("keys", "revoke", "rowcall_000000000000")
    with pytest.raises(Final, match="no account 'bob'"):
        run("accounts", "set", "bob", "--disabled")
    assert (run("keys", "list"), run("accounts", "list")) == ("No keys.\n", "No accounts.\n")
    refused = rowcall("serve", "--host", "0.0.0.0", "--port", "0")
    assert "Without keys, Rowcall serves this machine only; 0.0.0.0 would let others in" in refused.err
