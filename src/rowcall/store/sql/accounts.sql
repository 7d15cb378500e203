-- find_organisation --
-- An organisation by name.
SELECT id FROM rowcall.organisation WHERE name = %(name)s

-- add_organisation --
-- A new organisation, unless there is one of that name.
INSERT INTO rowcall.organisation (id, name) VALUES (%(id)s, %(name)s) ON CONFLICT (name) DO NOTHING

-- find_account --
-- An account by name, with its organisation.
SELECT a.id, a.name, a.role, a.created_at, a.disabled_at, a.organisation_id, o.name AS organisation
FROM rowcall.account a JOIN rowcall.organisation o ON o.id = a.organisation_id WHERE a.name = %(name)s

-- list_accounts --
-- All accounts, by organisation.
SELECT a.id, a.name, a.role, a.created_at, a.disabled_at, a.organisation_id, o.name AS organisation
FROM rowcall.account a JOIN rowcall.organisation o ON o.id = a.organisation_id ORDER BY o.name, a.name

-- add_account --
-- A new account, unless there is one of that name.
INSERT INTO rowcall.account (id, organisation_id, name, role) VALUES (%(id)s, %(organisation)s, %(name)s, %(role)s)
ON CONFLICT (name) DO NOTHING

-- change_account --
-- Another role, or whether an account may do anything.
UPDATE rowcall.account SET role = coalesce(%(role)s, role),
    disabled_at = CASE WHEN %(disabled)s::boolean IS NULL THEN disabled_at
                       WHEN %(disabled)s THEN coalesce(disabled_at, now()) END
WHERE id = %(id)s

-- add_key --
-- A new key; of its secret, the hash.
INSERT INTO rowcall.api_key (id, account_id, name, prefix, hash, scopes, expires_at)
VALUES (%(id)s, %(account)s, %(name)s, %(prefix)s, %(hash)s, %(scopes)s, %(expires)s)

-- list_keys --
-- Keys with whose they are, the newest first.
SELECT k.id, k.prefix, k.name, k.scopes, k.created_at, k.expires_at, k.last_used_at, k.revoked_at,
       k.expires_at <= now() AS expired, a.name AS account, a.role, a.disabled_at IS NOT NULL AS disabled,
       a.organisation_id, o.name AS organisation
FROM rowcall.api_key k JOIN rowcall.account a ON a.id = k.account_id JOIN rowcall.organisation o ON o.id = a.organisation_id
WHERE (%(account)s::text IS NULL OR a.name = %(account)s) AND (%(organisation)s::text IS NULL OR o.name = %(organisation)s)
  AND (%(prefix)s::text IS NULL OR k.prefix = %(prefix)s)
ORDER BY k.created_at DESC, k.id DESC

-- revoke_key --
-- A key that is not to be taken any more.
UPDATE rowcall.api_key SET revoked_at = coalesce(revoked_at, now()) WHERE id = %(id)s

-- any_key --
-- Whether keys were ever made. Revoking the last one doesn't open the doors again.
SELECT EXISTS (SELECT FROM rowcall.api_key)

-- key_by_prefix --
-- What is needed to judge a key that somebody came with.
SELECT k.id, k.hash, k.scopes, k.revoked_at IS NOT NULL AS revoked, coalesce(k.expires_at <= now(), false) AS expired,
       a.disabled_at IS NOT NULL AS disabled, a.organisation_id, a.name AS account, a.role,
       coalesce(k.last_used_at < now() - interval '1 minute', true) AS stale
FROM rowcall.api_key k JOIN rowcall.account a ON a.id = k.account_id WHERE k.prefix = %(prefix)s

-- key_used --
-- When a key was last used, to the minute: not every request is a write.
UPDATE rowcall.api_key SET last_used_at = now()
WHERE id = %(id)s AND coalesce(last_used_at < now() - interval '1 minute', true)

-- is_key_good --
-- Whether a key that was taken would still be.
SELECT k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true) AND a.disabled_at IS NULL
FROM rowcall.api_key k JOIN rowcall.account a ON a.id = k.account_id WHERE k.id = %(id)s

-- add_audit --
-- Who did what.
INSERT INTO rowcall.audit (organisation_id, account, action, subject, details, request_id, client_address)
VALUES (%(organisation)s, %(account)s, %(action)s, %(subject)s, %(details)s, %(request_id)s, %(client_address)s)

-- page_of_audit --
-- What was done in an organisation before an entry, the latest first.
SELECT id, account, action, subject, details, request_id, client_address, at FROM rowcall.audit
WHERE organisation_id = %(organisation)s AND (%(before)s::bigint IS NULL OR id < %(before)s)
  AND (%(account)s::text IS NULL OR account = %(account)s) AND (%(action)s::text IS NULL OR action = %(action)s)
  AND (%(subject)s::text IS NULL OR subject = %(subject)s)
ORDER BY id DESC LIMIT %(most)s
