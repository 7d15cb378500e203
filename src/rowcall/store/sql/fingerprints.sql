-- keep_fingerprint --
-- What a sample of a job's rows told, in the place of what it told before.
INSERT INTO rowcall.fingerprint_check (job_id, verdict, note, sampled, matched, mismatched, warn, abort, findings)
VALUES (%(id)s, %(verdict)s, %(note)s, %(sampled)s, %(matched)s, %(mismatched)s, %(warn)s, %(abort)s, %(findings)s)
ON CONFLICT (job_id) DO UPDATE SET verdict = excluded.verdict, note = excluded.note, sampled = excluded.sampled,
    matched = excluded.matched, mismatched = excluded.mismatched, warn = excluded.warn, abort = excluded.abort,
    findings = excluded.findings, checked_at = clock_timestamp(), acknowledged_by = NULL, acknowledged_at = NULL

-- fingerprint_of --
-- What a sample of a job's rows told.
SELECT verdict, note, sampled, matched, mismatched, warn, abort, findings, checked_at, acknowledged_by, acknowledged_at
FROM rowcall.fingerprint_check WHERE job_id = %(id)s

-- forget_fingerprint --
-- The rows are read in another way now.
DELETE FROM rowcall.fingerprint_check WHERE job_id = %(id)s

-- acknowledge_fingerprint --
-- Somebody has seen what was found.
UPDATE rowcall.fingerprint_check SET acknowledged_by = %(who)s, acknowledged_at = clock_timestamp() WHERE job_id = %(id)s

-- lines_of --
-- Where in the file some rows begin.
SELECT number, line FROM rowcall.row WHERE job_id = %(id)s AND number = ANY (%(rows)s)
