-- begin_undo --
-- An undo of some rows of a job; the number it has.
INSERT INTO rowcall.undo (job_id, number, account, request_id, which, partial, came_from, next_row, standing)
SELECT %(id)s, coalesce((SELECT max(number) FROM rowcall.undo WHERE job_id = %(id)s), 0) + 1, %(account)s, %(request_id)s,
       %(which)s, %(partial)s, %(came_from)s, coalesce(max(last_row), 0), coalesce(sum(reverted), 0)
FROM rowcall.batch WHERE job_id = %(id)s

-- try_undo --
-- An undo that is only tried, in a transaction that is undone: nobody sees it, and it is over before it begins.
INSERT INTO rowcall.undo (job_id, number, account, which, partial, came_from, next_row, standing, completed_at)
SELECT %(id)s, 0, '', %(which)s, true, %(came_from)s, coalesce(max(last_row), 0), coalesce(sum(reverted), 0), now()
FROM rowcall.batch WHERE job_id = %(id)s

-- tried_undo --
-- The undo that is tried.
SELECT * FROM rowcall.undo WHERE job_id = %(id)s AND number = 0

-- undo_under_way --
-- The undo that a job is in. Whoever asks holds it until the transaction ends.
SELECT * FROM rowcall.undo
WHERE job_id = %(id)s AND completed_at IS NULL AND EXISTS (SELECT FROM rowcall.job WHERE id = %(id)s AND state = 'REVERTING')
FOR UPDATE

-- hold_undo --
-- The same, for a slice of it: others may have slices at the same time, but nobody ends it before the transaction does.
SELECT * FROM rowcall.undo
WHERE job_id = %(id)s AND completed_at IS NULL AND EXISTS (SELECT FROM rowcall.job WHERE id = %(id)s AND state = 'REVERTING')
FOR KEY SHARE

-- batches_to_undo --
-- The batches that a first round has yet to come to, the last one first.
SELECT first_row, least(last_row, %(below)s) FROM rowcall.batch WHERE job_id = %(id)s AND first_row <= %(below)s ORDER BY number DESC

-- hold_batches --
-- Keep others from the batches of a slice, such as a session that has outlived its process.
SELECT FROM rowcall.batch WHERE job_id = %(id)s AND last_row >= %(first)s AND first_row <= %(last)s ORDER BY number FOR NO KEY UPDATE

-- undos_of --
-- The undos of a job with what they came to, the first one first, and where they left the job: its first move since their end.
SELECT u.*, (SELECT e.after FROM rowcall.job_event e WHERE e.job_id = u.job_id AND e.at >= u.completed_at ORDER BY e.id LIMIT 1) AS left_in
FROM rowcall.undo u WHERE u.job_id = %(id)s ORDER BY u.number

-- undo_results --
-- What an undo has come to so far; the sum tells one list of results from another.
SELECT count(*) FILTER (WHERE v.result = 'deleted') AS deleted, count(*) FILTER (WHERE v.result = 'restored') AS restored,
       count(*) FILTER (WHERE v.result = 'changed') AS changed, count(*) FILTER (WHERE v.result = 'blocked') AS blocked,
       count(*) FILTER (WHERE v.result = 'refused') AS refused, count(*) FILTER (WHERE v.result = 'gone') AS gone,
       coalesce(sum(hashtextextended(concat_ws(' ', v.row_number, v.result, v.target_key::text), 0)::numeric), 0)::text AS sum,
       (SELECT coalesce(jsonb_agg(to_jsonb(b) ORDER BY b.table, b.constraint, b.job), '[]') FROM (
           SELECT d ->> 'table' AS table, d ->> 'constraint' AS constraint, d ->> 'job' AS job, count(*) AS blocked,
                  sum((d ->> 'rows')::bigint)::bigint AS dependents
           FROM rowcall.reversal w, jsonb_array_elements(w.issue -> 'metadata' -> 'dependents') d
           WHERE w.job_id = %(id)s AND w.undo = %(number)s AND w.result = 'blocked' GROUP BY 1, 2, 3) b) AS blocked_by
FROM rowcall.reversal v WHERE v.job_id = %(id)s AND v.undo = %(number)s

-- is_to_undo --
-- Whether a job has written a row that was not taken back.
SELECT EXISTS (SELECT FROM rowcall.batch WHERE job_id = %(id)s AND created + updated > 0)

-- what_is_left --
-- Whether something that a job wrote is still there: a row that was neither taken back nor is gone.
SELECT EXISTS (
    SELECT FROM rowcall.outcome o WHERE o.job_id = %(id)s AND o.attempt > 0 AND o.status IN ('created', 'updated')
      AND (SELECT v.result IN ('deleted', 'restored', 'gone') FROM rowcall.reversal v
           WHERE v.job_id = o.job_id AND v.row_number = o.row_number) IS NOT TRUE)

-- keys_lacking --
-- Whether rows that a job wrote are not known by a key: the first batch tells for all.
SELECT EXISTS (
    SELECT FROM (SELECT * FROM rowcall.batch WHERE job_id = %(id)s AND created + updated > 0 ORDER BY number LIMIT 1) b
    JOIN rowcall.outcome o ON o.job_id = b.job_id AND o.row_number BETWEEN b.first_row AND b.last_row
    WHERE o.attempt > 0 AND o.status IN ('created', 'updated') AND o.target_key IS NULL)

