"""Declaring an importer, and what a mistake in it is told."""

import re
from collections.abc import Callable
from typing import Any, cast

import polars as pl
import pytest

import rowcall
from rowcall import (
    Choice,
    Date,
    Decimal,
    Fail,
    Final,
    Flow,
    Importer,
    Integer,
    ItemImporter,
    List,
    Lookup,
    Skip,
    Text,
    Update,
    Uuid,
    Version,
    WholeFileImporter,
    rule,
)


class AuditLog(Importer):
    """What was done.

    And by whom.
    """

    target = "app.audit_log"
    key = "id"
    natural_key = "name", "day"
    on_match = Update()
    flow = Flow(preview=True)

    id = Uuid()
    name_ = Text(required=True, aliases=["Full name"])
    day = Date(column="at_day")


def test_a_class_becomes_a_description_of_the_import() -> None:
    assert AuditLog.name == "audit_log"
    assert AuditLog.description == "What was done."
    assert list(AuditLog.fields) == ["id", "name", "day"]
    assert [field.column for field in AuditLog.fields.values()] == ["id", "name", "at_day"]
    assert AuditLog.keys == (("id",), ("name", "day"))
    assert AuditLog.flow.preview


def test_fields_are_inherited_replaced_and_removed() -> None:
    class Base(Importer, abstract=True):
        id = Uuid()
        note = Text()
        extra = Text()

    class Child(Base):
        target = "children"
        note = Text(required=True)
        extra = None
        age = Integer()

    assert list(Child.fields) == ["id", "note", "age"]
    assert Child.fields["note"].required
    assert Base.abstract
    assert not Child.abstract


def test_an_importer_without_key_skips_nothing_by_key() -> None:
    class Plain(Importer):
        target = "plain"
        a = Text()

    assert Plain.keys == ()
    assert Plain.on_match == Skip()


def test_the_public_names_are_pinned() -> None:
    assert " ".join(rowcall.__all__) == (
        "Boolean Choice Client Code Compared Date DateTime Decimal Email Fail Field Final Fingerprint Flow Importer "
        "Integer Issue ItemImporter ItemResult Json List Lookup Mismatch RequestRefused Resource Retryable RowOutcome "
        "RowcallError "
        "ServerUnavailable Skip Status Text Update Uuid Version WholeFileImporter __version__ rule"
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"key": "idd"}, "Wrong.key: there is no field 'idd'. Did you mean 'id'?"),
        ({"natural_key": ("id", "x")}, "Wrong.natural_key: there is no field 'x'. There are id."),
        ({"a": cast("Any", Text)(maxlength=3)}, "Wrong.a: Text has no option 'maxlength'. Did you mean 'max_length'?"),
        ({"a": cast("Any", Lookup)("t", by="x", too="y")}, "Wrong.a: Lookup has no option 'too'. Did you mean 'to'?"),
        ({"on_mach": Skip()}, "Wrong.on_mach means nothing to Rowcall. Did you mean 'on_match'?"),
        ({"on_match": Skip}, "Wrong.on_match: one of Skip(), Update(), Version() and Fail() is expected."),
        ({"on_match": Version()}, "Wrong.on_match: Version needs a key to know a match by."),
        ({"on_match": Version(), "key": "id", "version": Integer()}, "the column 'version' counts versions"),
        ({"timezone": "Europe/Berln"}, "Wrong.timezone: there is no 'Europe/Berln'. Did you mean 'Europe/Berlin'?"),
        ({"target": ""}, "Wrong has no target."),
        ({"target": "a.b.c"}, 'Wrong.target is \'a.b.c\'; "table" or "schema.table" is expected.'),
        ({"name": "Mine!"}, "Wrong.name is 'Mine!'"),
        ({"name": Text()}, "Wrong.name: an importer's own 'name' has this name. Write name_ instead"),
        ({"number": Text()}, "Wrong.number: rows have their own number under this name."),
        ({"fields": {}}, "Wrong.fields can't be set"),
        ({"a": Text}, "Wrong.a: Text is a class; write a = Text()."),
        ({"a": Integer(min=5, max=1)}, "Wrong.a: min 5 is above max 1."),
        ({"a": Text(pattern="(?=x)")}, "Wrong.a: the pattern '(?=x)' can't be used: look-around"),
        ({"a": Text(aliases="x")}, 'Wrong.a: aliases is a text, not a list; write aliases=["x"].'),
        ({"a": Integer(default="many")}, "Wrong.a: the default doesn't fit: 'many' is not a whole number."),
        ({"a": Integer(default=7, max=5)}, "Wrong.a: the default doesn't fit: 7 is above the maximum of 5."),
        ({"a": Choice("x", default="y")}, "Wrong.a: the default doesn't fit: 'y' is none of x."),
        ({"a": Choice()}, "Wrong.a: it has no values to choose from"),
        ({"a": Choice("x", "X")}, "Wrong.a: the values 'x' and 'X' are the same apart from upper and lower case."),
        ({"a": Choice("x", synonyms={"y": "z"})}, "Wrong.a: the synonyms lead to 'z', which is not among the values."),
        ({"a": Text(), "b": Text(column="a")}, "Wrong.b: the column 'a' is taken by 'a' already."),
        ({"a": Text(aliases=["E-Mail"]), "b": Text(aliases=["email"])}, "Wrong.b: 'email' is a name of 'a' too"),
        ({"a": Lookup("t", by=())}, "Wrong.a: it has no columns to look by."),
        ({"a": Lookup("t", by="x", within="idd")}, "Wrong.a: within is 'idd', which is no field. Did you mean 'id'?"),
        ({"r": rule(field="ids")(lambda _: pl.col("id") == "")}, "there is no field 'ids'. Did you mean 'id'?"),
    ],
)
def test_a_mistake_fails_when_the_class_is_created_and_says_what_was_meant(body: dict[str, Any], told: str) -> None:
    with pytest.raises(Final) as raised:
        type("Wrong", (Importer,), {"__module__": __name__, "target": "t", "id": Text(), **body})
    assert raised.value.code == "BAD_DECLARATION"
    assert told in str(raised.value)


