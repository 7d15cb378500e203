"""What is in files and keys stays out of the logs, whatever goes wrong with them."""

from io import StringIO

from ..unit.test_logs import lines, stream
from .town import Town

assert stream  # the fixture

SECRET = "Qx7secretvalue"
BAD = f"email,name,role,active\n{SECRET},,{SECRET},{SECRET}\n{SECRET}@example.org,{SECRET},reader,true\ntoo,few\n"


def test_no_line_holds_a_cell_or_a_key(town: Town, stream: StringIO) -> None:
    job = town.send("ann", text=BAD).json()["id"]
    town.worker.advance(job)
    for path in ("items", "receipt", "results/summary", "events"):
        assert town.ask("ann", "GET", f"/v1/imports/{job}/{path}").is_success
    assert SECRET in town.ask("ann", "GET", f"/v1/imports/{job}/items").text
    assert town.ask("ann", "GET", f"/v1/imports/{job}/items", params={"text": SECRET, "sort": SECRET}).is_client_error
    assert town.ask("wrong", "GET", f"/v1/{SECRET}?key={town.keys['ann']}").is_client_error
    url = {"url": f"http://{SECRET}:{SECRET}@10.0.0.1/?{SECRET}", "importer": "users"}
    assert town.ask("ann", "POST", "/v1/imports", json=url).status_code == 422
    ours = [line for line in lines(stream) if line["logger"] != "httpx"]  # which is the sender, here
    told = str(ours)
    assert SECRET.lower() not in told.lower()
    assert [key for key in town.keys.values() if key[-43:] in told] == []
    assert {line["event"] for line in ours} >= {"request", "job ended"}


def test_metrics_have_no_labels_that_a_sender_chooses(town: Town) -> None:
    for path in (f"/{SECRET}", f"/v1/importers/{SECRET}", f"/v1/imports/{SECRET}", f"/v1/exports?resource={SECRET}"):
        town.ask("ann", "GET", path)
    assert SECRET not in town.client.get("/metrics").text
