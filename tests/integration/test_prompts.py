"""`rowcall import` asks at a terminal where it isn't sure, and waits elsewhere: columns, values, plan."""

from collections.abc import Generator

import pytest

from .command import serving
from .terminal import CONTROL_C, DOWN, ENTER, ESCAPE, Terminal
from .workspace import Workspace

pytestmark = pytest.mark.parametrize("shared_server", ["embedded18"], indirect=True)
UNSURE = ("Kontakt,who", "ada@example.org,Ada", "bob@example.org,Bob")
_IMPORTERS = '''
from rowcall import Fingerprint, Flow, Importer, Lookup, Text, Update


class Visits(Importer):
    """Visits to countries."""

    target = "visit"
    key = "code"
    on_match = Update()
    flow = Flow(preview=True)
    code = Text(required=True)
    country_id = Lookup("country", by="name", on_missing="ask")


class Stays(Importer):
    """Stays in cities."""

    target = "stay"
    code = Text(required=True)
    country_id = Lookup("country", by="name", on_missing="ask")
    city_id = Lookup("city", by="name", within="country_id", on_missing="ask")


class Members(Importer):
    """Members, whose names hardly change."""

    target = "people"
    key = "email"
    on_match = Update()
    fingerprint = Fingerprint(identity=("name",), least=2)
    email = Text(required=True)
    name_ = Text(required=True)
'''
_TABLES = """
    CREATE TABLE country (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE);
    CREATE TABLE city (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, country_id int);
    CREATE TABLE stay (code text PRIMARY KEY, country_id int, city_id int);
    INSERT INTO city (name, country_id) VALUES ('Springfield', 1), ('Springfield', 2);
    CREATE TABLE visit (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, code text UNIQUE, country_id int);
    INSERT INTO country (name) VALUES ('Germany'), ('France');
    INSERT INTO people (email, name) SELECT 'p' || n, 'P' || n FROM generate_series(1, 20) n;
"""
VISITS = ("xyz,country_id", "a,Germany", "b,Gondor", "c,Gondor")


@pytest.fixture
def travels(workspace: Workspace) -> Workspace:
    (workspace.folder / "importers.py").write_text(_IMPORTERS)
    with workspace.database.connect() as connection:
        connection.execute(_TABLES)
    return workspace


@pytest.fixture(params=["here", "there"])
def where(request: pytest.FixtureRequest, travels: Workspace) -> Generator[list[str]]:
    """The options for commands that work here, or have a server work."""
    if request.param == "here":
        yield []
    else:
        with serving(**travels.environment) as (_, url):
            yield ["--server", url]


def members(wrong: int) -> list[str]:
    return ["email,name", *(f"p{n},{'Bob' if n <= wrong else f'P{n}'}" for n in range(1, 21))]


def latest(workspace: Workspace) -> tuple[str, str]:
    """The number of the job and its state."""
    ((number, state),) = workspace.ask("SELECT number, state FROM rowcall.job")
    return number, state


def written(workspace: Workspace) -> list[tuple[str, int | None]]:
    return [(code, country) for code, country in workspace.ask("SELECT code, country_id FROM visit ORDER BY 1")]


def test_columns_are_asked_for_at_a_terminal_and_the_import_goes_on(workspace: Workspace) -> None:
    file = workspace.file("xyz,name", "ada@example.org,Ada", "bob@example.org,Bob")
    at = Terminal(workspace, "import", str(file), "--into", "people")
    at.until("email come from?")
    at.type(b"same" + b"\x7f" * 4 + b"xyz" + ENTER)
    at.answer("Is that right?", DOWN + DOWN + ENTER)
    assert at.ends() == 0, at.seen
    assert workspace.ask("SELECT email, name FROM people ORDER BY 1") == [
        ("ada@example.org", "Ada"),
        ("bob@example.org", "Bob"),
    ]


