"""Organisations that share a service don't hear of each other: not over HTTP, and not by SQL."""

import re
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Identifier

from rowcall.api.service import Caller
from rowcall.errors import Final
from rowcall.model import Code, Scope
from rowcall.store import accounts
from rowcall.store.db import Database
from rowcall.store.files.filestore import file_store
from rowcall.store.files.marks import bind
from rowcall.store.grants import require_grants
from rowcall.store.jobs import LOCAL
from rowcall.store.migrate import migrate
from rowcall.store.queries import query
from rowcall.store.tenancy import lacking, open_to_api, seeing_only
from rowcall.worker.queue import migrate_queue

from ..database import Server
from ..engine.test_queries import FILLED, HOT, JOB, SHOWN
from .test_auth import filled, guarded
from .town import UNKNOWN, Town, open_town

OPEN_TABLES = """
    SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = 'rowcall'::regnamespace AND c.relkind IN ('r', 'v')
      AND has_table_privilege('rowcall_api', c.oid, 'SELECT, INSERT, UPDATE, DELETE')
"""

OF_EVERY_JOB = """
    INSERT INTO rowcall.waiting SELECT id, 1 FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.row_edit SELECT id, 1, '{x}', NULL, 1, account, now() FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.cell_edit SELECT id, 1, 1, 0, 'w', 'x', account, now() FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.value_field SELECT id, 'role', true FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.value_mapping (job_id, field, scope, value, folded, digest, occurrences)
        SELECT id, 'role', '', 'x', 'x', 'x', 1 FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.value_decision
        SELECT DISTINCT ON (organisation_id) id, organisation_id, importer, 'role', '', NULL, 'x', 'x'::bytea, 'empty',
               NULL, NULL, false, account, now(), id, number
        FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.column_decision
        SELECT DISTINCT ON (organisation_id) id, organisation_id, importer, 'x', 'X', 'role', account
        FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.mapping_template
        SELECT DISTINCT ON (organisation_id) id, organisation_id, 'crm', importer, 'x', '[]', '{}', account
        FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.plan SELECT id, repeat('a', 64), now(), '{}', '{}', '[]' FROM rowcall.job
        ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.plan_piece SELECT id, 1, 1, NULL, 'abcdefgh' FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.undo SELECT id, 1, account, NULL, '{}', false, 'COMPLETED', 1, 1, 1 FROM rowcall.job
        ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.reversal SELECT id, 1, 1, 'gone' FROM rowcall.job ON CONFLICT DO NOTHING;
    INSERT INTO rowcall.fingerprint_check SELECT id, 'pass', '', 1, 1, 0, 0, 0, '[]' FROM rowcall.job
        ON CONFLICT DO NOTHING;
"""
"""Something in each table that the flow of these jobs leaves empty."""
OF_ALL_ACCOUNTS = {"column_decision", "mapping_template", "value_decision"}
"""What an organisation has in common, whoever of it decided."""


def number_of_jobs(town: Town, who: str, **params: str) -> int:
    answer = town.ask(who, "GET", "/v1/imports", params={"pageSize": 1000, **params})
    assert int(answer.headers["x-total-count"]) == len(answer.json()["items"])
    return len(answer.json()["items"])


def same_answer(one: httpx.Response, other: httpx.Response, ids: tuple[str, ...]) -> bool:
    told = [re.sub("|".join(ids), "ID", answer.text) for answer in (one, other)]
    unlike = ("x-request-id", "date", "content-length")
    headers = [{name: value for name, value in a.headers.items() if name not in unlike} for a in (one, other)]
    return one.status_code == other.status_code and told[0] == told[1] and headers[0] == headers[1]


# ---------------------------------------------------------------------------------------------------------- over HTTP


