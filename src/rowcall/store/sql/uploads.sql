-- add_upload --
-- A file is about to come in pieces, unless too many of the organisation's are on their way already.
INSERT INTO rowcall.upload (id, organisation_id, account, importer, config, file_name, idempotency_key, metadata, length, expires_at)
SELECT %(id)s, %(organisation)s, %(account)s, %(importer)s, %(config)s, %(file_name)s, %(idempotency_key)s, %(metadata)s, %(length)s,
       now() + %(seconds)s * interval '1 second'
WHERE (SELECT count(*) FROM rowcall.upload
       WHERE organisation_id = %(organisation)s AND job_id IS NULL AND expires_at > now()) < %(most)s
RETURNING id

-- get_upload --
-- An upload of an organisation; with whether its time is over.
SELECT id, account, importer, config, file_name, idempotency_key, metadata, length, received, sha256, job_id, error, expires_at,
       expires_at <= now() AS expired
FROM rowcall.upload WHERE id = %(id)s AND organisation_id = %(organisation)s

-- set_received --
-- So much of an upload is on disk.
UPDATE rowcall.upload SET received = %(received)s, sha256 = %(sha256)s, expires_at = now() + %(seconds)s * interval '1 second'
WHERE id = %(id)s AND organisation_id = %(organisation)s AND job_id IS NULL
RETURNING expires_at

-- set_upload_job --
-- The job that an upload has become, once.
UPDATE rowcall.upload SET job_id = %(job)s, error = NULL
WHERE id = %(id)s AND organisation_id = %(organisation)s AND job_id IS NULL

-- set_upload_error --
-- Why no job can be made of an upload.
UPDATE rowcall.upload SET error = %(error)s
WHERE id = %(id)s AND organisation_id = %(organisation)s AND job_id IS NULL

-- delete_upload --
-- Forget an upload.
DELETE FROM rowcall.upload WHERE id = %(id)s AND organisation_id = %(organisation)s

-- expired_uploads --
-- Some uploads whose time is over.
SELECT id FROM rowcall.upload WHERE expires_at <= now() ORDER BY expires_at LIMIT 1000

-- delete_expired --
-- Forget an upload if nobody went on with it.
DELETE FROM rowcall.upload WHERE id = %(id)s AND expires_at <= now()
