"""Organisations try each other's ids, of every kind, on every operation, and try to be first in the queue."""

import re
from collections import Counter
from typing import Any

from .test_openapi import DOCUMENT
from .test_tenants import same_answer
from .town import UNKNOWN, Town

TUS = {"Tus-Resumable": "1.0.0"}
BEGIN = {**TUS, "Upload-Length": "9", "Upload-Metadata": "importer dXNlcnM="}
PIECE = {**TUS, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
DECISION = """
    INSERT INTO rowcall.value_decision
        (id, organisation_id, importer, field, scope, value, digest, action, overrode, decided_by, decided_at,
        from_job, job_number)
    SELECT gen_random_uuid(), organisation_id, 'users', 'role', '', number, sha256(number::bytea), 'skip', false, 'ann',
        now(), id, number
    FROM rowcall.job WHERE id = %(job)s RETURNING id
"""
ADMINS = {"audit", "webhooks"}
"""What operators have nothing to do with, by its tag."""


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """All that needs a key, as the document tells it."""
    return [
        (method.upper(), path, operation)
        for path, item in DOCUMENT["paths"].items()
        for method, operation in item.items()
        if {"key": []} in operation.get("security", [])
    ]


def request_of(operation: dict[str, Any]) -> dict[str, Any]:
    """A query and a body that fit, and the headers that go with them."""
    asked = operation.get("parameters", [])
    needed = [each["name"] for each in asked if each["in"] == "query" and each.get("required")]
    return {"params": dict.fromkeys(needed, "role"), **body_of(operation)}


def body_of(operation: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    if "application/offset+octet-stream" in content:
        return {"content": b"email\na@b", "headers": PIECE | {"X-HTTP-Method-Override": "PATCH"}}
    if "application/json" not in content:
        return {"headers": TUS}
    schema = content["application/json"]["schema"]
    name = re.search(r"schemas/(\w+)", str(schema))
    assert name is not None
    return {"json": DOCUMENT["components"]["schemas"][name[1]]["examples"][0]}


def belongings(town: Town, who: str) -> dict[str, str]:
    """One of each kind of thing that has an id, of somebody's own."""
    job = town.send(who, text="email,name\nbelonging@example.org,B\n").json()["id"]
    town.worker.advance(job)
    export = town.ask(who, "POST", f"/v1/imports/{job}/export").json()["id"]
    webhook = town.ask(who, "POST", "/v1/webhooks", json={"url": "http://93.184.216.34/"}).json()["id"]
    delivery = town.ask(who, "POST", f"/v1/webhooks/{webhook}/test").json()["id"]
    upload = town.ask(who, "POST", "/v1/uploads", headers=BEGIN).headers["location"].rpartition("/")[2]
    order = {"jobId": job, "sourceSystem": "crm", "variant": "weekly"}
    template = town.ask(who, "POST", "/v1/column-mapping-templates", json=order).json()["id"]
    mapped = {"updates": [{"position": 0, "confirm": True}]}
    asked = town.send(who, text="email,name\nasked@example.org,B\n", config='{"ask": "always"}').json()["id"]
    town.worker.advance(asked)
    town.ask(who, "PUT", f"/v1/imports/{asked}/column-mappings", json=mapped)
    town.ask(who, "POST", f"/v1/imports/{asked}/column-mappings/confirm")
    columns = town.ask(who, "GET", "/v1/column-decisions").json()["items"][0]["id"]
    ids = {"job_id": job, "export_id": export, "webhook_id": webhook, "delivery_id": delivery, "upload_id": upload}
    with town.database.connect() as connection:
        decision = connection.execute(DECISION, {"job": job}).fetchone()
    decisions = {"decision_id": str(decision and decision[0]), "column_decision_id": columns}
    return {**ids, **decisions, "template_id": template}


def test_ids_of_another_organisation_are_unknown_on_every_operation(town: Town) -> None:
    foreign = belongings(town, "zoe")
    unknown = dict.fromkeys(foreign, UNKNOWN)
    tried = Counter[str]()
    for method, path, operation in operations():
        kinds = re.findall(r"\{(\w+_id)\}", path)
        if not kinds or method == "OPTIONS":
            continue
        tried.update(kinds)
        given = request_of(operation)
        for who in ("ada", "ann"):
            answers = [town.ask(who, method, path.format(row=1, **ids), **given) for ids in (foreign, unknown)]
            assert same_answer(answers[0], answers[1], (*foreign.values(), UNKNOWN)), (method, path, answers[0].text)
            forbidden = who == "ann" and ADMINS & set(operation["tags"])
            assert answers[0].status_code == (403 if forbidden else 404), (method, path, who, answers[0].text)
    assert set(tried) == set(foreign)
    for kind, place in {"job_id": "imports", "export_id": "exports", "webhook_id": "webhooks"}.items():
        assert town.ask("zoe", "GET", f"/v1/{place}/{foreign[kind]}").status_code == 200
    assert town.ask("zoe", "HEAD", f"/v1/uploads/{foreign['upload_id']}", headers=TUS).headers["upload-offset"] == "0"
    assert town.ask("zoe", "DELETE", f"/v1/webhooks/{foreign['webhook_id']}").is_success


def test_ids_of_another_organisation_in_bodies_are_unknown_too(town: Town) -> None:
    job = town.send("zoe").json()["id"]
    order = {"format": "csv", "job": job}
    answers = [town.ask("ada", "POST", "/v1/exports", json={**order, "job": each}) for each in (job, UNKNOWN)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert same_answer(answers[0], answers[1], (job, UNKNOWN))


def test_operators_are_kept_from_what_is_for_admins_and_from_nothing_else(town: Town) -> None:
    for method, path, operation in operations():
        answer = town.ask("ann", method, re.sub(r"\{\w+\}", UNKNOWN, path), **request_of(operation))
        expected = bool(ADMINS & set(operation["tags"]))
        assert (answer.status_code == 403) is expected, (method, path, answer.text)


def test_the_same_file_in_two_organisations_shows_nothing(town: Town) -> None:
    text = "email,name,role,active\nsecret@example.org,S,reader,true\n"
    first = town.send("zoe", text=text)
    second = town.send("ann", text=text)
    assert (first.status_code, second.status_code) == (202, 202)
    assert set(first.headers) == set(second.headers)
    told = [{**answer.json(), "id": 0, "number": 0, "createdAt": 0, "account": 0} for answer in (first, second)]
    assert told[0] == told[1]
    assert first.json()["id"] not in town.ask("ada", "GET", "/v1/imports?pageSize=1000").text


def test_who_has_many_jobs_keeps_nobody_with_few_waiting(town: Town) -> None:
    with town.database.connect() as connection:
        connection.execute("UPDATE rowcall.job SET background = false")  # those of other tests are done with
    many = [town.send("ann", text=f"email,name\n{n}@example.org,N\n").json()["id"] for n in range(30)]
    other = town.send("zoe", text="email,name\nz@example.org,Z\n").json()["id"]
    with town.database.connect() as connection:
        turns = [
            row[0]
            for row in connection.execute(
                "SELECT args ->> 'job_id' FROM rowcall_queue.procrastinate_jobs WHERE status = 'todo' "
                "ORDER BY priority DESC, id"  # as workers take them
            )
        ]
    order = [job for job in turns if job in {*many, other}]
    assert order == [many[0], other, *many[1:]]
