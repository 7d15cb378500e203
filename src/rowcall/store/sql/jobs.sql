-- add_file --
-- Remember a stored file, and lock what is remembered of it; where the same bytes are said to be.
SELECT rowcall.add_file(%(sha256)s, %(size)s, %(location)s)

-- set_location --
-- The same bytes are elsewhere now.
SELECT rowcall.set_location(%(sha256)s, %(location)s)

-- add_job --
-- A new job, for a file that is stored or to be fetched. A key that was used before breaks the unique index.
WITH added AS (
    INSERT INTO rowcall.job (id, number, organisation_id, importer, config, file_sha256, file_name, account, state, request_id,
        client_address, idempotency_key, fingerprint, traceparent, background, wish, url, url_with_secrets, scope_key, supersedes)
    VALUES (%(id)s, coalesce(%(number)s, rowcall.next_job_number()), %(organisation)s, %(importer)s, %(config)s, %(sha256)s, %(file_name)s, %(account)s,
        'UPLOADED', %(request_id)s, %(client_address)s, %(idempotency_key)s, %(fingerprint)s, %(traceparent)s, %(background)s,
        %(wish)s, %(url)s, %(url_with_secrets)s, %(scope)s, %(supersedes)s))
INSERT INTO rowcall.job_event (job_id, organisation_id, after) VALUES (%(id)s, %(organisation)s, 'UPLOADED')

-- get_job --
-- One job by id or number. A request goes on with it: what belongs to that job then needs no look at each row.
SELECT j.id, j.number, j.importer, j.config, j.file_sha256, j.file_name, f.size AS file_size, f.location AS file_location,
       j.organisation_id, j.account, j.state, j.row_count, j.percent_read, j.header_lines, j.blank_lines, j.other_lines,
       j.created_at, j.processing_started_at, j.completed_at, j.last_error,
       (SELECT sum(1000 * extract(epoch FROM clock_timestamp() - e.at)
                   * ((e.after IN ('VALIDATING', 'PROCESSING'))::int - (coalesce(e.before, '') IN ('VALIDATING', 'PROCESSING'))::int))::bigint
        FROM rowcall.job_event e WHERE e.job_id = j.id) AS worked_ms,
       j.background, j.wish, j.paused_from, j.slice_ms, j.request_id, j.traceparent, j.url, j.file_format,
       j.scope_key, j.supersedes, j.superseded_by, j.as_of,
       CASE WHEN %(organisation)s::uuid IS NOT NULL THEN set_config('rowcall.job', j.id::text, true) END AS noted
FROM rowcall.job j LEFT JOIN rowcall.file f ON f.sha256 = j.file_sha256
WHERE (j.id = %(id)s OR j.number = %(number)s) AND j.removing_at IS NULL AND (%(organisation)s::uuid IS NULL OR j.organisation_id = %(organisation)s)

-- find_interrupted --
-- Unfinished jobs of the same file, importer and configuration, the oldest first.
SELECT id::text FROM rowcall.job
WHERE file_sha256 = %(sha256)s AND importer = %(importer)s AND (config || coalesce(config -> 'began', '{}')) - 'began' = %(config)s::jsonb AND NOT background AND removing_at IS NULL
  AND state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING')
ORDER BY created_at, id

-- lock_job --
-- Have a job to oneself for as long as this session lasts.
SELECT pg_try_advisory_lock(hashtextextended('rowcall job ' || %(id)s::text, 0))

-- unlock_job --
-- Let others have it.
SELECT pg_advisory_unlock(hashtextextended('rowcall job ' || %(id)s::text, 0))