def test_a_terminal_is_asked_for_columns_then_values_then_the_plan(travels: Workspace, where: list[str]) -> None:
    at = Terminal(travels, "import", str(travels.file(*VISITS)), "--into", "visits", *where)
    at.answer("code come from?", b"xyz" + ENTER)
    at.answer("Is that right?", ENTER)
    at.answer("what is 'Gondor'?", b"leave the field" + ENTER)
    at.until("= 3 created")
    at.answer("Is that to be done?", ENTER)
    at.until("COMPLETED")
    assert at.ends() == 0, at.seen
    assert written(travels) == [("a", 1), ("b", None), ("c", None)]


def test_whoever_leaves_at_any_question_finds_the_job_there_and_goes_on(travels: Workspace, where: list[str]) -> None:
    at = Terminal(travels, "import", str(travels.file(*VISITS)), "--into", "visits", *where)
    at.answer("code come from?", ESCAPE)
    at.until("rowcall map ")
    assert at.ends() == 3, at.seen
    number, state = latest(travels)
    assert state == "COLUMN_MAPPING"

    at = Terminal(travels, "resume", number, *where)
    at.answer("code come from?", b"xyz" + ENTER)
    at.answer("Is that right?", ENTER)
    at.answer("what is 'Gondor'?", CONTROL_C)
    at.until(" ".join(["rowcall values", number, *where]))
    assert (at.ends(), latest(travels)[1]) == (3, "CELL_MAPPING"), at.seen

    at = Terminal(travels, "resume", number, *where)
    at.answer("what is 'Gondor'?", b"leave the field" + ENTER)
    at.answer("Is that to be done?", ESCAPE)
    at.until(" ".join(["rowcall submit", number, *where]))
    assert (at.ends(), latest(travels)[1], written(travels)) == (0, "VALIDATED", []), at.seen

    at = Terminal(travels, "resume", number, *where)
    at.answer("Is that to be done?", ENTER)
    assert at.ends() == 0, at.seen
    assert len(written(travels)) == 3


def test_a_question_tells_what_the_value_is_looked_up_within(travels: Workspace) -> None:
    file = travels.file("code,country_id,city_id", "a,Germany,Sprngfeld", "b,Germany,Sprngfeld", "c,France,Sprngfeld")
    at = Terminal(travels, "import", str(file), "--into", "stays")
    at.answer("city_id: what is 'Sprngfeld' in Germany?", ENTER)
    at.answer("city_id: what is 'Sprngfeld' in France?", b"search" + ENTER)
    at.until("Search for:")
    at.type(b"spring" + ENTER)
    at.answer("city_id: what is 'Sprngfeld' in France?", ENTER)
    assert at.ends() == 0, at.seen
    assert travels.ask("SELECT city_id FROM stay ORDER BY code") == [(1,), (1,), (2,)]


def test_from_the_plan_one_can_go_back_to_the_columns_or_give_it_up(travels: Workspace) -> None:
    file = travels.file("code,other", "a,Germany", "b,France")
    at = Terminal(travels, "import", str(file), "--into", "visits")
    at.answer("Is that to be done?", b"change" + ENTER)
    at.answer("Is that right?", b"change" + ENTER)
    at.answer("Which column?", b"other" + ENTER)
    at.answer("column 'other'?", b"country" + ENTER)
    at.answer("Is that right?", ENTER)
    at.answer("Is that to be done?", b"cancel" + ENTER)
    at.until("CANCELLED")
    assert at.ends() == 1
    assert written(travels) == []


def test_rows_that_fail_are_shown_before_anybody_agrees(travels: Workspace) -> None:
    file = travels.file("code,country_id", "a,Germany", ",France")
    at = Terminal(travels, "import", str(file), "--into", "visits")
    at.until("REQUIRED")
    at.answer("Is that to be done?", DOWN + ENTER)
    at.until("code")
    at.answer("Is that to be done?", b"commit" + ENTER)
    at.until("COMPLETED_WITH_ERRORS")
    assert at.ends() == 2
    assert written(travels) == [("a", 1)]


