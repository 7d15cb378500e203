"""What values can stand for: the rows of a table that is looked up in, or the values of a choice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from rowcall.engine.resolve import having_keys, keys_of, synonyms_in
from rowcall.importer import Choice, Importer, Lookup
from rowcall.store.copying import copied_blocks, copied_frame
from rowcall.store.targets import find_table

ENTRIES = {"key": pl.String, "label": pl.String, "scope": pl.String, "text": pl.String}
FOUND = {
    "value": pl.String,
    "scope": pl.String,
    "key": pl.String,
    "keys": pl.Int64,
    "sure": pl.Boolean,
    "synonym": pl.Boolean,
}
SHOWN = 200


class Known(Protocol):
    """What the values of a field can stand for."""

    @property
    def called(self) -> str:
        """What it is called."""
        ...

    @property
    def scoped(self) -> bool:
        """Whether the same text stands for different things in different scopes."""
        ...

    def found(self, connection: Connection[Any], asked: pl.DataFrame) -> pl.DataFrame:
        """Of values (value, scope) those that a look finds: key, and of how many; `sure`: as written or a `synonym`."""
        ...

    def entries(self, connection: Connection[Any], scope: str | None = None) -> Iterator[pl.DataFrame]:
        """All there is, in a scope, some at a time: key, label, scope, and a text that it is known by."""
        ...

    def labels(self, connection: Connection[Any], keys: Sequence[str]) -> dict[str, str]:
        """Key to label, of those of the keys that there are."""
        ...


def known_of(importer: type[Importer], name: str) -> Known:
    """What the values of a field can stand for."""
    field = importer.fields[name]
    if isinstance(field, Lookup):
        return LookedUp(field)
    if isinstance(field, Choice):
        return Chosen(field)
    raise AssertionError(f"{name} is neither looked up nor chosen")


def scope_labels(
    connection: Connection[Any], importer: type[Importer], name: str, scopes: Sequence[str]
) -> dict[str, str]:
    """What the scopes of a field are called, by key: those that are rows of a table."""
    within = getattr(importer.fields[name], "within", None)
    if within is None or not isinstance(importer.fields.get(within), Lookup):
        return {}
    return known_of(importer, within).labels(connection, scopes)


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The rows of a table."""

    lookup: Lookup

    @property
    def called(self) -> str:
        return self.lookup.table

    @property
    def scoped(self) -> bool:
        return self.lookup.within is not None

    def found(self, connection: Connection[Any], asked: pl.DataFrame) -> pl.DataFrame:
        as_asked = asked.select("value", pl.col("scope").alias("_scope"))
        keys = keys_of(connection, self.lookup, as_asked, "value")
        synonyms = synonyms_in(self.lookup, as_asked, "value").select("value", synonym=True).unique()
        named = keys.select(
            "value", pl.col("_scope").alias("scope"), pl.col("_key").alias("key"), keys="_keys", sure="_exact"
        )
        told = named.join(synonyms, on="value", how="left").with_columns(pl.col("synonym").fill_null(False))
        return told.with_columns(pl.col("sure") | pl.col("synonym"))

    def entries(self, connection: Connection[Any], scope: str | None = None) -> Iterator[pl.DataFrame]:
        lookup = self.lookup
        texts = list(dict.fromkeys([*lookup.by, lookup.shown]))
        columns = [lookup.to, lookup.shown, *([lookup.within] if lookup.within else []), *texts]
        table = find_table(connection, lookup.table)
        select = SQL("SELECT {} FROM {} WHERE {}").format(_as_texts(columns), table.identifier, in_scope(lookup, scope))
        scopes = pl.col("2").fill_null("") if lookup.within else pl.lit("")
        names = [str(place) for place in range(len(columns))]
        about = (pl.col("0").alias("key"), pl.col("1").alias("label"), scopes.alias("scope"))
        for block in copied_blocks(connection, SQL("COPY ({}) TO STDOUT").format(select)):
            frame = copied_frame(block, dict.fromkeys(names, pl.String))
            parts = [frame.select(*about, pl.col(place).alias("text")) for place in names[-len(texts) :]]
            yield pl.concat(parts).drop_nulls(["key", "text"]).with_columns(_label())

    def labels(self, connection: Connection[Any], keys: Sequence[str]) -> dict[str, str]:
        table = find_table(connection, self.lookup.table)
        columns, where = _as_texts([self.lookup.to, self.lookup.shown]), having_keys(table, self.lookup, keys)
        found = connection.execute(SQL("SELECT {} FROM {} WHERE {}").format(columns, table.identifier, where))
        return {key: (label or key)[:SHOWN] for key, label in found}

    def scopes(self, connection: Connection[Any], keys: Sequence[str]) -> dict[str, str]:
        """The scope that each row is in, by key."""
        if self.lookup.within is None or not keys:
            return {}
        table = find_table(connection, self.lookup.table)
        columns, where = _as_texts([self.lookup.to, self.lookup.within]), having_keys(table, self.lookup, keys)
        found = connection.execute(SQL("SELECT {} FROM {} WHERE {}").format(columns, table.identifier, where))
        return {key: scope or "" for key, scope in found}


def in_scope(lookup: Lookup, scope: str | None) -> Composable:
    """The condition for rows of a scope."""
    if scope is None or lookup.within is None:
        return SQL("true")
    return SQL("{}::text = {}").format(Identifier(lookup.within), Literal(scope))


def _as_texts(columns: Sequence[str]) -> Composed:
    return SQL(", ").join(SQL("{}::text").format(Identifier(column)) for column in columns)


def _label() -> pl.Expr:
    return pl.coalesce("label", "key").str.head(SHOWN).alias("label")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The values of a choice."""

    choice: Choice

    @property
    def called(self) -> str:
        return "the choices"

    @property
    def scoped(self) -> bool:
        return False

    def found(self, connection: Connection[Any], asked: pl.DataFrame) -> pl.DataFrame:
        del connection
        read = self.choice.read(asked["value"].alias(self.choice.name)).alias("key")
        synonyms = [text.lower() for text in self.choice.synonyms]
        synonym = pl.col("value").str.to_lowercase().is_in(synonyms).alias("synonym")
        named = asked.with_columns(read, pl.lit(1, pl.Int64).alias("keys"), pl.lit(True).alias("sure"), synonym)
        return named.drop_nulls("key").select(list(FOUND))

    def entries(self, connection: Connection[Any], scope: str | None = None) -> Iterator[pl.DataFrame]:
        del connection, scope
        pairs = [*((value, value) for value in self.choice.values), *self.choice.synonyms.items()]
        rows = [(value, value, "", text) for text, value in pairs]
        yield pl.DataFrame(rows, schema=ENTRIES, orient="row")

    def labels(self, connection: Connection[Any], keys: Sequence[str]) -> dict[str, str]:
        del connection
        return {key: key for key in keys if key in self.choice.values}