def test_all_mistakes_of_the_fields_are_told_at_once() -> None:
    with pytest.raises(Final) as raised:
        type("Wrong", (Importer,), {"__module__": __name__, "target": "t", "a": Choice(), "b": Integer(min=5, max=1)})
    assert str(raised.value).count("Wrong.") == 2


@pytest.mark.parametrize("base", [WholeFileImporter, ItemImporter])
def test_a_processor_needs_a_process_method_but_no_target(base: type[Importer]) -> None:
    async def awaited(*_: object) -> None: ...
    def direct(*_: object) -> tuple[()]:
        return ()

    process: Callable[..., Any] = awaited if issubclass(base, ItemImporter) else direct
    body = {"__module__": __name__, "process": process, "on_match": Fail()}
    done = cast("type[Importer]", type("Done", (base,), body))  # made of one
    assert done.target == ""
    with pytest.raises(Final, match="Undone has no process method"):
        type("Undone", (base,), {"__module__": __name__})


def _one(_self: object) -> None: ...
async def _waiting(_self: object, _rows: object, _connection: object) -> None: ...
def _at_once(_self: object, _row: object) -> None: ...


@pytest.mark.parametrize(
    ("base", "body", "told"),
    [
        (Importer, {"before": 5}, "Wrong.before is 5; a method is expected: def before(self, connection, job)."),
        (
            Importer,
            {"after": _one},
            "Wrong.after doesn't take what it is given; write def after(self, connection, job).",
        ),
        (Importer, {"fingerprint": _one}, "write def fingerprint(self, job)."),
        (WholeFileImporter, {"process": _one}, "write def process(self, rows, connection)."),
        (WholeFileImporter, {"process": _waiting}, "Wrong.process is not to be awaited; write def process(self, rows"),
        (ItemImporter, {"process": _one}, "write async def process(self, row)."),
        (ItemImporter, {"process": _at_once}, "Wrong.process is to be awaited; write async def process(self, row)."),
    ],
)
def test_a_method_that_does_not_take_what_it_is_given_is_refused(
    base: type[Importer], body: dict[str, Any], told: str
) -> None:
    with pytest.raises(Final) as raised:
        type("Wrong", (base,), {"__module__": __name__, "target": "t", "a": Text(), **body})
    assert told in raised.value.message


