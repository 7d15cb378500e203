"""Makes content of any size: users, articles by them, comments on those.

    python -m rowcall.packs.content.generate users --rows 100000 --seed 1 --out users.csv --errors 0.05

A value follows from the seed, its column and its row alone. So the same call gives the same file, and articles refer to
users that another call has written, without reading them.
"""

import zlib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
import typer

from rowcall.formats import WriteColumn, WriteFormat, open_writer

Numbers = npt.NDArray[np.uint64]

_AT_ONCE = 50_000
_FIRST = (
    *("Ada", "Grace", "Edsger", "Barbara", "Donald", "Radia", "Niklaus", "José", "Zoë", "Søren", "Łukasz", "Chloé"),
    *("Ingrid", "Amara", "Kenji", "Mei", "Priya", "Omar", "Leila", "Mateo", "Nadia", "Tomasz", "Freya", "Yusuf"),
)
_LAST = (
    *("Lovelace", "Hopper", "Dijkstra", "Liskov", "Knuth", "Perlman", "Wirth", "García", "Müller", "Sørensen"),
    *("Kowalski", "Dubois", "Lindqvist", "Okafor", "Tanaka", "Chen", "Sharma", "Haddad", "Karimi", "Rossi", "O'Neill"),
)
_HOSTS = ("example.org", "example.com", "mail.example.net", "press.example")
_ROLES = ("reader", "reader", "reader", "reader", "author", "author", "editor", "admin")
_OPENINGS = ("Notes on", "A short guide to", "What we learned from", "The trouble with", "In praise of", "Rethinking")
_TOPICS = (
    *("spreadsheets", "bulk imports", "late-night deployments", "legible schemas", "column names", "time zones"),
    *("unit prices", "double entry", "shared calendars", "quiet migrations", "good defaults", "paper forms"),
)
_AUDIENCES = ("for small teams", "in practice", "after ten years", "without tears", "for newcomers", "at scale")
_TAGS = ("data", "postgresql", "how-to", "opinion", "release", "interview", "operations", "design")
_SENTENCES = (
    "It began with a file that nobody wanted to open.",
    "Every row had a story, and most of the stories disagreed.",
    "The first thing to settle is what a duplicate is.",
    "Numbers arrived as text, dates as numbers, and names in capitals.",
    "We kept the original beside the correction, and never regretted it.",
    'Someone had typed "n/a" into a column of prices.',
    "A good error names the line, the value and the way out.",
    "None of this is new; all of it is easy to forget.",
    "The second import of the same file should change nothing at all.",
    "By the end of the week, the totals matched to the cent.",
    "Ask who will read the report, then write it for them.",
    "Half of the work was agreeing on what a customer is.",
)
_REPLIES = (
    "Thank you, this saved me an afternoon.",
    "I tried it on our own files and got the same result.",
    "The part about duplicates could go further.",
    "We do the opposite, and it has worked so far.",
    "Is there a version of this for older databases?",
    "Small correction: the third step needs the header row.",
    "Sharing this with my team – we needed it.",
    "Could you add the example file?",
)
_NOBODY = "00000000-0000-4000-8000-000000000000"


class Content(StrEnum):
    """What can be made."""

    USERS = "users"
    ARTICLES = "articles"
    COMMENTS = "comments"


_COLUMNS = {
    Content.USERS: ("id", "email", "name", "role", "active", "created_at", "updated_at"),
    Content.ARTICLES: (
        *("id", "slug", "title", "description", "body", "author_id", "tags"),
        *("status", "published_at", "created_at", "updated_at"),
    ),
    Content.COMMENTS: ("id", "article_id", "user_id", "body", "created_at"),
}
_MISTAKES: dict[Content, tuple[tuple[str, str | None], ...]] = {
    Content.USERS: (
        *(("email", "nobody at example.org"), ("email", None), ("name", None), ("role", "owner")),
        *(("active", "perhaps"), ("created_at", "2025-02-30T10:00:00Z")),
    ),
    Content.ARTICLES: (
        *(("slug", "Not In Kebab-Case"), ("title", None), ("author_id", _NOBODY)),
        *(("status", "retired"), ("published_at", "soon"), ("created_at", "2025-02-30T10:00:00Z")),
    ),
    Content.COMMENTS: (
        *(("body", None), ("body", "again " * 501), ("article_id", _NOBODY)),
        *(("user_id", "nobody@example.org"), ("created_at", "yesterday")),
    ),
}


