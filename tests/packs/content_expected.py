"""What becomes of each row of the pack's messy samples, once its clean ones are in the tables."""

from dataclasses import dataclass
from pathlib import Path

from rowcall import Status

SAMPLES = Path(__file__).parents[2] / "samples" / "content"
CLEAN = {"users": "users.csv", "articles": "articles.ndjson", "comments": "comments.ndjson"}
MESSY = {"users": "users_messy.csv", "articles": "articles_messy.ndjson", "comments": "comments_messy.ndjson"}
CLEAN_ROWS = {"users": 60, "articles": 40, "comments": 120}


@dataclass(frozen=True)
class Expected:
    """A row's outcome, and its issues as (field, code) in the order of the fields."""

    status: Status
    issues: tuple[tuple[str | None, str], ...] = ()


def _failed(**codes: str) -> Expected:
    return Expected(Status.FAILED, tuple(codes.items()))


def _unreadable(code: str) -> Expected:
    return Expected(Status.FAILED, ((None, code),))


_CREATED = Expected(Status.CREATED)
_UPDATED = Expected(Status.UPDATED)
_UNCHANGED = Expected(Status.UNCHANGED)

# Row numbers begin at 1; a blank line of the file has none.
USERS = {
    1: _UNCHANGED,
    2: _UPDATED,  # by e-mail address, in other letters and with blanks around; blank dates stay as they were
    3: _CREATED,  # Administrator, ja, a time without seconds
    4: _CREATED,  # nothing but address and name
    5: _failed(email="INVALID_EMAIL"),
    6: _failed(email="REQUIRED"),
    7: _failed(name="REQUIRED"),
    8: _failed(role="NOT_A_CHOICE"),
    9: _failed(active="INVALID_BOOLEAN"),
    10: _failed(created_at="DATE_NOT_EXISTING"),
    11: _failed(updated_at="INVALID_DATETIME"),
    12: _failed(id="INVALID_UUID"),
    13: _failed(
        id="INVALID_UUID",
        email="INVALID_EMAIL",
        name="REQUIRED",
        role="NOT_A_CHOICE",
        active="INVALID_BOOLEAN",
        created_at="INVALID_DATETIME",
    ),
    14: Expected(Status.SKIPPED, (("email", "DUPLICATE_IN_FILE"),)),  # row 15 comes later and counts
    15: _CREATED,
    16: _unreadable("TOO_FEW_FIELDS"),
    17: _unreadable("TOO_MANY_FIELDS"),
    18: _CREATED,  # a comma in quotes, an offset, a day without time
    19: _failed(email="UNIQUE_VIOLATION"),  # a new id with the address of another user
    20: _UPDATED,  # a new address under a known id
    21: _CREATED,  # an id in braces and capitals
}
ARTICLES = {
    1: _UNCHANGED,
    2: _UPDATED,  # by slug, with another author by e-mail address
    3: _CREATED,  # the author by address, tags with commas
    4: _CREATED,  # the author by id, tags as a list, blanks around the body
    5: _CREATED,  # without status: a draft
    6: _failed(slug="PATTERN_MISMATCH"),
    7: _failed(slug="PATTERN_MISMATCH"),
    8: _failed(slug="REQUIRED"),
    9: _failed(title="REQUIRED"),
    10: _failed(body="REQUIRED"),
    11: _failed(author_id="REQUIRED"),
    12: _failed(author_id="NOT_FOUND"),
    13: _failed(author_id="NOT_FOUND"),
    14: _failed(status="NOT_A_CHOICE"),
    15: _failed(published_at="PUBLISHED_WITHOUT_DATE"),
    16: _failed(published_at="DRAFT_WITH_DATE"),
    17: _failed(published_at="INVALID_DATETIME"),
    18: Expected(Status.SKIPPED, (("slug", "DUPLICATE_IN_FILE"),)),
    19: _CREATED,
    20: _failed(slug="UNIQUE_VIOLATION"),
    21: _failed(tags="INVALID_LIST"),
    22: _unreadable("INVALID_JSON"),
    23: _unreadable("NOT_AN_OBJECT"),
}
COMMENTS = {
    1: _UNCHANGED,
    2: _UPDATED,
    3: _CREATED,  # article by slug, user by e-mail address
    4: _CREATED,  # 500 words
    5: _failed(body="TOO_MANY_WORDS"),
    6: _failed(body="REQUIRED"),
    7: _failed(body="REQUIRED"),
    8: _failed(article_id="NOT_FOUND"),
    9: _failed(user_id="NOT_FOUND"),
    10: _failed(article_id="NOT_FOUND", user_id="NOT_FOUND", body="REQUIRED"),
    11: _failed(created_at="DATE_NOT_EXISTING"),
    12: _failed(id="INVALID_UUID"),
    13: _failed(article_id="REQUIRED"),
    14: _CREATED,  # the same words twice are two comments
    15: _CREATED,
    16: Expected(Status.SKIPPED, (("id", "DUPLICATE_IN_FILE"),)),
    17: _CREATED,
}
EXPECTED = {"users": USERS, "articles": ARTICLES, "comments": COMMENTS}
