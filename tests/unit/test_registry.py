"""Importers are found through rowcall.toml, and a broken one says where it is broken."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from rowcall import Final
from rowcall.importer.registry import load_registry

IMPORTER = """
from rowcall import Importer, Text

class {name}(Importer):
    target = "t"
    a = Text()
"""


def nothing_installed(group: str) -> list[EntryPoint]:
    return []


def content_installed(group: str) -> list[EntryPoint]:
    return [EntryPoint("content", "rowcall.packs.content", group)]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROWCALL_CONFIG", raising=False)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    monkeypatch.setattr("rowcall.importer.registry.entry_points", nothing_installed)
    return tmp_path


def write(app: Path, **files: str) -> None:
    for name, text in files.items():
        path = app / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)
    listed = ", ".join(f'"{name.replace("__", "/")}.py"' for name in files)
    (app / "rowcall.toml").write_text(f"importers = [{listed}]")


def test_importers_are_found_from_a_folder_below(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(app, people=IMPORTER.format(name="Users"), shop__orders=IMPORTER.format(name="Orders"))
    (app / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(app / "deep" / "er")
    registry = load_registry()
    assert tuple(registry.by_name()) == ("users", "orders")
    assert registry.importer("orders") is registry.importer("orders.orders") is registry.all()[1]
    assert registry.pack_of(registry.importer("users")).name == "people"


def test_a_package_is_a_pack_with_resources_and_migrations(app: Path) -> None:
    package = app / "b1_shop"
    (package / "migrations").mkdir(parents=True)
    (package / "orders.py").write_text(IMPORTER.format(name="Orders"))
    (package / "__init__.py").write_text("from b1_shop.orders import Importer, Orders\nresources = ['orders']\n")
    (app / "rowcall.toml").write_text('importers = ["b1_shop"]')
    (pack,) = load_registry().packs
    assert [importer.name for importer in pack.importers] == ["orders"]
    assert pack.resources == ("orders",)
    assert pack.migrations == package / "migrations"


def test_an_unknown_importer_is_told_what_was_meant_and_what_there_is(app: Path) -> None:
    write(app, people=IMPORTER.format(name="Users"), orders=IMPORTER.format(name="Orders"))
    with pytest.raises(Final) as raised:
        load_registry().importer("user")
    assert raised.value.code == "UNKNOWN_IMPORTER"
    assert "Did you mean 'users'? Known importers: orders, users." in str(raised.value)


def test_an_importer_of_the_application_comes_before_that_of_an_installed_pack(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowcall.importer.registry.entry_points", content_installed)
    write(app, mine=IMPORTER.format(name="Users"))
    registry = load_registry()
    assert registry.importer("users") is registry.all()[0]
    assert registry.importer("content.users").target == "users"
    assert next(iter(registry.by_name())) == "users"
    assert "content.users" in registry.by_name()


def test_equal_names_are_told_apart_by_their_packs(app: Path) -> None:
    write(app, old=IMPORTER.format(name="Users"), new=IMPORTER.format(name="Users"))
    registry = load_registry()
    assert tuple(registry.by_name()) == ("old.users", "new.users")
    assert registry.importer("new.users") is registry.all()[1]
    with pytest.raises(Final, match=r"Say which: old\.users, new\.users\."):
        registry.importer("users")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (IMPORTER.format(name="Users") + "    key = 'b'\n", "line 4: Users.key: there is no field 'b'."),
        ("\nimport nowhere_to_be_found\n", "line 2: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("\n\n1/0\n", "line 3: ZeroDivisionError"),
        ("\nclass X(:\n", "line 2: invalid syntax"),
    ],
)
def test_a_broken_module_says_where_and_what(app: Path, text: str, told: str) -> None:
    write(app, broken=text)
    with pytest.raises(Final) as raised:
        load_registry()
    assert raised.value.code == "BAD_DECLARATION"
    assert str(app / "broken.py") in str(raised.value)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ('importers = ["no_such_module_at_all"]', "BAD_DECLARATION"),
        ('importers = ["missing.py"]', "BAD_DECLARATION"),
        ("importers = 5", "BAD_SETTING"),
        ("importers = [", "BAD_SETTING"),
    ],
)
def test_a_wrong_setting_is_refused(app: Path, settings: str, code: str) -> None:
    (app / "rowcall.toml").write_text(settings)
    with pytest.raises(Final) as raised:
        load_registry()
    assert raised.value.code == code


def test_a_misspelt_key_says_what_was_probably_meant(app: Path) -> None:
    (app / "rowcall.toml").write_text("importer = []")
    with pytest.raises(Final, match=r"'importer' means nothing to Rowcall. Did you mean 'importers'\?"):
        load_registry()


def test_the_setting_names_another_file(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(app, people=IMPORTER.format(name="Users"))
    (app / "rowcall.toml").rename(app / "other.toml")
    assert load_registry().by_name() == {}
    monkeypatch.setenv("ROWCALL_CONFIG", str(app / "other.toml"))
    assert list(load_registry().by_name()) == ["users"]
