"""`rowcall values` and `rowcall decisions`: what values stand for is seen and said on the command line (A4, X10)."""

import json
from pathlib import Path

import pytest

from rowcall.store.db import Database

from .workspace import Workspace, make_workspace

IMPORTERS = '''
from rowcall import Importer, Integer, Lookup


class Shops(Importer):
    """Shops and where they are."""

    target = "shop"
    id_ = Integer(required=True)
    country_id = Lookup("country", by="name", on_missing="ask", creates="name")


class Stalls(Importer):
    """Shops, whose countries have two names."""

    target = "shop"
    id_ = Integer(required=True)
    country_id = Lookup("country", by=("iso", "name"), label="name", on_missing="ask")
'''
TABLES = """
    CREATE TABLE country (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE, iso text);
    CREATE TABLE shop (id int PRIMARY KEY, country_id int);
    INSERT INTO country (name) VALUES ('Germany'), ('Åland'), ('a=b');
"""


@pytest.fixture
def shops(database: Database, tmp_path: Path) -> Workspace:
    workspace = make_workspace(tmp_path, database)
    (tmp_path / "importers.py").write_text(IMPORTERS)
    with database.connect() as connection:
        connection.execute(TABLES)
    return workspace


def waiting(shops: Workspace, *countries: str, first: int = 1) -> str:
    """The number of a job that waits."""
    lines = [f"{number},{country}" for number, country in enumerate(countries, first)]
    file = shops.file("id,country_id", *lines, name=f"shops{first}.csv")
    return shops.json("import", file, "--into", "shops", status=3)["number"]


def test_a_job_says_that_it_waits_and_values_are_settled_step_by_step(shops: Workspace) -> None:
    file = shops.file("id,country_id", "1,Germany", "2,Germny", "3,Gon:dor", "4,Gon:dor", "5,x=y", "6,Shire", "7,Rohan")
    done = shops.run("import", file, "--into", "shops")
    assert "CELL_MAPPING" in done.out
    assert "rowcall values BU" in done.out
    (number,) = [each[0] for each in shops.ask("SELECT number FROM rowcall.job")]
    seen = shops.run("values", number)
    assert "1 value covers 14.28 % of rows; 5 left" in seen.out
    assert "Germany" in seen.out
    refused = shops.run("values", number, "--confirm")
    assert (refused.status, "VALUES_UNRESOLVED" in refused.err, "Gon:dor" in refused.err) == (1, True, True)
    found = shops.json("values", number, "--search", "country_id:aland")
    assert [each["label"] for each in found["items"]] == ["Åland"]
    said = shops.json(
        *("values", number, "--set", "country_id:Gon:dor=Åland", "--set", "country_id:x=y=1"),
        *("--ignore", "country_id:Shire", "--create", "country_id:Rohan", "--accept", "country_id:"),
    )
    assert (said["updated"], said["fields"][0]["unresolved"]) == (5, 0)
    confirmed = shops.run("values", number, "--confirm")
    assert f"rowcall resume {number}" in confirmed.out
    ended = shops.json("resume", number)
    assert (ended["state"], ended["counts"]["created"]) == ("COMPLETED", 7)
    rows = shops.ask("SELECT country_id FROM shop ORDER BY id")
    assert [key for (key,) in rows] == [1, 1, 2, 2, 1, None, 4]


def test_programs_are_told_how_a_job_that_waits_goes_on(shops: Workspace) -> None:
    file = shops.file("id,country_id", "1,Gondor")
    told = shops.json("import", file, "--into", "shops", status=3)
    assert (told["state"], told["wish"], "decide" in told["allowed"]) == ("CELL_MAPPING", "hold", True)
    commands = [each["command"] for each in told["wayOn"]]
    assert commands == [f"rowcall values {told['number']}", f"rowcall resume {told['number']}"]
    shops.json("values", told["number"], "--ignore", "country_id:Gondor", "--confirm")
    ended = shops.json("resume", told["number"])
    assert (ended["state"], ended["wish"], ended["wayOn"]) == ("COMPLETED", None, [])


def test_decisions_are_listed_and_revoked(shops: Workspace) -> None:
    number = waiting(shops, "Gondor")
    assert shops.json("values", number, "--skip", "country_id:Gondor", "--confirm")["job"]["state"] == "CELL_MAPPING"
    shops.run("resume", number)
    again = shops.file("id,country_id", "11,Gondor", name="again.csv")
    assert shops.json("import", again, "--into", "shops")["counts"]["skipped"] == 1
    (line,) = shops.run("decisions", "list", "--importer", "shops", "--json").out.splitlines()
    decision = json.loads(line)
    assert (decision["value"], decision["action"], decision["job"]["number"]) == ("Gondor", "skip", number)
    listed = shops.run("decisions", "list").out
    assert (decision["id"] in listed, number in listed, "rows are skipped" in listed) == (True, True, True)
    revoked = shops.run("decisions", "revoke", decision["id"])
    assert "Nothing is remembered of 'Gondor'" in revoked.out
    assert f"Job {number}" in revoked.out
    assert shops.run("decisions", "revoke", decision["id"]).status == 1
    assert "Nothing is remembered." in shops.run("decisions", "list").out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--set", "country_id:Gondor"], "--set is written so"),
        (["--set", "Gondor=1"], "--set is written so"),
        (["--set", "country_id:Gondor=77"], "'77' is not in country"),
        (["--ignore", "Gondor"], "--ignore is written so"),
        (["--accept", "country_id:Gondor"], "Nothing is proposed"),
        (["--status", "OPEN"], "UNRESOLVED"),
        (["--search", "id:x"], "looked up or chosen"),
    ],
)
def test_what_makes_no_sense_is_refused(shops: Workspace, options: list[str], told: str) -> None:
    number = waiting(shops, "Gondor")
    refused = shops.run("values", number, *options)
    assert (refused.status, told in refused.err) == (1, True), refused.err


def test_a_value_stands_for_what_is_looked_up_by_any_of_its_names(shops: Workspace) -> None:
    shops.ask("UPDATE country SET iso = 'DE' WHERE name = 'Germany' RETURNING iso")
    file = shops.file("id,country_id", "1,=DE", "2,Gondor")
    number = shops.json("import", file, "--into", "stalls", status=3)["number"]
    refused = shops.run("values", number, "--set", "country_id:=DE=XY")
    assert (refused.status, "'XY' is not in country" in refused.err) == (1, True)
    assert "--search country_id:TEXT" in refused.err
    said = shops.json("values", number, "--set", "country_id:=DE=DE", "--set", "country_id:Gondor=Germany")
    assert [each["target"]["label"] for each in said["items"]] == ["Germany", "Germany"]
