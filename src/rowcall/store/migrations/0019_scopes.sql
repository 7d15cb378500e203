-- One active job for each scope, what superseded others, and whether a file is about the same things as the target.

ALTER TABLE rowcall.job
    ADD COLUMN scope_key text,
    ADD COLUMN supersedes jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN superseded_by jsonb;
CREATE UNIQUE INDEX job_scope ON rowcall.job (organisation_id, importer, scope_key)
    WHERE scope_key IS NOT NULL AND removing_at IS NULL AND state NOT IN (
        'INVALID', 'CANCELLED', 'SUPERSEDED', 'COMPLETED', 'COMPLETED_WITH_ERRORS', 'REVERTED', 'FAILED');

-- The jobs that hold a scope, whoever brought them; whether one has begun to write. Requests ask about their own organisation.
CREATE FUNCTION rowcall.active_in_scope(of_organisation uuid, of_importer text, of_scope text)
RETURNS TABLE (job_id uuid, job_number text, job_state text, is_writing boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT j.id, j.number, j.state, j.state IN ('PROCESSING', 'REVERTING') OR EXISTS (
        SELECT FROM rowcall.job_event e WHERE e.job_id = j.id AND e.after = 'PROCESSING')
    FROM rowcall.job j
    WHERE j.organisation_id = of_organisation AND j.importer = of_importer AND j.scope_key = of_scope
      AND j.removing_at IS NULL AND j.state NOT IN (
          'INVALID', 'CANCELLED', 'SUPERSEDED', 'COMPLETED', 'COMPLETED_WITH_ERRORS', 'REVERTED', 'FAILED')
      AND coalesce(nullif(current_setting('rowcall.organisation', true), '')::uuid, of_organisation) = of_organisation;
END;

-- Make room for a newer job: those that hold its scope and have written nothing are over, with their plans. Nothing
-- happens if one has begun to write: then that one is returned.
CREATE FUNCTION rowcall.supersede(of_organisation uuid, of_importer text, of_scope text, newer jsonb)
RETURNS TABLE (job_id uuid, job_number text, job_state text, is_writing boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path TO pg_catalog, pg_temp AS $$
DECLARE older record;
BEGIN
    -- uploads of a scope come one after the other; each statement then sees what the earlier ones left
    PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws(' ', 'rowcall scope', of_organisation, of_importer, of_scope), 0));
    PERFORM FROM rowcall.job j WHERE j.id IN (
        SELECT a.job_id FROM rowcall.active_in_scope(of_organisation, of_importer, of_scope) a) FOR NO KEY UPDATE;
    RETURN QUERY SELECT a.* FROM rowcall.active_in_scope(of_organisation, of_importer, of_scope) a WHERE a.is_writing;
    IF FOUND THEN
        RETURN;
    END IF;
    FOR older IN SELECT a.* FROM rowcall.active_in_scope(of_organisation, of_importer, of_scope) a LOOP
        UPDATE rowcall.job j SET state = 'SUPERSEDED', superseded_by = newer, completed_at = clock_timestamp(),
            wish = NULL, paused_from = NULL, slice_ms = NULL, url_with_secrets = NULL
        WHERE j.id = older.job_id;
        INSERT INTO rowcall.job_event (job_id, organisation_id, before, after)
        VALUES (older.job_id, of_organisation, older.job_state, 'SUPERSEDED');
        -- who keeps a plan holds the job's row meanwhile: all that is kept is seen here
        DELETE FROM rowcall.outcome o WHERE o.job_id = older.job_id;
        DELETE FROM rowcall.plan_piece p WHERE p.job_id = older.job_id;
        DELETE FROM rowcall.plan p WHERE p.job_id = older.job_id;
        UPDATE rowcall.batch b SET state = 'pending', created = 0, updated = 0, unchanged = 0, skipped = 0, failed = 0
        WHERE b.job_id = older.job_id AND b.state = 'done';
        RETURN QUERY SELECT older.job_id, older.job_number, older.job_state, false;
    END LOOP;
END
$$;

-- Whether a job's file is about the same things as the target: what a sample of its rows told.
CREATE TABLE rowcall.fingerprint_check (
    job_id           uuid PRIMARY KEY REFERENCES rowcall.job ON DELETE CASCADE,
    verdict          text NOT NULL CHECK (verdict IN ('pass', 'warn', 'abort')),
    note             text NOT NULL,
    sampled          integer NOT NULL,
    matched          integer NOT NULL,
    mismatched       integer NOT NULL,
    warn             double precision NOT NULL,
    abort            double precision NOT NULL,
    -- [{row, line, key, field, found, expected}, ...]
    findings         jsonb NOT NULL,
    checked_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    acknowledged_by  text,
    acknowledged_at  timestamptz
);
SELECT rowcall.keep_apart('fingerprint_check', 'SELECT, UPDATE');
