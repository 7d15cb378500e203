-- rows_without_outcome --
-- I1: rows of a job that nothing is said about, nor implied by its plan.
SELECT 'row ' || r.number AS found FROM rowcall.row r
WHERE r.job_id = %(id)s
  AND NOT EXISTS (SELECT FROM rowcall.outcome o WHERE o.job_id = r.job_id AND o.row_number = r.number OFFSET 0)
  AND NOT EXISTS (SELECT FROM rowcall.plan_piece p JOIN rowcall.job j ON j.id = p.job_id
                  WHERE p.job_id = r.job_id AND r.number BETWEEN p.first_row AND p.last_row AND p.implied IS NOT NULL
                    AND rowcall.shows_plan(j.state, j.paused_from) OFFSET 0)
ORDER BY r.number

-- outcomes_without_row --
-- I1: outcomes of rows that are not there.
SELECT 'outcome of row ' || o.row_number AS found FROM rowcall.outcome o
WHERE o.job_id = %(id)s
  AND NOT EXISTS (SELECT FROM rowcall.row r WHERE r.job_id = o.job_id AND r.number = o.row_number OFFSET 0)
ORDER BY o.row_number

-- batches_apart --
-- I2: batches that leave a gap, overlap, end too early or too late, or lack rows.
SELECT 'batch ' || number || ' begins at row ' || first_row || ', not at ' || expected AS found
FROM (SELECT number, first_row, 1 + coalesce(lag(last_row) OVER (ORDER BY first_row), 0) AS expected
      FROM rowcall.batch WHERE job_id = %(id)s) b
WHERE first_row <> expected
UNION ALL
SELECT 'the batches end at row ' || b.last || ', the file at row ' || j.row_count
FROM rowcall.job j, (SELECT coalesce(max(last_row), 0) AS last FROM rowcall.batch WHERE job_id = %(id)s) b
WHERE j.id = %(id)s AND j.row_count <> b.last
UNION ALL
SELECT 'batch ' || b.number || ' has ' || r.rows || ' of ' || b.last_row - b.first_row + 1 || ' rows'
FROM rowcall.batch b, LATERAL (
    SELECT count(*) AS rows FROM rowcall.row r
    WHERE r.job_id = b.job_id AND r.number BETWEEN b.first_row AND b.last_row) r
WHERE b.job_id = %(id)s AND r.rows <> b.last_row - b.first_row + 1

-- batches_in_part --
-- I3: batches that are done and lack outcomes, or wait and have some. Of a preview they are planned, some by implication.
SELECT 'batch ' || b.number || ' is ' || b.state || ' with outcomes of ' || o.rows || ' of '
       || b.last_row - b.first_row + 1 || ' rows' AS found
FROM (SELECT id, rowcall.shows_plan(state, paused_from) AS planned FROM rowcall.job) j JOIN rowcall.batch b ON b.job_id = j.id
LEFT JOIN rowcall.plan_piece p ON j.planned AND p.job_id = j.id AND p.first_row = b.first_row AND p.last_row = b.last_row, LATERAL (
    SELECT CASE WHEN p.implied IS NULL THEN count(DISTINCT o.row_number) ELSE b.last_row - b.first_row + 1 END AS rows
    FROM rowcall.outcome o
    WHERE o.job_id = b.job_id AND o.row_number BETWEEN b.first_row AND b.last_row AND (o.attempt > 0) <> j.planned) o
WHERE j.id = %(id)s AND o.rows <> CASE WHEN b.state = 'done' THEN b.last_row - b.first_row + 1 ELSE 0 END
ORDER BY b.number

-- counters_off --
-- I4: batches whose counters differ from their outcomes, and a job whose count of rows differs from its rows.
SELECT 'batch ' || b.number || ' counts ' || b.counted::text || ', its outcomes are ' || o.counted::text AS found
FROM (SELECT id, rowcall.shows_plan(state, paused_from) AS planned FROM rowcall.job WHERE id = %(id)s) j
JOIN (SELECT *, ARRAY[created, updated, unchanged, skipped, failed, reverted]::bigint[] AS counted
      FROM rowcall.batch WHERE job_id = %(id)s AND state = 'done') b ON b.job_id = j.id
