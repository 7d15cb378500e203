"""Schemathesis asks for all that the OpenAPI document offers, and for much that it doesn't.

Whatever it sends: no answer is a server error, and none is other than the document says. It is seeded; with
`SCHEMATHESIS_EXAMPLES=100` it sends more, with `SCHEMATHESIS_SEED=1` something else.
"""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rowcall.api import auth
from rowcall.api.app import create_app
from rowcall.api.service import Service
from rowcall.config import Settings
from rowcall.export import known_resources
from rowcall.sources.addresses import Allowed
from rowcall.store.db import Database
from rowcall.worker.exports import Exporter
from rowcall.worker.worker import Worker

from .town import USERS, make_keys, prepared, served

EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "2")
SEED = os.environ.get("SCHEMATHESIS_SEED", "20261116")
HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
UPLOAD = {"Tus-Resumable": "1.0.0", "Upload-Length": "100", "Upload-Metadata": "importer dXNlcnM="}
CONFIG = """
seed = {seed}
hooks = "{hooks}"
warnings = false
continue-on-failure = true

[headers]
{headers}

[generation]
max-examples = {examples}
database = "none"
with-security-parameters = {with_keys}

[phases]
coverage.enabled = {with_keys}  # once is enough: it sends the same each time

[checks]
# what fits a schema may still be refused: for a name that nobody knows, or a place that isn't there
positive_data_acceptance.enabled = false
ignored_auth.enabled = {with_keys}
missing_required_header = {{enabled = {with_keys}, expected-statuses = ["400", "401", "412", "422"]}}
negative_data_rejection.expected-statuses = ["4xx"]

# with `?importer=` any body is a file
[[operations]]
include-name = "POST /v1/imports"
checks.negative_data_rejection.enabled = false

[dictionaries]
{dictionaries}

[parameters]
{parameters}
"""


@pytest.fixture(params=["nobody", "ada"])
def place(
    request: pytest.FixtureRequest, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[tuple[httpx.Client, Worker]]:
    """A service without accounts, or with them, and a client for it."""
    monkeypatch.setattr(auth, "_BAD_KEYS", 1_000_000)  # it tries many
    settings = Settings(
        database_url=database.url,
        data_dir=tmp_path / "data",
        max_upload=100_000,
        rate_limit=1_000_000,
        url_allow=Allowed.of("127.0.0.1:*"),
    )
    registry = prepared(database)
    headers = {"Authorization": f"Bearer {make_keys(database)['ada']}"} if request.param == "ada" else {}
    app = create_app(Service(settings, registry, database.pool("serve", 4)))
    with served(app) as url, httpx.Client(base_url=url, headers=headers) as client:
        yield client, Worker(database, registry, settings)


def test_no_answer_is_other_than_the_document_says(place: tuple[httpx.Client, Worker], tmp_path: Path) -> None:
    client, worker = place
    known = something(client, worker)
    config = tmp_path / "schemathesis.toml"
    key = client.headers.get("authorization")
    config.write_text(
        CONFIG.format(
            seed=SEED,
            hooks=HOOKS,
            headers=f'Authorization = "{key}"' if key else "",
            examples=EXAMPLES,
            with_keys=str(bool(key)).lower(),
            dictionaries="\n".join(f'"{name}".values = {values}' for name, values in known.items()),
            parameters="\n".join(f'"{name}" = {{dictionary = "{name}", probability = 0.8}}' for name in known),
        )
    )
    program = [sys.executable, "-m", "schemathesis.cli", "--config-file", config]
    command = [*program, "run", f"{client.base_url}/openapi.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def something(client: httpx.Client, worker: Worker) -> dict[str, list[str]]:
    """Jobs, exports, uploads, webhooks to ask for, by the name of the parameter that takes their id."""
    jobs = [posted(client, "/v1/imports", params=asked, content=USERS) for asked in ({"importer": "users"},) * 3]
    worker.advance(jobs[0])
    order = {"resource": "users", "format": "csv"}
    written = posted(client, "/v1/exports", json=order)
    Exporter(worker.database, known_resources(worker.registry), worker.settings).work()
    exports = [written, posted(client, "/v1/exports", json=order)]
    webhook = posted(client, "/v1/webhooks", json={"url": "http://127.0.0.1:9/hook"})
    delivery = posted(client, f"/v1/webhooks/{webhook}/test")
    upload = client.post("/v1/uploads", headers=UPLOAD).headers["location"].rpartition("/")[2]
    return {
        "path.job_id": jobs,
        "path.export_id": exports,
        "path.webhook_id": [webhook],
        "path.delivery_id": [delivery],
        "path.upload_id": [upload],
        "query.importer": ["users", "articles"],
        "query.resource": ["users", "articles"],
    }


def posted(client: httpx.Client, path: str, **more: Any) -> str:
    answer = client.post(path, **more)
    assert answer.is_success, answer.text
    return answer.json()["id"]