-- move_job --
-- Move a job on, only if it is still in the state that was seen.
WITH moved AS (
    UPDATE rowcall.job SET state = %(after)s,
        processing_started_at = CASE WHEN %(after)s IN ('PROCESSING', 'VALIDATING') THEN coalesce(processing_started_at, clock_timestamp()) ELSE processing_started_at END,
        as_of = CASE WHEN %(after)s = 'VALIDATING' AND state <> 'PAUSED' THEN clock_timestamp()
                     WHEN %(after)s = 'PROCESSING' THEN coalesce(as_of, clock_timestamp()) ELSE as_of END,
        completed_at = CASE WHEN %(ended)s THEN clock_timestamp() END,
        last_error = %(error)s,
        paused_from = CASE WHEN %(after)s = 'PAUSED' THEN state END,
        wish = CASE WHEN %(after)s = 'PAUSED' OR %(ended)s THEN NULL ELSE wish END,
        slice_ms = CASE WHEN %(after)s = 'PAUSED' OR %(ended)s THEN NULL ELSE slice_ms END,
        url_with_secrets = CASE WHEN NOT %(ended)s THEN url_with_secrets END
    WHERE id = %(id)s AND state = %(before)s AND removing_at IS NULL
    RETURNING id, organisation_id)
INSERT INTO rowcall.job_event (job_id, organisation_id, before, after)
SELECT id, organisation_id, %(before)s, %(after)s FROM moved

-- try_job --
-- Whether nobody works on a job; then nobody does before this transaction ends.
SELECT pg_try_advisory_xact_lock(hashtextextended('rowcall job ' || %(id)s::text, 0))

-- set_wish --
-- Ask something of whoever works on a job.
UPDATE rowcall.job SET wish = %(wish)s WHERE id = %(id)s

-- change_config --
-- Another configuration; the first is kept beside it.
UPDATE rowcall.job SET config = %(config)s::jsonb || jsonb_build_object('began', coalesce(config -> 'began', config))
WHERE id = %(id)s

-- seize_job --
-- Have others who would change a job wait until this transaction ends; not those who only add what hangs from it.
SELECT FROM rowcall.job WHERE id = %(id)s FOR NO KEY UPDATE

-- hold_job --
-- A job that goes on when somebody says so, unless something else was asked of it.
UPDATE rowcall.job SET wish = 'hold' WHERE id = %(id)s AND state = %(state)s AND wish IS NULL

-- set_slice --
-- Have a job pause by itself after so many milliseconds of work.
UPDATE rowcall.job SET slice_ms = %(slice)s WHERE id = %(id)s

-- slice_over --
-- The time for a job is over: it is to pause.
UPDATE rowcall.job SET wish = 'pause' WHERE id = %(id)s AND slice_ms IS NOT NULL AND wish IS NULL

-- wish_of --
-- What is asked of a job; whether it is over for whoever works on it.
SELECT wish, state = 'SUPERSEDED' FROM rowcall.job WHERE id = %(id)s

-- note_error --
-- Keep what stopped the work, for a person to read; the job can be resumed.
UPDATE rowcall.job SET last_error = %(error)s WHERE id = %(id)s

-- set_ingested --
-- The whole file is in `row`; how many rows it has and what stood beside them.
UPDATE rowcall.job SET row_count = %(rows)s, header_lines = %(header)s, blank_lines = %(blank)s, other_lines = %(other)s,
    file_format = %(format)s
WHERE id = %(id)s

-- new_number --
-- A number for a job, before there is the job.
SELECT rowcall.next_job_number()

-- supersede --
-- End the jobs that hold a scope, unless one has begun to write.
SELECT job_id, job_number, job_state, is_writing
FROM rowcall.supersede(%(organisation)s, %(importer)s, %(scope)s, %(newer)s)

-- active_in_scope --
-- The job that holds a scope.
SELECT job_id, job_number, job_state, is_writing FROM rowcall.active_in_scope(%(organisation)s, %(importer)s, %(scope)s)

-- hold_state --
-- See that a job stays in a state until this transaction ends.
SELECT true FROM rowcall.job WHERE id = %(id)s AND state = %(state)s FOR SHARE