def test_on_every_route_another_organisations_id_is_like_one_that_never_was(town: Town) -> None:
    foreign = town.send("zoe").json()["id"]
    town.worker.advance(foreign)
    counts = town.ask("zoe", "GET", f"/v1/imports/{foreign}").json()["counts"]
    routes = [(method, path) for method, path in guarded(town) if "id}" in path]
    assert ("GET", "/v1/imports/{job_id}") in routes
    for method, path in routes:
        for who in ("ada", "ann"):
            answer, unknown = (town.ask(who, method, filled(path, job)) for job in (foreign, UNKNOWN))
            assert same_answer(answer, unknown, (foreign, UNKNOWN)), (method, path, answer.text, unknown.text)
            assert 400 <= answer.status_code < 500, (method, path, answer.text)
    assert town.ask("zoe", "GET", f"/v1/imports/{foreign}").json()["counts"] == counts


def test_c12_operators_see_their_own_jobs_and_admins_all_of_the_organisation(town: Town) -> None:
    before = {who: number_of_jobs(town, who) for who in ("ann", "ben", "ada", "zoe")}
    job = town.send("ann").json()
    assert job["account"] == "ann"
    after = {who: number_of_jobs(town, who) - before[who] for who in before}
    assert after == {"ann": 1, "ben": 0, "ada": 1, "zoe": 0}
    place = f"/v1/imports/{job['id']}"
    told = {who: town.ask(who, "GET", place).status_code for who in (*before, "ada as operator")}
    assert told == {"ann": 200, "ben": 404, "ada": 200, "zoe": 404, "ada as operator": 404}
    assert number_of_jobs(town, "ada", userId="me") == number_of_jobs(town, "ada as operator")
    assert number_of_jobs(town, "ada", userId="all") == number_of_jobs(town, "ada")
    assert town.ask("ann", "GET", "/v1/imports", params={"userId": "all"}).status_code == 403
    assert town.ask("ann", "GET", "/v1/imports", params={"userId": "ben"}).status_code == 422


def test_fifty_requests_with_one_idempotency_key_make_a_job_in_each_organisation(town: Town) -> None:
    with ThreadPoolExecutor(10) as threads:
        sending = [threads.submit(town.send, who, "one key") for who in ["ann", "zoe"] * 25]
        answers = [future.result() for future in sending]
    assert sorted({answer.status_code for answer in answers}) == [200, 202]
    assert sum(answer.status_code == 202 for answer in answers) == 2
    made = [{answer.json()["id"] for answer in answers[place::2]} for place in (0, 1)]
    assert [len(ids) for ids in made] == [1, 1]
    assert made[0] != made[1]
    taken = town.send("ben", "one key")  # which is another account's of the same organisation
    assert (taken.status_code, taken.json()["code"]) == (422, "KEY_REUSED")
    assert next(iter(made[0])) not in taken.text
    again = town.send("ada", "one key")
    assert (again.status_code, again.json()["id"]) == (200, next(iter(made[0])))


def test_the_audit_tells_admins_who_did_what_in_their_organisation(town: Town) -> None:
    job = town.send("ann").json()
    failed = town.send("ann", text="x" * 200_000)
    assert failed.status_code == 413
    entry, *others = town.ask("ada", "GET", "/v1/audit", params={"subject": job["id"]}).json()["items"]
    assert others == []
    assert (entry["account"], entry["action"], entry["clientAddress"]) == ("ann", "import.create", "127.0.0.1")
    assert entry["details"] == {"importer": "users", "number": job["number"]}
    assert town.ask("zoe", "GET", "/v1/audit", params={"subject": job["id"]}).json()["items"] == []
    found: list[int] = []
    page: dict[str, Any] = {"next": None}
    while True:
        after = {"after": page["next"]} if page["next"] else {}
        page = town.ask("ada", "GET", "/v1/audit", params={"pageSize": 2, **after}).json()
        found += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
    assert found == sorted(set(found), reverse=True)
    with town.database.connect() as connection:
        total = (
            "SELECT count(*) FROM rowcall.audit a JOIN rowcall.organisation o ON o.id = organisation_id "
            "WHERE o.name = 'acme'"
        )
        assert connection.execute(total).fetchone() == (len(found),)


