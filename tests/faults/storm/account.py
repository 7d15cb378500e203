"""What became of rows, to be compared with what becomes of them when nothing goes wrong (FAULTS.md, I7)."""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from rowcall.config import Settings
from rowcall.engine.moves import reprocess
from rowcall.engine.run import Run, run_job
from rowcall.engine.start import start_job
from rowcall.importer.registry import Registry
from rowcall.store.db import Database
from rowcall.store.grid import Wanted
from rowcall.store.jobs import Job, JobConfig

from .inputs import ARTICLES, CHANGED, COMMENTS, TOKEN, USERS, Input

_LATER = "c0ffee01"
Outcomes = dict[int, tuple[str, str]]
"""By row: status, and the codes of its issues."""
Target = list[tuple[Any, ...]]

_OUTCOMES: LiteralString = """
SELECT row_number, status::text, coalesce(jsonb_path_query_array(issues, '$[*].code')::text, '')
FROM rowcall.outcome WHERE job_id = %s
"""
# Without keys that PostgreSQL made up, and times.
_TARGETS: dict[str, LiteralString] = {
    "users": """
        SELECT replace(email, %(token)s, %(as)s), name, role, active FROM users
        WHERE email LIKE '%%.' || %(token)s || '@%%' ORDER BY 1""",
    "articles": """
        SELECT replace(slug, %(token)s, %(as)s), title, body, status, replace(u.email, %(token)s, %(as)s)
        FROM articles a JOIN users u ON u.id = a.author_id WHERE slug LIKE '%%-' || %(token)s ORDER BY 1""",
    "comments": """
        SELECT replace(c.id::text, %(token)s, %(as)s), c.body, replace(a.slug, %(token)s, %(as)s),
               replace(u.email, %(token)s, %(as)s)
        FROM comments c JOIN articles a ON a.id = c.article_id JOIN users u ON u.id = c.user_id
        WHERE c.id BETWEEN (%(token)s || '-0000-4000-9000-000000000000')::uuid
                       AND (%(token)s || '-0000-4000-9000-ffffffffffff')::uuid ORDER BY 1""",
}


def outcomes_of(connection: Connection[Any], job: UUID | str) -> Outcomes:
    """What became of each row of a job that anything became of."""
    return {row: (status, codes) for row, status, codes in connection.execute(_OUTCOMES, [job])}


def target_of(connection: Connection[Any], importer: str, token: str) -> Target:
    """The rows with this token in the table of an importer."""
    return connection.execute(_TARGETS[importer], {"token": token, "as": TOKEN}).fetchall()


@dataclass(frozen=True, slots=True)
class Calm:
    """What comes of the inputs when nothing goes wrong."""

    outcomes: dict[str, Outcomes]
    """By what was imported: `users`, `again` (the same users), `changed`, `articles`, `comments`; `tried again` are
    articles that came before their authors."""
    targets: dict[str, Target]
    """By the same: the importer's table after that."""


def in_calm_weather(database: Database, registry: Registry, folder: Path) -> Calm:
    """Import everything once, one after the other, with one worker and one batch."""
    settings = Settings(
        database_url=database.url, data_dir=folder, workers=1, batch_rows_min=10_000, batch_rows_max=10_000
    )
    steps = {"users": USERS, "again": USERS, "changed": CHANGED, "articles": ARTICLES, "comments": COMMENTS}
    calm = Calm({}, {})

    def imported(what: Input, token: str = TOKEN) -> Job:
        importer = registry.importer(what.importer)
        with database.connect() as connection:
            content = BytesIO(what.of(token))
            job = start_job(connection, settings, importer, content, file_name=what.name, config=JobConfig())
        return run_job(Run(database, importer, settings), job)

    def keep(name: str, job: Job, token: str = TOKEN) -> None:
        with database.connect() as connection:
            calm.outcomes[name] = outcomes_of(connection, job.id)
            calm.targets[name] = target_of(connection, job.importer, token)

    for name, what in steps.items():
        keep(name, imported(what))
    early, *_ = [imported(what, _LATER) for what in (ARTICLES, USERS, CHANGED)]
    with database.connect() as connection, connection.transaction():
        early, _ = reprocess(connection, early, registry.importer("articles"), Wanted(statuses=("failed",)))
    keep("tried again", run_job(Run(database, registry.importer("articles"), settings), early), _LATER)
    return calm
