-- Exports that are written in the background: of a resource, or of what became of a job's rows.
CREATE TABLE rowcall.export_job (
    id               uuid PRIMARY KEY,
    organisation_id  uuid NOT NULL DEFAULT '00000000-0000-7000-8000-000000000000' REFERENCES rowcall.organisation,
    account          text NOT NULL,
    request_id       text,
    client_address   text,
    idempotency_key  text,
    fingerprint      text,
    resource         text,
    job_id           uuid REFERENCES rowcall.job ON DELETE CASCADE,
    format           text NOT NULL CHECK (format IN ('csv', 'ndjson', 'json', 'xlsx', 'parquet')),
    request          jsonb NOT NULL,
    file_name        text NOT NULL,
    state            text NOT NULL DEFAULT 'QUEUED' CHECK (state IN (
        'QUEUED', 'RUNNING', 'COMPLETED', 'CANCELLED', 'FAILED', 'EXPIRED')),
    claim            uuid,
    attempts         integer NOT NULL DEFAULT 0,
    rows             bigint NOT NULL DEFAULT 0,
    total            bigint,
    bytes            bigint NOT NULL DEFAULT 0,
    location         text,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at       timestamptz,
    completed_at     timestamptz,
    expires_at       timestamptz,
    last_error       jsonb,
    CONSTRAINT export_job_source CHECK (num_nonnulls(resource, job_id) = 1),
    CONSTRAINT export_job_file CHECK ((state = 'COMPLETED') = (location IS NOT NULL))
);
CREATE UNIQUE INDEX export_job_idempotency_key ON rowcall.export_job (organisation_id, idempotency_key);
CREATE INDEX export_job_organisation ON rowcall.export_job (organisation_id, id DESC);
CREATE INDEX export_job_job ON rowcall.export_job (job_id);
CREATE INDEX export_job_unfinished ON rowcall.export_job (created_at) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX export_job_expiry ON rowcall.export_job (expires_at) WHERE state = 'COMPLETED';
