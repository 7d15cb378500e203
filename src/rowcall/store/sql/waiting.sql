-- forget_waiting --
-- Nothing of a job's file waits.
DELETE FROM rowcall.waiting WHERE job_id = %(id)s

-- have_wait --
-- Have rows wait until others are in.
INSERT INTO rowcall.waiting (job_id, row_number) SELECT %(id)s, unnest(%(numbers)s::bigint[])

-- batch_waiting --
-- Rows of a batch that wait.
SELECT row_number FROM rowcall.waiting WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s

-- rows_that_wait --
-- The next rows that wait.
SELECT row_number FROM rowcall.waiting WHERE job_id = %(id)s AND row_number > %(after)s ORDER BY row_number LIMIT %(most)s

-- let_go --
-- Rows that need not wait any more.
DELETE FROM rowcall.waiting WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s)

-- not_waited_for --
-- Of a job that is cancelled, rows that waited for others have not had their turn.
WITH waited AS (DELETE FROM rowcall.waiting WHERE job_id = %(id)s RETURNING row_number)
UPDATE rowcall.outcome o SET status = 'skipped', issues = jsonb_build_array(jsonb_build_object(
    'code', 'NOT_APPLIED', 'message', 'It waited for other rows of this file when the job was cancelled.'))
WHERE o.job_id = %(id)s AND o.row_number = ANY (ARRAY(SELECT row_number FROM waited))
