"""`rowcall import` of a URL."""

import json

import pytest

from ..web import serving
from .workspace import Workspace

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)


def test_a_url_is_fetched_as_over_http(workspace: Workspace) -> None:
    with serving() as web:
        where = web.at("/people.csv", "email,name\nada@example.org,Ada\n")
        refused = workspace.json("import", where, "--into", "people", status=1)
        assert refused["error"]["code"] == "URL_REFUSED"
        assert web.requests == []
        done = workspace.run("import", where, "--into", "people", "--json", ROWCALL_URL_ALLOW="127.0.0.1:*")
        told = json.loads(done.out)
        assert (told["state"], told["counts"]["created"], told["file"]["name"]) == ("COMPLETED", 1, "people.csv")
