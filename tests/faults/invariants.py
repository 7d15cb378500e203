"""What holds whatever happened, as queries that find nothing (FAULTS.md, I1 to I8 and I10).

Written apart from `rowcall doctor`, which asks the same of any database: two accounts that agree are worth more.
"""

from dataclasses import dataclass
from typing import Any, LiteralString

from .trial import Trial

# What is planned, as attempt 0, has not happened. While a job shows its plan, its batches are done when planned.

# At any moment, also while importers work or lie dead.
_ALWAYS: dict[str, LiteralString] = {
    "I1 outcome without row": """
        SELECT o.row_number FROM rowcall.outcome o
        WHERE NOT EXISTS (SELECT FROM rowcall.row r WHERE r.job_id = o.job_id AND r.number = o.row_number)""",
    "I1 row with several outcomes": """
        SELECT row_number FROM rowcall.outcome WHERE attempt > 0 GROUP BY job_id, row_number HAVING count(*) > 1""",
    "I2 batches overlap": """
        SELECT a.number FROM rowcall.batch a JOIN rowcall.batch b
        ON a.job_id = b.job_id AND a.number <> b.number AND a.first_row <= b.last_row AND b.first_row <= a.last_row""",
    "I2 batch lacks rows": """
        SELECT b.number FROM rowcall.batch b, LATERAL (
            SELECT count(*) AS rows FROM rowcall.row r
            WHERE r.job_id = b.job_id AND r.number BETWEEN b.first_row AND b.last_row) r
        WHERE r.rows <> b.last_row - b.first_row + 1""",
    "I2 row without batch": """
        SELECT r.number FROM rowcall.row r WHERE NOT EXISTS (
            SELECT FROM rowcall.batch b WHERE b.job_id = r.job_id AND r.number BETWEEN b.first_row AND b.last_row)""",
    "I3 batch with some of its outcomes": """
        SELECT b.number FROM rowcall.batch b JOIN rowcall.job j ON j.id = b.job_id, LATERAL (
            SELECT count(*) AS outcomes FROM rowcall.outcome o
            WHERE o.job_id = b.job_id AND o.row_number BETWEEN b.first_row AND b.last_row AND o.attempt > 0) o
        WHERE o.outcomes <> CASE WHEN b.state = 'done' AND NOT rowcall.shows_plan(j.state, j.paused_from)
            THEN b.last_row - b.first_row + 1 ELSE 0 END""",
    "I3 batch with some of its plan": """
        SELECT b.number FROM rowcall.batch b JOIN rowcall.job j ON j.id = b.job_id, LATERAL (
            SELECT count(*) AS rows FROM rowcall.row r JOIN rowcall.plan_piece p
                ON p.job_id = r.job_id AND p.first_row = b.first_row AND r.number BETWEEN p.first_row AND p.last_row
            WHERE r.job_id = b.job_id AND r.number BETWEEN b.first_row AND b.last_row
                AND (p.implied IS NOT NULL OR EXISTS (SELECT FROM rowcall.outcome o
                    WHERE o.job_id = r.job_id AND o.row_number = r.number AND o.attempt = 0))) p
        WHERE rowcall.shows_plan(j.state, j.paused_from)
            AND p.rows <> CASE b.state WHEN 'done' THEN b.last_row - b.first_row + 1 ELSE 0 END""",
    "I4 counter that is off": """
        SELECT b.number FROM rowcall.batch b JOIN rowcall.job j ON j.id = b.job_id, LATERAL (
            SELECT count(*) FILTER (WHERE status = 'created') AS created,
                   count(*) FILTER (WHERE status = 'updated') AS updated,
                   count(*) FILTER (WHERE status = 'unchanged') AS unchanged,
                   count(*) FILTER (WHERE status = 'skipped') AS skipped,
                   count(*) FILTER (WHERE status = 'failed') AS failed
            FROM (
                SELECT status FROM rowcall.outcome o
                WHERE o.job_id = b.job_id AND o.row_number BETWEEN b.first_row AND b.last_row
                    AND (o.attempt > 0) <> rowcall.shows_plan(j.state, j.paused_from)
                UNION ALL
                SELECT p.implied FROM rowcall.plan_piece p
                JOIN rowcall.row r ON r.job_id = p.job_id AND r.number BETWEEN p.first_row AND p.last_row
                WHERE p.job_id = b.job_id AND p.first_row = b.first_row AND rowcall.shows_plan(j.state, j.paused_from)
                    AND NOT EXISTS (SELECT FROM rowcall.outcome o
                        WHERE o.job_id = r.job_id AND o.row_number = r.number AND o.attempt = 0)) o) o
        WHERE (b.created, b.updated, b.unchanged, b.skipped, b.failed)
           <> (o.created, o.updated, o.unchanged, o.skipped, o.failed)""",
    "I5 effect without outcome, or outcome without effect": """
        SELECT coalesce(e.code, o.code) FROM
            (SELECT code, action, count(*) AS times FROM effect GROUP BY code, action) e
            FULL JOIN
            (SELECT target_key[1] AS code, CASE status WHEN 'created' THEN 'INSERT' ELSE 'UPDATE' END AS action,
                    count(*) AS times
             FROM rowcall.outcome WHERE status IN ('created', 'updated') AND attempt > 0 GROUP BY 1, 2) o
            ON o.code = e.code AND o.action = e.action
        WHERE e.times IS DISTINCT FROM o.times""",
    "I6 row key without created outcome": """
        SELECT k.key FROM rowcall.row_key k WHERE NOT EXISTS (
            SELECT FROM rowcall.outcome o
            WHERE o.job_id = k.job_id AND o.row_number = k.row_number AND o.status = 'created' AND o.attempt > 0)""",
    "I6 created outcome without row key": """
        SELECT o.row_number FROM rowcall.outcome o JOIN rowcall.job j ON j.id = o.job_id
        WHERE j.importer = 'parcels_once' AND o.status = 'created' AND o.attempt > 0 AND NOT EXISTS (
            SELECT FROM rowcall.row_key k WHERE k.job_id = o.job_id AND k.row_number = o.row_number)""",
    "I8 effect and outcome by different transactions": """
        SELECT e.code FROM effect e WHERE NOT EXISTS (
            SELECT FROM rowcall.outcome o WHERE o.target_key[1] = e.code AND o.xmin = e.by::xid AND o.attempt > 0
            AND o.status::text = CASE e.action WHEN 'INSERT' THEN 'created' ELSE 'updated' END)""",
}

