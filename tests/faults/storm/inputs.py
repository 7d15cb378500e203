"""What the organisations send: users, their articles and comments; some wrong, some double.

Each file is made once, with a token in all of its keys. Every upload has a token of its own instead, so that what
becomes of its rows depends on no other upload, and can be compared with what became of them in calm weather.
"""

import json
from dataclasses import dataclass

TOKEN = "c0ffee00"
"""Hexadecimal, as long as the first part of a UUID."""
ROWS = 1_200


@dataclass(frozen=True, slots=True)
class Input:
    """A file for an importer."""

    name: str
    importer: str
    content: bytes

    def of(self, token: str) -> bytes:
        """The same file with other keys."""
        return self.content.replace(TOKEN.encode(), token.encode())


def _users(rows: int, *, changed: bool = False) -> bytes:
    lines = [_user(number, changed=changed and number % 10 == 0) for number in range(1, rows + 1)]
    return "\n".join(["id,email,name,role,active", *lines, ""]).encode()


def _user(number: int, *, changed: bool) -> str:
    key = "" if number % 3 == 0 else f"{TOKEN}-0000-4000-8000-{number:012}"
    email, name, role = f"u{number}.{TOKEN}@example.org", f"User {number}", "reader"
    if changed:
        name = f"Changed {number}"
    match number % 60:
        case 7:
            email = "nobody at example.org"
        case 13:
            email = f"u{number - 4}.{TOKEN}@example.org"  # somebody else's
        case 21:
            role = "owner"
        case 33:
            name = ""
        case 47:
            key = key and f"{TOKEN}-0000-4000-8000-{number - 1:012}"  # somebody else's, if that one has one
        case _:
            pass
    return f"{key},{email},{name},{role},true"


def _articles(rows: int) -> bytes:
    return "".join(json.dumps(_article(number)) + "\n" for number in range(1, rows + 1)).encode()


def _article(number: int) -> dict[str, str | None]:
    published = number % 4 > 0
    author = f"u{number + number % 2}.{TOKEN}@example.org"  # those of 60 that are wrong are odd
    return {
        "slug": f"a{number - (2 if number % 50 == 9 else 0)}-{TOKEN}",
        "title": f"Article {number}",
        "body": "Words. " * (1 + number % 9),
        "author_id": "nobody@example.org" if number % 40 == 3 else author,
        "status": "published" if published else "draft",
        "published_at": "2025-01-02T03:04:05Z" if published and number % 30 != 5 else None,
    }


def _comments(rows: int) -> bytes:
    return "\n".join(["id,article_id,user_id,body", *map(_comment, range(1, rows + 1)), ""]).encode()


def _comment(number: int) -> str:
    article = 2 * (1 + number % 250)
    user = f"u{2 * (1 + number % 500)}.{TOKEN}@example.org" if number % 45 else "nobody@example.org"
    body = f"Comment {number}" if number % 37 else " "
    return f"{TOKEN}-0000-4000-9000-{number:012},a{article}-{TOKEN},{user},{body}"


USERS = Input("users.csv", "users", _users(ROWS))
CHANGED = Input("users-changed.csv", "users", _users(ROWS + 200, changed=True))
ARTICLES = Input("articles.ndjson", "articles", _articles(ROWS // 2))
COMMENTS = Input("comments.csv", "comments", _comments(ROWS))
