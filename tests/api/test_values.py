"""Values over HTTP: what they stand for is read, said, searched, confirmed, remembered and revoked (A4, X10)."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from rowcall import Choice, Client, Importer, Integer, Lookup
from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.client.answers.values import ValueSaid
from rowcall.config import Settings
from rowcall.errors import RequestRefused
from rowcall.importer.registry import Pack, Registry
from rowcall.store.db import Database
from rowcall.worker.worker import Worker

from . import test_server_option
from .conftest import Site
from .test_server_option import Run
from .town import UNKNOWN, Town, make_keys, prepared, served

run = test_server_option.run
TABLES = """
    CREATE TABLE country (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE, code text);
    CREATE TABLE city (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, country_id int);
    CREATE TABLE shop (id int PRIMARY KEY, country_id int, city_id int, size text);
    INSERT INTO country (name, code) VALUES ('Germany', 'DE'), ('Åland', 'AX'), ('100% Land', 'XX'), ('a_b', 'YY');
    CREATE UNIQUE INDEX ON city (country_id, name);
    INSERT INTO city (name, country_id) VALUES ('Berlin', 1), ('Bergen', 2), ('Bonn', 1);
"""


class Shops(Importer):
    """Shops and where they are."""

    target = "shop"
    id_ = Integer(required=True)
    country_id = Lookup("country", by=("code", "name"), label="name", on_missing="ask")
    city_id = Lookup("city", by="name", within="country_id")
    size = Choice("Small", "Large", on_missing="ask")
    only_when = {"size": {"mode": ("insert",)}}  # noqa: RUF012 (as importers are written)


class Towns(Importer):
    """Shops, of which it is asked where they are."""

    target = "shop"
    id_ = Integer(required=True)
    country_id = Lookup("country", by="name", on_missing="ask")
    city_id = Lookup("city", by="name", within="country_id", on_missing="ask", creates="name")


REGISTRY = Registry((Pack("shops", __name__, (Shops, Towns)),))


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Generator[Site]:
    with opened(database, tmp_path) as site:
        yield site


@pytest.fixture
def shops(database: Database, tmp_path: Path) -> Generator[Town]:
    """The same with keys of two organisations."""
    with opened(database, tmp_path) as site:
        yield Town(site.app, site.client, site.worker, database, make_keys(database))


class opened:  # noqa: N801 (a context)
    """A service with the importer."""

    def __init__(self, database: Database, folder: Path) -> None:
        prepared(database)
        with database.connect() as connection:
            connection.execute(TABLES)
        settings = Settings(database_url=database.url, data_dir=folder, batch_rows_min=2, batch_rows_max=2)
        self._database, self._folder = database, folder
        self._app = create_app(Service(settings, REGISTRY, database.pool("serve", 4)))
        self._worker = Worker(database, REGISTRY, settings)

    def __enter__(self) -> Site:
        self._served = served(self._app)
        self._client = httpx.Client(base_url=self._served.__enter__())
        return Site(self._app, self._client, self._worker, self._database, self._folder / "files")

    def __exit__(self, *error: Any) -> None:
        self._client.close()
        self._served.__exit__(None, None, None)


def brought(site: Site | Town, *countries: str, who: str | None = None, first: int = 1, **more: str) -> str:
    """The path of a job that a worker has gone as far with as it goes."""
    text = "id,country_id\n" + "".join(f"{n},{country}\n" for n, country in enumerate(countries, first))
    files, data = {"file": ("shops.csv", text)}, {"importer": "shops", **more}
    headers = {"Authorization": f"Bearer {site.keys[who]}"} if who and isinstance(site, Town) else {}
    job = site.client.post("/v1/imports", files=files, data=data, headers=headers).json()
    site.worker.advance(job["id"])
    return f"/v1/imports/{job['id']}"


def says(site: Site, job: str, *updates: dict[str, Any]) -> httpx.Response:
    return site.client.put(f"{job}/cell-mappings", json={"updates": updates})


def test_a4_values_are_read_said_and_confirmed(shop: Site) -> None:
    job = brought(shop, "Germany", "DE", "Gondor", "Germny", "Gondor")
    now = shop.client.get(job).json()
    assert (now["state"], now["wish"], now["allowed"][:2]) == ("CELL_MAPPING", "hold", ["decide", "confirm"])
    page = shop.client.get(f"{job}/cell-mappings").json()
    assert page["items"][0]["value"] == "Gondor"
    assert (
        page["fields"][0] | {"values": 4, "unresolved": 2, "rows": 5, "coveredRows": 2, "coveredPercent": 40.0}
        == (page["fields"][0])
    )
    other = shop.client.get(f"{job}/cell-mappings", params={"field": "contry_id"})
    assert (other.status_code, other.json()["code"], other.json()["hint"]) == (
        422,
        "BAD_MAPPING",
        "Did you mean 'country_id'?",
    )
    refused = shop.client.post(f"{job}/cell-mappings/confirm")
    assert (refused.status_code, refused.json()["code"]) == (406, "VALUES_UNRESOLVED")
    assert refused.json()["missing"] == [
        {"field": "country_id", "unresolved": 2, "rows": 3, "values": ["Gondor", "Germny"]}
    ]
    like = next(each for each in page["items"] if each["value"] == "Germny")
    assert like["target"] | {"id": "1", "label": "Germany"} == like["target"]
    done = says(
        shop, job, {"ids": [like["id"]], "confirm": True}, {"field": "country_id", "value": "Gondor", "skip": True}
    )
    assert (done.status_code, done.json()["updated"], done.json()["fields"][0]["unresolved"]) == (200, 2, 0)
    confirmed = shop.client.post(f"{job}/cell-mappings/confirm")
    assert (confirmed.status_code, confirmed.json()["wish"]) == (202, None)
    shop.worker.advance(confirmed.json()["id"])
    assert shop.client.get(job).json()["counts"] | {"created": 3, "skipped": 2} == shop.client.get(job).json()["counts"]
    late = says(shop, job, {"field": "country_id", "value": "Gondor", "ignore": True})
    assert (late.status_code, late.json()["code"], late.json()["state"]) == (409, "WRONG_STATE", "COMPLETED")
    assert shop.client.post(f"{job}/cell-mappings/confirm").status_code == 409
    with shop.database.connect() as connection:
        found = connection.execute("SELECT action FROM rowcall.audit ORDER BY id").fetchall()
    assert [action for (action,) in found] == ["import.create", "import.values", "import.confirm-values"]


def test_pages_go_on_where_they_ended(shop: Site) -> None:
    job = brought(shop, *(f"Nowhere {n // 2}" for n in range(21)))
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        asked = {"pageSize": "4", "status": "UNRESOLVED", **after}
        page = shop.client.get(f"{job}/cell-mappings", params=asked).json()
        seen += [each["value"] for each in page["items"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert (len(seen), len(set(seen)), seen[-1]) == (11, 11, "Nowhere 10")
    other = shop.client.get(f"{job}/cell-mappings", params={"pageSize": "4", **after})
    assert (other.status_code, other.json()["code"]) == (400, "BAD_CURSOR")
    only = shop.client.get(f"{job}/cell-mappings", params={"text": "nowhere 1"}).json()["items"]
    assert {each["value"] for each in only} == {"Nowhere 1", "Nowhere 10"}


@pytest.mark.parametrize(
    ("asked", "labels"),
    [
        ({"targetField": "country_id", "q": "ger"}, ["Germany"]),
        ({"targetField": "country_id", "q": "ALAND"}, ["Åland"]),
        ({"targetField": "country_id", "q": "de"}, ["Germany"]),
        ({"targetField": "country_id", "q": "Grmany"}, ["Germany"]),
        ({"targetField": "country_id", "q": "%"}, ["100% Land"]),
        ({"targetField": "country_id", "q": "_"}, ["a_b"]),
        ({"targetField": "country_id", "q": "'; DROP TABLE shop"}, []),
        ({"targetField": "country_id"}, ["100% Land", "a_b", "Germany", "Åland"]),
        ({"targetField": "city_id", "q": "ber", "scope": "1"}, ["Berlin"]),
        ({"targetField": "city_id", "q": "ber"}, ["Bergen", "Berlin"]),
        ({"targetField": "size", "q": "sm"}, ["Small"]),
    ],
)
def test_candidates_are_searched_for(shop: Site, asked: dict[str, str], labels: list[str]) -> None:
    job = brought(shop, "Gondor")
    found = shop.client.get(f"{job}/cell-mappings/candidates", params=asked).json()
    assert [each["label"] for each in found["items"]] == labels


@pytest.mark.parametrize("large", [False, True])
def test_candidates_are_paged_through(shop: Site, large: bool) -> None:
    """Each comes once, in a table that is compared as a whole as in one that PostgreSQL searches."""
    with shop.database.connect() as connection:
        connection.execute("INSERT INTO country (name) SELECT repeat('long', 100) || n FROM generate_series(1, 5) n")
        if large:
            connection.execute("INSERT INTO country (name) SELECT 'x' || n FROM generate_series(1, 20001) n")
    job, seen, after = brought(shop, "Gondor"), list[str](), None
    with Client(str(shop.client.base_url)) as client:
        for _ in range(4):
            page = client.candidates(job.rpartition("/")[2], "country_id", "l", after=after, most=2)
            seen += [each.id for each in page.items]
            after = page.next
    assert (len(seen), len({*seen}), after) == (7, 7, None)
    asked = {"targetField": "country_id", "q": "x", "after": "bm8"}
    other = shop.client.get(f"{job}/cell-mappings/candidates", params=asked)
    assert (other.status_code, other.json()["code"]) == (400, "BAD_CURSOR")


def test_large_tables_are_searched_by_postgresql(shop: Site) -> None:
    with shop.database.connect() as connection:
        connection.execute("INSERT INTO country (name) SELECT 'Place_' || n FROM generate_series(1, 20001) n")
    job = brought(shop, "Gondor")

    def labels(text: str) -> list[str]:
        asked = {"targetField": "country_id", "q": text, "pageSize": "3"}
        found = shop.client.get(f"{job}/cell-mappings/candidates", params=asked).json()
        return [each["label"] for each in found["items"]] + (["…"] if found["more"] else [])

    assert labels("place_2000") == ["Place_2000", "Place_20000", "Place_20001"]
    assert labels("PLACE_7")[-1] == "…"
    assert (labels("placex"), labels("%"), labels("100%")) == ([], ["100% Land"], ["100% Land"])
    assert labels("\\") == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"updates": []}, 422, "BAD_REQUEST"),
        ({"updates": [{"field": "country_id", "value": "Gondor"}]}, 422, "BAD_MAPPING"),
        ({"updates": [{"field": "country_id", "value": "Gondor", "targetId": "999"}]}, 422, "BAD_MAPPING"),
        ({"updates": [{"field": "country_id", "value": "Gondor", "create": True}]}, 422, "BAD_MAPPING"),
        ({"updates": [{"field": "country_id", "value": "Gondor", "ignore": "yes"}]}, 422, "BAD_REQUEST"),
        ({"updates": [{"ids": [0], "ignore": True}]}, 422, "BAD_REQUEST"),
        ({"updates": [{"ids": [987654321], "ignore": True}]}, 422, "BAD_MAPPING"),
        ({"updates": [{"field": "country_id", "value": "a\u0000b", "ignore": True}]}, 422, "BAD_REQUEST"),
        ({"updates": [{"field": "country_id", "wert": "Gondor", "ignore": True}]}, 422, "BAD_REQUEST"),
    ],
)
def test_odd_answers_are_refused(shop: Site, body: Any, status: int, code: str) -> None:
    job = brought(shop, "Gondor")
    refused = shop.client.put(f"{job}/cell-mappings", json=body)
    assert (refused.status_code, refused.json()["code"]) == (status, code)


def test_who_names_a_value_that_is_not_there_is_told_where_the_others_are(shop: Site, run: Run) -> None:
    number = shop.client.get(brought(shop, "Gondor")).json()["number"]
    refused = run("values", number, "--ignore", "country_id:Mordor", "--server", str(shop.client.base_url)).err
    assert (f"`rowcall values {number}` lists them" in refused, "GET" in refused) == (True, False)
    told = says(shop, brought(shop, "Rohan"), {"field": "country_id", "value": "Mordor", "ignore": True}).json()
    assert told["hint"] == "`GET …/cell-mappings` lists them."


def test_nothing_is_taken_of_a_request_that_is_refused(shop: Site) -> None:
    job = brought(shop, "Gondor", "Mordor")
    good, bad = ({"field": "country_id", "value": value, "ignore": True} for value in ("Gondor", "Nowhere"))
    assert says(shop, job, good, bad).status_code == 422
    assert shop.client.get(f"{job}/cell-mappings").json()["fields"][0]["unresolved"] == 2


def test_x10_decisions_are_listed_used_and_revoked(shop: Site) -> None:
    job = brought(shop, "Gondor", "Mordor", "Gondor")
    says(
        shop,
        job,
        {"field": "country_id", "value": "Gondor", "skip": True},
        {"field": "country_id", "value": "Mordor", "targetId": "2"},
    )
    confirmed = shop.client.post(f"{job}/cell-mappings/confirm").json()
    shop.worker.advance(confirmed["id"])
    listed = shop.client.get("/v1/value-decisions", params={"importer": "shops", "field": "country_id"}).json()["items"]
    told = {each["value"]: (each["action"], each["target"], each["job"]["number"]) for each in listed}
    assert told == {
        "Gondor": ("skip", None, confirmed["number"]),
        "Mordor": ("use", {"id": "2", "label": "Åland"}, confirmed["number"]),
    }
    assert shop.client.get("/v1/value-decisions", params={"importer": "others"}).json()["items"] == []
    again = brought(shop, "Gondor", "Mordor", first=11)
    assert shop.client.get(again).json()["state"] == "COMPLETED"
    by_value = {each["value"]: each["id"] for each in listed}
    mordor = shop.client.delete(f"/v1/value-decisions/{by_value['Mordor']}").json()
    assert (mordor["rows"], [each["rows"] for each in mordor["jobs"]]) == (2, [1, 1])
    assert "import its file again" in mordor["jobs"][0]["wayOn"]
    gondor = shop.client.delete(f"/v1/value-decisions/{by_value['Gondor']}", params={"reprocess": "true"}).json()
    assert (gondor["rows"], {each["reprocessed"] for each in gondor["jobs"]}) == (3, {True})
    gone = shop.client.delete(f"/v1/value-decisions/{by_value['Gondor']}")
    assert (gone.status_code, gone.json()["code"]) == (404, "DECISION_NOT_FOUND")
    shop.worker.advance(confirmed["id"])
    asked = shop.client.get(job).json()
    assert (asked["state"], asked["wish"]) == ("CELL_MAPPING", "hold")
    assert says(shop, job, {"field": "country_id", "value": "Gondor", "targetId": "1"}).status_code == 200
    shop.client.post(f"{job}/cell-mappings/confirm")
    shop.worker.advance(confirmed["id"])
    ended = shop.client.get(job).json()
    assert (ended["state"], ended["counts"]["created"], ended["counts"]["skipped"]) == ("COMPLETED", 3, 0)


def revoked(site: Site, value: str, **params: str) -> list[dict[str, Any]]:
    """The jobs that used what was decided of a value, after it is revoked."""
    (decision,) = site.client.get("/v1/value-decisions", params={"text": value}).json()["items"]
    return site.client.delete(f"/v1/value-decisions/{decision['id']}", params=params).json()["jobs"]


@pytest.mark.parametrize("said", [{"targetId": "2"}, {"skip": True}])
def test_x10_jobs_that_wait_and_have_written_nothing_ask_anew(shop: Site, said: dict[str, Any]) -> None:
    job = brought(shop, "Gondor", "Mordor", config='{"preview": true}')
    says(shop, job, {"field": "country_id", "value": "Gondor", **said})
    says(shop, job, {"field": "country_id", "value": "Mordor", "targetId": "1"})
    number = shop.client.post(f"{job}/cell-mappings/confirm").json()["id"]
    shop.worker.advance(number)
    assert shop.client.get(job).json()["state"] == "VALIDATED"
    asks = brought(shop, "Gondor", "Shire", first=11)  # which it waits to be told of
    for told in revoked(shop, "Gondor", reprocess="true"):
        assert (told["reprocessed"], "asks anew" in told["wayOn"]) == (True, True), told
    for each in (job, asks):
        shop.worker.advance(each.rpartition("/")[2])
        now, values = shop.client.get(each).json(), shop.client.get(f"{each}/cell-mappings").json()
        assert (now["state"], now["wish"]) == ("CELL_MAPPING", "hold")
        assert {each["value"]: each["status"] for each in values["items"]}["Gondor"] == "UNRESOLVED"
    assert says(shop, job, {"field": "country_id", "value": "Gondor", "targetId": "3"}).status_code == 200
    shop.client.post(f"{job}/cell-mappings/confirm")
    shop.worker.advance(number)
    assert shop.client.post(f"{job}/submit", headers={"If-Match": "*"}).status_code == 202
    shop.worker.advance(number)
    with shop.database.connect() as connection:
        assert connection.execute("SELECT id, country_id FROM shop ORDER BY 1").fetchall() == [(1, 3), (2, 1)]


def test_x10_who_revokes_a_decision_is_told_what_is_true_of_each_job(shop: Site) -> None:
    def job(first: int, **more: str) -> str:
        return brought(shop, "Gondor", first=first, **more).rpartition("/")[2]

    asked = brought(shop, "Gondor")
    says(shop, asked, {"field": "country_id", "value": "Gondor", "targetId": "2"})
    shop.worker.advance(shop.client.post(f"{asked}/cell-mappings/confirm").json()["id"])
    job(11, config='{"preview": true}')
    job(21, config='{"dryRun": true}')
    taken_back = job(31)
    shop.client.post(f"/v1/imports/{taken_back}/undo", json={})
    shop.worker.advance(taken_back)
    brought(shop, "Gondor", "Shire", first=41)
    told = [(each["state"], each["wayOn"].partition(":")[0].partition(".")[0]) for each in revoked(shop, "Gondor")]
    assert told == [
        ("CELL_MAPPING", "It has written nothing yet"),
        ("REVERTED", "Nothing of it is left"),
        ("VALIDATED", "It has written nothing, and won't"),
        ("VALIDATED", "It has written nothing yet, but would by it"),
        ("COMPLETED", "Its rows are written by it"),
    ]


def test_x10_a_decision_is_revoked_though_the_scope_of_a_job_that_used_it_is_taken(shop: Site) -> None:
    job = brought(shop, "Gondor")
    says(shop, job, {"field": "country_id", "value": "Gondor", "skip": True})
    shop.worker.advance(shop.client.post(f"{job}/cell-mappings/confirm").json()["id"])
    brought(shop, "Shire", first=11)  # waits to be told what that is
    with shop.database.connect() as connection:
        connection.execute("UPDATE rowcall.job SET scope_key = 'here'")
    (decision,) = shop.client.get("/v1/value-decisions").json()["items"]
    answer = shop.client.delete(f"/v1/value-decisions/{decision['id']}", params={"reprocess": "true"})
    assert (answer.status_code, [each["reprocessed"] for each in answer.json()["jobs"]]) == (200, [False])
    ended = shop.client.get(job).json()
    assert (ended["state"], ended["counts"]["skipped"]) == ("COMPLETED", 1)
    with shop.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM rowcall.retry").fetchone() == (0,)


def test_x9_organisations_hear_nothing_of_each_others_values(shops: Town) -> None:
    job = brought(shops, "Gondor", who="ann")
    for who, status in (("ann", 200), ("ada", 200), ("ben", 404), ("zoe", 404)):
        assert shops.ask(who, "GET", f"{job}/cell-mappings").status_code == status
        asked = shops.ask(who, "GET", f"{job}/cell-mappings/candidates", params={"targetField": "country_id"})
        assert asked.status_code == status
    body = {"updates": [{"field": "country_id", "value": "Gondor", "targetId": "1"}]}
    assert shops.ask("zoe", "PUT", f"{job}/cell-mappings", json=body).status_code == 404
    assert shops.ask("zoe", "POST", f"{job}/cell-mappings/confirm").status_code == 404
    assert shops.ask("reader", "PUT", f"{job}/cell-mappings", json=body).status_code == 403
    assert shops.ask("ann", "PUT", f"{job}/cell-mappings", json=body).status_code == 200
    shops.worker.advance(shops.ask("ann", "POST", f"{job}/cell-mappings/confirm").json()["id"])
    (decision,) = shops.ask("ben", "GET", "/v1/value-decisions").json()["items"]  # it is all of the organisation's
    assert shops.ask("zoe", "GET", "/v1/value-decisions").json()["items"] == []
    place = f"/v1/value-decisions/{decision['id']}"
    unknown = shops.ask("zoe", "DELETE", f"/v1/value-decisions/{UNKNOWN}")
    assert shops.ask("zoe", "DELETE", place).status_code == unknown.status_code == 404
    theirs = brought(shops, "Gondor", who="zoe", first=11)
    assert shops.ask("zoe", "GET", theirs).json()["state"] == "CELL_MAPPING"  # what acme decided is not for zeta
    ours = brought(shops, "Gondor", who="ben", first=21)
    assert shops.ask("ben", "GET", ours).json()["state"] == "COMPLETED"
    assert shops.ask("reader", "DELETE", place).status_code == 403
    revoked = shops.ask("ada", "DELETE", place).json()
    assert revoked["rows"] == 2


def test_the_client_settles_values(shop: Site) -> None:
    job = brought(shop, "Gondor", "Germny", "Gondor")
    with Client(str(shop.client.base_url)) as client:
        number = client.job(job.rpartition("/")[2]).number
        page = client.values(number, status="UNRESOLVED")
        assert ([each.value for each in page.items], page.unresolved) == (["Gondor", "Germny"], 2)
        with pytest.raises(RequestRefused) as caught:
            client.confirm_values(number)
        assert (caught.value.status, caught.value.missing[0]["unresolved"]) == (406, 2)
        (found,) = client.candidates(number, "country_id", "aland").items
        said = [
            ValueSaid(field="country_id", value="Gondor", target_id=found.id),
            ValueSaid(ids=[page.items[1].id], confirm=True),
        ]
        assert client.change_values(number, said).updated == 2
        shop.worker.advance(str(client.confirm_values(number).id))
        assert client.job(number).state == "COMPLETED"
        decisions = list(client.value_decisions(importer="shops"))
        assert {each.value for each in decisions} == {"Gondor", "Germny"}
        assert client.revoke_value_decision(decisions[0].id).rows in (1, 2)


def test_the_command_settles_values_on_a_server(shop: Site, run: Run) -> None:
    where = ("--server", str(shop.client.base_url))
    number = shop.client.get(brought(shop, "Gondor", "Germny", "Gondor")).json()["number"]
    seen = run("values", number, *where).out
    assert "2 left" in seen
    assert f"rowcall values {number} --server" in seen
    assert "VALUES_UNRESOLVED" in run("values", number, "--confirm", *where).err
    said = run("values", number, "--set", "country_id:Gondor=Åland", "--accept", "country_id:Germny", "--json", *where)
    assert (said.json["updated"], [field["unresolved"] for field in said.json["fields"]]) == (2, [0])
    shop.worker.advance(str(run("values", number, "--confirm", "--json", *where).json["job"]["id"]))
    told = [json.loads(line) for line in run("decisions", "list", "--json", *where).out.splitlines()]
    assert {(each["value"], each["target"]["label"]) for each in told} == {("Gondor", "Åland"), ("Germny", "Germany")}


def test_importers_tell_which_jobs_have_a_field(shop: Site, run: Run) -> None:
    fields = shop.client.get("/v1/importers/shops").json()["fields"]
    assert {each["name"]: each["onlyWhen"] for each in fields if each["onlyWhen"]} == {"size": {"mode": ["insert"]}}
    assert "only when mode is insert" in run("importers", "shops", "--server", str(shop.client.base_url)).out


def test_unknown_jobs_have_no_values(shop: Site) -> None:
    job = f"/v1/imports/{uuid4()}"
    assert shop.client.get(f"{job}/cell-mappings").status_code == 404
    assert shop.client.post(f"{job}/cell-mappings/confirm").status_code == 404
    assert says(shop, job, {"field": "country_id", "value": "x", "ignore": True}).status_code == 404


@pytest.fixture
def towns(shop: Site) -> Site:
    more = "('Springfield', 1), ('Springfield', 2), ('Springfield', 3), ('Nice in Å', 2)"
    with shop.database.connect() as connection:
        connection.execute(f"INSERT INTO city (name, country_id) VALUES {more}")
    return shop


def cities(site: Site, *rows: str) -> str:
    """The number of a job that waits for what the cities of countries stand for."""
    text = "id,country_id,city_id\n" + "".join(f"{n},{row}\n" for n, row in enumerate(rows, 1))
    files, data = {"file": ("shops.csv", text)}, {"importer": "towns"}
    job = site.client.post("/v1/imports", files=files, data=data).json()
    site.worker.advance(job["id"])
    return str(job["number"])


def city_ids(site: Site) -> list[int]:
    with site.database.connect() as connection:
        return [city for (city,) in connection.execute("SELECT city_id FROM shop ORDER BY id")]


def test_the_command_says_of_a_value_in_which_scope(towns: Site, run: Run) -> None:
    where = ("--server", str(towns.client.base_url))
    number = cities(towns, "Germany,Sprngfeld", "Åland,Sprngfeld", "Germany,Nowhere", "Åland,Nice in B")
    both = run("values", number, "--set", "city_id:Sprngfeld=4", *where)
    assert "looked up within Germany and Åland, and '4' is not the name of a row in each" in both.err
    assert "--set 'city_id:Sprngfeld in Germany=4'" in both.err
    other = run("values", number, "--set", "city_id:Sprngfeld in France=Springfield", *where)
    assert "'Sprngfeld in France' is none of the values of city_id" in other.err
    assert "rowcall values" in other.err
    one = run("values", number, "--set", "city_id:Sprngfeld in Germany=Springfield", "--json", *where).json
    assert one["updated"] == 1
    settled = {each["scope"]["label"]: each["target"]["id"] for each in one["items"] if each["decidedBy"]}
    assert settled == {"Germany": "4"}
    each = run("values", number, "--set", "city_id:Sprngfeld=Springfield", "--json", *where).json  # in its own
    assert each["updated"] == 2
    rest = ("--skip", "city_id:Nowhere in Germany", "--set", "city_id:Nice in B=Nice in Å")
    assert run("values", number, *rest, "--json", *where).json["updated"] == 2
    towns.worker.advance(str(run("values", number, "--confirm", "--json", *where).json["job"]["id"]))
    assert city_ids(towns) == [4, 5, 7]


def test_nothing_is_created_within_what_has_no_value(towns: Site, run: Run) -> None:
    where = ("--server", str(towns.client.base_url))
    number = cities(towns, ",Berlin", "Germany,Nowhere")
    told = {each["value"]: each["reason"] for each in run("values", number, "--json", *where).json["items"]}
    assert told["Berlin"] == "what it is looked up within has no value"
    refused = run("values", number, "--create", "city_id:Berlin", *where)
    assert (refused.status, "What 'Berlin' is looked up within has no value" in refused.err) == (1, True)
    both = run("values", number, "--create", "city_id:", "--json", *where).json
    assert (both["updated"], {each["status"] for each in both["items"] if each["value"] == "Berlin"}) == (
        1,
        {"UNRESOLVED"},
    )
    assert run("values", number, "--ignore", "city_id:Berlin", "--json", *where).json["updated"] == 1


def test_a_search_tells_scopes_and_takes_one(towns: Site, run: Run) -> None:
    where = ("--server", str(towns.client.base_url))
    number = cities(towns, "Germany,Sprngfeld")
    assert {"Springfield in Germany", "Springfield in Åland"} <= {
        line.partition("  ")[2].strip().partition("  ")[2].strip()
        for line in run("values", number, "--search", "city_id:spr", *where).out.splitlines()
    }
    (found,) = run("values", number, "--search", "city_id:spr in Åland", "--json", *where).json["items"]
    assert (found["id"], found["scope"]) == ("5", {"id": "2", "label": "Åland"})
    literal = run("values", number, "--search", "city_id:nice in", "--json", *where).json["items"]
    assert [each["label"] for each in literal] == ["Nice in Å"]
    unscoped = run("values", number, "--search", "country_id:ger", "--json", *where).json["items"]
    assert [each["scope"] for each in unscoped] == [None]
