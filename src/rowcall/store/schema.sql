-- All of Rowcall's tables as they are now, to be read. Databases are made by the migrations; a test keeps the two equal.
-- The table of the migrations themselves is not here.

CREATE SCHEMA IF NOT EXISTS rowcall;

-- What happened to a row.
CREATE TYPE rowcall.status AS ENUM ('created', 'updated', 'unchanged', 'skipped', 'failed');

-- Files as they were brought; the same bytes are stored once.
CREATE TABLE rowcall.file (
    sha256      text PRIMARY KEY CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    size        bigint NOT NULL CHECK (size >= 0),
    location    text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- The mark of the file store that the files are in: a process that has another one must not work on jobs.
CREATE TABLE rowcall.file_store (
    only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    mark      text NOT NULL,
    since     timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE rowcall.file_store ENABLE ROW LEVEL SECURITY;
CREATE POLICY trusted ON rowcall.file_store USING (current_user <> 'rowcall_api');

-- Who jobs belong to. Without accounts, everything is the first one's.
CREATE TABLE rowcall.organisation (
    id          uuid PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- Numbers of jobs count from one each day. Whoever takes one waits for nobody, but on a day's first job.
CREATE SEQUENCE rowcall.job_counter;
CREATE TABLE rowcall.job_day (
    day     date PRIMARY KEY,
    -- how far the counter was
    before  bigint NOT NULL
);
CREATE FUNCTION rowcall.next_job_number() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path TO pg_catalog, pg_temp AS $$
DECLARE counted bigint;
BEGIN
    LOOP
        SELECT d.before INTO counted FROM rowcall.job_day d WHERE d.day = current_date;
        EXIT WHEN FOUND;
        INSERT INTO rowcall.job_day (day, before)
        SELECT current_date, c.last_value - (NOT c.is_called)::int FROM rowcall.job_counter c
        ON CONFLICT DO NOTHING;
    END LOOP;
    counted := nextval('rowcall.job_counter') - counted;
    RETURN 'BU' || to_char(current_date, 'YYYYMMDD') || lpad(counted::text, greatest(4, length(counted::text)), '0');
END
$$;

-- One file going through one importer.
CREATE TABLE rowcall.job (
    id                     uuid PRIMARY KEY,
    number                 text NOT NULL UNIQUE,
    importer               text NOT NULL,
    config                 jsonb NOT NULL,
    file_sha256            text REFERENCES rowcall.file,
    file_name              text NOT NULL,
    account                text NOT NULL,
    state                  text NOT NULL CHECK (state IN (
        'UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'FINGERPRINT_WARN', 'FINGERPRINT_ABORT',
        'VALIDATING', 'VALIDATED', 'INVALID', 'PROCESSING', 'PAUSED', 'CANCELLED', 'SUPERSEDED',
        'COMPLETED', 'COMPLETED_WITH_ERRORS', 'REVERTING', 'REVERTED', 'FAILED')),
    row_count              bigint,
    header_lines           bigint NOT NULL DEFAULT 0,
    blank_lines            bigint NOT NULL DEFAULT 0,
    other_lines            bigint NOT NULL DEFAULT 0,
    created_at             timestamptz NOT NULL DEFAULT now(),
    processing_started_at  timestamptz,
    completed_at           timestamptz,
    last_error             jsonb,
    organisation_id        uuid NOT NULL DEFAULT '00000000-0000-7000-8000-000000000000' REFERENCES rowcall.organisation,
    request_id             text,
    client_address         text,
    idempotency_key        text,
    fingerprint            text,
    background             boolean NOT NULL DEFAULT false,
    traceparent            text,
    -- set when retention has begun to take it away
    removing_at            timestamptz,
    -- what was asked for while somebody worked on it: whoever does sees to it
    wish                   text CHECK (wish IN ('hold', 'pause', 'cancel')),
    paused_from            text,
    -- how long to work on it before it pauses by itself
    slice_ms               integer,
    url                    text,
    -- what is fetched, with its login and query; forgotten when the file is there or the job has ended
    url_with_secrets       text,
    file_format            text,
    -- the one moment that a preview and its commit are of
    as_of                  timestamptz,
    -- what it has to itself, of its importer and organisation, as long as it is active
    scope_key              text,
    -- [{id, number}, ...] that it took the place of
    supersedes             jsonb NOT NULL DEFAULT '[]',
    -- {id, number, account} that took its place
    superseded_by          jsonb,
    CONSTRAINT job_has_file CHECK (
        file_sha256 IS NOT NULL OR state IN ('UPLOADED', 'PAUSED', 'CANCELLED', 'SUPERSEDED', 'FAILED')),
    -- how much of the file is brought in, while it is
    percent_read           real CHECK (percent_read BETWEEN 0 AND 100)
);
CREATE UNIQUE INDEX job_idempotency_key ON rowcall.job (organisation_id, idempotency_key);
CREATE UNIQUE INDEX job_scope ON rowcall.job (organisation_id, importer, scope_key)
    WHERE scope_key IS NOT NULL AND removing_at IS NULL AND state NOT IN (
        'INVALID', 'CANCELLED', 'SUPERSEDED', 'COMPLETED', 'COMPLETED_WITH_ERRORS', 'REVERTED', 'FAILED');
CREATE INDEX job_organisation ON rowcall.job (organisation_id, created_at DESC, id DESC);
CREATE INDEX job_created_at ON rowcall.job (created_at DESC, id);
CREATE INDEX job_file ON rowcall.job (file_sha256, organisation_id);
CREATE INDEX job_unfinished ON rowcall.job (file_sha256, importer)
    WHERE state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING');

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

-- The columns of a job's file: the field each goes to, and how its texts are read.
CREATE TABLE rowcall.column_mapping (
    job_id        uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    position      integer NOT NULL,
    header        text NOT NULL,
    samples       text[] NOT NULL,
    target_field  text,
    status        text NOT NULL CHECK (
        status IN ('UNRESOLVED', 'AUTO_MATCHED', 'USER_CONFIRMED', 'USER_OVERRIDDEN', 'IGNORED')),
    reason        text NOT NULL,
    decimal_mark  text CHECK (decimal_mark IN ('.', ',')),
    date_order    text CHECK (date_order IN ('dmy', 'mdy', 'ymd')),
    confidence    real NOT NULL DEFAULT 1,
    -- [[field, confidence], ...]
    others        jsonb NOT NULL DEFAULT '[]',
    -- whether it may have values that can be read in two ways; null: nobody looked
    doubtful      boolean,
    decided_by    text,
    decided_at    timestamptz,
    -- of columns that are joined into one field: which comes first, and what stands between
    place         smallint NOT NULL DEFAULT 0 CHECK (place >= 0),
    separator     text NOT NULL DEFAULT ' ',
    -- how many rows have a value in it; null: nobody counted
    filled        bigint,
    PRIMARY KEY (job_id, position)
);
CREATE UNIQUE INDEX column_mapping_field ON rowcall.column_mapping (job_id, target_field, place);

-- What people of an organisation decided of columns with a header; proposed when one comes again.
CREATE TABLE rowcall.column_decision (
    id               uuid PRIMARY KEY,
    organisation_id  uuid NOT NULL REFERENCES rowcall.organisation,
    importer         text NOT NULL,
    -- as headers are compared
    header           text NOT NULL,
    written          text NOT NULL,
    -- null: it is left out
    target_field     text,
    decided_by       text NOT NULL,
    decided_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (organisation_id, importer, header)
);

-- Whole mappings for files that some system writes, in one of its variants.
CREATE TABLE rowcall.mapping_template (
    id               uuid PRIMARY KEY,
    organisation_id  uuid NOT NULL REFERENCES rowcall.organisation,
    source_system    text NOT NULL,
    importer         text NOT NULL,
    variant          text NOT NULL,
    columns          jsonb NOT NULL,
    constants        jsonb NOT NULL DEFAULT '{}',
    saved_by         text NOT NULL,
    saved_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (organisation_id, source_system, importer, variant)
);

-- What a value is known by, among those of a job or an organisation: an index can't hold long texts.
CREATE FUNCTION rowcall.value_digest(field text, scope text, value text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(convert_to(field || chr(31) || length(scope) || chr(31) || scope || value, 'UTF8'))
$$;

-- The fields of a job whose values were gathered.
CREATE TABLE rowcall.value_field (
    job_id       uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    field        text NOT NULL,
    -- whether the job waits while something is unresolved
    asks         boolean NOT NULL,
    -- how many distinct values, of how many rows; and how many of these rows have one that is settled
    value_count  bigint NOT NULL DEFAULT 0,
    unresolved   bigint NOT NULL DEFAULT 0,
    row_count    bigint NOT NULL DEFAULT 0,
    covered      bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, field)
);

-- The distinct values of these fields: what each stands for, how that is known, or that somebody has to say it.
CREATE TABLE rowcall.value_mapping (
    id            bigint GENERATED ALWAYS AS IDENTITY,
    job_id        uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    field         text NOT NULL,
    -- the key that it is looked up within; empty where there is none
    scope         text NOT NULL,
    scope_label   text,
    value         text NOT NULL,
    -- without case and accents: values with the same are near-duplicates
    folded        text NOT NULL,
    digest        bytea NOT NULL,
    occurrences   bigint NOT NULL CHECK (occurrences > 0),
    status        text NOT NULL DEFAULT 'UNRESOLVED' CHECK (
        status IN ('UNRESOLVED', 'AUTO_MATCHED', 'USER_CONFIRMED', 'USER_OVERRIDDEN', 'IGNORED')),
    action        text CHECK (action IN ('use', 'empty', 'skip', 'create')),
    -- of a value that is unresolved: what is proposed
    target_key    text,
    target_label  text,
    confidence    real NOT NULL DEFAULT 0,
    basis         text CHECK (basis IN ('exact', 'synonym', 'folded', 'remembered', 'similar', 'new', 'person')),
    reason        text NOT NULL DEFAULT '',
    -- [{key, label, score}, ...]
    candidates    jsonb NOT NULL DEFAULT '[]',
    -- a person said otherwise though there was a match
    overrode      boolean NOT NULL DEFAULT false,
    -- rows were written by it
    fixed         boolean NOT NULL DEFAULT false,
    decided_by    text,
    decided_at    timestamptz,
    PRIMARY KEY (job_id, id),
    UNIQUE (digest, job_id),
    CONSTRAINT value_mapping_decided CHECK ((status = 'UNRESOLVED') = (action IS NULL)),
    CONSTRAINT value_mapping_target CHECK (action IS DISTINCT FROM 'use' OR target_key IS NOT NULL)
);
CREATE INDEX value_mapping_frequent ON rowcall.value_mapping (job_id, field, status, occurrences DESC, id);

-- What people of an organisation decided of values, for the next file. Kept when the job is gone.
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

-- The rows of a file as they came in; never changed.
-- Rows and outcomes have no foreign keys: a check per row would cost more than the row. Batches tile them instead.
CREATE TABLE rowcall.row (
    job_id    uuid NOT NULL,
    number    bigint NOT NULL,
    line      bigint NOT NULL,
    cells     text[] NOT NULL,
    problems  jsonb,
    PRIMARY KEY (job_id, number)
);

-- Runs of rows that are planned and committed together: the unit of claim, transaction and resume.
CREATE TABLE rowcall.batch (
    job_id       uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    number       integer NOT NULL,
    first_row    bigint NOT NULL,
    last_row     bigint NOT NULL CHECK (last_row >= first_row),
    state        text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done')),
    created      integer NOT NULL DEFAULT 0,
    updated      integer NOT NULL DEFAULT 0,
    unchanged    integer NOT NULL DEFAULT 0,
    skipped      integer NOT NULL DEFAULT 0,
    failed       integer NOT NULL DEFAULT 0,
    claimed_by   text,
    lease_until  timestamptz,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    reverted     integer NOT NULL DEFAULT 0,
    -- the transaction that wrote its outcomes, as a value: where it is not theirs any more, the database was restored
    -- from a dump since, and transactions tell nothing
    stamp        xid,
    PRIMARY KEY (job_id, number),
    UNIQUE (job_id, first_row),
    CONSTRAINT batch_balance CHECK (
        state = 'pending' OR created + updated + unchanged + skipped + failed + reverted = last_row - first_row + 1)
);
CREATE INDEX batch_pending ON rowcall.batch (job_id, number) WHERE state = 'pending';
CREATE INDEX batch_flagged ON rowcall.batch (updated_at) WHERE failed > 0 OR state = 'pending';

-- Rows that lose against another row of their file, decided before any is committed. A row with itself for a winner was
-- refused, and another one counts in its place.
CREATE TABLE rowcall.duplicate (
    job_id      uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    row_number  bigint NOT NULL,
    winner      bigint NOT NULL,
    fields      text[] NOT NULL,
    refused     boolean NOT NULL,
    PRIMARY KEY (job_id, row_number)
);

-- Rows that are judged only when others of their file are in: these change what they look for.
CREATE TABLE rowcall.waiting (
    job_id      uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    row_number  bigint NOT NULL,
    PRIMARY KEY (job_id, row_number)
);

-- What happened to each row: the target's key, the issues, the target's row as it was before.
-- Attempt 0 is what a preview says would happen.
CREATE TABLE rowcall.outcome (
    job_id      uuid NOT NULL,
    row_number  bigint NOT NULL,
    attempt     smallint NOT NULL DEFAULT 1,
    status      rowcall.status NOT NULL,
    target_key  text[],
    issues      jsonb,
    before      jsonb,
    result      jsonb,
    at          timestamptz NOT NULL DEFAULT now(),
    -- the transaction that had last written the row of the target, when it was matched
    seen        xid,
    PRIMARY KEY (job_id, row_number, attempt)
);
CREATE INDEX outcome_failed ON rowcall.outcome (job_id, row_number) WHERE status = 'failed';

-- Keys of rows that are taken once for ever, in whatever job they come again.
CREATE TABLE rowcall.row_key (
    importer    text NOT NULL,
    key         text NOT NULL,
    job_id      uuid NOT NULL,
    row_number  bigint NOT NULL,
    PRIMARY KEY (importer, key)
);
CREATE INDEX row_key_job ON rowcall.row_key (job_id, row_number);

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

-- Corrections laid over rows: a row's cells as they count now, and what its reader still has to say of them. Without
-- cells they were all taken back. What is not here was never corrected.
CREATE TABLE rowcall.row_edit (
    job_id      uuid NOT NULL,
    row_number  bigint NOT NULL,
    cells       text[],
    problems    jsonb,
    -- how often it was corrected
    revision    integer NOT NULL,
    account     text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (job_id, row_number)
);

-- Every correction of a cell, those taken back included.
CREATE TABLE rowcall.cell_edit (
    job_id      uuid NOT NULL,
    row_number  bigint NOT NULL,
    revision    integer NOT NULL,
    position    integer NOT NULL,
    before      text,
    after       text,
    account     text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (job_id, row_number, revision, position)
);

-- Cells with some of them replaced; positions count from 0.
CREATE FUNCTION rowcall.with_cells(cells text[], positions integer[], texts text[]) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF cardinality(cells) = 0 THEN  -- else it would begin with the first that is set
        cells := array_fill(NULL::text, ARRAY[(SELECT max(place) + 1 FROM unnest(positions) place)]);
    END IF;
    FOR place IN 1 .. cardinality(positions) LOOP
        cells[positions[place] + 1] := texts[place];
    END LOOP;
    RETURN cells;
END
$$;

-- What a reader said of a row, without what it said of cells that somebody corrected, or of how it was written.
CREATE FUNCTION rowcall.problems_left(problems jsonb, corrected integer[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN count(*) > 0 THEN jsonb_build_object('cells', jsonb_agg(cell)) END
    FROM jsonb_array_elements(problems -> 'cells') cell WHERE (cell ->> 'position')::int <> ALL (corrected)
$$;

-- Rows as they count: as they came in, with the corrections laid over them.
-- Each row is looked up by itself (OFFSET 0): where PostgreSQL expects few, it would read all of a job for each row.
CREATE VIEW rowcall.edited_row WITH (security_invoker = true) AS
SELECT r.job_id, r.number, r.line, coalesce(e.cells, r.cells) AS cells,
       CASE WHEN e.cells IS NULL THEN r.problems ELSE e.problems END AS problems,
       CASE WHEN e.cells IS NOT NULL THEN r.cells END AS original, coalesce(e.revision, 0) AS revision
FROM rowcall.row r
LEFT JOIN LATERAL (SELECT * FROM rowcall.row_edit e WHERE e.job_id = r.job_id AND e.row_number = r.number OFFSET 0) e ON true;

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
-- What a preview came to: shown, known by its digest, and submitted by that.
CREATE TABLE rowcall.plan (
    job_id        uuid PRIMARY KEY REFERENCES rowcall.job ON DELETE CASCADE,
    digest        text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    as_of         timestamptz NOT NULL,
    counts        jsonb NOT NULL,
    -- {column: rows in which it would change}
    fields        jsonb NOT NULL,
    -- [{code, field, status, count, first_row}]
    problems      jsonb NOT NULL,
    -- rows that were planned otherwise the last time this was submitted
    drifted       bigint NOT NULL DEFAULT 0,
    submitted_at  timestamptz,
    -- whoever commits it has begun
    begun         boolean NOT NULL DEFAULT false
);

-- Pieces of a plan, one for each batch. Rows without an outcome have the one that is implied.
CREATE TABLE rowcall.plan_piece (
    job_id     uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    first_row  bigint NOT NULL,
    last_row   bigint NOT NULL CHECK (last_row >= first_row),
    implied    rowcall.status,
    -- eight bytes for each row, which are others when the row is planned otherwise
    marks      bytea NOT NULL CHECK (length(marks) = 8 * (last_row - first_row + 1)),
    fields     jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (job_id, first_row)
);

-- Whether the rows of a job are shown as they are planned.
CREATE FUNCTION rowcall.shows_plan(state text, paused_from text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN state IN ('VALIDATING', 'VALIDATED') OR (state = 'PAUSED' AND paused_from IN ('VALIDATING', 'VALIDATED'));

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

-- What was taken back, when and by whom. `which` are the rows that were asked for; it goes on below `next_row`, in
-- rounds: one row may stand in another's way. `standing` is how many were taken back when the round began.
-- `results` are kept at its end: a later undo may take back what this one kept.
CREATE TABLE rowcall.undo (
    job_id        uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    number        smallint NOT NULL,
    account       text NOT NULL,
    request_id    text,
    which         jsonb NOT NULL,
    partial       boolean NOT NULL,
    came_from     text NOT NULL,
    round         integer NOT NULL DEFAULT 1,
    next_row      bigint NOT NULL,
    standing      bigint NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at  timestamptz,
    results       jsonb,
    PRIMARY KEY (job_id, number)
);
CREATE UNIQUE INDEX undo_under_way ON rowcall.undo (job_id) WHERE completed_at IS NULL;

-- What became of a row when it was to be taken back. A row that was restored was written by transaction `stamp`, and is
-- as transaction `stands_for` had left it.
CREATE TABLE rowcall.reversal (
    job_id      uuid NOT NULL,
    row_number  bigint NOT NULL,
    undo        smallint NOT NULL,
    result      text NOT NULL CHECK (result IN ('deleted', 'restored', 'changed', 'blocked', 'refused', 'gone')),
    target_key  text[],
    issue       jsonb,
    stamp       xid,
    stands_for  xid,
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, row_number)
);
CREATE INDEX reversal_kept ON rowcall.reversal (job_id, row_number) WHERE result IN ('changed', 'blocked', 'refused');
CREATE INDEX reversal_target ON rowcall.reversal USING hash (target_key) WHERE stamp IS NOT NULL;

-- A row with what became of it: its outcome, unless it is tried again or was taken back; else what its job waits for.
CREATE VIEW rowcall.row_status WITH (security_invoker = true) AS
SELECT r.job_id, r.number, r.line, r.cells,
       CASE WHEN t.row_number IS NOT NULL AND o.status IS NOT NULL THEN 'pending'
            WHEN v.result IN ('deleted', 'restored') THEN 'reverted'
            WHEN o.status IS NOT NULL THEN o.status::text
            WHEN j.state IN ('CANCELLED', 'SUPERSEDED', 'REVERTING', 'REVERTED') OR j.paused_from = 'REVERTING' THEN 'cancelled'
            WHEN rowcall.shows_plan(j.state, j.paused_from) THEN coalesce((
                SELECT CASE WHEN p.last_row >= r.number THEN p.implied::text END FROM rowcall.plan_piece p
                WHERE p.job_id = r.job_id AND p.first_row <= r.number ORDER BY p.first_row DESC LIMIT 1), 'pending')
            ELSE 'pending' END AS status,
       o.attempt, o.target_key, CASE WHEN v.issue IS NULL THEN o.issues ELSE coalesce(o.issues, '[]') || v.issue END AS issues,
       o.before, o.result, coalesce(v.at, o.at) AS at, r.original, r.revision
FROM rowcall.edited_row r
JOIN rowcall.job j ON j.id = r.job_id
LEFT JOIN LATERAL (SELECT * FROM rowcall.outcome o WHERE o.job_id = r.job_id AND o.row_number = r.number
    AND (o.attempt > 0 OR rowcall.shows_plan(j.state, j.paused_from)) OFFSET 0) o ON true
LEFT JOIN LATERAL (SELECT * FROM rowcall.retry t WHERE t.job_id = r.job_id AND t.row_number = r.number OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT * FROM rowcall.reversal v WHERE v.job_id = r.job_id AND v.row_number = r.number OFFSET 0) v ON true;

-- Whether some session has a job to itself.
CREATE FUNCTION rowcall.is_worked_on(job uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_locks l, pg_catalog.hashtextextended('rowcall job ' || job::text, 0) AS key
        WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
          AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
          AND (l.classid::bigint << 32 | l.objid::bigint) = key)
$$;
CREATE INDEX job_working ON rowcall.job (organisation_id, created_at)
    WHERE background AND state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING');

-- Who may send requests. Jobs belong to an account by its name.
CREATE TABLE rowcall.account (
    id               uuid PRIMARY KEY,
    organisation_id  uuid NOT NULL REFERENCES rowcall.organisation,
    name             text NOT NULL UNIQUE CHECK (name ~ '^[^[:cntrl:]*]{1,200}$'),
    role             text NOT NULL CHECK (role IN ('operator', 'admin')),
    created_at       timestamptz NOT NULL DEFAULT now(),
    disabled_at      timestamptz
);

-- What they are known by. Of a key only the hash is kept.
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

-- Who did what; written in the transaction of the deed, never changed.
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
       rowcall.keep_apart('audit', 'SELECT, INSERT'), rowcall.keep_apart('export_job'), rowcall.keep_apart('upload'),
       rowcall.keep_apart('waiting'), rowcall.keep_apart('column_decision'), rowcall.keep_apart('mapping_template'),
       rowcall.keep_apart('undo'), rowcall.keep_apart('reversal', 'SELECT'),
       rowcall.keep_apart('fingerprint_check', 'SELECT, UPDATE');
SELECT rowcall.keep_apart('value_field'), rowcall.keep_apart('value_mapping'), rowcall.keep_apart('value_decision');
SELECT rowcall.keep_apart('row_edit'), rowcall.keep_apart('cell_edit', 'SELECT, INSERT');
SELECT rowcall.keep_apart('plan'), rowcall.keep_apart('plan_piece');

-- The same bytes are stored once, whoever brings them: a request sees a file only if one of its jobs has it.
ALTER TABLE rowcall.file ENABLE ROW LEVEL SECURITY;
CREATE POLICY trusted ON rowcall.file USING (current_user <> 'rowcall_api');
CREATE POLICY "tenant select" ON rowcall.file FOR SELECT USING ((
    SELECT true FROM rowcall.job j
    WHERE j.file_sha256 = file.sha256
      AND j.organisation_id = (SELECT nullif(current_setting('rowcall.organisation', true), '')::uuid) LIMIT 1));

-- A store that can't name a file by its content may have the same bytes twice: which are kept is decided under this lock.
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

ALTER TABLE rowcall.job_day ENABLE ROW LEVEL SECURITY;
CREATE POLICY trusted ON rowcall.job_day USING (current_user <> 'rowcall_api');

-- Who is told of the moves of an organisation's jobs. The URL is whole, with its login and query.
CREATE TABLE rowcall.webhook (
    id                uuid PRIMARY KEY,
    organisation_id   uuid NOT NULL REFERENCES rowcall.organisation,
    url               text NOT NULL,
    secret            text NOT NULL,
    -- told of moves into these; null: of all
    states            text[],
    enabled           boolean NOT NULL DEFAULT true,
    -- where it was not a person who disabled it
    disabled_because  text,
    -- in a row; meanwhile it is left alone now and then
    failures          integer NOT NULL DEFAULT 0,
    quiet_until       timestamptz NOT NULL DEFAULT now(),
    last_success_at   timestamptz,
    created_at        timestamptz NOT NULL DEFAULT now(),
    -- the secret before this one, which is good until then
    old_secret        text,
    old_secret_until  timestamptz
);
CREATE INDEX webhook_organisation ON rowcall.webhook (organisation_id, created_at);

-- What is sent to them, once for each event; no event: a test. Sent as long as there is a next attempt.
CREATE TABLE rowcall.webhook_delivery (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    webhook_id       uuid NOT NULL REFERENCES rowcall.webhook ON DELETE CASCADE,
    organisation_id  uuid NOT NULL,
    event_id         bigint REFERENCES rowcall.job_event ON DELETE CASCADE,
    -- made for the first attempt, the same in all
    body             text,
    attempt          integer NOT NULL DEFAULT 0,
    status           integer,
    ms               integer,
    error            text,
    next_attempt_at  timestamptz,
    delivered_at     timestamptz,
    log              jsonb NOT NULL DEFAULT '[]',
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (event_id, webhook_id)
);
CREATE INDEX webhook_delivery_due ON rowcall.webhook_delivery (webhook_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_delivery_webhook ON rowcall.webhook_delivery (webhook_id, created_at DESC, id DESC);

-- A move and what is to be sent of it are one transaction: none is lost, none is there twice.
-- Whoever makes the move need not see the webhooks. The lock waits for whoever deletes one just now, so that the move
-- doesn't fail with it.
CREATE FUNCTION rowcall.tell_webhooks() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path TO pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO rowcall.webhook_delivery (webhook_id, organisation_id, event_id, next_attempt_at)
    SELECT w.id, w.organisation_id, NEW.id, clock_timestamp()
    FROM rowcall.webhook w
    WHERE w.organisation_id = NEW.organisation_id AND w.enabled AND (w.states IS NULL OR NEW.after = ANY (w.states))
    FOR KEY SHARE;
    RETURN NULL;
END
$$;
CREATE TRIGGER tell_webhooks AFTER INSERT ON rowcall.job_event
    FOR EACH ROW EXECUTE FUNCTION rowcall.tell_webhooks();

-- Only admins see them: what is sent tells of everybody's jobs.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['webhook', 'webhook_delivery'] LOOP
        EXECUTE format('ALTER TABLE rowcall.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY trusted ON rowcall.%I USING (current_user <> ''rowcall_api'')', name);
        EXECUTE format($own$CREATE POLICY "tenant all" ON rowcall.%I USING (
            organisation_id = (SELECT nullif(current_setting('rowcall.organisation', true), '')::uuid)
            AND (SELECT current_setting('rowcall.account', true)) = '*')$own$, name);
    END LOOP;
END $$;

-- What statistics say of jobs is always of earlier ones: PostgreSQL would take a job that it doesn't know for one row, and
-- read all rows of the job for each of them. Without statistics it takes every job for a part of the table.
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'job_id'
                WHERE c.relnamespace = 'rowcall'::regnamespace AND c.relkind = 'r' LOOP
        EXECUTE format('ALTER TABLE rowcall.%I ALTER COLUMN job_id SET STATISTICS 0', name);
    END LOOP;
END $$;
