"""Which column is which field: by name, by decision, by what headers mean and values look like; and when to ask."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall import Boolean, Choice, Date, DateTime, Decimal, Email, Field, Importer, Integer, Lookup, Text, Uuid
from rowcall.engine.columns import assign, headers, scores
from rowcall.engine.columns import suggest as suggestions
from rowcall.engine.columns.assign import best_pairs
from rowcall.engine.columns.headers import meanings
from rowcall.engine.columns.suggest import LIKELY, SURE, Seen, Suggestion, suggest


class People(Importer):
    """People."""

    target = "people"

    id = Uuid()
    email = Email(aliases=["Mail"])
    first_name = Text()
    last_name = Text()
    birth_date = Date()
    phone = Text()
    role = Choice("admin", "editor", "viewer")
    active = Boolean()
    created_at = DateTime()
    updated_at = DateTime()


class Orders(Importer):
    """Orders."""

    target = "orders"

    client_reference = Text(aliases=["Ref", "Client ref"])
    quantity = Integer(min=1)
    weight = Decimal()
    price = Decimal()
    receiver_postcode = Text(max_length=10)
    receiver_city = Text()
    country = Text(pattern="[A-Z]{2}")
    buyer_id = Lookup("users", by=("id", "email"))


class Deliveries(Importer):
    """Deliveries."""

    target = "deliveries"

    receiver_name = Text()
    receiver_address = Text()
    receiver_city = Text()


_MAILS = ["ann@acme.example", "bo@acme.example", "cy@acme.example"]
_DAYS = ["31.12.1999", "01.02.2001", "15.07.1984"]
_TEXTS = ["one", "two", "three"]


def found(fields: Mapping[str, Field], *columns: tuple[str, Sequence[str | None]]) -> list[Suggestion]:
    return suggest(fields, [Seen(header, values) for header, values in columns])


def one(fields: Mapping[str, Field], header: str, values: Sequence[str | None] = ()) -> Suggestion:
    return found(fields, (header, values))[0]


# -- names, aliases, decisions


@pytest.mark.parametrize("header", ["first_name", "First Name", "FIRST-NAME", "\ufefffirst name "])
def test_a_header_that_is_a_name_is_certain(header: str) -> None:
    told = one(People.fields, header)
    assert (told.field, told.confidence, told.reason) == ("first_name", 1.0, "the header is its name")


def test_a_header_that_is_an_alias_is_certain() -> None:
    told = one(Orders.fields, "CLIENT_REF")
    assert (told.field, told.confidence, told.reason) == (
        "client_reference",
        1.0,
        "the header is its alias 'Client ref'",
    )


def test_a_name_counts_though_no_value_can_be_read() -> None:
    assert one(Orders.fields, "Quantity", _TEXTS).field == "quantity"


def test_a_name_goes_before_an_alias() -> None:
    told = found(People.fields, ("Mail", _MAILS), ("Email", _MAILS))
    assert [each.field for each in told] == [None, "email"]


def test_the_very_name_goes_before_other_spellings_of_it() -> None:
    told = found(People.fields, ("E-Mail", _MAILS), ("email", _MAILS))
    assert [each.field for each in told] == [None, "email"]


def test_an_earlier_decision_goes_before_what_the_header_is_like() -> None:
    told = suggest(People.fields, [Seen("Vorname", _TEXTS)], remembered={"vorname": "last_name"})[0]
    assert (told.field, told.reason) == ("last_name", "you mapped it so before")
    assert SURE < told.confidence < 1


def test_a_name_goes_before_an_earlier_decision() -> None:
    assert suggest(People.fields, [Seen("phone")], remembered={"phone": "email"})[0].field == "phone"


def test_a_decision_that_no_value_fits_doesnt_count() -> None:
    told = suggest(Orders.fields, [Seen("Foo", _TEXTS)], remembered={"foo": "quantity"})[0]
    assert told.field is None


def test_a_decision_for_a_field_that_is_gone_doesnt_count() -> None:
    assert suggest(Orders.fields, [Seen("Menge", ["1"])], remembered={"menge": "amount"})[0].field == "quantity"


def test_a_column_that_was_left_out_stays_out() -> None:
    told = suggest(People.fields, [Seen("Vorname", _TEXTS)], remembered={"vorname": ""})[0]
    assert (told.field, told.reason, told.others) == (None, "you left it out before", ())


def test_a_field_that_is_taken_is_not_suggested() -> None:
    told = suggest(People.fields, [Seen("email", _MAILS)], taken={"email"})[0]
    assert told.field is None
    assert "email" not in dict(told.others)


# -- what headers mean


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("Qty.", "quantity"),
        ("qtyOrdered", "quantity"),
        ("Weight (kg)", "weight"),
        ("Price in EUR", "price"),
        ("Quantiy", "quantity"),
        ("Reference of client", "client_reference"),
        ("PLZ Empfänger", "receiver_postcode"),
        ("Empfaengerort", "receiver_city"),
        ("Ville du destinataire", "receiver_city"),
        ("Código postal del destinatario", "receiver_postcode"),
        ("Prezzo", "price"),
        ("Gewicht", "weight"),
        ("Quantidade", "quantity"),
        ("buyer e-mail", "buyer_id"),
        ("Wieght (kg)", "weight"),
        ("Ilość", "quantity"),
        ("Vægt", "weight"),
        ("Hmotnost", "weight"),
        ("Kod pocztowy odbiorcy", "receiver_postcode"),
    ],
)
def test_headers_are_understood(header: str, field: str) -> None:
    told = one(Orders.fields, header)
    assert told.field == field
    assert told.confidence < 1


@pytest.mark.parametrize(
    ("header", "field"), [("DOB", "birth_date"), ("Geb.-Datum", "birth_date"), ("Né(e) le", "birth_date")]
)
def test_dates_are_understood(header: str, field: str) -> None:
    assert one(People.fields, header, _DAYS).field == field


def test_reasons_are_for_people() -> None:
    assert one(People.fields, "Vorname").reason == "the header means 'first name'"
    assert one(People.fields, "Persnl phone").reason.startswith("the header is like 'phone' (0.")


def test_words_are_split_at_case_digits_and_punctuation() -> None:
    for header in ("orderDate", "ORDER_DATE", "Order-Date", "order.date", "Order Date (UTC)"):
        assert meanings(header)[0].words == ("order", "date")


@pytest.mark.parametrize("header", ["name " * 9000, "namename" * 9000, "datedat" * 9000, "(" * 9000, "aA" * 9000])
def test_hostile_headers_are_cut(header: str) -> None:
    assert one(People.fields, header, _TEXTS).confidence < SURE
    assert all(len(meaning.words) <= 200 for meaning in meanings(header))


def test_every_word_of_the_dictionary_can_be_found() -> None:
    told = headers._dictionary()
    entries = [(key, meant) for language in told.meanings.values() for key, meant in language.items()]
    assert len(entries) > 1000
    assert not [key for key, _ in entries if set(key) & set(told.drop)]
    assert not [meant for _, texts in entries for meant in texts if not meant.isascii()]


def test_units_and_currencies_say_nothing() -> None:
    for header in ("Weight (kg)", "Weight [kg]", "weight_kg", "weightKg", "Weight in kg"):
        assert meanings(header)[0].words == ("weight",)


# -- what values look like


def test_a_column_without_header_is_known_by_its_values() -> None:
    told = one(People.fields, "", _MAILS)
    assert (told.field, told.reason) == ("email", "the values look like e-mail addresses")
    assert LIKELY <= told.confidence < SURE


def test_a_header_that_says_something_else_makes_values_a_question() -> None:
    told = one(People.fields, "Approved", _MAILS)
    assert told.field is None
    assert "email" in dict(told.others)


def test_what_no_value_fits_is_no_candidate() -> None:
    told = one(Orders.fields, "Menge", _TEXTS)
    assert told.field is None
    assert "quantity" not in dict(told.others)


def test_some_values_that_dont_fit_make_it_less_sure() -> None:
    all_fit, half_fit = one(Orders.fields, "Menge", ["1", "2"]), one(Orders.fields, "Menge", ["1", "x"])
    assert half_fit.confidence < all_fit.confidence


def test_dates_and_numbers_are_read_in_any_order_and_with_any_mark() -> None:
    for days in (["12/31/1999"], ["31.12.1999"], ["1999-12-31"]):
        assert one(People.fields, "Geburtstag", days).field == "birth_date"
    for prices in (["1.234,50", "7,25"], ["1,234.50", "7.25"]):
        assert one(Orders.fields, "Preis", prices).field == "price"


def test_limits_of_a_field_count_as_well() -> None:
    codes, names = ["DE", "AT"], ["Germany", "Austria"]
    assert one(Orders.fields, "Land", codes).field == "country"
    assert one(Orders.fields, "Land", names).field is None


def test_a_column_without_values_is_judged_by_its_header() -> None:
    assert one(Orders.fields, "Menge", [None, "", " "]).field == "quantity"


# -- questions


def test_a_header_that_two_fields_fit_is_a_question() -> None:
    told = one(People.fields, "Date", ["2024-01-01T10:00:00Z"])
    assert (told.field, told.confidence) == (None, 0.0)
    assert len(told.others) > 1
    assert all(confidence < LIKELY for _, confidence in told.others)


def test_two_columns_with_a_fields_name_are_a_question() -> None:
    told = found(People.fields, ("Phone", _TEXTS), ("First name", _TEXTS), ("phone ", _TEXTS))
    assert [each.field for each in told] == [None, "first_name", None]
    assert told[0].others == (("phone", 0.5),)
    assert told[0].reason == told[2].reason == "columns 1 and 3 could each be phone"


def test_a_column_with_an_alias_of_a_field_that_another_has_by_name_is_a_question() -> None:
    alias, name = found(People.fields, ("Mail", _MAILS), ("email", _MAILS))
    assert (name.field, name.confidence) == ("email", 1.0)
    assert (alias.field, alias.others) == (None, (("email", 0.5),))
    assert alias.reason == "columns 1 and 2 could each be email"
    left_out = suggest(People.fields, [Seen("Mail"), Seen("email")], remembered={"mail": ""})
    assert left_out[0] == Suggestion(None, 0.98, "you left it out before")


def test_a_column_whose_field_has_its_values_from_elsewhere_is_told_so() -> None:
    told = found(People.fields, ("Vorname", _TEXTS), ("first_name", _TEXTS))
    assert (told[0].field, told[0].reason) == (None, "it is like first_name, which is column 'first_name'")
    taken = suggest(People.fields, [Seen("Vorname", _TEXTS)], taken={"first_name"})[0]
    assert (taken.field, taken.reason) == (None, "it is like first_name, which has its values already")


def test_two_columns_that_mean_the_same_are_a_question() -> None:
    told = found(People.fields, ("Vorname", _TEXTS), ("Given name", _TEXTS))
    assert [each.field for each in told] == [None, None]
    assert all("first_name" in dict(each.others) for each in told)


def test_blank_headers_without_a_look_are_left_alone() -> None:
    told = found(People.fields, ("", _TEXTS), ("  ", []), ("???", ["-"]))
    assert [(each.field, each.others) for each in told] == [(None, ()), (None, ()), (None, ())]


def test_what_belongs_nowhere_is_left_alone() -> None:
    told = one(People.fields, "Warehouse slot", ["A-01", "B-02"])
    assert told == Suggestion(None, 0.0, "no field is like it")


def test_a_field_goes_to_one_column_only() -> None:
    told = found(People.fields, ("Vorname", _TEXTS), ("Name", _TEXTS), ("Nachname", _TEXTS), ("E-Mail", _MAILS))
    given = [each.field for each in told if each.field]
    assert len(given) == len(set(given))
    assert told[0].field == "first_name"
    assert told[2].field == "last_name"


def test_what_is_hardly_like_a_field_takes_it_from_nobody() -> None:
    """Two poor pairs are worth more together than one good one, and still wrong."""
    told = found(Deliveries.fields, ("Sender name", _TEXTS), ("Receiver", _TEXTS))
    assert [each.field for each in told] == [None, "receiver_name"]


def test_a_field_that_isnt_the_likeliest_is_never_sure() -> None:
    score = np.array([[0.9, 0.85], [0.88, 0.0]])
    assert best_pairs(score) == [(0, 1), (1, 0)]
    assert suggestions._lead(score, {0: 1, 1: 0}, 0) < 0


def test_no_columns_and_no_fields_are_fine() -> None:
    assert suggest(People.fields, []) == []
    assert suggest({}, [Seen("Name", _TEXTS)]) == [Suggestion(None, 0.0, "no field is like it")]


_HEADERS = st.one_of(
    st.sampled_from(["", "Name", "Vorname", "E-Mail", "email", "DOB", "tel", "Datum", "x1"]), st.text()
)
_COLUMNS = st.lists(
    st.builds(Seen, _HEADERS, st.lists(st.none() | st.sampled_from([*_MAILS, *_DAYS, *_TEXTS]))), max_size=6
)


@settings(deadline=None, max_examples=30)
@given(_COLUMNS)
def test_suggestions_are_one_to_one_bounded_and_the_same_each_time(columns: list[Seen]) -> None:
    told = suggest(People.fields, columns)
    given_fields = [each.field for each in told if each.field]
    assert len(told) == len(columns)
    assert len(given_fields) == len(set(given_fields))
    assert told == suggest(People.fields, columns)
    for each in told:
        assert 0 <= each.confidence <= 1
        assert each.field is None or each.confidence >= LIKELY
        assert len(each.others) <= 3
        assert each.field not in dict(each.others)
        assert each.reason


# -- the assignment

_GAINS = st.integers(0, 4).flatmap(
    lambda rows: st.integers(0, 5).flatmap(
        lambda columns: st.lists(
            st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.6, 0.9, 1.0]), min_size=columns, max_size=columns),
            min_size=rows,
            max_size=rows,
        ).map(lambda cells: np.array(cells, dtype=np.float64).reshape(rows, columns))
    )
)


def _most(gains: assign.Matrix) -> float:
    """The greatest sum, by trying everything."""
    if not len(gains):
        return 0.0
    rest = gains[1:]
    taking = (float(gains[0, column]) + _most(np.delete(rest, column, axis=1)) for column in range(gains.shape[1]))
    return max(_most(rest), *taking, 0.0)


@given(_GAINS)
def test_the_assignment_is_the_best_there_is(gains: assign.Matrix) -> None:
    pairs = best_pairs(gains)
    assert sum(gains[pair] for pair in pairs) == pytest.approx(_most(gains))
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert all(gains[pair] > 0 for pair in pairs)


def test_the_assignment_is_not_greedy() -> None:
    assert best_pairs(np.array([[0.9, 0.8], [0.8, 0.0]])) == [(0, 1), (1, 0)]


def test_fields_that_read_alike_read_the_values_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_texts = Text.read

    def noted(self: Text, texts: pl.Series) -> pl.Series:
        read.append(self.name)
        return read_texts(self, texts)

    monkeypatch.setattr(Text, "read", noted)
    fields = {f"field_{nth}": Text().named(f"field_{nth}", "UTC") for nth in range(100)}
    suggest(fields, [Seen(f"column {nth}", _TEXTS) for nth in range(50)])
    assert len(read) == 1


def test_each_path_of_the_assignment_visits_a_column_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 columns and 100 fields: one path for each field, through at most the fields before it."""
    steps: list[int] = []
    argmin = np.argmin

    def counted(costs: assign.Matrix) -> np.intp:
        steps.append(1)
        return argmin(costs)

    monkeypatch.setattr(np, "argmin", counted)
    gains = np.random.default_rng(7).random((500, 100))
    assert len(best_pairs(gains)) == 100
    assert len(steps) <= 100 * 101 / 2


