-- add_webhook --
-- A new webhook, unless the organisation has as many as it may.
INSERT INTO rowcall.webhook (id, organisation_id, url, secret, states)
SELECT %(id)s, %(organisation)s, %(url)s, %(secret)s, %(states)s
WHERE (SELECT count(*) FROM rowcall.webhook WHERE organisation_id = %(organisation)s) < %(most)s

-- list_webhooks --
-- The webhooks of an organisation, or one of them.
SELECT id, organisation_id, url, secret, states, enabled, disabled_because, failures, last_success_at, created_at
FROM rowcall.webhook
WHERE organisation_id = %(organisation)s AND (%(id)s::uuid IS NULL OR id = %(id)s)
ORDER BY created_at, id

-- change_webhook --
-- Change a webhook; one that is enabled begins anew.
UPDATE rowcall.webhook SET url = %(url)s, states = %(states)s, enabled = %(enabled)s,
    disabled_because = CASE WHEN NOT %(enabled)s THEN disabled_because END,
    failures = CASE WHEN enabled AND %(enabled)s THEN failures ELSE 0 END,
    quiet_until = CASE WHEN enabled AND %(enabled)s THEN quiet_until ELSE now() END
WHERE id = %(id)s AND organisation_id = %(organisation)s

-- rotate_webhook_secret --
-- Give a webhook another secret; the one before is good for some time yet.
UPDATE rowcall.webhook SET old_secret = secret, old_secret_until = now() + make_interval(hours => %(hours)s), secret = %(secret)s
WHERE id = %(id)s AND organisation_id = %(organisation)s

-- delete_webhook --
-- Forget a webhook and what was sent to it.
DELETE FROM rowcall.webhook WHERE id = %(id)s AND organisation_id = %(organisation)s

-- add_test_delivery --
-- Something to send that is about no job.
INSERT INTO rowcall.webhook_delivery (id, webhook_id, organisation_id, body, next_attempt_at)
VALUES (%(id)s, %(webhook)s, %(organisation)s, %(body)s, now())

-- redeliver --
-- Send something again, from the beginning of its schedule.
UPDATE rowcall.webhook_delivery SET attempt = 0, next_attempt_at = now(), delivered_at = NULL
WHERE id = %(id)s AND webhook_id = %(webhook)s AND organisation_id = %(organisation)s

-- page_of_deliveries --
-- What was or is to be sent to a webhook, the newest first.
SELECT d.id, e.job_id, e.after, d.attempt, d.status, d.ms, d.error, d.next_attempt_at, d.delivered_at, d.log, d.created_at
FROM rowcall.webhook_delivery d LEFT JOIN rowcall.job_event e ON e.id = d.event_id
WHERE d.webhook_id = %(webhook)s AND d.organisation_id = %(organisation)s
  AND (%(id)s::uuid IS NULL OR d.id = %(id)s)
  AND (%(last)s::uuid IS NULL OR (d.created_at, d.id) < (%(at)s::timestamptz, %(last)s::uuid))
ORDER BY d.created_at DESC, d.id DESC LIMIT %(most)s

-- due_webhooks --
-- Webhooks for which there is something to send now.
SELECT w.id FROM rowcall.webhook w
WHERE w.enabled AND w.quiet_until <= now() AND w.id <> ALL (%(without)s::uuid[]) AND EXISTS (
    SELECT FROM rowcall.webhook_delivery d WHERE d.webhook_id = w.id AND d.next_attempt_at <= now())
ORDER BY w.quiet_until LIMIT %(most)s

-- claim_delivery --
-- The next thing to send to a webhook. Should whoever claims it be gone in a minute, another sends it.
UPDATE rowcall.webhook_delivery d SET attempt = d.attempt + 1, next_attempt_at = now() + interval '1 minute'
FROM rowcall.webhook w
WHERE w.id = d.webhook_id AND w.enabled AND d.id = (
    SELECT id FROM rowcall.webhook_delivery
    WHERE webhook_id = %(webhook)s AND next_attempt_at <= now()
    ORDER BY next_attempt_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING d.id, d.webhook_id, d.event_id, d.body, d.attempt, w.url, w.secret,
    CASE WHEN w.old_secret_until > now() THEN w.old_secret END AS old_secret

-- event_to_tell --
-- The move that is to be told.
SELECT job_id, before, after, at FROM rowcall.job_event WHERE id = %(id)s

-- set_delivery_body --
-- Keep what is sent: each attempt sends the same.
UPDATE rowcall.webhook_delivery SET body = %(body)s WHERE id = %(id)s

-- record_delivery --
-- What became of an attempt, unless another was made since. `wait` is null when there is to be none after it.
UPDATE rowcall.webhook_delivery SET status = %(status)s, ms = %(ms)s, error = %(error)s,
    next_attempt_at = now() + make_interval(secs => %(wait)s),
    delivered_at = CASE WHEN %(delivered)s THEN now() END,
    log = jsonb_path_query_array(
        jsonb_build_array(jsonb_build_object(
            'at', now(), 'attempt', attempt, 'status', %(status)s::int, 'ms', %(ms)s::int, 'error', %(error)s::text)) || log,
        '$[0 to 19]')
WHERE id = %(id)s AND attempt = %(attempt)s

-- note_success --
-- A webhook takes what is sent to it.
UPDATE rowcall.webhook SET failures = 0, quiet_until = now(), last_success_at = now() WHERE id = %(webhook)s

-- note_failure --
-- A webhook failed: leave it alone for a while, longer each time; up to five minutes.
UPDATE rowcall.webhook SET failures = failures + 1,
    quiet_until = now() + make_interval(secs => least(300, power(2, least(failures, 9))))
WHERE id = %(webhook)s

-- disable_webhook --
-- Nothing more is sent to a webhook that says so, or took nothing for as long as something was tried.
UPDATE rowcall.webhook w SET enabled = false, disabled_because = %(why)s
FROM rowcall.webhook_delivery d
WHERE w.id = %(webhook)s AND w.enabled AND d.id = %(id)s
  AND (%(at_once)s OR w.last_success_at IS NULL OR w.last_success_at < d.created_at)
