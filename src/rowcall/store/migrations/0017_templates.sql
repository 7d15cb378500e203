-- Columns can be joined into one field; what people decided of columns is kept for the next file, by itself or as a template.
DROP INDEX rowcall.column_mapping_field;
ALTER TABLE rowcall.column_mapping
    ADD COLUMN place smallint NOT NULL DEFAULT 0 CHECK (place >= 0),
    ADD COLUMN separator text NOT NULL DEFAULT ' ',
    ADD COLUMN filled bigint;
CREATE UNIQUE INDEX column_mapping_field ON rowcall.column_mapping (job_id, target_field, place);

CREATE TABLE rowcall.column_decision (
    id               uuid PRIMARY KEY,
    organisation_id  uuid NOT NULL REFERENCES rowcall.organisation,
    importer         text NOT NULL,
    header           text NOT NULL,
    written          text NOT NULL,
    target_field     text,
    decided_by       text NOT NULL,
    decided_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (organisation_id, importer, header)
);

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

SELECT rowcall.keep_apart('column_decision'), rowcall.keep_apart('mapping_template');