def content(
    what: Content, first: int, count: int, *, seed: int = 1, errors: float = 0.0, users: int = 1, articles: int = 1
) -> pl.DataFrame:
    """Rows `first` and on, as texts; a share of `errors` has one mistake each."""
    rows = np.arange(first, first + count, dtype=np.uint64)
    match what:
        case Content.USERS:
            frame = _users(rows, seed)
        case Content.ARTICLES:
            frame = _articles(rows, seed, users)
        case Content.COMMENTS:
            frame = _comments(rows, seed, users, articles)
    frame = frame.select(_COLUMNS[what])
    return _with_mistakes(frame, rows, seed, _MISTAKES[what], errors) if errors else frame


def _users(rows: Numbers, seed: int) -> pl.DataFrame:
    created = _moments(rows, seed, "user created")
    return _addresses(rows, seed).select(
        "email",
        "name",
        id=_ids(rows, seed, "user"),
        role=_picked(_ROLES, rows, seed, "role"),
        active=_picked(("true", "true", "true", "false"), rows, seed, "active"),
        created_at=_iso(created),
        updated_at=_iso(created + _random(rows, seed, "user updated") % 30_000_000),
    )


def _addresses(rows: Numbers, seed: int) -> pl.DataFrame:
    names = pl.DataFrame(
        {
            "first": _picked(_FIRST, rows, seed, "first name"),
            "last": _picked(_LAST, rows, seed, "last name"),
            "host": _picked(_HOSTS, rows, seed, "host"),
            "number": rows + 1,
        }
    )
    plain = pl.format("{}.{}", "first", "last").str.to_lowercase().str.replace_many(["ø", "ł"], ["o", "l"])
    plain = plain.str.normalize("NFKD").str.replace_all(r"[^a-z.]", "")
    return names.select(
        name=pl.format("{} {}", "first", "last"), email=pl.format("{}.{}@{}", plain, pl.col("number"), pl.col("host"))
    )


def _articles(rows: Numbers, seed: int, users: int) -> pl.DataFrame:
    published = _random(rows, seed, "status") % 4 > 0
    created = _moments(rows, seed, "article created")
    changed = created + _random(rows, seed, "article published") % 3_000_000
    frame = pl.DataFrame(
        {
            "id": _ids(rows, seed, "article"),
            "number": rows + 1,
            "title": _titles(rows, seed),
            "description": _picked((*_SENTENCES[:6], *[None] * 6), rows, seed, "description"),
            "body": _sentences(_SENTENCES, rows, seed, "article body", most=8),
            "author_id": _ids(_random(rows, seed, "author") % users, seed, "user"),
            "tags": _tags(rows, seed),
            "published": published,
            "created_at": _iso(created),
            "updated_at": _iso(changed),
        }
    )
    return frame.with_columns(
        slug=pl.format("{}-{}", pl.col("title").str.to_lowercase().str.replace_all(" ", "-"), "number"),
        status=pl.when("published").then(pl.lit("published")).otherwise(pl.lit("draft")),
        published_at=pl.when("published").then("updated_at"),
    )


def _comments(rows: Numbers, seed: int, users: int, articles: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": _ids(rows, seed, "comment"),
            "article_id": _ids(_random(rows, seed, "comment article") % articles, seed, "article"),
            "user_id": _ids(_random(rows, seed, "comment user") % users, seed, "user"),
            "body": _sentences(_REPLIES, rows, seed, "comment body", most=3),
            "created_at": _iso(_moments(rows, seed, "comment created")),
        }
    )


def _titles(rows: Numbers, seed: int) -> pl.Series:
    parts = {"opening": _OPENINGS, "topic": _TOPICS, "audience": _AUDIENCES}
    frame = pl.DataFrame({name: _picked(values, rows, seed, name) for name, values in parts.items()})
    return frame.select(pl.concat_str(pl.all(), separator=" ")).to_series()


def _sentences(choice: Sequence[str], rows: Numbers, seed: int, column: str, *, most: int) -> pl.Series:
    start, length = _random(rows, seed, column), _random(rows, seed, f"{column} length") % most
    # A step that shares no divisor with the number of sentences: none comes twice.
    places = {place: (start + 5 * place) % len(choice) for place in range(most)}
    sentences = pl.Series(choice)
    frame = pl.DataFrame(
        {str(place): sentences.gather(at).set(pl.Series(length < place), None) for place, at in places.items()}
    )
    return frame.select(pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)).to_series()


