"""Importers written for check constraints and Table Schemas."""

from decimal import Decimal
from pathlib import Path

import pytest

from rowcall.errors import Final
from rowcall.importer.scaffold import scaffold_schema
from rowcall.importer.scaffold.checks import Demand, understand

from ..scaffolding import assert_formatted, created


@pytest.mark.parametrize(
    ("expression", "demands"),
    [
        ("(role = ANY (ARRAY['admin'::text, 'it''s'::text]))", [Demand("role", "choices", ("admin", "it's"))]),
        (
            "((status)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))",
            [Demand("status", "choices", ("a", "b"))],
        ),
        ("((a = 'x'::text) OR (a = 'y'::text))", [Demand("a", "choices", ("x", "y"))]),
        (
            "((age >= 0) AND (age < 150))",
            [Demand("age", "min", Decimal(0)), Demand("age", "max", Decimal(150), strict=True)],
        ),
        ("(price > (0.5)::numeric)", [Demand("price", "min", Decimal("0.5"), strict=True)]),
        ("(x >= '-5'::integer)", [Demand("x", "min", Decimal(-5))]),
        ("((x IS NULL) OR (x <= 3))", [Demand("x", "max", Decimal(3))]),
        ("(char_length((name)::text) <= 50)", [Demand("name", "max_length", Decimal(50))]),
        ("(slug ~ '^[a-z]+(-[a-z]+)*$'::text)", [Demand("slug", "pattern", "[a-z]+(-[a-z]+)*")]),
        ("(code ~ '^X'::text)", [Demand("code", "pattern", "X.*")]),
        ("(btrim(body) <> ''::text)", [Demand("body", "filled", True)]),
    ],
)
def test_a_constraint_on_one_column_is_understood(expression: str, demands: list[Demand]) -> None:
    understood = understand(expression)
    assert (list(understood.demands), understood.whole) == (demands, True)


@pytest.mark.parametrize(
    "expression",
    [
        "(a < b)",
        "((status = 'published'::text) = (published_at IS NOT NULL))",
        "((a IS NULL) OR (b > 3))",
        "(day > '2020-01-01'::date)",
        "(name ~ '(?=look)around'::text)",
        "(name ~ '^a|b$'::text)",
        "(email = lower(email))",
    ],
)
def test_any_other_constraint_is_left_to_postgresql(expression: str) -> None:
    understood = understand(expression)
    assert (understood.demands, understood.whole) == ((), False)


def test_what_is_not_understood_does_not_hide_the_rest() -> None:
    understood = understand("((a > 3) AND (a < b))")
    assert ([demand.option for demand in understood.demands], understood.whole) == (["min"], False)


SCHEMA = {
    "description": 'People who "borrow" books.',
    "missingValues": ["", "n/a", "-"],
    "primaryKey": "Member No",
    "fields": [
        {"name": "Member No", "type": "integer", "constraints": {"required": True, "minimum": 1}},
        {"name": "mail", "type": "string", "format": "email", "constraints": {"unique": True}},
        {"name": "name", "title": "Full name", "constraints": {"required": True, "minLength": 2, "maxLength": 80}},
        {"name": "class", "type": "string", "constraints": {"enum": ["adult", "child", 'the "other" kind']}},
        {"name": "postcode", "type": "string", "constraints": {"pattern": "\\d{4}[A-Z]{2}"}},
        {"name": "fee", "type": "number", "constraints": {"minimum": "0.5", "maximum": 99}},
        {"name": "Début (année)", "type": "date", "constraints": {"minimum": "1900-01-01"}},
        {"name": "joined", "type": "datetime"},
        {"name": "active", "type": "boolean"},
        {"name": "topics", "type": "list", "delimiter": ";"},
        {"name": "extra", "type": "object", "description": "Anything else\nthat is known."},
        {"name": "opening", "type": "time"},
        {"name": "library", "type": "string", "constraints": {"required": True}},
        {"name": "number"},
    ],
    "foreignKeys": [{"fields": "library", "reference": {"resource": "libraries", "fields": "code"}}],
}


