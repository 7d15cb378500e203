"""What can be declared as a resource, and how filters are written."""

import pytest

from rowcall.errors import Final
from rowcall.export import Filter, Resource, declared
from rowcall.model import Code


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fields": "email"}, "fields is a text, not a list of names"),
        ({"order": ("id", "id")}, "order names a column twice: id, id"),
        ({"fields": ("id", "email"), "filters": ("emial",)}, "Did you mean 'email'?"),
    ],
)
def test_a_wrong_declaration_fails_when_made(options: dict[str, tuple[str, ...]], told: str) -> None:
    with pytest.raises(Final) as error:
        Resource(name="users", table="users", **options)  # pyright: ignore[reportArgumentType] (wrong on purpose)
    assert error.value.code == Code.BAD_DECLARATION
    assert told in str(error.value)


def test_only_resources_of_different_names_are_declared() -> None:
    users = Resource(name="users", table="users")
    assert declared([users]) == {"users": users}
    with pytest.raises(Final, match="two of this name"):
        declared([users, users])
    with pytest.raises(Final, match="is no Resource"):
        declared(["users"])


@pytest.mark.parametrize(
    ("text", "filter_"),
    [
        ("city=Oslo", Filter("city", "=", "Oslo")),
        ("city=", Filter("city", "=", "")),
        ("a=b=c", Filter("a", "=", "b=c")),
        ("age>=18", Filter("age", ">=", "18")),
        ("age <5", Filter("age", "<", "5")),
        ("note!=a\nb", Filter("note", "!=", "a\nb")),
        ("deleted_at=null", Filter("deleted_at", "=", None)),
        ("deleted_at!=null", Filter("deleted_at", "!=", None)),
    ],
)
def test_a_filter_is_a_field_an_operator_and_a_value(text: str, filter_: Filter) -> None:
    assert Filter.parse(text) == filter_


@pytest.mark.parametrize("text", ["city", "=Oslo", "", "age>null", "!x"])
def test_what_is_no_filter_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Final, match="For example age>=18") as error:
        Filter.parse(text)
    assert error.value.code == Code.BAD_OPTION
