-- last_batch_before_a_gap --
-- Where ingest stands: the last batch up to which all are in, with its last row.
SELECT number, last_row FROM (
    SELECT number, last_row, sum(gap) OVER (ORDER BY number) AS gaps FROM (
        SELECT number, last_row, (first_row - 1 <> lag(last_row, 1, 0::bigint) OVER (ORDER BY number))::int AS gap
        FROM rowcall.batch WHERE job_id = %(id)s) each) so_far
WHERE gaps = 0 ORDER BY number DESC LIMIT 1

-- drop_batches_behind --
-- Take out batches, with their rows, that stand behind the point from which reading goes on.
WITH batches AS (DELETE FROM rowcall.batch WHERE job_id = %(id)s AND number > %(number)s)
DELETE FROM rowcall.row WHERE job_id = %(id)s AND number > %(row)s

-- add_batch --
-- A batch whose rows come in the same transaction.
INSERT INTO rowcall.batch (job_id, number, first_row, last_row) VALUES (%(id)s, %(number)s, %(first)s, %(last)s)

-- claim_batch --
-- The next batch that nobody works on, if the job is still in the state that was seen; the claim is this transaction.
SELECT number, first_row, last_row FROM rowcall.batch
WHERE job_id = %(id)s AND state = 'pending'
  AND EXISTS (SELECT FROM rowcall.job WHERE id = %(id)s AND state = %(state)s)
ORDER BY number FOR UPDATE SKIP LOCKED LIMIT 1

-- claim_this_batch --
-- One batch again, unless somebody else did it or does it now.
SELECT number, first_row, last_row FROM rowcall.batch
WHERE job_id = %(id)s AND number = %(number)s AND state = 'pending'
  AND EXISTS (SELECT FROM rowcall.job WHERE id = %(id)s AND state = %(state)s)
FOR UPDATE SKIP LOCKED

-- lease_batch --
-- A waiting batch for work outside of any transaction; a lease that ran out is free.
UPDATE rowcall.batch SET claimed_by = %(owner)s, lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE job_id = %(id)s AND number = (
    SELECT number FROM rowcall.batch
    WHERE job_id = %(id)s AND state = 'pending' AND (lease_until IS NULL OR lease_until < clock_timestamp())
      AND EXISTS (SELECT FROM rowcall.job WHERE id = %(id)s AND state = %(state)s)
    ORDER BY number FOR UPDATE SKIP LOCKED LIMIT 1)
RETURNING number, first_row, last_row

-- renew_lease --
-- Extend a lease that is still held; locks the batch until the transaction ends.
UPDATE rowcall.batch SET lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE job_id = %(id)s AND number = %(number)s AND state = 'pending' AND claimed_by = %(owner)s

-- all_batches --
-- Every batch of a job.
SELECT number, first_row, last_row FROM rowcall.batch WHERE job_id = %(id)s ORDER BY first_row

-- pending_batches --
-- How many batches still wait.
SELECT count(*) FROM rowcall.batch WHERE job_id = %(id)s AND state = 'pending'

-- wait_for_batches --
-- Wait for batches whose transaction is under way: it may outlive the session that has the job.
SELECT FROM rowcall.batch WHERE job_id = %(id)s AND state = 'pending' ORDER BY number FOR UPDATE

-- finish_batch --
-- A batch is done, with its counts.
UPDATE rowcall.batch SET state = 'done', created = %(created)s, updated = %(updated)s, unchanged = %(unchanged)s,
    skipped = %(skipped)s, failed = %(failed)s, claimed_by = NULL, lease_until = NULL, updated_at = clock_timestamp(),
    stamp = (SELECT o.xmin FROM rowcall.outcome o WHERE o.job_id = %(id)s AND o.row_number = batch.first_row
             ORDER BY o.attempt DESC LIMIT 1)
WHERE job_id = %(id)s AND number = %(number)s

-- lock_batch_numbers --
-- Keep others from numbering batches of a job until this transaction ends.
SELECT FROM rowcall.job WHERE id = %(id)s FOR NO KEY UPDATE

-- split_batch --
-- Make two batches of one, unless somebody else has: the second half goes to the end of the queue.
WITH half AS (
    UPDATE rowcall.batch SET last_row = %(middle)s
    WHERE job_id = %(id)s AND number = %(number)s AND state = 'pending' AND last_row = %(last)s
    RETURNING job_id)
INSERT INTO rowcall.batch (job_id, number, first_row, last_row)
SELECT job_id, (SELECT max(number) + 1 FROM rowcall.batch WHERE job_id = %(id)s), %(middle)s + 1, %(last)s FROM half

-- batch_counts --
-- The outcomes of a batch, counted.
SELECT status::text, count(*)::int FROM rowcall.outcome
WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s AND attempt > 0 GROUP BY status

-- batch_duplicates --
-- Rows of a batch that lost against another row of the file.
SELECT row_number, winner, fields, refused FROM rowcall.duplicate
WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s AND winner <> row_number ORDER BY row_number
