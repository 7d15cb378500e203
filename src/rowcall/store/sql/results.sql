-- results --
-- Rows of a job behind a row number with what became of each, whatever that is.
SELECT number AS row, line, status, issues, cells, target_key FROM rowcall.row_status
WHERE job_id = %(id)s AND number > %(after)s AND (%(status)s::text IS NULL OR status = %(status)s)
  AND ((%(code)s::text IS NULL AND %(field)s::text IS NULL) OR EXISTS (
      SELECT FROM jsonb_array_elements(issues) issue
      WHERE (%(code)s::text IS NULL OR issue ->> 'code' = %(code)s)
        AND (%(field)s::text IS NULL OR %(field)s = ANY (string_to_array(issue ->> 'field', ', ')))))
ORDER BY number LIMIT %(most)s

-- results_failed --
-- The same of failed rows only, which have an index of their own.
SELECT r.number AS row, r.line, o.status::text, o.issues, r.cells, o.target_key
FROM rowcall.outcome o JOIN rowcall.row r ON r.job_id = o.job_id AND r.number = o.row_number
WHERE o.job_id = %(id)s AND o.row_number > %(after)s AND o.status = 'failed'
  AND NOT EXISTS (SELECT FROM rowcall.outcome later
                  WHERE later.job_id = o.job_id AND later.row_number = o.row_number AND later.attempt > o.attempt)
  AND ((%(code)s::text IS NULL AND %(field)s::text IS NULL) OR EXISTS (
      SELECT FROM jsonb_array_elements(o.issues) issue
      WHERE (%(code)s::text IS NULL OR issue ->> 'code' = %(code)s)
        AND (%(field)s::text IS NULL OR %(field)s = ANY (string_to_array(issue ->> 'field', ', ')))))
ORDER BY o.row_number LIMIT %(most)s

-- issue_counts --
-- How often each issue was found in the rows of a job, the most frequent first.
SELECT issue ->> 'code' AS code, issue ->> 'field' AS field, o.status::text AS status, count(*) AS count,
       min(o.row_number) AS first_row
FROM rowcall.outcome o, jsonb_array_elements(o.issues) issue
WHERE o.job_id = %(id)s GROUP BY 1, 2, 3 ORDER BY count DESC, code, field

-- last_sign --
-- When the database last heard of a job: its end, else its latest batch, else its beginning.
SELECT coalesce(j.completed_at, (SELECT max(b.updated_at) FROM rowcall.batch b WHERE b.job_id = j.id), j.created_at)
FROM rowcall.job j WHERE j.id = %(id)s

-- counts_of_jobs --
-- What happened to the rows of several jobs so far.
SELECT job_id, sum(created)::bigint AS created, sum(updated)::bigint AS updated, sum(unchanged)::bigint AS unchanged,
       sum(skipped)::bigint AS skipped, sum(failed)::bigint AS failed, max(last_row)::bigint AS ingested
FROM rowcall.batch WHERE job_id = ANY (%(ids)s) GROUP BY job_id
