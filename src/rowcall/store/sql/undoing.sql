-- undoing_tables --
-- Which rows are to be taken back, which were, and what is in the way. `created` in the target by this row, a version of
-- another one included; `stamp` is its own transaction, `seen` the one before, `now` the target's. What is joined with them
-- is often unknown to the statistics, and taken for a row or two: by the indexes, it may come first all the same.
DROP TABLE IF EXISTS pg_temp.rowcall_undoing, pg_temp.rowcall_undone, pg_temp.rowcall_blocking;
CREATE TEMPORARY TABLE rowcall_undoing (
    row_number bigint, created boolean, key text[], stamp xid, seen xid, tid tid, part oid, now xid, result text, issue jsonb)
ON COMMIT DELETE ROWS;
CREATE INDEX ON pg_temp.rowcall_undoing (row_number);
CREATE INDEX ON pg_temp.rowcall_undoing (tid);
CREATE TEMPORARY TABLE rowcall_undone (row_number bigint, stamp xid) ON COMMIT DELETE ROWS;
CREATE INDEX ON pg_temp.rowcall_undone (row_number);
CREATE TEMPORARY TABLE rowcall_blocking (row_number bigint, told jsonb, said text) ON COMMIT DELETE ROWS

-- undoing_outcome --
-- The outcome `o` of a row `u`, looked up for each by itself: statistics know nothing of a job that was just imported.
LATERAL (SELECT o.* FROM rowcall.outcome o WHERE o.job_id = {job} AND o.row_number = u.row_number AND o.attempt > 0 OFFSET 0) o

-- undoing_target --
-- The target's row `t` of a row `u`, fetched from where it is, whatever is known of the target.
LATERAL (SELECT t.* FROM {own} t WHERE {at} OFFSET 0) t

-- undoing_forget --
-- What was found before.
DELETE FROM pg_temp.rowcall_undoing;
DELETE FROM pg_temp.rowcall_undone;
DELETE FROM pg_temp.rowcall_blocking

-- undoing_find --
-- The rows of a slice with where they are in the target, and whether they are as the import left them.
INSERT INTO pg_temp.rowcall_undoing
SELECT o.row_number, o.status = 'created' OR {version}, o.target_key, o.xmin, o.seen, t.ctid, t.tableoid, t.xmin,
       CASE WHEN t.ctid IS NULL THEN 'gone' WHEN c.issue IS NOT NULL THEN 'changed' END, c.issue
FROM rowcall.outcome o
LEFT JOIN LATERAL (SELECT t.ctid, t.tableoid, t.xmin FROM {own} t WHERE {same}{lock}) t ON true
CROSS JOIN LATERAL (
    SELECT CASE WHEN t.ctid IS NULL THEN NULL WHEN NOT {as_left} THEN {changed}::jsonb WHEN {lost} THEN {lacking}::jsonb
           END AS issue OFFSET 0) c
WHERE o.job_id = {job} AND o.row_number BETWEEN {first} AND {last} AND o.attempt > 0
  AND o.status IN ('created', 'updated') AND {which} AND {open}

-- undoing_fitting --
-- Whether a job has a row that is wanted and was not taken back.
SELECT EXISTS (
    SELECT FROM rowcall.outcome o WHERE o.job_id = {job} AND o.attempt > 0 AND o.status IN ('created', 'updated') AND {which} AND {open})

-- undoing_as_left --
-- Whether the target's row `t` is as the outcome `o` says: written by the same transaction, or brought back to that.
(t.xmin = o.xmin OR EXISTS (
    SELECT FROM rowcall.reversal v WHERE v.stamp IS NOT NULL AND v.target_key = o.target_key AND v.stamp = t.xmin
    AND v.stands_for = o.xmin))