def _tags(rows: Numbers, seed: int) -> pl.Series:
    """Up to three tags, as a JSON array."""
    start, count = _random(rows, seed, "tags"), _random(rows, seed, "tag count") % 4
    listings = [
        "[" + ", ".join(f'"{_TAGS[(first + place) % len(_TAGS)]}"' for place in range(many)) + "]"
        for first in range(len(_TAGS))
        for many in range(4)
    ]
    return pl.Series(listings).gather(start % len(_TAGS) * 4 + count)


def _with_mistakes(
    frame: pl.DataFrame, rows: Numbers, seed: int, mistakes: Sequence[tuple[str, str | None]], share: float
) -> pl.DataFrame:
    wrong = _random(rows, seed, "mistake") / 2.0**64 < share
    kinds = pl.Series(np.where(wrong, _random(rows, seed, "kind of mistake") % len(mistakes), len(mistakes)))
    for kind, (column, value) in enumerate(mistakes):
        frame = frame.with_columns(frame[column].set(kinds == kind, value))
    return frame


def _random(rows: Numbers, seed: int, column: str) -> Numbers:
    """Evenly spread numbers, by SplitMix64's scrambling of seed, column and row."""
    start = np.uint64((seed << 32 | zlib.crc32(column.encode())) & (2**64 - 1))
    mixed = (rows + 1) * np.uint64(0x9E3779B97F4A7C15) ^ _scrambled(np.array([start]))
    return _scrambled(mixed)


def _scrambled(z: Numbers) -> Numbers:
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def _picked(values: Sequence[str | None], rows: Numbers, seed: int, column: str) -> pl.Series:
    return pl.Series(values, dtype=pl.String).gather(_random(rows, seed, column) % len(values))


def _ids(rows: Numbers, seed: int, column: str) -> pl.Series:
    """Version 4 UUIDs, of which the i-th of a column is always the same."""
    halves = np.stack([_random(rows, seed, f"{column} high"), _random(rows, seed, f"{column} low")], axis=1)
    octets = halves.astype(">u8").view(np.uint8)
    octets[:, 6] = octets[:, 6] & 0x0F | 0x40
    octets[:, 8] = octets[:, 8] & 0x3F | 0x80
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[np.stack([octets >> 4, octets & 15], axis=2)].reshape(-1, 32)
    dashed = np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1)
    return pl.Series(np.ascontiguousarray(dashed).view("S36").ravel()).cast(pl.String)


def _moments(rows: Numbers, seed: int, column: str) -> Numbers:
    """Seconds since 1970, in the years 2020 to 2024."""
    return 1_577_836_800 + _random(rows, seed, column) % 157_000_000


def _iso(seconds: Numbers) -> pl.Series:
    return pl.from_epoch(pl.Series(seconds.astype(np.int64)), "s").dt.to_string("%Y-%m-%dT%H:%M:%SZ")


def _write_columns(what: Content) -> list[WriteColumn]:
    return [
        WriteColumn(name=name, native="json" if name == "tags" else "boolean" if name == "active" else None)
        for name in _COLUMNS[what]
    ]


def generate(
    what: Annotated[Content, typer.Argument(metavar="users|articles|comments", help="What to make.")],
    rows: Annotated[int, typer.Option(min=1, help="How many.")],
    out: Annotated[Path, typer.Option(help="The file: .csv, .ndjson, .json, .xlsx or .parquet by its name.")],
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other content.")] = 1,
    errors: Annotated[float, typer.Option(min=0, max=1, help="Share of rows with a mistake.")] = 0.0,
    users: Annotated[int | None, typer.Option(min=1, help="How many users there are to refer to; else ROWS.")] = None,
    articles: Annotated[int | None, typer.Option(min=1, help="How many articles; else ROWS.")] = None,
) -> None:
    """Write a file of made-up users, articles or comments."""
    with open_writer(out, _format(out), _write_columns(what)) as writer:
        for first in range(0, rows, _AT_ONCE):
            count = min(_AT_ONCE, rows - first)
            writer.write(
                content(what, first, count, seed=seed, errors=errors, users=users or rows, articles=articles or rows)
            )


def _format(out: Path) -> WriteFormat:
    suffix = next((suffix for suffix in reversed(out.suffixes) if suffix not in (".gz", ".zst")), "")
    try:
        return WriteFormat(suffix.removeprefix("."))
    except ValueError:
        raise typer.BadParameter(f"{out.name!r} doesn't say which format to write.", param_hint="--out") from None


if __name__ == "__main__":
    typer.run(generate)
