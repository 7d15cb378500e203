-- People and programs, their keys, who did what; and the wall between organisations for the role that requests run under.

CREATE TABLE rowcall.account (
    id               uuid PRIMARY KEY,
    organisation_id  uuid NOT NULL REFERENCES rowcall.organisation,
    name             text NOT NULL UNIQUE CHECK (name ~ '^[^[:cntrl:]*]{1,200}$'),
    role             text NOT NULL CHECK (role IN ('operator', 'admin')),
    created_at       timestamptz NOT NULL DEFAULT now(),
    disabled_at      timestamptz
);

CREATE TABLE rowcall.api_key (
    id            uuid PRIMARY KEY,
    account_id    uuid NOT NULL REFERENCES rowcall.account,
    name          text NOT NULL,
    prefix        text NOT NULL UNIQUE,
    hash          bytea NOT NULL CHECK (length(hash) = 32),
    scopes        text[] NOT NULL CHECK (
        scopes <@ ARRAY['imports:read', 'imports:write', 'exports:read', 'admin'] AND cardinality(scopes) > 0),
    created_at    timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz,
    last_used_at  timestamptz,
    revoked_at    timestamptz
);
CREATE INDEX api_key_account ON rowcall.api_key (account_id);

CREATE TABLE rowcall.audit (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id  uuid NOT NULL REFERENCES rowcall.organisation,
    account          text NOT NULL,
    action           text NOT NULL,
    subject          text NOT NULL,
    details          jsonb NOT NULL DEFAULT '{}',
    request_id       text,
    client_address   text,
    at               timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_organisation ON rowcall.audit (organisation_id, id DESC);

CREATE INDEX job_file ON rowcall.job (file_sha256, organisation_id);

-- Requests run as rowcall_api and see what the settings of their transaction say; everybody else sees all. Policies name
-- the role by current_user, not by TO: so they can be made before the role is, and don't bind those who may become it.
-- PostgreSQL asks the last policy by name first: for those who are trusted that is all. A table without these policies
-- is closed to requests: what rowcall_api is granted follows from them, when the service starts.
CREATE FUNCTION rowcall.keep_apart(name text, allowed text DEFAULT 'ALL') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    has text[] := ARRAY(SELECT attname FROM pg_attribute
                        WHERE attrelid = format('rowcall.%I', name)::regclass AND attnum > 0 AND NOT attisdropped);
    of_organisation text := $own$organisation_id = (
        SELECT nullif(current_setting('rowcall.organisation', true), '')::uuid)$own$;
    of_account text := $own$(SELECT current_setting('rowcall.account', true)) IN ('*', account)$own$;
    -- What a request asks for is mostly one job: that is looked at once, any other row by row.
    of_job text := format($own$job_id = (SELECT j.id FROM rowcall.job j
                                         WHERE j.id = nullif(current_setting('rowcall.job', true), '')::uuid)
                               OR (SELECT true FROM rowcall.job j WHERE j.id = %I.job_id)$own$, name);
    own text := CASE WHEN has @> '{organisation_id,account}' THEN of_organisation || ' AND ' || of_account
                     WHEN has @> '{job_id}' THEN of_job ELSE of_organisation END;
    -- A job and what hangs from it may come in one statement, which doesn't see the job yet.
    new text := CASE WHEN has @> '{organisation_id,job_id}' THEN of_organisation ELSE own END;
    command text;
BEGIN
    EXECUTE format('ALTER TABLE rowcall.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY trusted ON rowcall.%I USING (current_user <> ''rowcall_api'')', name);
    FOREACH command IN ARRAY string_to_array(allowed, ', ') LOOP
        EXECUTE format('CREATE POLICY %I ON rowcall.%I FOR %s ', 'tenant ' || lower(command), name, command)
            || CASE command WHEN 'INSERT' THEN format('WITH CHECK (%s)', new) ELSE format('USING (%s)', own) END;
    END LOOP;
END $$;

SELECT rowcall.keep_apart('job'), rowcall.keep_apart('column_mapping'), rowcall.keep_apart('batch'),
       rowcall.keep_apart('outcome'), rowcall.keep_apart('retry'), rowcall.keep_apart('row', 'SELECT'),
       rowcall.keep_apart('attempt', 'SELECT'), rowcall.keep_apart('job_event', 'SELECT, INSERT'),
       rowcall.keep_apart('audit', 'SELECT, INSERT'), rowcall.keep_apart('export_job');

-- The same bytes are stored once, whoever brings them: a request sees a file only if one of its jobs has it.
ALTER TABLE rowcall.file ENABLE ROW LEVEL SECURITY;
CREATE POLICY trusted ON rowcall.file USING (current_user <> 'rowcall_api');
CREATE POLICY "tenant select" ON rowcall.file FOR SELECT USING ((
    SELECT true FROM rowcall.job j
    WHERE j.file_sha256 = file.sha256
      AND j.organisation_id = (SELECT nullif(current_setting('rowcall.organisation', true), '')::uuid) LIMIT 1));

CREATE FUNCTION rowcall.add_file(sha256 text, size bigint, location text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path TO pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO rowcall.file (sha256, size, location) VALUES (add_file.sha256, add_file.size, add_file.location)
    ON CONFLICT (sha256) DO UPDATE SET location = excluded.location;
END;

ALTER TABLE rowcall.job_sequence ENABLE ROW LEVEL SECURITY;
CREATE POLICY "tenant all" ON rowcall.job_sequence USING (true);

ALTER VIEW rowcall.row_status SET (security_invoker = true);
