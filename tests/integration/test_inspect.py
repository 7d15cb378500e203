"""`rowcall inspect` as a user runs it."""

import json
from pathlib import Path

import pytest

from .command import rowcall

SAMPLES = Path(__file__).parents[2] / "samples"


def document(*arguments: str | Path) -> dict[str, object]:
    done = rowcall("inspect", *arguments, "--json")
    assert (done.status, done.err) == (0, "")
    return json.loads(done.out)


@pytest.mark.parametrize(
    "sample", sorted(path for path in SAMPLES.iterdir() if path.is_file()), ids=lambda path: path.name
)
def test_every_sample_is_explained(sample: Path) -> None:
    done = rowcall("inspect", sample)
    assert (done.status, done.err) == (0, "")
    assert "format" in done.out
    assert " rows = " in done.out


def test_json_tells_everything_with_its_reason() -> None:
    found = document(SAMPLES / "kunden.csv")
    assert found["detected"] == {
        "format": {"value": "csv", "why": "text"},
        "encoding": {
            "value": "cp1252",
            "why": "not UTF-8; guessed from 10 words beyond ASCII, the language looks like 'de'",
        },
        "delimiter": {"value": ";", "why": "73% of the sampled records have 6 fields (against , 45% on 3)"},
        "quote": {"value": '"', "why": "the usual one; none in the sample"},
        "escape": {"value": "doubled", "why": "the usual one"},
        "newline": {"value": "CRLF", "why": "13 CRLF in the sample"},
        "header": {"value": "3", "why": "words above what is not, under 1 line of preamble"},
    }
    assert found["preamble"] == ["Benutzerliste;Stand 01.10.2026"]
    counts = {"rows": 8, "good": 5, "bad": 3, "issues": 0, "blank": 2, "header": 2, "preamble": 1, "comment": 0}
    assert found["counts"] == counts


def test_json_of_columns_and_bad_records() -> None:
    found = document(SAMPLES / "kunden.csv", "--rows", "1")
    columns = {column["name"]: column for column in found["columns"]}  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue, reportIndexIssue, reportGeneralTypeIssues] (JSON)
    assert columns["Umsatz"]["decimal"] == ","
    assert columns["PLZ"]["kind"] == "code of digits"
    assert columns["Geburtsdatum"]["ambiguous"] == ["date day-month-year", "date month-day-year"]
    assert columns["Geburtsdatum"]["fillPercent"] == 80.0
    cells = ["00017", "Müller, Jürgen", "j.mueller@example.org", "03.04.1981", "1.234,50", "01067"]
    assert found["rows"] == [{"row": 1, "line": 4, "cells": cells}]
    bad = [(b["row"], b["line"], b["code"]) for b in found["bad"]]  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue, reportIndexIssue, reportGeneralTypeIssues] (JSON)
    assert bad == [(3, 7, "UNCLOSED_QUOTE"), (5, 9, "TOO_FEW_FIELDS"), (7, 12, "TOO_MANY_FIELDS")]


def test_options_override_what_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("a;b\n1;Žižka\n".encode("cp1250"))
    found = document(path, "--encoding", "cp1250", "--delimiter", ";", "--header", "0")
    assert found["rows"] == [{"row": 1, "line": 1, "cells": ["a", "b"]}, {"row": 2, "line": 2, "cells": ["1", "Žižka"]}]


def test_a_sheet_is_chosen_by_name_or_position() -> None:
    by_name = document(SAMPLES / "orders.xlsx", "--sheet", "Orders")
    assert by_name["counts"] == document(SAMPLES / "orders.xlsx", "--sheet", "2")["counts"]
    done = rowcall("inspect", SAMPLES / "orders.xlsx", "--sheet", "Nope")
    assert done.status == 1
    assert "'Orders'" in done.err


def test_standard_input(tmp_path: Path) -> None:
    done = rowcall("inspect", "-", "--json", stdin=b"a,b\n1,2\n")
    assert json.loads(done.out)["counts"]["rows"] == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["missing.csv"], "FILE_NOT_FOUND"),
        ([str(SAMPLES / "users.csv"), "--encoding", "utf-7"], "UNKNOWN_ENCODING"),
        ([str(SAMPLES / "users.csv"), "--format", "docx"], "BAD_OPTION"),
        ([str(SAMPLES / "users.csv"), "--format", "parquet"], "PARQUET_CORRUPT"),
    ],
)
def test_a_failure_is_a_message_and_exit_code_1(arguments: list[str], code: str) -> None:
    done = rowcall("inspect", *arguments)
    assert (done.status, done.out) == (1, "")
    assert code in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [["inspect"], ["inspect", "x.csv", "--sheets", "1"], ["inspect", "x.csv", "--rows", "few"], ["inspct"], []],
)
def test_a_command_that_is_not_understood_is_exit_code_1(arguments: list[str]) -> None:
    done = rowcall(*arguments)
    assert done.status == 1
    assert "Usage: rowcall" in done.out + done.err


def test_a_wrong_setting_is_refused_at_once() -> None:
    done = rowcall("inspect", SAMPLES / "users.csv", ROWCALL_LIMIT_COLUMNS="many")
    assert done.status == 1
    assert "ROWCALL_LIMIT_COLUMNS is 'many'" in done.err
    assert "TOO_MANY_COLUMNS" in rowcall("inspect", SAMPLES / "users.csv", ROWCALL_LIMIT_COLUMNS="3").err