-- job_counts --
-- What happened to the rows so far: the sum over the batches that are done.
SELECT coalesce(sum(created), 0)::bigint AS created, coalesce(sum(updated), 0)::bigint AS updated,
       coalesce(sum(unchanged), 0)::bigint AS unchanged, coalesce(sum(skipped), 0)::bigint AS skipped,
       coalesce(sum(failed), 0)::bigint AS failed, coalesce(sum(reverted), 0)::bigint AS reverted,
       coalesce(max(last_row), 0)::bigint AS ingested
FROM rowcall.batch WHERE job_id = %(id)s

-- job_by_key --
-- The job that a request with this key made, and what was asked for.
SELECT id, fingerprint FROM rowcall.job WHERE organisation_id = %(organisation)s AND idempotency_key = %(key)s

-- jobs_by_id --
-- Some jobs.
SELECT j.id, j.number, j.importer, j.config, j.file_sha256, j.file_name, f.size AS file_size, f.location AS file_location,
       j.organisation_id, j.account, j.state, j.row_count, j.percent_read, j.header_lines, j.blank_lines, j.other_lines,
       j.created_at, j.processing_started_at, j.completed_at, j.last_error,
       (SELECT sum(1000 * extract(epoch FROM clock_timestamp() - e.at)
                   * ((e.after IN ('VALIDATING', 'PROCESSING'))::int - (coalesce(e.before, '') IN ('VALIDATING', 'PROCESSING'))::int))::bigint
        FROM rowcall.job_event e WHERE e.job_id = j.id) AS worked_ms,
       j.background, j.wish, j.paused_from, j.slice_ms, j.request_id, j.traceparent, j.url, j.file_format,
       j.scope_key, j.supersedes, j.superseded_by, j.as_of
FROM rowcall.job j LEFT JOIN rowcall.file f ON f.sha256 = j.file_sha256
WHERE j.id = ANY (%(ids)s) AND j.removing_at IS NULL

-- page_of_jobs --
-- Jobs behind one, the newest first.
SELECT j.id, j.number, j.importer, j.config, j.file_sha256, j.file_name, f.size AS file_size, f.location AS file_location,
       j.organisation_id, j.account, j.state, j.row_count, j.percent_read, j.header_lines, j.blank_lines, j.other_lines,
       j.created_at, j.processing_started_at, j.completed_at, j.last_error,
       (SELECT sum(1000 * extract(epoch FROM clock_timestamp() - e.at)
                   * ((e.after IN ('VALIDATING', 'PROCESSING'))::int - (coalesce(e.before, '') IN ('VALIDATING', 'PROCESSING'))::int))::bigint
        FROM rowcall.job_event e WHERE e.job_id = j.id) AS worked_ms,
       j.background, j.wish, j.paused_from, j.slice_ms, j.request_id, j.traceparent, j.url, j.file_format,
       j.scope_key, j.supersedes, j.superseded_by, j.as_of
FROM rowcall.job j LEFT JOIN rowcall.file f ON f.sha256 = j.file_sha256
WHERE j.removing_at IS NULL AND (%(organisation)s::uuid IS NULL OR j.organisation_id = %(organisation)s)
  AND (%(state)s::text IS NULL OR j.state = %(state)s) AND (%(importer)s::text IS NULL OR j.importer = %(importer)s)
  AND (%(number)s::text IS NULL OR j.number = %(number)s) AND (%(scope)s::text IS NULL OR j.scope_key = %(scope)s)
  AND (%(last)s::uuid IS NULL OR (j.created_at, j.id) < (%(at)s::timestamptz, %(last)s::uuid))
ORDER BY j.created_at DESC, j.id DESC LIMIT %(most)s

-- count_jobs --
-- How many jobs a list would have in all.
SELECT count(*) FROM rowcall.job j
WHERE j.removing_at IS NULL AND (%(organisation)s::uuid IS NULL OR j.organisation_id = %(organisation)s)
  AND (%(state)s::text IS NULL OR j.state = %(state)s) AND (%(importer)s::text IS NULL OR j.importer = %(importer)s)
  AND (%(number)s::text IS NULL OR j.number = %(number)s) AND (%(scope)s::text IS NULL OR j.scope_key = %(scope)s)

