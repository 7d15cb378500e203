"""The documentation tells all there is, and what is generated in it is fresh."""

import importlib.util
import re
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from rowcall import formats
from rowcall.config import LIMIT_SETTINGS, LIMITS, SETTINGS, Settings, limits_from, settings_from
from rowcall.errors import Final
from rowcall.formats import Limits
from rowcall.model import Code

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "reference.md").read_text()


def test_every_code_is_explained_and_no_other() -> None:
    explained = set(re.findall(r"^\| `([A-Z_]+)` \|", REFERENCE, re.MULTILINE))
    settings = {code for code in explained if code.startswith("ROWCALL_")}
    assert explained - settings == {code.value for code in Code}


def test_every_code_is_used() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert [code for code in Code if f"Code.{code.name}" not in source] == []


def test_every_setting_has_its_default() -> None:
    told = settings_from({one.variable: one.default for one in (*SETTINGS, *LIMIT_SETTINGS) if "`" not in one.default})
    assert told == Settings(data_dir=told.data_dir)
    assert set(LIMITS) == {one.name for one in fields(Limits)}
    names = {one.field or one.name for one in SETTINGS} - {"config", "debug"} | {"limits"}
    assert names == {one.name for one in fields(Settings)}


def test_limits_come_from_the_environment() -> None:
    assert limits_from({}) == Limits()
    given = {"ROWCALL_LIMIT_RECORD_BYTES": "32 MB", "ROWCALL_LIMIT_COLUMNS": "10"}
    assert limits_from(given) == Limits(record_bytes=32 * 2**20, columns=10)
    with pytest.raises(Final, match="ROWCALL_LIMIT_COLUMNS is '-1'"):
        limits_from({"ROWCALL_LIMIT_COLUMNS": "-1"})


def _pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pages", ROOT / "docs" / "make_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_fresh() -> None:
    pages = _pages()
    assert pages.reference(REFERENCE) == REFERENCE, "run: make docs"
    assert pages.openapi() == (ROOT / "docs" / "openapi.json").read_text(), "run: make docs"
    assert pages.picture() == (ROOT / "docs" / "inspect.svg").read_text(), "run: make docs"


def test_commands_tell_programs_what_they_tell_people_and_ask_servers_where_they_can() -> None:
    """What has no --json starts something, or writes text that is the answer; what has no --server is about files,
    the database or the service itself."""
    usages = re.findall(r"^Usage: (rowcall [a-z ]+?) (?:\[OPTIONS\]|\{)(.*?)^```", REFERENCE, flags=re.M | re.S)
    options = {name.removeprefix("rowcall "): told for name, told in usages if " COMMAND" not in told.split("\n")[0]}
    assert {name for name, told in options.items() if "--json" not in told} == {"psql", "scaffold", "serve", "worker"}
    assert {name.split()[0] for name, told in options.items() if "--server" not in told} == {
        *("accounts", "convert", "inspect", "keys", "migrate", "psql", "retention", "scaffold", "serve", "worker")
    }


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_public_names_are_these() -> None:
    assert sorted(formats.__all__, key=str.lower) == [
        *("BadRecord", "Batch", "CellIssue", "Column", "ColumnProfile", "Counts", "Detected", "Evidence", "Fact"),
        *("Format", "Kind", "Limits", "Note", "open_rows", "open_writer", "Profile", "profile_of", "Reading"),
        *("ReadOptions", "Refused", "Sheet", "Skipped", "SkippedLines", "WriteColumn", "WriteFormat"),
        *("WriteOptions", "Writer"),
    ]


def test_every_test_that_the_page_on_security_names_is_there() -> None:
    page, file = (ROOT / "docs" / "security.md").read_text(), ""
    named = re.findall(r"`(?:([\w/]+\.py)::)?(test_\w+)`", page)
    assert len(named) > 50
    for given, name in named:
        file = given or file
        assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text(), f"{file}::{name}"