-- undoing_at_once --
-- Delete rows that were created and are as the import left them, and note it: how many are due, found there, deleted.
-- Where they are is asked row by row, and they are fetched from there: what statistics know of tables that were just filled
-- has no say. A row that somebody writes meanwhile has another xmin, and is not deleted; then none of it may stay.
WITH due AS MATERIALIZED (
    SELECT o.row_number, o.target_key, o.xmin AS stamp, t.ctid AS tid, t.tableoid AS part FROM rowcall.outcome o
    LEFT JOIN LATERAL (SELECT t.ctid, t.tableoid FROM {own} t
                       WHERE o.status = 'created' AND {same} AND t.xmin = o.xmin OFFSET 0) t ON true
    WHERE o.job_id = {job} AND o.row_number BETWEEN {first} AND {last} AND o.attempt > 0
      AND o.status IN ('created', 'updated') AND {which} AND {open}),
deleted AS (
    DELETE FROM {own} t WHERE t.ctid = ANY (ARRAY(SELECT tid FROM due WHERE tid IS NOT NULL))
      AND t.xmin = ANY (ARRAY(SELECT DISTINCT stamp FROM due)) AND {of_parts} RETURNING 1),
noted AS (
    INSERT INTO rowcall.reversal (job_id, row_number, undo, result, target_key)
    SELECT {job}, row_number, {undo}, 'deleted', target_key FROM due WHERE tid IS NOT NULL
    ON CONFLICT (job_id, row_number) DO UPDATE SET undo = excluded.undo, result = excluded.result, issue = NULL,
        stamp = NULL, stands_for = NULL, at = excluded.at)
SELECT (SELECT count(*) FROM due), (SELECT count(*) FROM due WHERE tid IS NOT NULL), (SELECT count(*) FROM deleted)

-- undoing_of_parts --
-- That a row `t` of a partitioned table was found in its partition, and not another one in the same place of another.
(t.tableoid, t.ctid) IN (SELECT part, tid FROM due)

-- undoing_chains --
-- Rows that only another row of the job has written since will be as they were left when that is taken back.
UPDATE pg_temp.rowcall_undoing u SET result = NULL, issue = NULL FROM pg_temp.rowcall_undoing x
WHERE u.result = 'changed' AND x.result IS NULL AND x.key = u.key AND x.seen = u.stamp AND x.row_number <> u.row_number

-- undoing_unblock --
-- What was found to be in the way.
DELETE FROM pg_temp.rowcall_blocking

-- undoing_blocking --
-- The rows that a foreign key refers to, with how often.
INSERT INTO pg_temp.rowcall_blocking
SELECT u.row_number, jsonb_build_object('table', {name}, 'constraint', {constraint}, 'rows', count(*)),
       CASE count(*) WHEN 1 THEN {one} ELSE count(*) || {several} END
FROM pg_temp.rowcall_undoing u CROSS JOIN {target} JOIN {table} d ON {refers}
WHERE u.created AND {which} AND {stays}
GROUP BY u.row_number

-- undoing_stays --
-- That a row `d` of the target will still refer to another when all is taken back.
(d.ctid, d.tableoid) <> (u.tid, u.part) AND NOT EXISTS (
    SELECT FROM pg_temp.rowcall_undoing x
    WHERE x.tid = d.ctid AND x.part = d.tableoid AND x.result IS NULL AND (x.created OR EXISTS (
        SELECT FROM rowcall.outcome o
        WHERE o.job_id = {job} AND o.row_number = x.row_number AND o.attempt > 0 AND ({elsewhere}))))

-- undoing_later --
-- The rows of which there are later versions that will stay, with the jobs of the organisation that wrote these, as far as
-- transactions tell.
INSERT INTO pg_temp.rowcall_blocking
SELECT u.row_number, jsonb_build_object('table', {name}, 'constraint', NULL, 'job', w.number, 'rows', count(*)),
       CASE count(*) WHEN 1 THEN 'A later version of it is there' ELSE count(*) || ' later versions of it are there' END
       || coalesce(', written by job ' || w.number, '')
