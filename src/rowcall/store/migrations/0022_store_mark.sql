-- The file store that the database belongs to, and webhooks' secrets that are being replaced.

CREATE TABLE rowcall.file_store (
    only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    mark      text NOT NULL,
    since     timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE rowcall.file_store ENABLE ROW LEVEL SECURITY;

ALTER TABLE rowcall.webhook ADD COLUMN old_secret text, ADD COLUMN old_secret_until timestamptz;