def test_an_entry_is_there_if_and_only_if_the_deed_is(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise Final(Code.BAD_REQUEST, "no")

    before = number_of_jobs(town, "ada"), len(town.ask("ada", "GET", "/v1/audit?pageSize=1000").json()["items"])
    monkeypatch.setattr("rowcall.api.imports.audit", fail)
    assert town.send("ann").status_code == 400
    after = number_of_jobs(town, "ada"), len(town.ask("ada", "GET", "/v1/audit?pageSize=1000").json()["items"])
    assert after == before


# ------------------------------------------------------------------------------------------------------------ by SQL


def rows_seen(connection: Connection[Any]) -> dict[str, int]:
    seen: dict[str, int] = {}
    cursor = connection.cursor(row_factory=scalar_row)
    for table in cursor.execute(OPEN_TABLES).fetchall():
        seen[table] = next(cursor.execute(SQL("SELECT count(*) FROM {}").format(Identifier("rowcall", table))))
    return seen


def organisation(connection: Connection[Any], name: str) -> UUID:
    return next(connection.cursor(row_factory=scalar_row).execute(query("find_organisation"), {"name": name}))


def test_sql_without_any_filter_finds_what_is_the_callers_own(town: Town) -> None:
    for who in ("ada", "zoe"):
        assert town.ask(who, "POST", "/v1/webhooks", json={"url": "http://93.184.216.34/"}).is_success
    begin = {"Tus-Resumable": "1.0.0", "Upload-Length": "9", "Upload-Metadata": "importer dXNlcnM="}
    for who in ("ann", "ben", "zoe"):
        assert town.ask(who, "POST", "/v1/uploads", headers=begin).is_success
        job = town.send(who).json()["id"]
        town.worker.advance(job)
        assert town.ask(who, "POST", f"/v1/imports/{job}/export").is_success
        assert town.ask(who, "POST", f"/v1/imports/{job}/reprocess", json={"statuses": ["failed"]}).is_success
        town.worker.advance(job)
        assert town.ask(who, "POST", f"/v1/imports/{job}/reprocess", json={"statuses": ["failed"]}).is_success
    with town.database.connect() as connection:
        connection.execute(OF_EVERY_JOB)
        acme, zeta = organisation(connection, "acme"), organisation(connection, "zeta")
        empty = accounts.ensure_organisation(connection, "empty")

        def seen(whose: UUID | None, account: str = "*") -> dict[str, int]:
            with seeing_only(connection, whose or zeta, account):
                if whose is None:
                    connection.execute("RESET rowcall.organisation")
                return rows_seen(connection)

        everything = rows_seen(connection)
        assert {"job", "row", "outcome", "batch", "column_mapping", "row_status", "file", "audit"} <= set(everything)
        assert all(everything.values())
        assert not any(chain(seen(None).values(), seen(empty).values()))
        assert {table for table, rows in seen(acme, "").items() if rows} == OF_ALL_ACCOUNTS
        assert seen(acme)["job"] + seen(zeta)["job"] == everything["job"]
        assert 0 < seen(acme, "ann")["job"] < seen(acme)["job"]
        assert seen(acme, "ann")["row"] <= seen(acme)["row"] < everything["row"]
        assert seen(acme, "ann")["webhook"] == 0 < seen(acme)["webhook"] < everything["webhook"]
        assert 0 < seen(acme)["webhook_delivery"] < everything["webhook_delivery"]


def test_no_setting_opens_another_organisations_job(town: Town) -> None:
    job = town.send("zoe").json()["id"]
    town.worker.advance(job)
    with town.database.connect() as connection:
        acme = organisation(connection, "acme")
        with seeing_only(connection, acme, "*"):
            connection.execute("SELECT set_config('rowcall.job', %s, true)", [job])
            assert connection.execute("SELECT count(*) FROM rowcall.row WHERE job_id = %s", [job]).fetchone() == (0,)
            assert connection.execute("UPDATE rowcall.batch SET created = 0 WHERE job_id = %s", [job]).rowcount == 0
            assert connection.execute("DELETE FROM rowcall.outcome WHERE job_id = %s", [job]).rowcount == 0
            for forbidden in (
                "TABLE rowcall.api_key",
                "TABLE rowcall.account",
                "TABLE rowcall.organisation",
                "TABLE rowcall.row_key",
                "TABLE public.users",
                "DELETE FROM rowcall.audit",
                "UPDATE rowcall.row SET cells = '{}'",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                    connection.execute(forbidden.encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(
                    "INSERT INTO rowcall.batch (job_id, number, first_row, last_row) VALUES (%s, 99, 9, 9)", [job]
                )


def test_a_pooled_connection_carries_nothing_over(town: Town) -> None:
    with town.database.connect() as connection:
        acme = organisation(connection, "acme")
    caller = Caller(acme, "ada", None, "x", scopes=frozenset(Scope))
    service = replace(town.service, pool=town.database.pool("one", 1))
    state = (
        "SELECT current_user, current_setting('rowcall.organisation', true), current_setting('rowcall.account', true)"
    )
    with service.pool:
        for statement in ("SELECT 1 / 0", "SELECT 1"):
            try:
                with service.connection(caller) as connection:
                    assert connection.execute(state).fetchone() == ("rowcall_api", str(acme), "*")
                    connection.execute(statement.encode())
            except psycopg.errors.DivisionByZero:
                pass
            with service.pool.connection() as connection:
                assert connection.execute(state).fetchone() == ("postgres", "", "")


def test_all_that_requests_may_touch_has_row_level_security(town: Town) -> None:
    bare = """
        SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'rowcall'::regnamespace
          AND has_table_privilege('rowcall_api', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')
          AND NOT CASE c.relkind WHEN 'v' THEN coalesce('security_invoker=true' = ANY (c.reloptions), false)
                                 ELSE c.relrowsecurity END
    """
    with town.database.connect() as connection:
        assert connection.execute(bare.encode()).fetchall() == []
        assert lacking(connection) == []


def test_pages_and_counts_use_their_index_behind_the_wall_too(database: Database) -> None:
    hot = [(SQL(query(name)), *HOT[name]) for name in ("page_of_jobs", "pending_batches", "batch_counts")]
    with database.connect() as connection:
        connection.execute(FILLED)
        open_to_api(connection)
        cursor = connection.cursor(row_factory=scalar_row)
        with seeing_only(connection, LOCAL, "*"):
            connection.execute("SELECT set_config('rowcall.job', %s, true)", [str(JOB)])
            for statement, given, index in [*hot, *SHOWN]:
                where = {"id": JOB, "first": 5000, "last": 5100, **given}
                plan = "\n".join(cursor.execute(SQL("EXPLAIN ") + statement, where))
                assert f"using {index}" in plan or f"on {index}" in plan, plan
                assert "Seq Scan" not in plan or index == "job_created_at", plan  # there all jobs have the same file
                assert "hashed SubPlan" not in plan, plan


# ---------------------------------------------------------------------------------------------- roles that are no gods


@contextmanager
def owned(server: Server, name: str, options: str) -> Generator[Database]:
    """An empty database that belongs to a role which is no superuser."""
    role = f"{name}_owner"
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(SQL("CREATE ROLE {} LOGIN ").format(Identifier(role)) + SQL(options))  # pyright: ignore[reportArgumentType]
        admin.execute(SQL("CREATE DATABASE {} OWNER {}").format(Identifier(name), Identifier(role)))
        try:
            yield Database(server.url_of(name).replace("postgres@", f"{role}@", 1))
        finally:
            admin.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))
            admin.execute(SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(Identifier(role)).as_string().encode())


def test_an_owner_without_rights_on_roles_is_told_what_to_run_and_then_serves(
    shared_server: Server, town: Town, tmp_path: Path
) -> None:
    assert town  # which has made the role
    with owned(shared_server, "plain", "") as database:
        with database.connect() as connection:
            migrate(connection)
            migrate_queue(connection)
            with pytest.raises(Final) as caught:
                open_to_api(connection)
        assert caught.value.code == Code.API_ROLE_MISSING
        assert caught.value.hint.endswith("run, in this database: GRANT rowcall_api TO plain_owner;")
        with psycopg.connect(shared_server.url_of("plain"), autocommit=True) as admin:
            admin.execute("GRANT rowcall_api TO plain_owner; GRANT CREATE ON SCHEMA public TO plain_owner")
        with open_town(database, tmp_path) as plain:
            job = plain.send("ann").json()["id"]
            plain.worker.advance(job)  # by COPY, as the owner
            counts = plain.ask("ann", "GET", f"/v1/imports/{job}").json()["counts"]
            assert (counts["created"], counts["failed"]) == (1, 1)
            assert len(plain.ask("ann", "GET", f"/v1/imports/{job}/items").json()["items"]) == 2
            assert plain.ask("ann", "GET", f"/v1/imports/{job}/receipt").json()["balanced"]
            assert plain.ask("zoe", "GET", f"/v1/imports/{job}").status_code == 404


def test_databases_of_a_server_share_the_role_and_may_make_it_at_once(server: Server) -> None:
    names = [f"db{number}" for number in range(4)]
    with psycopg.connect(server.url, autocommit=True) as admin:
        for name in names:
            admin.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))

    def prepare(name: str) -> list[str]:
        with Database(server.url_of(name)).connect() as connection:
            migrate(connection)
            open_to_api(connection)
            return lacking(connection)

    with owned(server, "poor", "") as database, database.connect() as connection:
        migrate(connection)
        with pytest.raises(Final, match="may not make it so") as caught:
            open_to_api(connection)
        assert "run, in this database: CREATE ROLE rowcall_api NOLOGIN; GRANT rowcall_api TO poor_owner;" in str(
            caught.value
        )
    with owned(server, "able", "CREATEROLE") as database, database.connect() as connection:
        migrate(connection)
        open_to_api(connection)
        with seeing_only(connection, UUID(UNKNOWN), "*"):
            assert connection.execute("SELECT count(*) FROM rowcall.job").fetchone() == (0,)
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS rowcall_api")
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(prepare, names * 2)) == [[]] * 8


