-- News of jobs, sent to where an organisation wants them.

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
    created_at        timestamptz NOT NULL DEFAULT now()
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