def test_a_table_schema_becomes_an_importer(tmp_path: Path) -> None:
    source = scaffold_schema(SCHEMA, "members")
    assert_formatted(source, tmp_path)
    importer = created(source)
    kinds = {name: type(field).__name__ for name, field in importer.fields.items()}
    assert kinds == {
        "member_no": "Integer",
        "mail": "Email",
        "name": "Text",
        "class": "Choice",
        "postcode": "Text",
        "fee": "Decimal",
        "debut_annee": "Date",
        "joined": "DateTime",
        "active": "Boolean",
        "topics": "List",
        "extra": "Json",
        "opening": "Text",
        "library": "Lookup",
        "number_value": "Text",
    }
    assert (importer.target, importer.keys) == ("members", (("member_no",), ("mail",)))
    assert [name for name, field in importer.fields.items() if field.required] == ["member_no", "name", "library"]
    assert importer.fields["extra"].help == "Anything else that is known."
    assert importer.fields["debut_annee"].aliases == ["Début (année)"]
    assert importer.fields["fee"].blank == ["n/a", "-"]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ('class_ = Choice("adult", "child", \'the "other" kind\', blank=["n/a", "-"])', "quotes"),
        ('postcode = Text(pattern=r"\\d{4}[A-Z]{2}", blank=["n/a", "-"])', "patterns"),
        (
            'library = Lookup(\n        "libraries",\n        by="code",\n        to="code",\n        required=True,',
            "references",
        ),
        ("# A minimum that could not be taken over: 1900-01-01\n", "what is left to a person"),
        ("# Table Schema's type time is taken as text.\n", "types that Rowcall has no field for"),
    ],
)
def test_the_source_shows(part: str, expected: str) -> None:
    assert part in scaffold_schema(SCHEMA, "members"), expected


@pytest.mark.parametrize("document", [{}, {"fields": "name"}, {"fields": [{"type": "string"}]}])
def test_what_is_no_table_schema_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(Final, match="The Table Schema of members can't be read"):
        scaffold_schema(document, "members")


def of_fields(*fields: dict[str, object], **others: object) -> str:
    return scaffold_schema({"fields": list(fields), **others}, "members")


def test_fields_of_one_name_are_refused() -> None:
    with pytest.raises(Final, match="several fields of the name 'a'"):
        of_fields({"name": "a"}, {"name": "a"})


def test_fields_that_differ_in_case_only_are_told_apart(tmp_path: Path) -> None:
    source = of_fields({"name": "UserId"}, {"name": "userid"}, {"name": "Ä"}, {"name": "ä"})
    assert_formatted(source, tmp_path)
    assert list(created(source).fields) == ["user_id_2", "userid", "a", "a_2"]
    assert "# A file's column 'ä' looks like 'Ä': bring it with --map 'ä=a_2'." in source


def test_a_primary_key_that_is_no_field_is_told() -> None:
    source = of_fields({"name": "a"}, primaryKey=["a", "q"])
    assert created(source).keys == ()
    assert "# Not taken over: the primaryKey, of which 'q' is no field.\n" in source


def test_values_that_a_choice_can_not_tell_apart_stay_texts() -> None:
    source = of_fields({"name": "a", "constraints": {"enum": ["A", "a"]}})
    assert type(created(source).fields["a"]).__name__ == "Text"
    assert "# One of these, which a Choice could not tell apart: 'A', 'a'.\n" in source


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ({"type": "boolean", "trueValues": ["Yes", "wahr", "x"]}, "# Not taken over, of trueValues: 'x'."),
        ({"type": "boolean", "falseValues": ["-"]}, "# Not taken over, of falseValues: '-'."),
        ({"type": "date", "format": "%d/%m/%y"}, "# Not taken over: the format %d/%m/%y. Each column's values"),
        ({"type": "number", "decimalChar": ","}, "# Not taken over: decimalChar ','."),
        ({"type": "number", "bareNumber": False}, "# Not taken over: bareNumber."),
        ({"type": "string", "format": "uri"}, "# Not taken over: the format uri."),
        ({"type": "integer", "constraints": {"minimum": 3, "maximum": 2}}, "# Left out: min=3, max=2; min 3 is above"),
        ({"type": "number", "constraints": {"maximum": "INF"}}, "# A maximum that could not be taken over: INF"),
    ],
)
def test_what_is_not_taken_over_is_told(field: dict[str, object], told: str) -> None:
    source = of_fields({"name": "a", **field})
    assert told in source
    created(source)


@pytest.mark.parametrize("field", [{"type": "boolean", "trueValues": ["true", "1"]}, {"type": "date", "format": "any"}])
def test_what_a_field_does_anyway_needs_no_note(field: dict[str, object]) -> None:
    assert "#" not in of_fields({"name": "a", **field})


def test_a_table_may_be_called_as_a_word_of_python() -> None:
    source = scaffold_schema({"fields": [{"name": "a"}]}, "true")
    assert created(source).__name__ == "TrueRows"


def test_what_could_not_be_loaded_is_not_written() -> None:
    with pytest.raises(Final, match=r"No importer that could be loaded can be written for a\.b\.c"):
        scaffold_schema({"fields": [{"name": "a"}]}, "a.b.c")
