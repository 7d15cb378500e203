-- jobs_due --
-- Jobs that are due to go, behind one, the oldest first: those whose removal has begun, those that ended long ago, those
-- abandoned before they wrote anything.
WITH own AS (SELECT unnest(%(importers)s::text[]) AS importer, unnest(%(days)s::int[]) AS days), due AS (
    SELECT j.id, j.number, j.importer, j.state, j.row_count, j.file_sha256, j.removing_at,
           j.state = ANY (%(ended)s) AS ended,
           now() - CASE WHEN j.state = ANY (%(ended)s) THEN coalesce(j.completed_at, j.created_at)
               ELSE greatest(j.created_at, j.processing_started_at,
                             (SELECT max(b.updated_at) FROM rowcall.batch b WHERE b.job_id = j.id),
                             (SELECT max(e.at) FROM rowcall.job_event e WHERE e.job_id = j.id)) END AS idle,
           make_interval(days => CASE WHEN j.state = ANY (%(ended)s) THEN coalesce(o.days, %(ended_days)s)
               WHEN j.state <> ALL (%(never)s) AND %(abandoned_days)s::int IS NOT NULL
                   THEN greatest(%(abandoned_days)s, o.days) END) AS most
    FROM rowcall.job j LEFT JOIN own o ON o.importer = j.importer
    WHERE j.id > %(after)s AND (%(only)s::uuid IS NULL OR j.id = %(only)s))
SELECT due.id, due.number, due.importer, due.state, coalesce(due.row_count, 0) AS rows, coalesce(f.size, 0) AS bytes,
       CASE WHEN due.removing_at IS NOT NULL THEN 'begun' WHEN due.ended THEN 'ended' ELSE 'abandoned' END AS reason
FROM due LEFT JOIN rowcall.file f ON f.sha256 = due.file_sha256
WHERE due.removing_at IS NOT NULL OR due.idle > due.most AND (due.ended OR NOT EXISTS (
    SELECT FROM rowcall.outcome o WHERE o.job_id = due.id AND o.attempt > 0 AND o.status IN ('created', 'updated')))
ORDER BY due.id LIMIT %(most)s

-- begin_removal --
-- Take a job out of everybody's sight, unless it has moved since. Its idempotency key is free again.
UPDATE rowcall.job SET removing_at = coalesce(removing_at, clock_timestamp()), idempotency_key = NULL
WHERE id = %(id)s AND state = %(state)s

-- last_row --
-- The last row that a job may have.
SELECT coalesce(max(last_row), 0) FROM rowcall.batch WHERE job_id = %(id)s

-- remove_slice --
-- Some of a job's rows with what became of them. Row keys stay: they hold for ever.
WITH outcomes AS (DELETE FROM rowcall.outcome WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s),
     attempts AS (DELETE FROM rowcall.attempt WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s),
     retries AS (DELETE FROM rowcall.retry WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s),
     reversals AS (DELETE FROM rowcall.reversal WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s),
     duplicates AS (DELETE FROM rowcall.duplicate WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s),
     edits AS (DELETE FROM rowcall.row_edit WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s),
     cell_edits AS (DELETE FROM rowcall.cell_edit WHERE job_id = %(id)s AND row_number BETWEEN %(first)s AND %(last)s)
DELETE FROM rowcall.row WHERE job_id = %(id)s AND number BETWEEN %(first)s AND %(last)s

-- remove_job --
-- A job whose rows are gone, with its batches and mappings.
DELETE FROM rowcall.job WHERE id = %(id)s AND removing_at IS NOT NULL RETURNING file_sha256

-- remove_file --
-- What is known of a file. Refused by its foreign keys while a job has it.
DELETE FROM rowcall.file WHERE sha256 = %(sha256)s RETURNING location, size

-- lock_file --
-- Lock what is known of a content, also if it is nothing so far; where it is said to be.
INSERT INTO rowcall.file (sha256, size, location) VALUES (%(sha256)s, %(size)s, %(location)s)
ON CONFLICT (sha256) DO UPDATE SET size = file.size RETURNING location

-- unknown_files --
-- Which of some locations no job has. Before there were other stores, files were noted by their whole paths.
SELECT found FROM unnest(%(found)s::text[]) AS found
WHERE NOT EXISTS (SELECT FROM rowcall.file f WHERE f.location = found)
  AND NOT EXISTS (SELECT FROM rowcall.file f WHERE f.sha256 = right(found, 64) AND starts_with(f.location, '/'))

-- lock_retention --
-- One process at a time removes jobs.
SELECT pg_try_advisory_lock(hashtextextended('rowcall retention', 0))