def test_scores_know_which_values_were_read() -> None:
    made = scores.scored(Orders.fields, [Seen("Menge", ["1", "x"]), Seen("", [])])
    assert made.read[0, 1] == 0.5
    assert np.isnan(made.read[1]).all()


# -- words of several languages


class Faux(Importer):
    """English names that are words of other languages."""

    target = "faux"

    data = Text()
    meta = Text()
    art = Text()
    fine = Text()
    tag = Text()
    cap = Text()
    via = Text()
    base = Text()


class Kunden(Importer):
    """A declaration in German."""

    target = "kunden"

    vorname = Text()
    strasse = Text()
    art = Text()
    tag = Date()
    betrag = Decimal()


@pytest.mark.parametrize("header", ["Valid to", "End date", "Type", "ZIP code", "Street", "Net", "Finish", "Datum"])
def test_english_names_are_not_read_as_words_of_other_languages(header: str) -> None:
    assert one(Faux.fields, header, _TEXTS).field is None


@pytest.mark.parametrize("header", ["Date", "Datum", "Day"])
def test_an_english_alias_is_not_read_as_a_word_of_another_language(header: str) -> None:
    fields = {"tag_id": Lookup("tag", by="name", aliases=["Tag"]), "birth_date": Date()}
    assert one(fields, header, _DAYS).confidence < SURE


@pytest.mark.parametrize(
    ("header", "field"), [("First name", "vorname"), ("Street", "strasse"), ("Type", "art"), ("Date", "tag")]
)
def test_an_importer_may_be_declared_in_another_language(header: str, field: str) -> None:
    told = one(Kunden.fields, header)
    assert (told.field, told.confidence >= SURE) == (field, True)


def test_words_of_a_file_in_another_language_are_not_english_ones() -> None:
    swedish = [("Lön", ["52000", "48000"]), ("Förnamn", _TEXTS), ("Efternamn", _TEXTS), ("Anställningsdatum", _DAYS)]
    told = found({"longitude": Decimal(), "first_name": Text()}, *swedish)
    assert (told[0].confidence < SURE, told[1].field) == (True, "first_name")


def test_letters_that_changed_places_are_understood() -> None:
    assert one(People.fields, "emial", _MAILS).field == "email"
    assert one({"width_cm": Decimal(), "weight": Decimal()}, "Widht (cm)", ["1.5"]).field == "width_cm"
    assert one({"zbqor_cm": Decimal(), "weight": Decimal()}, "Zbqro (cm)", ["1.5"]).field == "zbqor_cm"
