"""What the fault tests import: parcels, some of them wrong, some double, some in the table already."""

from collections.abc import Sequence
from typing import LiteralString

from rowcall import Decimal, Fingerprint, Flow, Importer, Lookup, Text, Update


class AnyParcels(Importer, abstract=True):
    """The fields that all have."""

    target = "parcel"
    key = "code"

    code = Text(required=True)
    reference = Text(required=True)
    weight = Decimal(required=True)
    note = Text()


class Parcels(AnyParcels):
    """Parcels; those that are known are left as they are."""


class ParcelUpdates(AnyParcels):
    """Parcels; those that are known are brought up to date."""

    on_match = Update()


class ParcelsOnce(AnyParcels):
    """Parcels that are taken once, for ever."""

    once = True


class ParcelsTogether(AnyParcels):
    """Parcels of which all are taken or none."""

    on_match = Update()
    atomic = True


class ParcelsAsking(AnyParcels):
    """Parcels whose columns somebody confirms."""

    flow = Flow(columns="always")


class ParcelsOfKinds(AnyParcels):
    """Parcels of kinds that somebody is asked about."""

    kind = Lookup("kind", by="name", on_missing="ask")


class ParcelsOfLateKinds(ParcelsOfKinds):
    """The same; what somebody said about those is not known here."""


class ParcelsCompared(AnyParcels):
    """Parcels that should be those that are known."""

    on_match = Update()
    fingerprint = Fingerprint(identity=("note",))


class ParcelsShown(AnyParcels):
    """Parcels that are written when somebody has seen what would be."""

    on_match = Update()
    flow = Flow(preview=True)


IMPORTERS: dict[str, type[Importer]] = {
    importer.name: importer
    for importer in (
        *(Parcels, ParcelUpdates, ParcelsOnce, ParcelsTogether),
        *(ParcelsAsking, ParcelsOfKinds, ParcelsOfLateKinds, ParcelsCompared, ParcelsShown),
    )
}

# The table refuses in its own ways, and keeps a ledger: which transaction of Rowcall's wrote which row.
TABLES: LiteralString = """
CREATE TABLE parcel (
    code text PRIMARY KEY,
    reference text NOT NULL UNIQUE,
    weight numeric(8, 2) NOT NULL CHECK (weight > 0),
    note text,
    kind int
);
CREATE TABLE kind (id int PRIMARY KEY, name text NOT NULL UNIQUE);
INSERT INTO kind VALUES (1, 'Box'), (2, 'Bag'), (3, 'Sack');
CREATE TABLE effect (code text NOT NULL, action text NOT NULL, by xid8 NOT NULL DEFAULT pg_current_xact_id());

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no such parcels here'; END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON parcel FOR EACH ROW
WHEN (NEW.note = 'refuse') EXECUTE FUNCTION refuse();

CREATE FUNCTION note_effect() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO effect VALUES (NEW.code, TG_OP); RETURN NULL; END $$;
CREATE TRIGGER note_effect AFTER INSERT OR UPDATE ON parcel FOR EACH ROW
WHEN (current_setting('application_name') LIKE 'rowcall%') EXECUTE FUNCTION note_effect();
"""

# A value is gone while rows with it are committed. Batches go one after the other for such a trigger, so it is apart.
LATE_KINDS: LiteralString = """
CREATE FUNCTION no_more_sacks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN DELETE FROM kind WHERE name = 'Sack'; RETURN NULL; END $$;
CREATE TRIGGER no_more_sacks AFTER INSERT ON parcel FOR EACH ROW
WHEN (NEW.code = 'L000001') EXECUTE FUNCTION no_more_sacks();
"""

# Every tenth parcel of the first half is known, every other of those with another weight.
KNOWN: LiteralString = """
INSERT INTO parcel (code, reference, weight, note)
SELECT to_char(n, '"P"FM000000'), to_char(n, '"R"FM000000'), CASE WHEN n %% 20 = 0 THEN 99 ELSE 1 + n %% 70 END, 'note'
FROM generate_series(10, %(rows)s / 2, 10) n
"""


def parcels(rows: int) -> bytes:
    """A file of parcels. The table itself refuses rows of the first half only: the second can go the shortest way."""
    lines = [_line(number, refusing=number <= rows // 2) for number in range(1, rows + 1)]
    return "\n".join(["code,reference,weight,note", *lines, ""]).encode()


def faultless_parcels(rows: int) -> bytes:
    """A file of parcels with nothing wrong about any."""
    lines = (f"P{number:06},R{number:06},{1 + number % 70},note" for number in range(1, rows + 1))
    return "\n".join(["code,reference,weight,note", *lines, ""]).encode()


def some_parcels(prefix: str, *, step: int = 1, kinds: Sequence[str] = ("",), others: int = 0) -> bytes:
    """Sixty parcels, the seventh wrong; a part of them of each kind. `others`: so many of the first are other ones."""
    lines = [
        f"{prefix}{number * step:06},R{prefix}{number},{'heavy' if number == 7 else number},"
        f"{'other' if number <= others else 'note'},{kinds[(number - 1) * len(kinds) // 60]}"
        for number in range(1, 61)
    ]
    return "\n".join(["code,reference,weight,note,kind", *lines, ""]).encode()


def _line(number: int, *, refusing: bool) -> str:
    code, reference, weight, note = f"P{number:06}", f"R{number:06}", str(1 + number % 70), "note"
    match number % 50:
        case 7:
            weight = "heavy"
        case 13:
            code = f"P{number - 4:06}"  # the same parcel twice
        case 21:
            reference = f"R{number - 3:06}"  # another parcel's reference
        case 41:
            code = ""
        case 29 if refusing:
            weight = "-1"
        case 43 if refusing and number % 250 == 93:  # each costs some twenty statements to find
            note = "refuse"
        case _:
            pass
    return f"{code},{reference},{weight},{note}"