def test_a_plan_that_changed_while_it_was_looked_at_is_shown_again(travels: Workspace) -> None:
    file = travels.file("code,country_id", "a,Germany", ",France")
    at = Terminal(travels, "import", str(file), "--into", "visits")
    at.answer("Is that to be done?", b"")
    number, _ = latest(travels)
    assert travels.run("edit", number, "2", "--set", "code=b").status == 0
    at.type(ENTER)
    at.until("another plan")
    at.until("= 2 created")
    at.answer("Is that to be done?", ENTER)
    assert at.ends() == 0, at.seen
    assert written(travels) == [("a", 1), ("b", 2)]


def test_what_somebody_else_did_meanwhile_is_told_and_looked_at(travels: Workspace) -> None:
    at = Terminal(travels, "import", str(travels.file("code,country_id", "a,Germany")), "--into", "visits")
    at.answer("Is that to be done?", b"")
    number, _ = latest(travels)
    assert travels.run("cancel", number).status == 0
    at.type(ENTER)
    at.until("submit is not possible now")
    at.until("CANCELLED")
    assert at.ends() == 1


def test_a_file_that_differs_from_the_target_is_shown_and_asked_about(travels: Workspace, where: list[str]) -> None:
    """A7: nothing goes on by itself, and who said so is kept."""
    at = Terminal(travels, "import", str(travels.file(*members(2))), "--into", "members", *where)
    at.until("Bob")
    at.answer("Is it the right file?", ENTER)
    number, state = latest(travels)
    at.until(" ".join(["rowcall acknowledge", number, *where]))
    assert (at.ends(), state) == (3, "FINGERPRINT_WARN"), at.seen
    at = Terminal(travels, "resume", number, *where)
    at.answer("Is it the right file?", b"all the same" + ENTER)
    at.until("COMPLETED")
    assert at.ends() == 0, at.seen
    assert travels.json("fingerprint", number)["acknowledgedBy"]


@pytest.mark.parametrize(
    ("importer", "lines", "state", "status", "commands"),
    [
        ("visits", VISITS, "COLUMN_MAPPING", 3, ["map"]),
        ("visits", ("code,country_id", "a,Gondor"), "CELL_MAPPING", 3, ["values"]),
        ("members", members(2), "FINGERPRINT_WARN", 3, ["fingerprint", "acknowledge", "cancel"]),
        ("members", members(10), "FINGERPRINT_ABORT", 3, ["fingerprint", "cancel"]),
        ("visits", ("code,country_id", "a,Germany"), "VALIDATED", 0, ["preview", "submit", "cancel"]),
    ],
)
def test_where_nobody_sits_the_job_waits_and_tells_how_to_go_on(
    travels: Workspace, importer: str, lines: tuple[str, ...], state: str, status: int, commands: list[str]
) -> None:
    done = travels.run("import", travels.file(*lines), "--into", importer, "--ask", "unsure")
    number, at = latest(travels)
    assert (at, done.status) == (state, status), done.out + done.err
    for command in commands:
        assert f"rowcall {command} {number}" in done.out


def test_programs_at_a_terminal_are_not_asked(travels: Workspace) -> None:
    file = travels.file("code,country_id", "a,Gondor")
    at = Terminal(travels, "import", str(file), "--into", "visits", "--json")
    at.until('"CELL_MAPPING"')
    assert at.ends() == 3


def test_a_service_tells_the_same_where_nobody_sits(travels: Workspace) -> None:
    with serving(**travels.environment) as (_, url):
        file = travels.file("code,country_id", "a,Gondor")
        done = travels.run("import", file, "--into", "visits", "--server", url)
        number, _ = latest(travels)
        assert (done.status, f"rowcall values {number} --server {url}" in done.out) == (3, True), done.out + done.err
        again = travels.run("resume", number, "--server", url)
        assert (again.status, f"rowcall values {number} --server {url}" in again.out) == (3, True), again.err