-- stamps_lacking --
-- Whether batches of a job don't say which transactions wrote them.
SELECT EXISTS (SELECT FROM rowcall.batch WHERE job_id = %(id)s AND state = 'done' AND created + updated > 0 AND stamp IS NULL)

-- stamps_off --
-- Whether batches of a job were not written by the transactions that they say: the first few tell for all.
SELECT EXISTS (
    SELECT FROM (SELECT * FROM rowcall.batch WHERE job_id = %(id)s AND state = 'done' AND created + updated > 0
                 ORDER BY number LIMIT 20) b
    WHERE NOT EXISTS (SELECT FROM rowcall.outcome o WHERE o.job_id = b.job_id AND o.row_number BETWEEN b.first_row AND b.last_row
                      AND o.attempt > 0 AND o.xmin = b.stamp))

-- next_kept --
-- The last row, below one, that an undo has kept and may take back yet.
SELECT coalesce(max(row_number), 0) FROM rowcall.reversal
WHERE job_id = %(id)s AND undo = %(number)s AND result IN ('changed', 'blocked', 'refused') AND row_number <= %(below)s

-- reversals --
-- What became of the rows of a slice.
INSERT INTO rowcall.reversal (job_id, row_number, undo, result, target_key, issue, stamp, stands_for)
SELECT %(id)s, u.row_number, %(number)s, coalesce(u.result, CASE WHEN u.created THEN 'deleted' ELSE 'restored' END), u.key,
       u.issue, d.stamp, CASE WHEN d.stamp IS NOT NULL THEN u.seen END
FROM pg_temp.rowcall_undoing u LEFT JOIN pg_temp.rowcall_undone d ON d.row_number = u.row_number
ON CONFLICT (job_id, row_number) DO UPDATE SET undo = excluded.undo, result = excluded.result, issue = excluded.issue,
    stamp = excluded.stamp, stands_for = excluded.stands_for, at = excluded.at

-- free_row_keys --
-- Rows that are no longer in the target may come again.
DELETE FROM rowcall.row_key k WHERE k.job_id = %(id)s AND k.row_number = ANY (ARRAY(
    SELECT d.row_number FROM pg_temp.rowcall_undone d JOIN pg_temp.rowcall_undoing u ON u.row_number = d.row_number
    WHERE u.created))

-- count_reverted --
-- The counts of batches, after rows of theirs were taken back. Each row is looked up by itself, as statistics may not know it.
UPDATE rowcall.batch b SET created = b.created - c.created, updated = b.updated - c.updated,
    reverted = b.reverted + c.created + c.updated, updated_at = clock_timestamp()
FROM (
    SELECT x.number, count(*) FILTER (WHERE o.status = 'created') AS created, count(*) FILTER (WHERE o.status = 'updated') AS updated
    FROM pg_temp.rowcall_undone d
    CROSS JOIN LATERAL (SELECT o.status FROM rowcall.outcome o
                        WHERE o.job_id = %(id)s AND o.row_number = d.row_number AND o.attempt > 0 OFFSET 0) o
    JOIN rowcall.batch x ON x.job_id = %(id)s AND d.row_number BETWEEN x.first_row AND x.last_row
    WHERE x.last_row >= %(first)s AND x.first_row <= %(last)s GROUP BY x.number) c
WHERE b.job_id = %(id)s AND b.number = c.number

-- free_deleted --
-- Rows of a slice that were deleted may come again.
DELETE FROM rowcall.row_key k
WHERE k.job_id = %(id)s AND k.row_number BETWEEN %(first)s AND %(last)s AND (
    SELECT v.undo = %(number)s AND v.result = 'deleted' FROM rowcall.reversal v
    WHERE v.job_id = k.job_id AND v.row_number = k.row_number)

-- count_deleted --
-- The counts of the batch in which rows were created that are deleted now.
UPDATE rowcall.batch SET created = created - %(count)s, reverted = reverted + %(count)s, updated_at = clock_timestamp()
WHERE job_id = %(id)s AND first_row <= %(first)s AND last_row >= %(last)s

-- go_on_below --
-- How far an undo is: a round has been through all rows above.
UPDATE rowcall.undo SET next_row = least(next_row, %(next_row)s)
WHERE job_id = %(id)s AND number = %(number)s AND round = %(round)s

-- next_round --
-- Begin again with what was kept, if something was taken back meanwhile that may have stood in the way.
UPDATE rowcall.undo u SET round = u.round + 1, standing = b.reverted, next_row = b.last_row
FROM (SELECT coalesce(sum(reverted), 0) AS reverted, max(last_row) AS last_row FROM rowcall.batch WHERE job_id = %(id)s) b
WHERE u.job_id = %(id)s AND u.number = %(number)s AND b.reverted > u.standing
  AND EXISTS (SELECT FROM rowcall.reversal v WHERE v.job_id = u.job_id AND v.undo = u.number
              AND v.result IN ('changed', 'blocked', 'refused'))

-- end_undo --
-- An undo is over.
UPDATE rowcall.undo SET completed_at = clock_timestamp(), results = %(results)s WHERE job_id = %(id)s AND number = %(number)s
