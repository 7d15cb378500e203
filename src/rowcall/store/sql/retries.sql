-- add_retries --
-- Rows that failed or were skipped are to be tried again: some by number, or those with a status, an issue, a text, a correction.
INSERT INTO rowcall.retry (job_id, row_number)
SELECT o.job_id, o.row_number FROM rowcall.outcome o
WHERE o.job_id = %(id)s AND o.status IN ('failed', 'skipped')
  AND (cardinality(%(statuses)s::text[]) = 0 OR o.status::text = ANY (%(statuses)s::text[]))
  AND (%(numbers)s::bigint[] IS NULL OR o.row_number = ANY (%(numbers)s::bigint[]))
  AND (NOT %(edited)s OR EXISTS (
      SELECT FROM rowcall.row_edit e WHERE e.job_id = o.job_id AND e.row_number = o.row_number AND e.cells IS NOT NULL OFFSET 0))
  AND ((%(code)s::text IS NULL AND %(field)s::text IS NULL) OR EXISTS (
      SELECT FROM jsonb_array_elements(o.issues) issue
      WHERE (%(code)s::text IS NULL OR issue ->> 'code' = %(code)s)
        AND (%(field)s::text IS NULL OR %(field)s = ANY (string_to_array(issue ->> 'field', ', ')))))
  AND (%(text)s::text IS NULL OR EXISTS (
      SELECT FROM rowcall.edited_row r, unnest(r.cells) cell
      WHERE r.job_id = o.job_id AND r.number = o.row_number AND strpos(lower(cell), lower(%(text)s)) > 0 OFFSET 0))
ON CONFLICT DO NOTHING

-- next_retries --
-- The first rows that wait for another attempt.
SELECT row_number FROM rowcall.retry WHERE job_id = %(id)s ORDER BY row_number LIMIT %(most)s

-- retries_done --
-- Some rows have had their attempt.
DELETE FROM rowcall.retry WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s)

-- forget_retries --
-- No row waits for another attempt any more.
DELETE FROM rowcall.retry WHERE job_id = %(id)s

-- set_aside --
-- Keep what became of some rows among their attempts, in the transaction that tries them again.
WITH before AS (
    DELETE FROM rowcall.outcome WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s)
    RETURNING job_id, row_number, attempt, status, target_key, issues, at)
INSERT INTO rowcall.attempt (job_id, row_number, attempt, status, target_key, issues, at) SELECT * FROM before

-- count_attempts --
-- Number the new outcomes of some rows behind their earlier attempts, where there were any.
UPDATE rowcall.outcome o SET attempt = 1 + a.last
FROM (SELECT row_number, max(attempt) AS last FROM rowcall.attempt
      WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s) GROUP BY row_number) a
WHERE o.job_id = %(id)s AND o.row_number = a.row_number

-- attempts_of --
-- What became of a row in its attempts, the latest first.
SELECT attempt, status::text, target_key, issues, at FROM rowcall.outcome
WHERE job_id = %(id)s AND row_number = %(number)s AND attempt > 0
UNION ALL
SELECT attempt, status::text, target_key, issues, at FROM rowcall.attempt
WHERE job_id = %(id)s AND row_number = %(number)s
ORDER BY attempt DESC
