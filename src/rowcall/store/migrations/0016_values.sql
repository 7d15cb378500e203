-- Values of a job's file that a person is asked about, and what was decided of values, remembered for the organisation.

CREATE FUNCTION rowcall.value_digest(field text, scope text, value text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(convert_to(field || chr(31) || length(scope) || chr(31) || scope || value, 'UTF8'))
$$;

CREATE TABLE rowcall.value_field (
    job_id  uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    field   text NOT NULL,
    asks    boolean NOT NULL,
    PRIMARY KEY (job_id, field)
);

CREATE TABLE rowcall.value_mapping (
    id            bigint GENERATED ALWAYS AS IDENTITY,
    job_id        uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    field         text NOT NULL,
    scope         text NOT NULL,
    scope_label   text,
    value         text NOT NULL,
    folded        text NOT NULL,
    digest        bytea NOT NULL,
    occurrences   bigint NOT NULL CHECK (occurrences > 0),
    status        text NOT NULL DEFAULT 'UNRESOLVED' CHECK (
        status IN ('UNRESOLVED', 'AUTO_MATCHED', 'USER_CONFIRMED', 'USER_OVERRIDDEN', 'IGNORED')),
    action        text CHECK (action IN ('use', 'empty', 'skip', 'create')),
    target_key    text,
    target_label  text,
    confidence    real NOT NULL DEFAULT 0,
    basis         text CHECK (basis IN ('exact', 'synonym', 'folded', 'remembered', 'similar', 'person')),
    reason        text NOT NULL DEFAULT '',
    candidates    jsonb NOT NULL DEFAULT '[]',
    overrode      boolean NOT NULL DEFAULT false,
    fixed         boolean NOT NULL DEFAULT false,
    decided_by    text,
    decided_at    timestamptz,
    PRIMARY KEY (job_id, id),
    UNIQUE (digest, job_id),
    CONSTRAINT value_mapping_decided CHECK ((status = 'UNRESOLVED') = (action IS NULL)),
    CONSTRAINT value_mapping_target CHECK (action IS DISTINCT FROM 'use' OR target_key IS NOT NULL)
);
CREATE INDEX value_mapping_frequent ON rowcall.value_mapping (job_id, occurrences DESC, id);

CREATE TABLE rowcall.value_decision (
    id               uuid PRIMARY KEY,
    organisation_id  uuid NOT NULL REFERENCES rowcall.organisation,
    importer         text NOT NULL,
    field            text NOT NULL,
    scope            text NOT NULL,
    scope_label      text,
    value            text NOT NULL,
    digest           bytea NOT NULL,
    action           text NOT NULL CHECK (action IN ('use', 'empty', 'skip')),
    target_key       text,
    target_label     text,
    overrode         boolean NOT NULL,
    decided_by       text NOT NULL,
    decided_at       timestamptz NOT NULL,
    from_job         uuid NOT NULL,
    job_number       text NOT NULL,
    UNIQUE (organisation_id, importer, digest)
);
CREATE INDEX value_decision_latest ON rowcall.value_decision (organisation_id, decided_at DESC, id DESC);

SELECT rowcall.keep_apart('value_field'), rowcall.keep_apart('value_mapping'), rowcall.keep_apart('value_decision');