# Once every job has ended.
_ENDED: dict[str, LiteralString] = {
    "job that has not ended": """
        SELECT number || ' ' || state FROM rowcall.job WHERE state NOT IN ('COMPLETED', 'COMPLETED_WITH_ERRORS')""",
    "I1 row without outcome": """
        SELECT r.number FROM rowcall.row r
        WHERE NOT EXISTS (
            SELECT FROM rowcall.outcome o WHERE o.job_id = r.job_id AND o.row_number = r.number AND o.attempt > 0)""",
    "I2 batches don't tile the file": """
        SELECT j.number FROM rowcall.job j, LATERAL (
            SELECT min(first_row) AS first, max(last_row) AS last, sum(last_row - first_row + 1) AS rows
            FROM rowcall.batch b WHERE b.job_id = j.id) b
        WHERE (b.first, b.last, b.rows) IS DISTINCT FROM (1::bigint, j.row_count, j.row_count::numeric)""",
    "I4 job whose state denies its outcomes": """
        SELECT j.number FROM rowcall.job j
        WHERE (j.state = 'COMPLETED_WITH_ERRORS')
           <> EXISTS (SELECT FROM rowcall.outcome o WHERE o.job_id = j.id AND o.status = 'failed' AND o.attempt > 0)""",
    "I10 session or lock left behind": """
        SELECT a.application_name || ' ' || a.state FROM pg_stat_activity a
        WHERE a.datname = current_database() AND a.application_name LIKE 'rowcall%%'
        UNION ALL
        SELECT 'lock ' || l.locktype FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        """,
}


@dataclass(frozen=True, slots=True)
class Account:
    """What an import came to, without what differs from run to run: generated ids and times."""

    outcomes: list[tuple[int, str, str]]
    """Row, status, codes of its issues."""
    target: list[tuple[Any, ...]]


def violations(trial: Trial) -> dict[str, list[Any]]:
    """What is half there, at whatever moment."""
    return _found(trial, _ALWAYS)


def violations_at_the_end(trial: Trial) -> dict[str, list[Any]]:
    """What is wrong with jobs that are said to be done."""
    trial.wait_until_noticed()
    return _found(trial, _ALWAYS | _ENDED)


def _found(trial: Trial, queries: dict[str, LiteralString]) -> dict[str, list[Any]]:
    with trial.connect() as connection:
        found = {name: connection.execute(query, {}).fetchmany(5) for name, query in queries.items()}
    return {name: rows for name, rows in found.items() if rows}


def account_of(trial: Trial) -> Account:
    """The outcomes of the trial's job, and the target."""
    with trial.connect() as connection:
        outcomes = connection.execute(
            """SELECT row_number, status::text, coalesce(jsonb_path_query_array(issues, '$[*].code')::text, '')
               FROM rowcall.outcome WHERE job_id = %s ORDER BY row_number""",
            [trial.job.id],
        ).fetchall()
        target = connection.execute("SELECT code, reference, weight, note FROM parcel ORDER BY code").fetchall()
    return Account(outcomes, target)


def differences(found: Account, expected: Account) -> list[Any]:
    """I7: what is otherwise than after a run without faults; the first few."""
    pairs = [(found.outcomes, expected.outcomes), (found.target, expected.target)]
    return [sorted(set(one) ^ set(other))[:10] for one, other in pairs if one != other]