def test_functions_with_rights_of_their_own_look_in_the_catalog_before_temporary_tables(town: Town) -> None:
    defined = (
        "SELECT p.proname, p.proconfig FROM pg_proc p WHERE p.pronamespace = 'rowcall'::regnamespace AND p.prosecdef"
    )
    with town.database.connect() as connection:
        found = connection.execute(defined).fetchall()
    assert len(found) >= 3
    assert [name for name, config in found if config != ["search_path=pg_catalog, pg_temp"]] == []


def test_a_role_that_owns_nothing_is_told_all_that_it_lacks_at_once_and_then_works(
    database: Database, tmp_path: Path
) -> None:
    clerk = replace(database, url=database.url.replace("postgres@", "hand@", 1))
    with database.connect() as admin:
        admin.execute("CREATE ROLE hand LOGIN")
        try:
            with clerk.connect() as connection, pytest.raises(Final) as caught:
                require_grants(connection, "rowcall")
            assert (caught.value.code, caught.value.hint.count("GRANT")) == (Code.GRANTS_MISSING, 6)
            admin.execute(caught.value.hint.partition(": ")[2].encode())
            admin.execute("GRANT rowcall_api TO hand; GRANT SELECT, INSERT, UPDATE ON users TO hand")
            with clerk.connect() as connection:
                require_grants(connection)
                assert (migrate(connection), migrate_queue(connection)) == ([], [])
            with open_town(clerk, tmp_path) as town:
                with clerk.connect() as connection:
                    bind(connection, file_store(town.service.settings))
                job = town.send("ann").json()["id"]
                town.worker.advance(job)
                assert town.ask("ann", "GET", f"/v1/imports/{job}").json()["counts"]["created"] == 1
        finally:
            admin.execute("DROP OWNED BY hand; DROP ROLE hand")
