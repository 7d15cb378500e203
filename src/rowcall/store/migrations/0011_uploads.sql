-- Files that come piece by piece, over as many connections as it takes.

CREATE TABLE rowcall.upload (
    id               uuid PRIMARY KEY,
    organisation_id  uuid NOT NULL REFERENCES rowcall.organisation,
    account          text NOT NULL,
    importer         text NOT NULL,
    config           text NOT NULL,
    file_name        text NOT NULL,
    idempotency_key  text,
    -- what the sender said of it, to be told again
    metadata         text NOT NULL,
    length           bigint NOT NULL CHECK (length >= 0),
    -- how much of it is on disk
    received         bigint NOT NULL DEFAULT 0,
    sha256           text CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    job_id           uuid REFERENCES rowcall.job ON DELETE CASCADE,
    -- why no job could be made of it
    error            jsonb,
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz NOT NULL,
    CHECK (received BETWEEN 0 AND length),
    CHECK (job_id IS NULL OR (received = length AND sha256 IS NOT NULL))
);
CREATE INDEX upload_expires_at ON rowcall.upload (expires_at);
CREATE INDEX upload_job ON rowcall.upload (job_id);
CREATE INDEX upload_unfinished ON rowcall.upload (organisation_id) WHERE job_id IS NULL;
SELECT rowcall.keep_apart('upload');

-- A store that can't name a file by its content may have the same bytes twice: which are kept is decided under this lock.
DROP FUNCTION rowcall.add_file(text, bigint, text);
CREATE FUNCTION rowcall.add_file(sha256 text, size bigint, location text) RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path TO pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO rowcall.file (sha256, size, location) VALUES (add_file.sha256, add_file.size, add_file.location)
    ON CONFLICT (sha256) DO UPDATE SET size = excluded.size
    RETURNING file.location;
END;
CREATE FUNCTION rowcall.set_location(sha256 text, location text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path TO pg_catalog, pg_temp
BEGIN ATOMIC
    UPDATE rowcall.file SET location = set_location.location WHERE file.sha256 = set_location.sha256;
END;
