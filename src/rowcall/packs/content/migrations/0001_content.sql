-- Users, their articles, and comments on those.
-- depends:

CREATE TABLE users (
    id          uuid CONSTRAINT users_pkey PRIMARY KEY DEFAULT gen_random_uuid(),
    email       text NOT NULL CONSTRAINT users_email_key UNIQUE
                CONSTRAINT users_email_lower CHECK (email = lower(email)),
    name        text NOT NULL,
    role        text NOT NULL DEFAULT 'reader'
                CONSTRAINT users_role_known CHECK (role IN ('admin', 'author', 'editor', 'reader')),
    active      boolean NOT NULL DEFAULT true,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE articles (
    id            uuid CONSTRAINT articles_pkey PRIMARY KEY DEFAULT gen_random_uuid(),
    slug          text NOT NULL CONSTRAINT articles_slug_key UNIQUE
                  CONSTRAINT articles_slug_kebab CHECK (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'),
    title         text NOT NULL,
    description   text,
    body          text NOT NULL,
    author_id     uuid NOT NULL CONSTRAINT articles_author_fkey REFERENCES users (id),
    tags          text[] NOT NULL DEFAULT '{}',
    status        text NOT NULL DEFAULT 'draft'
                  CONSTRAINT articles_status_known CHECK (status IN ('draft', 'published')),
    published_at  timestamptz,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT articles_published_at_by_status CHECK ((status = 'published') = (published_at IS NOT NULL))
);
CREATE INDEX articles_author ON articles (author_id);

CREATE TABLE comments (
    id          uuid CONSTRAINT comments_pkey PRIMARY KEY DEFAULT gen_random_uuid(),
    article_id  uuid NOT NULL CONSTRAINT comments_article_fkey REFERENCES articles (id),
    user_id     uuid NOT NULL CONSTRAINT comments_user_fkey REFERENCES users (id),
    body        text NOT NULL CONSTRAINT comments_body_filled CHECK (btrim(body) <> ''),
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX comments_article ON comments (article_id);
CREATE INDEX comments_user ON comments (user_id);