def _callable_default() -> str:
    return "x"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"target": 5}, "Wrong.target is 5; a text is expected."),
        ({"key": 5}, "Wrong.key is 5; a text or a tuple of texts is expected."),
        ({"key": ("id", "id")}, "Wrong.key names id, id; each is needed once."),
        ({"name": 5}, "Wrong.name is 5; a text is expected."),
        ({"once": "yes"}, "Wrong.once is 'yes'; True or False is expected."),
        ({"atomic": "no"}, "Wrong.atomic is 'no'; True or False is expected."),
        ({"timezone": None}, "Wrong.timezone is None; a text is expected."),
        ({"key": "id", "on_match": Version(column="")}, "the column that counts versions has no name."),
        ({"flow": cast("Any", Flow)(preview="no")}, "Wrong.flow: preview is 'no'; True or False is expected."),
        ({"a": cast("Any", Integer)(max=True)}, "Wrong.a: max is True; a whole number is expected."),
        ({"a": cast("Any", Decimal)(places="2")}, "Wrong.a: places is '2'; a whole number is expected."),
        ({"a": Decimal(min=float("nan"))}, "Wrong.a: min is NaN; a number is expected. Leave it out if there is none."),
        ({"a": cast("Any", Text)(max_length="5")}, "Wrong.a: max_length is '5'; a whole number is expected."),
        ({"a": Text(max_length=-1)}, "Wrong.a: max_length is -1; 1 or more is expected."),
        ({"a": Text(max_length=0)}, "Wrong.a: max_length is 0; 1 or more is expected."),
        ({"a": cast("Any", Text)(pattern=re.compile("a"))}, "Wrong.a: pattern is re.compile('a'); a text is expected."),
        ({"a": Text(default=_callable_default)}, "Wrong.a: the default is a function; a value is expected"),
        ({"a": List(default=5)}, "Wrong.a: the default 5 doesn't fit"),
        ({"a": cast("Any", Text)(aliases=None)}, "Wrong.a: aliases is None; a list of texts is expected."),
        ({"a": cast("Any", Text)(aliases=[1])}, "Wrong.a: aliases is [1]; a list of texts is expected."),
        ({"a": cast("Any", Text)(blank=[None])}, "Wrong.a: blank is [None]; a list of texts is expected."),
        ({"a": cast("Any", Text)(column=5)}, "Wrong.a: column is 5; a text is expected."),
        ({"a": cast("Any", Text)(required="no")}, "Wrong.a: required is 'no'; True or False is expected."),
        ({"a": List(max_items=-1)}, "Wrong.a: max_items is -1; 1 or more is expected."),
        ({"a": cast("Any", Choice)("A", synonyms=["x"])}, "Wrong.a: synonyms is ['x']; a dict of texts is expected."),
        (
            {"a": cast("Any", Choice)("A", synonyms={1: "A"})},
            "Wrong.a: synonyms is {1: 'A'}; a dict of texts is expected.",
        ),
        ({"a": Choice("X", "y", synonyms={"x": "y"})}, "Wrong.a: the synonym 'x' for 'y' is one of the values itself."),
        ({"a": Choice(" x")}, "Wrong.a: ' x' can't be matched"),
        ({"a": cast("Any", Lookup)("t")}, "Wrong.a: Lookup lacks 'by'."),
        ({"a": cast("Any", Lookup)("t", by=5)}, "Wrong.a: by is (5,); a tuple of texts is expected."),
        ({"a": cast("Any", Text)("x")}, "Wrong.a: Text takes its options by name. There are required, default,"),
        ({"r": cast("Any", rule)(feild="id")(_one)}, "Wrong._one: rule has no option 'feild'. Did you mean 'field'?"),
        ({"r": rule(code="")(cast("Any", _one))}, "Wrong._one: the code '' is not a name"),
        ({"r": rule(code="x y")(cast("Any", _one))}, "Wrong._one: the code 'x y' is not a name"),
        ({"r": rule(code="REQUIRED")(cast("Any", _one))}, "Wrong._one: REQUIRED is a code of Rowcall's own"),
    ],
)
def test_an_option_of_the_wrong_kind_is_told_with_the_class(body: dict[str, Any], told: str) -> None:
    with pytest.raises(Final) as raised:
        type("Wrong", (Importer,), {"__module__": __name__, "target": "t", "id": Uuid(), **body})
    assert raised.value.code == "BAD_DECLARATION"
    assert told in raised.value.message
