-- batches_to_show --
-- Batches that hold rows of some statuses, from one on; `behind`, `whose` and `order` are put in.
SELECT b.job_id, b.number, b.first_row, b.last_row, b.updated_at, rowcall.shows_plan(j.state, j.paused_from) AS is_plan
FROM rowcall.batch b JOIN rowcall.job j ON j.id = b.job_id
WHERE {whose} AND {behind} AND (cardinality(%(statuses)s::text[]) = 0
    OR (b.created > 0 AND 'created' = ANY (%(statuses)s)) OR (b.updated > 0 AND 'updated' = ANY (%(statuses)s))
    OR (b.unchanged > 0 AND 'unchanged' = ANY (%(statuses)s)) OR (b.skipped > 0 AND 'skipped' = ANY (%(statuses)s))
    OR (b.failed > 0 AND 'failed' = ANY (%(statuses)s)) OR (b.reverted > 0 AND 'reverted' = ANY (%(statuses)s))
    OR (b.state = 'pending' AND CASE WHEN j.state IN ('CANCELLED', 'SUPERSEDED', 'REVERTING', 'REVERTED') OR j.paused_from = 'REVERTING' THEN 'cancelled' ELSE 'pending' END = ANY (%(statuses)s))
    OR ('pending' = ANY (%(statuses)s) AND EXISTS (
        SELECT FROM rowcall.retry t WHERE t.job_id = b.job_id AND t.row_number BETWEEN b.first_row AND b.last_row)))
ORDER BY {order} LIMIT %(most)s

-- rows_to_show --
-- Rows of a job with what became of each; `among` and `order` are put in.
SELECT number AS row, line, status, issues, cells, target_key, attempt, at, original, revision,
       result -> 'changes' AS changes
FROM {among}
WHERE (cardinality(%(statuses)s::text[]) = 0 OR status = ANY (%(statuses)s::text[]))
  AND (NOT %(edited)s OR original IS NOT NULL)
  AND (%(text)s::text IS NULL OR EXISTS (SELECT FROM unnest(cells) cell WHERE strpos(lower(cell), lower(%(text)s)) > 0))
  AND ((%(code)s::text IS NULL AND %(field)s::text IS NULL) OR EXISTS (
      SELECT FROM jsonb_array_elements(issues) issue
      WHERE (%(code)s::text IS NULL OR issue ->> 'code' = %(code)s)
        AND (%(field)s::text IS NULL OR %(field)s = ANY (string_to_array(issue ->> 'field', ', ')))))
ORDER BY {order} LIMIT %(most)s

-- among_all --
-- All rows of a job between two numbers, to be shown.
(SELECT * FROM rowcall.row_status WHERE job_id = %(id)s AND number BETWEEN %(first)s AND %(last)s) r

-- among_some --
-- Those of some numbers only, which are found by less than all that is shown of a row; in order, so that a page ends soon.
(SELECT s.* FROM (SELECT * FROM ({numbers}) n (number) ORDER BY {order}) n
 CROSS JOIN LATERAL (SELECT * FROM rowcall.row_status s WHERE s.job_id = %(id)s AND s.number = n.number OFFSET 0) s) r

-- with_status --
-- Rows with an outcome of some statuses, which are put in.
SELECT row_number FROM rowcall.outcome
WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s AND status IN ({statuses})

-- with_issue --
-- Rows with an issue of this code and field, of their outcome or of what an undo made of it.
SELECT row_number FROM rowcall.outcome o
WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s AND EXISTS (
    SELECT FROM jsonb_array_elements(o.issues) issue
    WHERE (%(code)s::text IS NULL OR issue ->> 'code' = %(code)s)
      AND (%(field)s::text IS NULL OR %(field)s = ANY (string_to_array(issue ->> 'field', ', '))))
UNION
SELECT row_number FROM rowcall.reversal
WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s AND issue IS NOT NULL

-- with_text --
-- Rows with a text somewhere in their cells, as they came in or as they were corrected.
SELECT number FROM rowcall.row
WHERE job_id = %(id)s AND number BETWEEN %(first)s AND %(last)s
  AND strpos(lower(array_to_string(cells, E'\x1f')), lower(%(text)s)) > 0
UNION
SELECT row_number FROM rowcall.row_edit
WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s
  AND strpos(lower(array_to_string(cells, E'\x1f')), lower(%(text)s)) > 0

-- with_edit --
-- Rows with a correction.
SELECT row_number FROM rowcall.row_edit
WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s AND cells IS NOT NULL

-- issue_counts --
-- How often each issue was found in the rows of a job, the most frequent first.
SELECT issue ->> 'code' AS code, issue ->> 'field' AS field, o.status, count(*) AS count,
       min(o.row_number) AS first_row
FROM (
    SELECT o.row_number, o.status::text, o.issues FROM rowcall.outcome o JOIN rowcall.job j ON j.id = o.job_id
    WHERE o.job_id = %(id)s AND o.issues IS NOT NULL AND (o.attempt > 0 OR rowcall.shows_plan(j.state, j.paused_from))
    UNION ALL
    SELECT v.row_number, o.status::text, jsonb_build_array(v.issue) FROM rowcall.reversal v
    CROSS JOIN LATERAL (SELECT o.status FROM rowcall.outcome o WHERE o.job_id = v.job_id AND o.row_number = v.row_number OFFSET 0) o
    WHERE v.job_id = %(id)s AND v.issue IS NOT NULL) o, jsonb_array_elements(o.issues) issue
GROUP BY 1, 2, 3 ORDER BY count DESC, code, field

-- last_sign --
-- When the database last heard of a job: its end, else its latest batch, else its beginning.
SELECT coalesce(j.completed_at, (SELECT max(b.updated_at) FROM rowcall.batch b WHERE b.job_id = j.id), j.created_at)
FROM rowcall.job j WHERE j.id = %(id)s

-- counts_of_jobs --
-- What happened to the rows of several jobs so far. Each is looked up by itself: for many, all batches would be read.
SELECT b.* FROM unnest(%(ids)s::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
    SELECT b.job_id, sum(b.created)::bigint AS created, sum(b.updated)::bigint AS updated, sum(b.unchanged)::bigint AS unchanged,
           sum(b.skipped)::bigint AS skipped, sum(b.failed)::bigint AS failed, sum(b.reverted)::bigint AS reverted,
           max(b.last_row)::bigint AS ingested
    FROM rowcall.batch b WHERE b.job_id = wanted.id GROUP BY b.job_id OFFSET 0) b

-- events_of --
-- The moves that a job made behind one.
SELECT id, before, after, at FROM rowcall.job_event WHERE job_id = %(id)s AND id > %(after)s ORDER BY id

-- last_events --
-- The latest move of some jobs.
SELECT e.* FROM unnest(%(ids)s::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
    SELECT e.job_id, max(e.id) FROM rowcall.job_event e WHERE e.job_id = wanted.id GROUP BY e.job_id OFFSET 0) e

-- widest_row --
-- The most cells that a row of a job has; more than the header if a record had too many fields, or new keys.
SELECT max(cardinality(cells)) FROM rowcall.row WHERE job_id = %(id)s

-- count_rows --
-- How many rows of a job are in.
SELECT count(*) FROM rowcall.row WHERE job_id = %(id)s
