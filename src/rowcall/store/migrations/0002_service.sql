-- Jobs that come over the network: whose they are, who sent them, and which request made them.

-- Who jobs belong to. Without accounts, everything is the first one's.
CREATE TABLE rowcall.organisation (
    id          uuid PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    created_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO rowcall.organisation (id, name) VALUES ('00000000-0000-7000-8000-000000000000', 'local');

ALTER TABLE rowcall.job
    ADD COLUMN organisation_id  uuid NOT NULL DEFAULT '00000000-0000-7000-8000-000000000000' REFERENCES rowcall.organisation,
    ADD COLUMN request_id       text,
    ADD COLUMN client_address   text,
    ADD COLUMN idempotency_key  text,
    ADD COLUMN fingerprint      text,
    ADD COLUMN background       boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX job_idempotency_key ON rowcall.job (organisation_id, idempotency_key);
CREATE INDEX job_organisation ON rowcall.job (organisation_id, created_at DESC, id DESC);
