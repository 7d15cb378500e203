"""The workbook to fill in for an importer: over HTTP, from Python, on the command line."""

from io import BytesIO
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.worksheet.worksheet import Worksheet

from rowcall import Client

from . import test_server_option
from .conftest import Site
from .test_server_option import Run

run, here = test_server_option.run, test_server_option.here
SAMPLES = {
    "users": {
        "email": "ann@example.org",
        "name": "Ann",
        "role": "author",
        "active": "yes",
        "created_at": "2024-12-31 14:05:00",
    },
    "articles": {"slug": "first", "title": "The first", "body": "Words.", "author_id": "ann@example.org"},
}


def sheet_of(workbook: bytes) -> Worksheet:
    sheet = openpyxl.load_workbook(BytesIO(workbook)).worksheets[0]
    assert isinstance(sheet, Worksheet)
    return sheet


def filled(workbook: bytes, values: dict[str, str]) -> bytes:
    book, out = openpyxl.load_workbook(BytesIO(workbook)), BytesIO()
    sheet: Any = book.worksheets[0]
    for cell in sheet[1]:
        if cell.value in values:
            sheet.cell(2, cell.column, values[cell.value])
    book.save(out)
    return out.getvalue()


def test_a_template_tells_what_an_importer_takes(site: Site) -> None:
    answer = site.client.get("/v1/importers/users/template.xlsx")
    assert (answer.status_code, 'filename="users.xlsx"' in answer.headers["content-disposition"]) == (200, True)
    sheet = sheet_of(answer.content)
    header: list[Any] = list(sheet[1])
    assert [cell.value for cell in header[:4]] == ["email", "name", "id", "role"]
    assert all(cell.font.bold for cell in header)
    notes = {cell.value: cell.comment.text for cell in header}
    assert notes["email"].startswith("email, required\nOne address per user.")
    assert "One of: admin, author, editor, reader" in notes["role"]
    (rule,) = sheet.data_validations.dataValidation
    assert (str(rule.sqref).split(":")[0], rule.formula1) == ("D2", '"admin,author,editor,reader"')
    assert site.client.get("/v1/importers/nope/template.xlsx").status_code == 404


def test_a_template_that_is_filled_in_is_imported(site: Site) -> None:
    for name, values in SAMPLES.items():
        template = site.client.get(f"/v1/importers/{name}/template.xlsx").content
        files = {"file": (f"{name}.xlsx", filled(template, values))}
        job = site.client.post("/v1/imports", data={"importer": name}, files=files).json()
        site.worker.advance(job["id"])
        ended = site.client.get(f"/v1/imports/{job['id']}").json()
        assert (ended["state"], ended["counts"]["created"]) == ("COMPLETED", 1)


def test_client_and_command_write_the_template(site: Site, run: Run, here: dict[str, str], tmp_path: Path) -> None:
    file, url = tmp_path / "users.xlsx", str(site.client.base_url)
    for settings in (here, {"ROWCALL_SERVER": url}):
        file.unlink(missing_ok=True)
        wrote = run("importers", "users", "--template", file, **settings)
        assert (wrote.status, f"rowcall import {file} --into users" in wrote.out) == (0, True)
        assert sheet_of(file.read_bytes())["A1"].value == "email"
        assert run("importers", "--template", file, **settings).err.split()[0] == "BAD_OPTION"
    with Client(url) as client:
        assert client.template("users", tmp_path / "again.xlsx") == (tmp_path / "again.xlsx").stat().st_size