FROM pg_temp.rowcall_undoing u CROSS JOIN {target} JOIN {own} d ON {same} AND d.{version} > t.{version}
LEFT JOIN (SELECT b.stamp, min(j.number) AS number FROM rowcall.batch b JOIN rowcall.job j ON j.id = b.job_id
           WHERE j.organisation_id = (SELECT organisation_id FROM rowcall.job WHERE id = {job}) GROUP BY 1) w ON w.stamp = d.xmin
WHERE u.created AND {which} AND NOT EXISTS (
    SELECT FROM pg_temp.rowcall_undoing x
    WHERE x.tid = d.ctid AND x.part = d.tableoid AND x.result IS NULL AND x.created)
GROUP BY u.row_number, w.number

-- undoing_unseen --
-- Rows of which it can't be seen whether something refers to them.
INSERT INTO pg_temp.rowcall_blocking
SELECT u.row_number, {told}::jsonb, {said} FROM pg_temp.rowcall_undoing u WHERE u.created AND {which}

-- undoing_blocked --
-- Rows that something refers to stay, and it is said what.
UPDATE pg_temp.rowcall_undoing u SET result = 'blocked', issue = jsonb_build_object(
    'code', CASE WHEN f.versions THEN {later} ELSE {dependents} END, 'message', f.said || '; it was kept.', 'metadata', jsonb_build_object('dependents', f.told))
FROM (SELECT row_number, string_agg(said, '; ' ORDER BY said) AS said, jsonb_agg(told ORDER BY said) AS told,
             bool_and(told ->> 'constraint' IS NULL) AS versions
      FROM pg_temp.rowcall_blocking GROUP BY 1) f
WHERE u.row_number = f.row_number AND {which}

-- undoing_differing --
-- The columns in which rows to be restored differ from what they were, with how many do.
SELECT e.key, count(*) FROM pg_temp.rowcall_undoing u CROSS JOIN {target} CROSS JOIN {outcome}
CROSS JOIN LATERAL (SELECT {image} AS now OFFSET 0) i, jsonb_each(o.before) e
WHERE NOT u.created AND u.result IS NULL AND e.value::text IS DISTINCT FROM (i.now -> e.key)::text GROUP BY 1

-- undoing_otherwise --
-- The columns in which rows that an undo has restored are not as they were, with how many aren't: a trigger has its own way.
-- What several rows of the job have updated is as it was before the first of them.
SELECT e.key, count(*) FROM (
    SELECT DISTINCT ON (v.target_key) v.row_number FROM rowcall.reversal v
    WHERE v.job_id = {job} AND v.undo = {undo} AND v.result = 'restored' ORDER BY v.target_key, v.row_number) u
CROSS JOIN {outcome}, {key}
CROSS JOIN LATERAL (SELECT {image} AS now FROM {own} t WHERE {same} OFFSET 0) i, jsonb_each(o.before) e
WHERE e.value::text IS DISTINCT FROM (i.now -> e.key)::text GROUP BY 1

-- undoing_restore --
-- Give rows back the values that they had.
WITH done AS (
    UPDATE {own} t SET {assignments} FROM pg_temp.rowcall_undoing u CROSS JOIN {outcome}, {image}
    WHERE {at} AND NOT u.created AND u.result IS NULL AND {only} RETURNING u.row_number, t.xmin)
INSERT INTO pg_temp.rowcall_undone SELECT * FROM done

-- undoing_as_they_were --
-- Rows that are as they were need not be written.
INSERT INTO pg_temp.rowcall_undone
SELECT u.row_number, u.now FROM pg_temp.rowcall_undoing u WHERE NOT u.created AND u.result IS NULL AND {only}

-- undoing_delete --
-- Delete rows.
WITH done AS (
    DELETE FROM {own} t USING pg_temp.rowcall_undoing u WHERE {at} AND u.created AND u.result IS NULL AND {only}
    RETURNING u.row_number)
