-- add_export --
-- A new export, unless one was made with this key: then there is none to return.
INSERT INTO rowcall.export_job (id, organisation_id, account, request_id, client_address, idempotency_key, fingerprint,
                                resource, job_id, format, request, file_name)
VALUES (%(id)s, %(organisation)s, %(account)s, %(request_id)s, %(client_address)s, %(idempotency_key)s, %(fingerprint)s,
        %(resource)s, %(job)s, %(format)s, %(request)s, %(file_name)s)
ON CONFLICT (organisation_id, idempotency_key) DO NOTHING

-- export_by_key --
-- The export that a request with this key made, and what was asked for.
SELECT id, fingerprint FROM rowcall.export_job WHERE organisation_id = %(organisation)s AND idempotency_key = %(key)s

-- get_export --
-- One export of an organisation.
SELECT id, organisation_id, account, format, request, file_name, state, claim, attempts, rows, total, bytes, location,
       created_at, started_at, completed_at, expires_at, last_error
FROM rowcall.export_job WHERE id = %(id)s AND organisation_id = %(organisation)s

-- page_of_exports --
-- The exports of an organisation behind one, the newest first.
SELECT id, organisation_id, account, format, request, file_name, state, claim, attempts, rows, total, bytes, location,
       created_at, started_at, completed_at, expires_at, last_error
FROM rowcall.export_job
WHERE organisation_id = %(organisation)s AND (%(state)s::text IS NULL OR state = %(state)s)
  AND (%(after)s::uuid IS NULL OR id < %(after)s)
ORDER BY id DESC LIMIT %(most)s

-- cancel_export --
-- Cancel an export, only if it is still in the state that was seen.
UPDATE rowcall.export_job SET state = 'CANCELLED', completed_at = clock_timestamp()
WHERE id = %(id)s AND organisation_id = %(organisation)s AND state = %(before)s

-- lock_export --
-- Have an export to oneself for as long as this session lasts.
SELECT pg_try_advisory_lock(hashtextextended('rowcall export ' || %(id)s::text, 0))

-- unlock_export --
-- Let others have it.
SELECT pg_advisory_unlock(hashtextextended('rowcall export ' || %(id)s::text, 0))

-- waiting_exports --
-- Exports that nobody works on: those of organisations with the fewest under way first, then the oldest.
SELECT e.id FROM rowcall.export_job e
WHERE e.state IN ('QUEUED', 'RUNNING')
  AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended('rowcall export ' || e.id::text, 0))
ORDER BY (SELECT count(*) FROM rowcall.export_job r WHERE r.organisation_id = e.organisation_id AND r.state = 'RUNNING'),
         e.created_at
LIMIT 20

-- unattended_exports --
-- Exports that nobody works on and nobody was told of.
SELECT e.id FROM rowcall.export_job e
WHERE e.state IN ('QUEUED', 'RUNNING')
  AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended('rowcall export ' || e.id::text, 0))
  AND NOT EXISTS (SELECT FROM rowcall_queue.procrastinate_jobs q
                  WHERE q.status = 'todo' AND q.args ->> 'job_id' = e.id::text)
ORDER BY e.created_at

-- begin_export --
-- Begin an export, anew if it was begun before; whoever had it has lost it by this.
UPDATE rowcall.export_job SET state = 'RUNNING', claim = %(claim)s, attempts = attempts + 1, rows = 0, bytes = 0, total = NULL,
    started_at = clock_timestamp()
WHERE id = %(id)s AND state IN ('QUEUED', 'RUNNING')
RETURNING id, organisation_id, account, format, request, file_name, state, claim, attempts, rows, total, bytes, location,
          created_at, started_at, completed_at, expires_at, last_error

-- note_export --
-- How far an export is, if it is still the same one.
UPDATE rowcall.export_job SET rows = %(rows)s, bytes = %(bytes)s, total = %(total)s
WHERE id = %(id)s AND state = 'RUNNING' AND claim = %(claim)s

-- complete_export --
-- The file is there, if it is still the same export.
UPDATE rowcall.export_job SET state = 'COMPLETED', rows = %(rows)s, total = %(rows)s, bytes = %(bytes)s,
    location = %(location)s, last_error = NULL, completed_at = clock_timestamp(),
    expires_at = clock_timestamp() + make_interval(days => %(days)s)
WHERE id = %(id)s AND state = 'RUNNING' AND claim = %(claim)s

-- fail_export --
-- It can't be done, if it is still the same export.
UPDATE rowcall.export_job SET state = 'FAILED', last_error = %(error)s, completed_at = clock_timestamp()
WHERE id = %(id)s AND state = 'RUNNING' AND claim = %(claim)s

-- note_export_error --
-- Keep what interrupted an export that will be begun anew.
UPDATE rowcall.export_job SET last_error = %(error)s WHERE id = %(id)s AND state = 'RUNNING' AND claim = %(claim)s

-- put_back_export --
-- Have another worker do it: this one stops.
UPDATE rowcall.export_job SET state = 'QUEUED', claim = NULL, attempts = attempts - 1, rows = 0, bytes = 0, total = NULL,
    started_at = NULL
WHERE id = %(id)s AND state = 'RUNNING' AND claim = %(claim)s

-- expire_exports --
-- Exports whose time is over.
UPDATE rowcall.export_job SET state = 'EXPIRED', location = NULL WHERE state = 'COMPLETED' AND expires_at < clock_timestamp()

-- export_files --
-- What files exports have or may be about to have.
SELECT id, location FROM rowcall.export_job WHERE id = ANY (%(ids)s) AND state IN ('QUEUED', 'RUNNING', 'COMPLETED')