LEFT JOIN rowcall.plan_piece p ON j.planned AND p.job_id = j.id AND p.first_row = b.first_row AND p.last_row = b.last_row, LATERAL (
    SELECT ARRAY[count(*) FILTER (WHERE o.status = 'created' AND v IS NULL) + CASE WHEN p.implied = 'created' THEN i.rows - count(o.row_number) ELSE 0 END,
                 count(*) FILTER (WHERE o.status = 'updated' AND v IS NULL),
                 count(*) FILTER (WHERE o.status = 'unchanged') + CASE WHEN p.implied = 'unchanged' THEN i.rows - count(o.row_number) ELSE 0 END,
                 count(*) FILTER (WHERE o.status = 'skipped'), count(*) FILTER (WHERE o.status = 'failed'), count(v.row_number)] AS counted
    FROM (SELECT b.last_row - b.first_row + 1 AS rows) i LEFT JOIN rowcall.outcome o
        ON o.job_id = b.job_id AND o.row_number BETWEEN b.first_row AND b.last_row AND (o.attempt > 0) <> j.planned
    LEFT JOIN LATERAL (
        SELECT * FROM rowcall.reversal v
        WHERE v.job_id = o.job_id AND v.row_number = o.row_number AND v.result IN ('deleted', 'restored') OFFSET 0) v ON true
    GROUP BY i.rows) o
WHERE b.counted <> o.counted
UNION ALL
SELECT 'the job counts ' || j.row_count || ' rows and has ' || r.rows
FROM rowcall.job j, (SELECT count(*) AS rows FROM rowcall.row WHERE job_id = %(id)s) r
WHERE j.id = %(id)s AND j.row_count <> r.rows

-- created_twice --
-- I5: rows of the target that a job says it created more than once, or without saying which.
SELECT 'key ' || coalesce(array_to_string(target_key, ', '), '(none)') || ' by rows '
       || array_to_string((array_agg(row_number ORDER BY row_number))[:5], ', ') AS found
FROM rowcall.outcome WHERE job_id = %(id)s AND status = 'created' AND attempt > 0
GROUP BY target_key HAVING count(*) > 1 OR target_key IS NULL

-- created_not_there --
-- I5: rows that a job created and that the target no longer has.
SELECT 'row ' || o.row_number || ', key ' || array_to_string(o.target_key, ', ') AS found
FROM rowcall.outcome o
WHERE o.job_id = %(id)s AND o.status = 'created' AND o.attempt > 0 AND NOT EXISTS (SELECT FROM {target} t WHERE {same} OFFSET 0)
  AND NOT EXISTS (SELECT FROM rowcall.reversal v WHERE v.job_id = o.job_id AND v.row_number = o.row_number AND v.result = 'deleted' OFFSET 0)
ORDER BY o.row_number

-- undone_still_there --
-- I5: rows that were taken back and that the target has as the import left them.
SELECT 'row ' || o.row_number || ', key ' || array_to_string(o.target_key, ', ') AS found
FROM rowcall.outcome o
CROSS JOIN LATERAL (
    SELECT FROM rowcall.reversal v WHERE v.job_id = o.job_id AND v.row_number = o.row_number
      AND v.result IN ('deleted', 'restored') AND v.stamp IS DISTINCT FROM o.xmin OFFSET 0) v
CROSS JOIN LATERAL (SELECT FROM {target} t WHERE {same} AND t.xmin = o.xmin OFFSET 0) t
WHERE o.job_id = %(id)s
ORDER BY o.row_number

-- undone_without_row --
-- I1: what was taken back without having been written.
SELECT 'row ' || v.row_number AS found FROM rowcall.reversal v
WHERE v.job_id = %(id)s AND NOT EXISTS (
    SELECT FROM rowcall.outcome o WHERE o.job_id = v.job_id AND o.row_number = v.row_number AND o.status IN ('created', 'updated') OFFSET 0)
ORDER BY v.row_number

-- keys_without_row --
-- I6: row keys that no created row stands behind.
SELECT 'key ' || k.key || ' of row ' || k.row_number AS found FROM rowcall.row_key k
WHERE k.job_id = %(id)s AND NOT EXISTS (
    SELECT FROM rowcall.outcome o WHERE o.job_id = k.job_id AND o.row_number = k.row_number AND o.status = 'created' AND o.attempt > 0
      AND NOT EXISTS (SELECT FROM rowcall.reversal v WHERE v.job_id = o.job_id AND v.row_number = o.row_number AND v.result = 'deleted' OFFSET 0) OFFSET 0)
ORDER BY k.row_number

