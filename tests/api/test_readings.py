"""Columns are not confirmed while nobody said how their numbers are read."""

from pathlib import Path

from rowcall import Decimal, Flow, Importer, Integer, Text
from rowcall.store.db import Database

from .scoped import open_yard


class Weighed(Importer):
    """Loads whose weight has decimal places."""

    name = "weighed"
    target = "loads"
    flow = Flow(columns="unsure")
    context = ("registration",)

    id = Integer(required=True)
    registration = Text(required=True)
    tonnes = Decimal()


def test_columns_whose_numbers_can_be_read_in_two_ways_are_not_confirmed(database: Database, tmp_path: Path) -> None:
    with open_yard(database, tmp_path, Weighed) as yard:
        job = yard.works(yard.sends('id,tonnes\n1,"1,234"\n', importer="weighed").json())
        assert (job["state"], job["wish"]) == ("COLUMN_MAPPING", "hold")
        refused = yard.asks(job, "column-mappings/confirm")
        assert (refused.status_code, refused.json()["code"]) == (406, "AMBIGUOUS_NUMBERS")
        assert "Column 'tonnes' has numbers such as '1,234'" in refused.json()["detail"]
        update = {"position": 1, "confirm": True, "decimalMark": "."}
        said = yard.ask("PUT", f"/v1/imports/{job['id']}/column-mappings", json={"updates": [update]})
        assert said.status_code == 200
        assert yard.asks(job, "column-mappings/confirm").status_code == 202
        assert yard.works(job)["state"] == "COMPLETED"
        assert yard.sql("SELECT tonnes FROM loads") == [(1234,)]
