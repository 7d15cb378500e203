"""Pack `content`: users, their articles, and comments on those."""

from rowcall import Resource
from rowcall.packs.content.importers import Articles, Comments, Users

resources = (
    Resource(
        name="users",
        table="users",
        fields=("id", "email", "name", "role", "active", "created_at", "updated_at"),
    ),
    Resource(
        name="articles",
        table="articles",
        fields=(
            *("id", "slug", "title", "description", "body", "author_id", "tags"),
            *("status", "published_at", "created_at", "updated_at"),
        ),
    ),
    Resource(
        name="comments",
        table="comments",
        fields=("id", "article_id", "user_id", "body", "created_at"),
    ),
)

__all__ = ["Articles", "Comments", "Users", "resources"]