-- is_worked_on --
-- Whether somebody works on a job.
SELECT rowcall.is_worked_on(%(id)s)

-- unattended_jobs --
-- Jobs for workers that nobody works on and nobody was told of; of each organisation as many as it has places left.
SELECT id FROM (
    SELECT j.id, j.created_at, attended, row_number() OVER (
               PARTITION BY j.organisation_id ORDER BY attended DESC, j.created_at, j.id) AS place
    FROM rowcall.job j, rowcall.is_worked_on(j.id) AS attended
    WHERE j.background AND j.removing_at IS NULL AND j.state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING')
      AND j.wish IS DISTINCT FROM 'hold') each
WHERE NOT attended AND place <= %(most)s
  AND NOT EXISTS (SELECT FROM rowcall_queue.procrastinate_jobs q
                  WHERE q.status = 'todo' AND q.args ->> 'job_id' = each.id::text)
ORDER BY created_at

-- stale_nudges --
-- Forget nudges in the hands of workers that are gone; what they were about is found by itself.
DELETE FROM rowcall_queue.procrastinate_jobs q
WHERE q.status = 'doing' AND NOT EXISTS (
    SELECT FROM rowcall_queue.procrastinate_workers w
    WHERE w.id = q.worker_id AND w.last_heartbeat > now() - interval '1 minute')

-- next_waiting --
-- The oldest job of an organisation that waits for a worker.
SELECT j.id FROM rowcall.job j
WHERE j.organisation_id = %(organisation)s AND j.background AND j.removing_at IS NULL AND j.wish IS DISTINCT FROM 'hold'
  AND j.state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING') AND NOT rowcall.is_worked_on(j.id)
ORDER BY j.created_at, j.id LIMIT 1

-- waiting_before --
-- How many jobs of the same organisation wait for workers, or are worked on; a thousand is as good as more.
SELECT count(*) FROM (
    SELECT FROM rowcall.job j
    WHERE j.organisation_id = %(organisation)s AND j.background AND j.state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING')
      AND j.id <> %(id)s
    LIMIT 1000) each

-- take_place --
-- One of the places that an organisation's jobs have, for as long as this session lasts.
SELECT pg_try_advisory_lock(hashtextextended('rowcall place ' || %(organisation)s::text || ' ' || %(place)s::text, 0))

-- others_wait --
-- Whether another organisation has a job that waits for a worker, and has not all of its places taken.
SELECT EXISTS (
    SELECT FROM (
        SELECT count(*) FILTER (WHERE rowcall.is_worked_on(j.id)) AS attended, count(*) AS unfinished
        FROM rowcall.job j
        WHERE j.organisation_id <> %(organisation)s AND j.background AND j.removing_at IS NULL AND j.wish IS DISTINCT FROM 'hold'
          AND j.state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING')
        GROUP BY j.organisation_id) each
    WHERE attended < least(unfinished, %(most)s))

-- silent_processes --
-- Worker processes with sessions that this role may end, but none that tells that they are alive.
SELECT process FROM (
    SELECT split_part(application_name, ' ', 3) AS process, split_part(application_name, ' ', 2) AS role
    FROM pg_stat_activity WHERE datname = current_database() AND pg_has_role(usesysid, 'MEMBER')
      AND application_name ~ '^rowcall \w+ [0-9a-f]{8}$') sessions
GROUP BY process HAVING bool_and(role <> 'pulse')

-- end_processes --
-- End all sessions of some worker processes.
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pg_has_role(usesysid, 'MEMBER')
  AND application_name ~ '^rowcall \w+ [0-9a-f]{8}$' AND split_part(application_name, ' ', 3) = ANY (%(processes)s)

-- note_percent_read --
-- How much of the file is brought in.
UPDATE rowcall.job SET percent_read = %(percent)s WHERE id = %(id)s
