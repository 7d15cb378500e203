-- balance --
-- What the rows, the outcomes and the batches of a job say, each counted for itself.
SELECT CASE WHEN j.over THEN coalesce(j.row_count, r.rows) ELSE j.row_count END AS row_count, r.rows,
       (SELECT coalesce(sum(last_row - first_row + 1), 0)::bigint FROM rowcall.batch b WHERE b.job_id = j.id AND b.state = 'done') AS done,
       o.outcomes + i.created + i.unchanged AS outcomes, o.created + i.created - v.created AS created, o.updated - v.updated AS updated,
       o.unchanged + i.unchanged AS unchanged, o.skipped, o.failed, v.reverted,
       CASE WHEN j.over THEN (
           SELECT coalesce(sum(last_row - first_row + 1), 0)::bigint FROM rowcall.batch b WHERE b.job_id = j.id AND b.state <> 'done')
           ELSE 0 END AS cancelled
FROM (SELECT *, state IN ('CANCELLED', 'SUPERSEDED', 'REVERTING', 'REVERTED') OR coalesce(paused_from = 'REVERTING', false) AS over FROM rowcall.job) j,
     -- while a plan is shown nothing has ended yet: its rows are counted when it does
     LATERAL (SELECT CASE WHEN rowcall.shows_plan(j.state, j.paused_from) THEN coalesce(j.row_count, 0)
                     ELSE (SELECT count(*) FROM rowcall.row r WHERE r.job_id = j.id) END AS rows) r, LATERAL (
    SELECT count(*) AS outcomes,
           count(*) FILTER (WHERE status = 'created') AS created, count(*) FILTER (WHERE status = 'updated') AS updated,
           count(*) FILTER (WHERE status = 'unchanged') AS unchanged, count(*) FILTER (WHERE status = 'skipped') AS skipped,
           count(*) FILTER (WHERE status = 'failed') AS failed
    FROM rowcall.outcome o WHERE o.job_id = j.id AND (o.attempt > 0 OR rowcall.shows_plan(j.state, j.paused_from))) o, LATERAL (
    -- beside the outcomes, not with them: most jobs have none that were taken back
    SELECT count(*) FILTER (WHERE status = 'created') AS created, count(*) FILTER (WHERE status = 'updated') AS updated, count(*) AS reverted
    FROM rowcall.reversal v CROSS JOIN LATERAL (
        SELECT o.status FROM rowcall.outcome o
        WHERE o.job_id = v.job_id AND o.row_number = v.row_number
          AND (o.attempt > 0 OR rowcall.shows_plan(j.state, j.paused_from)) OFFSET 0) o
    WHERE v.job_id = j.id AND v.result IN ('deleted', 'restored')) v, LATERAL (
    SELECT coalesce(sum(n) FILTER (WHERE p.implied = 'created'), 0)::bigint AS created,
           coalesce(sum(n) FILTER (WHERE p.implied = 'unchanged'), 0)::bigint AS unchanged
    FROM rowcall.plan_piece p, LATERAL (
        SELECT p.last_row - p.first_row + 1 - count(*) AS n FROM rowcall.outcome o
        WHERE o.job_id = p.job_id AND o.row_number BETWEEN p.first_row AND p.last_row AND o.attempt = 0) implied
    WHERE p.job_id = j.id AND rowcall.shows_plan(j.state, j.paused_from)) i
WHERE j.id = %(id)s

-- not_applied --
-- Of a job that is all or nothing and has failures, the other rows are skipped; that is how it ends.
WITH forgotten AS (DELETE FROM rowcall.outcome WHERE job_id = %(id)s AND attempt = 0)
INSERT INTO rowcall.outcome (job_id, row_number, status, issues)
SELECT r.job_id, r.number, CASE WHEN p.status = 'failed' THEN p.status ELSE 'skipped' END,
       CASE WHEN p.status IN ('failed', 'skipped') THEN p.issues ELSE jsonb_build_array(jsonb_build_object(
           'code', 'NOT_APPLIED', 'message', 'Other rows of this file failed, and it is imported as a whole or not at all.')) END
FROM rowcall.row r LEFT JOIN LATERAL (
    SELECT * FROM rowcall.outcome p WHERE p.job_id = r.job_id AND p.row_number = r.number AND p.attempt = 0 OFFSET 0) p ON true
WHERE r.job_id = %(id)s

-- recount_batches --
-- The counts of a job's batches from its outcomes, of those that have rows between first and last.
UPDATE rowcall.batch b SET created = c.created, updated = c.updated, unchanged = c.unchanged, skipped = c.skipped, failed = c.failed,
    reverted = c.reverted, stamp = c.stamp
