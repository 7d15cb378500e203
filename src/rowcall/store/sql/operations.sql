-- jobs_by_state --
-- How many jobs are in each state.
SELECT state, count(*) FROM rowcall.job WHERE removing_at IS NULL GROUP BY state

-- exports_by_state --
-- How many exports in the background are in each state.
SELECT state, count(*) FROM rowcall.export_job GROUP BY state

-- rows_pending --
-- How many rows wait in batches of jobs that go on.
SELECT coalesce(sum(b.last_row - b.first_row + 1), 0)::bigint
FROM rowcall.batch b JOIN rowcall.job j ON j.id = b.job_id
WHERE b.state = 'pending' AND NOT j.state = ANY (%(ended)s) AND j.removing_at IS NULL

-- oldest_waiting --
-- Seconds that the oldest file waits to be begun by a worker.
SELECT coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8
FROM rowcall.job WHERE background AND state = 'UPLOADED' AND removing_at IS NULL AND wish IS DISTINCT FROM 'hold'

-- queue_depth --
-- Nudges that wait or are being worked on.
SELECT status::text, count(*) FROM rowcall_queue.procrastinate_jobs
WHERE task_name = 'advance' AND status IN ('todo', 'doing') GROUP BY status

-- queue_exists --
-- Whether there is a queue: it is made when the service first starts.
SELECT to_regclass('rowcall_queue.procrastinate_workers') IS NOT NULL

-- workers_seen --
-- Worker processes that gave a sign of life within a minute, and seconds since the latest sign of any.
SELECT count(*) FILTER (WHERE last_heartbeat > now() - interval '1 minute'),
       extract(epoch FROM now() - max(last_heartbeat))::float8
FROM rowcall_queue.procrastinate_workers

-- count_not_found --
-- Rows of a job that failed because what they name isn't there.
SELECT count(*) FROM rowcall.outcome o
WHERE o.job_id = %(id)s AND o.status = 'failed' AND o.issues @> '[{"code": "NOT_FOUND"}]'

-- jobs_waiting --
-- Jobs that only a worker takes on.
SELECT count(*) FROM rowcall.job
WHERE background AND removing_at IS NULL AND wish IS DISTINCT FROM 'hold'
  AND state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING')
