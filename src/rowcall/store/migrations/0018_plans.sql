-- What a preview says would happen: kept apart from what happened, known by a digest, and compared when it is committed.

-- the one moment that a preview and its commit are of
ALTER TABLE rowcall.job ADD as_of timestamptz;

CREATE TABLE rowcall.plan (
    job_id        uuid PRIMARY KEY REFERENCES rowcall.job ON DELETE CASCADE,
    digest        text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    as_of         timestamptz NOT NULL,
    counts        jsonb NOT NULL,
    fields        jsonb NOT NULL,
    problems      jsonb NOT NULL,
    drifted       bigint NOT NULL DEFAULT 0,
    submitted_at  timestamptz,
    begun         boolean NOT NULL DEFAULT false
);

CREATE TABLE rowcall.plan_piece (
    job_id     uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    first_row  bigint NOT NULL,
    last_row   bigint NOT NULL CHECK (last_row >= first_row),
    implied    rowcall.status,
    marks      bytea NOT NULL CHECK (length(marks) = 8 * (last_row - first_row + 1)),
    fields     jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (job_id, first_row)
);

CREATE FUNCTION rowcall.shows_plan(state text, paused_from text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN state IN ('VALIDATING', 'VALIDATED') OR (state = 'PAUSED' AND paused_from IN ('VALIDATING', 'VALIDATED'));

SELECT rowcall.keep_apart('plan'), rowcall.keep_apart('plan_piece');