FROM rowcall.batch x CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE o.status = 'created' AND v IS NULL) AS created,
           count(*) FILTER (WHERE o.status = 'updated' AND v IS NULL) AS updated,
           count(*) FILTER (WHERE o.status = 'unchanged') AS unchanged, count(*) FILTER (WHERE o.status = 'skipped') AS skipped,
           count(*) FILTER (WHERE o.status = 'failed') AS failed, count(v.row_number) AS reverted,
           (array_agg(o.xmin ORDER BY o.at DESC, o.row_number))[1] AS stamp
    FROM rowcall.outcome o LEFT JOIN LATERAL (
        SELECT * FROM rowcall.reversal v
        WHERE v.job_id = o.job_id AND v.row_number = o.row_number AND v.result IN ('deleted', 'restored') OFFSET 0) v ON true
    WHERE o.job_id = x.job_id AND o.row_number BETWEEN x.first_row AND x.last_row) c
WHERE x.job_id = %(id)s AND x.last_row >= %(first)s AND x.first_row <= %(last)s AND c.stamp IS NOT NULL
  AND b.job_id = x.job_id AND b.number = x.number

-- failed_for_want --
-- Rows that failed because a row of the same table was not there, or not yet changed. Those that wait are left out, and
-- those in whose place another one counts.
SELECT row_number FROM rowcall.outcome o
WHERE job_id = %(id)s AND status = 'failed' AND row_number > %(after)s AND EXISTS (
    SELECT FROM jsonb_array_elements(issues) i
    WHERE (i->>'code' = 'NOT_FOUND' AND i->>'field' = ANY (%(lookups)s::text[]))
        OR (i->>'code' IN ('FOREIGN_KEY_VIOLATION', 'UNIQUE_VIOLATION') AND i->'metadata'->>'constraint' = ANY (%(constraints)s::text[])))
    AND (SELECT true FROM rowcall.waiting w WHERE w.job_id = o.job_id AND w.row_number = o.row_number) IS NULL
    AND (SELECT true FROM rowcall.duplicate d WHERE d.job_id = o.job_id AND d.row_number = o.row_number AND d.winner = d.row_number) IS NULL
ORDER BY row_number LIMIT %(most)s

-- passed_over --
-- Whether rows lost against one that was then refused, for something else than that it is there already.
SELECT EXISTS (
    SELECT FROM rowcall.duplicate d
    CROSS JOIN LATERAL (SELECT * FROM rowcall.outcome w WHERE w.job_id = d.job_id AND w.row_number = d.winner OFFSET 0) w
    WHERE d.job_id = %(id)s AND d.fields = %(key)s::text[] AND d.winner <> d.row_number
      AND w.status = 'failed' AND NOT w.issues @> '[{"code": "ALREADY_EXISTS"}]')

-- hands_over --
-- Whether any of some rows lost against one that is refused.
SELECT EXISTS (
    SELECT FROM rowcall.duplicate
    WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s) AND fields = %(key)s::text[] AND winner <> row_number
      AND winner = ANY (%(refused)s))

-- pass_over --
-- Of rows that lost against one that was refused, let the next best one win; these and the others that lose against it.
-- The refused one is out for good: with itself for a winner it is not tried again.
WITH lost AS MATERIALIZED (
    SELECT d.ctid AS tid, d.row_number, d.winner,
           CASE WHEN d.winner < min(d.row_number) OVER equal THEN min(d.row_number) OVER equal
                ELSE max(d.row_number) OVER equal END AS next
    FROM rowcall.duplicate d
    CROSS JOIN LATERAL (SELECT * FROM rowcall.outcome w WHERE w.job_id = d.job_id AND w.row_number = d.winner OFFSET 0) w
    WHERE d.job_id = %(id)s AND d.fields = %(key)s::text[] AND d.winner <> d.row_number
      AND w.status = 'failed' AND NOT w.issues @> '[{"code": "ALREADY_EXISTS"}]'
    WINDOW equal AS (PARTITION BY d.winner)
), out AS (
    INSERT INTO rowcall.duplicate (job_id, row_number, winner, fields, refused)
    SELECT DISTINCT %(id)s::uuid, winner, winner, %(key)s::text[], true FROM lost ON CONFLICT DO NOTHING
), winning AS (
    DELETE FROM rowcall.duplicate
    WHERE job_id = %(id)s AND row_number = ANY (ARRAY(SELECT row_number FROM lost WHERE row_number = next)) RETURNING row_number
), losing AS (
    UPDATE rowcall.duplicate d SET winner = lost.next FROM lost
    WHERE d.ctid = lost.tid AND lost.row_number <> lost.next RETURNING d.row_number
)
SELECT row_number FROM winning UNION ALL SELECT row_number FROM losing ORDER BY row_number

-- take_back --
-- Forget what became of some rows, in the transaction that tries them again.
DELETE FROM rowcall.outcome WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s)

-- still_failed --
-- How many of some rows failed.
SELECT count(*) FROM rowcall.outcome WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s) AND status = 'failed'
