-- Moves that somebody asks for, what became of jobs so far, and rows that are tried again.

ALTER TABLE rowcall.job
    DROP CONSTRAINT job_state_check,
    ADD CONSTRAINT job_state_check CHECK (state IN (
        'UPLOADED', 'COLUMN_MAPPING', 'VALIDATING', 'VALIDATED', 'INVALID', 'PROCESSING', 'PAUSED', 'CANCELLED',
        'COMPLETED', 'COMPLETED_WITH_ERRORS', 'FAILED')),
    -- what was asked for while somebody worked on it: whoever does sees to it
    ADD COLUMN wish         text CHECK (wish IN ('hold', 'pause', 'cancel')),
    ADD COLUMN paused_from  text,
    -- how long to work on it before it pauses by itself
    ADD COLUMN slice_ms     integer;

-- Every move that a job made.
CREATE TABLE rowcall.job_event (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id           uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    organisation_id  uuid NOT NULL,
    before           text,
    after            text NOT NULL,
    at               timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX job_event_job ON rowcall.job_event (job_id, id);

-- Rows that wait for another attempt.
CREATE TABLE rowcall.retry (
    job_id      uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    row_number  bigint NOT NULL,
    PRIMARY KEY (job_id, row_number)
);

-- What became of rows in earlier attempts.
CREATE TABLE rowcall.attempt (
    job_id      uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    row_number  bigint NOT NULL,
    attempt     smallint NOT NULL,
    status      rowcall.status NOT NULL,
    target_key  text[],
    issues      jsonb,
    at          timestamptz NOT NULL,
    PRIMARY KEY (job_id, row_number, attempt)
);

CREATE INDEX batch_flagged ON rowcall.batch (updated_at) WHERE failed > 0 OR state = 'pending';

-- A row with what became of it: its outcome, unless it is tried again; else what its job waits for.
CREATE OR REPLACE VIEW rowcall.row_status AS
SELECT r.job_id, r.number, r.line, r.cells,
       CASE WHEN o.status IS NULL AND j.state = 'CANCELLED' THEN 'cancelled'
            WHEN o.status IS NULL OR t.row_number IS NOT NULL THEN 'pending'
            ELSE o.status::text END AS status,
       o.attempt, o.target_key, o.issues, o.before, o.result, o.at
FROM rowcall.row r
JOIN rowcall.job j ON j.id = r.job_id
LEFT JOIN rowcall.outcome o ON o.job_id = r.job_id AND o.row_number = r.number
LEFT JOIN rowcall.retry t ON t.job_id = r.job_id AND t.row_number = r.number;

-- Whether some session has a job to itself.
CREATE FUNCTION rowcall.is_worked_on(job uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_locks l, pg_catalog.hashtextextended('rowcall job ' || job::text, 0) AS key
        WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
          AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
          AND (l.classid::bigint << 32 | l.objid::bigint) = key)
$$;
CREATE INDEX job_working ON rowcall.job (organisation_id, created_at)
    WHERE background AND state IN ('UPLOADED', 'COLUMN_MAPPING', 'VALIDATING', 'PROCESSING');
