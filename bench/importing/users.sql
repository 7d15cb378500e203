-- The table that everyone writes to, as in the content pack; that one is taken when Rowcall has made it.
CREATE TABLE IF NOT EXISTS users (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    email       text NOT NULL UNIQUE CHECK (email = lower(email)),
    name        text NOT NULL,
    role        text NOT NULL DEFAULT 'reader' CHECK (role IN ('admin', 'author', 'editor', 'reader')),
    active      boolean NOT NULL DEFAULT true,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now()
);