-- rows_without_key --
-- I6: created rows of an importer that takes a row once, without their key.
SELECT 'row ' || o.row_number AS found FROM rowcall.outcome o
WHERE o.job_id = %(id)s AND o.status = 'created' AND o.attempt > 0
  AND NOT EXISTS (SELECT FROM rowcall.row_key k WHERE k.job_id = o.job_id AND k.row_number = o.row_number OFFSET 0)
  AND NOT EXISTS (SELECT FROM rowcall.reversal v WHERE v.job_id = o.job_id AND v.row_number = o.row_number AND v.result = 'deleted' OFFSET 0)
ORDER BY o.row_number

-- effect_apart --
-- I8: created rows that came into the target by another transaction than their outcome, and that no later outcome names.
SELECT 'row ' || o.row_number || ', key ' || array_to_string(o.target_key, ', ') || ': outcome by transaction '
       || o.xmin::text || ', target by ' || t.xmin::text AS found
FROM rowcall.outcome o CROSS JOIN LATERAL (SELECT t.xmin FROM {target} t WHERE {same} OFFSET 0) t
WHERE o.job_id = %(id)s AND o.status = 'created' AND o.attempt > 0 AND {apart}
  AND NOT EXISTS (
      SELECT FROM rowcall.outcome later JOIN rowcall.job j ON j.id = later.job_id
      WHERE j.importer = ANY (%(importers)s) AND later.target_key = o.target_key AND later.at >= o.at AND later.attempt > 0
        AND later.status IN ('created', 'updated')
        AND (later.job_id, later.row_number) <> (o.job_id, o.row_number))
  AND NOT EXISTS (SELECT FROM rowcall.reversal v WHERE v.job_id = o.job_id AND v.row_number = o.row_number AND v.result = 'deleted' OFFSET 0)
ORDER BY o.row_number

-- unfinished_jobs --
-- Jobs that are not at their end, and whether a process works on each.
SELECT j.number || ' ' || j.state || ' since ' || to_char(j.created_at, 'YYYY-MM-DD HH24:MI')
       || coalesce(', stopped by ' || (j.last_error ->> 'code'), '') AS found
FROM rowcall.job j
WHERE j.state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING')
  AND NOT rowcall.is_worked_on(j.id)
ORDER BY j.created_at

-- stored_files --
-- The files that jobs were made from; those of unfinished jobs are still needed.
SELECT f.location, EXISTS (SELECT FROM rowcall.job j WHERE j.file_sha256 = f.sha256 AND j.state = 'UPLOADED') AS needed
FROM rowcall.file f

-- unattended_for_long --
-- I9: jobs for workers that nobody works on, and of which nothing was heard for a minute.
SELECT j.number || ' ' || j.state AS found FROM rowcall.job j, LATERAL (
    SELECT greatest(j.created_at,
                    (SELECT max(at) FROM rowcall.job_event e WHERE e.job_id = j.id),
                    (SELECT max(updated_at) FROM rowcall.batch b WHERE b.job_id = j.id)) AS last) heard
WHERE j.background AND j.state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING')
  AND j.wish IS DISTINCT FROM 'hold' AND heard.last < now() - interval '1 minute' AND NOT rowcall.is_worked_on(j.id)
ORDER BY j.created_at

-- left_behind --
-- I10: sessions of ours that stand in a transaction for a minute, locks of jobs that ended, tables of sessions that are gone.
SELECT application_name || ' is idle in a transaction since ' || to_char(state_change, 'YYYY-MM-DD HH24:MI:SS') AS found
FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'rowcall %%' AND state LIKE 'idle in transaction%%'
  AND state_change < now() - interval '1 minute'
UNION ALL
SELECT 'job ' || j.number || ' ended and is locked' FROM rowcall.job j, pg_locks l
WHERE j.completed_at < now() - interval '1 minute' AND l.locktype = 'advisory' AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('rowcall job ' || j.id::text, 0)
UNION ALL
SELECT 'temporary table ' || c.relname FROM pg_class c
WHERE c.relpersistence = 't' AND c.relkind = 'r' AND c.relname LIKE 'rowcall\_%%' AND NOT EXISTS (
    SELECT FROM pg_stat_activity a WHERE a.datname = current_database() AND a.application_name LIKE 'rowcall %%')

-- keys_of_several --
-- I11: idempotency keys that stand for more than one job.
SELECT idempotency_key || ' of ' || count(*) || ' jobs' AS found FROM rowcall.job
WHERE idempotency_key IS NOT NULL GROUP BY organisation_id, idempotency_key HAVING count(*) > 1
