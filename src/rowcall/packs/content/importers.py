"""Importers of users, articles and comments. A row is known by its id or, without one, by e-mail address or slug."""

import polars as pl

from rowcall import Boolean, Choice, DateTime, Email, Importer, List, Lookup, Text, Update, Uuid, rule

_MOST_WORDS = 500


class Users(Importer):
    """People who write and read."""

    target = "users"
    key = "id"
    natural_key = "email"
    on_match = Update()

    id = Uuid(aliases=["uuid", "user id"], help="Made up for new users without one.")
    email = Email(required=True, aliases=["mail", "e-mail address"], help="One address per user.")
    name_ = Text(required=True, aliases=["full name", "display name"])
    role = Choice(
        *("admin", "author", "editor", "reader"),
        synonyms={"administrator": "admin", "writer": "author"},
        aliases=["user role"],
        help="A new user without one is a reader.",
    )
    active = Boolean(aliases=["is active", "enabled"], help="A new user is active unless told.")
    created_at = DateTime(aliases=["created", "registered", "registered at"])
    updated_at = DateTime(aliases=["updated", "modified", "last modified"])


class Articles(Importer):
    """Articles, each by a user."""

    target = "articles"
    key = "id"
    natural_key = "slug"
    on_match = Update()

    id = Uuid(aliases=["uuid", "article id"], help="Made up for new articles without one.")
    slug = Text(
        required=True,
        pattern="[a-z0-9]+(-[a-z0-9]+)*",
        aliases=["permalink", "url slug"],
        help="Small letters and digits, with single dashes between: my-first-article.",
    )
    title = Text(required=True, aliases=["headline"])
    description_ = Text(aliases=["summary", "teaser", "excerpt"])
    body = Text(required=True, strip=False, aliases=["text", "content"])
    author_id = Lookup(
        "users",
        by=("id", "email"),
        required=True,
        aliases=["author", "author email", "written by"],
        help="The id or the e-mail address of a user.",
    )
    tags = List(aliases=["keywords", "labels"], help="With commas between them.")
    status = Choice("draft", "published", aliases=["state"], help="A new article without one is a draft.")
    published_at = DateTime(
        aliases=["published", "publication date", "published on"],
        help="For published articles, and for no others.",
    )
    created_at = DateTime(aliases=["created"])
    updated_at = DateTime(aliases=["updated", "modified", "last modified"])

    @rule(
        field="published_at",
        code="PUBLISHED_WITHOUT_DATE",
        message="A published article needs the date of its publication.",
    )
    def published_has_date(self) -> pl.Expr:
        return (pl.col("status") != "published") | pl.col("published_at").is_not_null()

    @rule(field="published_at", code="DRAFT_WITH_DATE", message="A draft can't have a date of publication.")
    def draft_has_no_date(self) -> pl.Expr:
        return (pl.col("status") != "draft") | pl.col("published_at").is_null()


class Comments(Importer):
    """What users say about articles."""

    target = "comments"
    key = "id"
    on_match = Update()

    id = Uuid(aliases=["uuid", "comment id"], help="Made up for new comments without one.")
    article_id = Lookup(
        "articles",
        by=("id", "slug"),
        required=True,
        aliases=["article", "article slug", "post"],
        help="The id or the slug of an article.",
    )
    user_id = Lookup(
        "users",
        by=("id", "email"),
        required=True,
        aliases=["user", "user email", "commenter", "author"],
        help="The id or the e-mail address of a user.",
    )
    body = Text(required=True, aliases=["comment", "text", "content", "message"], help=f"At most {_MOST_WORDS} words.")
    created_at = DateTime(aliases=["created", "posted", "posted at", "date"])

    @rule(field="body", code="TOO_MANY_WORDS", message=f"A comment has at most {_MOST_WORDS} words.")
    def body_is_short(self) -> pl.Expr:
        return pl.col("body").str.count_matches(r"\S+") <= _MOST_WORDS
