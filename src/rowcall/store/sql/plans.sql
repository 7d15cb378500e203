-- add_piece --
-- What is planned for the rows of a batch.
INSERT INTO rowcall.plan_piece (job_id, first_row, last_row, implied, marks, fields)
VALUES (%(id)s, %(first)s, %(last)s, %(implied)s, %(marks)s, (
    SELECT coalesce(jsonb_object_agg(changed.name, changed.rows), '{}') FROM (
        SELECT name, count(*) AS rows FROM rowcall.outcome o, jsonb_object_keys(o.result -> 'changes') AS name
        WHERE o.job_id = %(id)s AND o.row_number BETWEEN %(first)s AND %(last)s AND o.attempt = 0 AND o.status = 'updated'
        GROUP BY name) changed))

-- pieces_with --
-- The pieces of a plan that have some of these rows.
SELECT DISTINCT ON (p.first_row) p.first_row, p.last_row, p.marks
FROM unnest(%(numbers)s::bigint[]) AS wanted (number)
JOIN rowcall.plan_piece p ON p.job_id = %(id)s AND wanted.number BETWEEN p.first_row AND p.last_row ORDER BY p.first_row

-- replace_piece --
-- Other marks for the rows of a batch, and what it changes then.
UPDATE rowcall.plan_piece SET marks = %(marks)s, fields = (
    SELECT coalesce(jsonb_object_agg(changed.name, changed.rows), '{}') FROM (
        SELECT name, count(*) AS rows FROM rowcall.outcome o, jsonb_object_keys(o.result -> 'changes') AS name
        WHERE o.job_id = %(id)s AND o.row_number BETWEEN %(first)s AND %(last)s AND o.attempt = 0 AND o.status = 'updated'
        GROUP BY name) changed)
WHERE job_id = %(id)s AND first_row = %(first)s

-- recount_planned --
-- What is planned for a batch, counted.
UPDATE rowcall.batch SET created = %(created)s, updated = %(updated)s, unchanged = %(unchanged)s, skipped = %(skipped)s,
    failed = %(failed)s, updated_at = clock_timestamp()
WHERE job_id = %(id)s AND first_row = %(first)s

-- pieces --
-- The marks of a plan, in the file's order.
SELECT first_row, marks FROM rowcall.plan_piece WHERE job_id = %(id)s ORDER BY first_row

-- pieces_between --
-- The marks of some rows: those pieces of a plan that have any of them.
SELECT first_row, marks FROM rowcall.plan_piece
WHERE job_id = %(id)s AND last_row >= %(first)s AND first_row <= %(last)s ORDER BY first_row

-- changed_fields --
-- In how many rows a plan changes each column.
SELECT name, sum(rows::bigint)::bigint FROM rowcall.plan_piece, jsonb_each_text(fields) AS each (name, rows)
WHERE job_id = %(id)s GROUP BY name ORDER BY 2 DESC, 1

-- set_plan --
-- The plan of a job is complete.
INSERT INTO rowcall.plan (job_id, digest, as_of, counts, fields, problems)
SELECT id, %(digest)s, coalesce(as_of, clock_timestamp()), %(counts)s, %(fields)s, %(problems)s
FROM rowcall.job WHERE id = %(id)s
ON CONFLICT (job_id) DO UPDATE SET digest = excluded.digest, as_of = excluded.as_of, counts = excluded.counts,
    fields = excluded.fields, problems = excluded.problems, submitted_at = NULL, begun = false

-- plan_of --
-- What a job's preview came to.
SELECT job_id, digest, as_of, counts, fields, problems, drifted, submitted_at FROM rowcall.plan WHERE job_id = %(id)s

-- submit_plan --
-- Somebody has said yes to a plan: its batches wait to be committed, what is planned stays to be compared with.
WITH submitted AS (UPDATE rowcall.plan SET submitted_at = clock_timestamp() WHERE job_id = %(id)s)
UPDATE rowcall.batch SET state = 'pending', created = 0, updated = 0, unchanged = 0, skipped = 0, failed = 0
WHERE job_id = %(id)s

-- begin_plan --
-- Begin to commit a plan that was submitted, once.
UPDATE rowcall.plan SET begun = true WHERE job_id = %(id)s AND submitted_at IS NOT NULL AND NOT begun

-- forget_plan --
-- Take back what a preview planned, so that rows can be planned anew or committed without.
WITH outcomes AS (DELETE FROM rowcall.outcome WHERE job_id = %(id)s AND attempt = 0),
     pieces AS (DELETE FROM rowcall.plan_piece WHERE job_id = %(id)s),
     plan AS (DELETE FROM rowcall.plan WHERE job_id = %(id)s)
UPDATE rowcall.batch SET state = 'pending', created = 0, updated = 0, unchanged = 0, skipped = 0, failed = 0
WHERE job_id = %(id)s

-- forget_pieces --
-- What was planned so far was planned batch by batch, and has to be planned together.
WITH outcomes AS (DELETE FROM rowcall.outcome WHERE job_id = %(id)s AND attempt = 0),
     pieces AS (DELETE FROM rowcall.plan_piece WHERE job_id = %(id)s)
UPDATE rowcall.batch SET state = 'pending', created = 0, updated = 0, unchanged = 0, skipped = 0, failed = 0
WHERE job_id = %(id)s

-- plan_done --
-- What was planned for some rows is no longer needed: it is done.
DELETE FROM rowcall.outcome WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s AND attempt = 0

-- planned_before --
-- The rows of the target that some rows were to change, as they were when that was planned.
SELECT row_number, before FROM rowcall.outcome
WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s) AND attempt = 0 AND before IS NOT NULL

-- say_first --
-- Put an issue before those that some rows have.
UPDATE rowcall.outcome SET issues = %(issue)s::jsonb || issues
WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s) AND attempt > 0

-- plan_again --
-- A plan that was submitted doesn't hold any more: forget all of it but that it was, and how many rows it was about.
WITH outcomes AS (DELETE FROM rowcall.outcome WHERE job_id = %(id)s AND attempt = 0),
     pieces AS (DELETE FROM rowcall.plan_piece WHERE job_id = %(id)s),
     plan AS (UPDATE rowcall.plan SET submitted_at = NULL, begun = false, drifted = %(drifted)s WHERE job_id = %(id)s)
UPDATE rowcall.batch SET state = 'pending', created = 0, updated = 0, unchanged = 0, skipped = 0, failed = 0
WHERE job_id = %(id)s

-- count_drifted --
-- How many rows of a job were not planned so.
SELECT count(*) FROM rowcall.outcome o
WHERE o.job_id = %(id)s AND o.status = 'failed' AND o.attempt > 0 AND o.issues @> '[{"code": "DRIFTED"}]'

-- said_by_people --
-- What people said of values and of cells, as a hash each; null: nothing. Sums, since all of it together may be more than
-- PostgreSQL can have in one text.
SELECT (SELECT md5(concat(count(*), ' ', sum(hashtextextended(said, 0)::numeric), ' ', sum(hashtextextended(said, 1)::numeric)))
        FROM rowcall.value_mapping, concat_ws(E'\x1f', field, scope, value, action, target_key) AS said
        WHERE job_id = %(id)s AND action IS NOT NULL HAVING count(*) > 0),
       (SELECT md5(concat(count(*), ' ', sum(hashtextextended(said, 0)::numeric), ' ', sum(hashtextextended(said, 1)::numeric)))
        FROM rowcall.row_edit, concat(row_number, ' ', cells::text) AS said
        WHERE job_id = %(id)s AND cells IS NOT NULL HAVING count(*) > 0)