INSERT INTO pg_temp.rowcall_undone SELECT row_number, NULL FROM done

-- undoing_attempt --
-- For a trial in halves: all of the rows `rowcall_some`, or none of them.
{restoring}; {deleting};
IF (SELECT count(*) FROM pg_temp.rowcall_undone WHERE row_number = ANY (rowcall_some)) < cardinality(rowcall_some) THEN
    RAISE EXCEPTION 'dropped' USING ERRCODE = {dropped};
END IF;

-- undoing_refused --
-- Why rows can't be taken back.
UPDATE pg_temp.rowcall_undoing u SET result = 'refused', issue = f.issue
FROM unnest(%(rows)s::bigint[], %(issues)s::jsonb[]) f (number, issue) WHERE u.row_number = f.number

-- undoing_left --
-- The rows that are to be taken back, in order.
SELECT row_number FROM pg_temp.rowcall_undoing WHERE result IS NULL ORDER BY 1

-- undoing_done --
-- How many were taken back.
SELECT count(*) FROM pg_temp.rowcall_undone

-- undoing_counts --
-- What was found: results (none: can be taken back), whether the rows were created, how many.
SELECT result, created, count(*) FROM pg_temp.rowcall_undoing GROUP BY 1, 2

-- undoing_dependents --
-- What is in the way of rows that were created: the foreign keys, or the jobs that wrote later versions; how many rows
-- they block, by how many rows of theirs.
SELECT b.told ->> 'table' AS table, b.told ->> 'constraint' AS constraint, b.told ->> 'job' AS job, count(*) AS blocked,
       sum((b.told ->> 'rows')::bigint)::bigint AS dependents
FROM pg_temp.rowcall_blocking b GROUP BY 1, 2, 3 ORDER BY 1, 2, 3

-- undoing_samples --
-- Some rows that are kept, as they were before the import and as they are now.
SELECT u.row_number AS row, r.line, u.key AS target_key, o.status::text, u.issue, o.before, {image} AS now
FROM (SELECT * FROM pg_temp.rowcall_undoing WHERE result = {result} ORDER BY row_number LIMIT {most}) u
CROSS JOIN {target} CROSS JOIN {outcome}
CROSS JOIN LATERAL (SELECT r.line FROM rowcall.edited_row r WHERE r.job_id = {job} AND r.number = u.row_number OFFSET 0) r
ORDER BY 1

-- undoing_swayed --
-- Whether something else than constraints has a say in what is deleted from a table, and in what is updated in it.
WITH parts AS (SELECT to_regclass(%(table)s)::oid AS oid UNION SELECT relid FROM pg_partition_tree(to_regclass(%(table)s))),
own AS (SELECT g.tgtype FROM pg_trigger g JOIN parts p ON p.oid = g.tgrelid WHERE NOT g.tgisinternal AND g.tgenabled <> 'D')
SELECT odd OR EXISTS (SELECT FROM own WHERE tgtype & 8 <> 0), odd OR EXISTS (SELECT FROM own WHERE tgtype & 16 <> 0) FROM (
    SELECT bool_or(c.relhasrules OR row_security_active(c.oid)) AS odd FROM pg_class c WHERE c.oid IN (SELECT oid FROM parts)) o

-- undoing_in_doubt --
-- Whether a constraint may refuse what a row that is to be restored had.
SELECT EXISTS (
    SELECT FROM pg_temp.rowcall_undoing u CROSS JOIN {target} CROSS JOIN {outcome}, {image}
    WHERE NOT u.created AND u.result IS NULL AND ({refused}))

-- undoing_kept --
-- What was kept in a trial, and why.
UPDATE pg_temp.rowcall_undoing u SET result = v.result, issue = v.issue
FROM rowcall.reversal v WHERE v.job_id = %(id)s AND v.row_number = u.row_number
