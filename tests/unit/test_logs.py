"""Log lines: one for each event, whoever writes into it, and without values."""

import json
import logging
import sys
from collections.abc import Generator
from io import StringIO
from typing import Any

import pytest
from structlog.contextvars import bound_contextvars

from rowcall.telemetry.logs import logger, start_logs


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[StringIO]:
    root = logging.getLogger()
    level = root.level
    stream: StringIO = getattr(request, "param", StringIO)()
    monkeypatch.setattr(sys, "stderr", stream)
    start_logs("info")
    (ours,) = root.handlers
    yield stream
    root.removeHandler(ours)  # pytest has put others there since
    root.setLevel(level)
    for name in ("uvicorn", "procrastinate", "psycopg", "asyncio", "opentelemetry"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def lines(stream: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_b10_lines_are_json_with_what_is_bound(stream: StringIO) -> None:
    with bound_contextvars(request_id="r-1"):
        logger("rowcall.test").info("done", rows=3)
        logging.getLogger("rowcall.other").warning("careful: %s", "it")
    logger("rowcall.test").debug("not this")
    first, second = lines(stream)
    assert list(first)[:4] == ["timestamp", "level", "logger", "event"]
    assert (first["event"], first["rows"], first["request_id"], first["level"]) == ("done", 3, "r-1", "info")
    assert (second["event"], second["request_id"], second["logger"]) == ("careful: it", "r-1", "rowcall.other")


@pytest.mark.parametrize("stream", [StringIO, Screen], indirect=True)
def test_nobody_adds_a_line_or_moves_the_cursor(stream: StringIO) -> None:
    bad = 'a\r\n{"level": "error"}\x1b[2J\u2028\u202e' + "x" * 2000
    logger("rowcall.test").info("asked\nfor", name=bad)
    logging.getLogger("elsewhere").error("%s", bad)
    text = stream.getvalue()
    assert len(text.splitlines()) == 2
    assert "\x1b[2J" not in text
    assert "\r" not in text
    assert max(map(len, text.splitlines())) < 900


def test_errors_are_told_by_type_and_place_not_by_their_words(stream: StringIO) -> None:
    try:
        int("ann@example.org")
    except ValueError as error:
        logger("rowcall.test").warning("stopped", exc_info=True)
        logging.getLogger("asyncio").exception("Task exception was never retrieved\nfuture: %r", error)  # noqa: TRY401 (as asyncio does)
    assert "ann@example.org" not in stream.getvalue()
    for line in lines(stream):
        assert line["exception"] == "builtins.ValueError"
        assert line["at"].startswith("test_logs.py:")


def test_libraries_tell_their_warnings_only(stream: StringIO) -> None:
    for name in ("uvicorn.error", "procrastinate.worker"):
        logging.getLogger(name).info("a step")
        logging.getLogger(name).warning("a warning")
    logging.getLogger("uvicorn.error").error("Exception in ASGI application\n")  # the request's own line says so
    assert [line["event"] for line in lines(stream)] == ["a warning", "a warning"]
