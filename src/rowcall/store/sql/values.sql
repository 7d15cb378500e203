-- decided_fields --
-- The fields of a job with values that stand for something else than a look at the table would tell.
SELECT DISTINCT field FROM rowcall.value_mapping
WHERE job_id = %(id)s AND status <> 'UNRESOLVED' AND basis <> 'exact'

-- said_of_values --
-- What was decided of some values of a field.
SELECT g.value, g.scope, v.action, CASE v.action WHEN 'create' THEN v.target_label ELSE v.target_key END
FROM unnest(%(values)s::text[], %(scopes)s::text[]) g (value, scope)
JOIN rowcall.value_mapping v ON v.job_id = %(id)s AND v.digest = rowcall.value_digest(%(field)s, g.scope, g.value)
WHERE v.status <> 'UNRESOLVED' AND v.basis <> 'exact'

-- gathered_table --
-- Where the distinct values of batches are put together.
CREATE TEMPORARY TABLE rowcall_gathered (scope text NOT NULL, value text NOT NULL, folded text NOT NULL,
    occurrences bigint NOT NULL) ON COMMIT DROP

-- matched_table --
-- Where it is put together what values stand for.
CREATE TEMPORARY TABLE rowcall_matched (id bigint PRIMARY KEY, status text, action text, target_key text, target_label text,
    confidence real, basis text, reason text, candidates jsonb, scope_label text) ON COMMIT DROP

-- drop_ungathered --
-- Forget values that the file doesn't bring to a field any more.
DELETE FROM rowcall.value_mapping v
WHERE v.job_id = %(id)s AND v.field = %(field)s AND NOT EXISTS (
    SELECT FROM rowcall_gathered g WHERE rowcall.value_digest(%(field)s, g.scope, g.value) = v.digest)

-- add_values --
-- The values of a field that were gathered; those that are known get their count.
INSERT INTO rowcall.value_mapping (job_id, field, scope, value, folded, digest, occurrences)
SELECT %(id)s, %(field)s, g.scope, g.value, min(g.folded), rowcall.value_digest(%(field)s, g.scope, g.value), sum(g.occurrences)
FROM rowcall_gathered g GROUP BY g.scope, g.value ORDER BY sum(g.occurrences) DESC, g.scope COLLATE "C", g.value COLLATE "C"
ON CONFLICT (job_id, digest) DO UPDATE SET occurrences = excluded.occurrences

-- question_values --
-- Values of a field that turned up late, or stand for nothing any more: they are looked at anew.
INSERT INTO rowcall.value_mapping (job_id, field, scope, value, folded, digest, occurrences)
SELECT %(id)s, %(field)s, g.scope, g.value, min(g.folded), rowcall.value_digest(%(field)s, g.scope, g.value), sum(g.occurrences)
FROM rowcall_gathered g GROUP BY g.scope, g.value ORDER BY sum(g.occurrences) DESC, g.scope COLLATE "C", g.value COLLATE "C"
ON CONFLICT (job_id, digest) DO UPDATE SET status = 'UNRESOLVED', action = NULL, target_key = NULL, target_label = NULL,
    confidence = 0, basis = NULL, reason = '', candidates = '[]', fixed = false, decided_by = NULL, decided_at = NULL

-- fix_values --
-- Rows were written by what these stand for: that doesn't change any more.
UPDATE rowcall.value_mapping SET fixed = true WHERE job_id = %(id)s AND status <> 'UNRESOLVED' AND NOT fixed

-- free_values --
-- Nothing is written yet: what values stand for may change.
UPDATE rowcall.value_mapping SET fixed = false WHERE job_id = %(id)s AND fixed

-- values_to_match --
-- Values of a field that nobody has looked at yet, behind one.
SELECT id, scope, value, folded FROM rowcall.value_mapping
WHERE job_id = %(id)s AND field = %(field)s AND status = 'UNRESOLVED' AND reason = '' AND id > %(after)s
ORDER BY id LIMIT %(most)s

-- keep_matched --
-- What values stand for.
UPDATE rowcall.value_mapping v SET status = m.status, action = m.action, target_key = m.target_key, target_label = m.target_label,
    confidence = m.confidence, basis = m.basis, reason = m.reason, candidates = m.candidates, scope_label = m.scope_label
FROM rowcall_matched m WHERE v.job_id = %(id)s AND v.id = m.id

-- name_created --
-- What is created for values that are the same without case and accents is named once: as the first, the most frequent, is.
UPDATE rowcall.value_mapping v SET target_label = g.name
FROM (SELECT id, first_value(value) OVER (PARTITION BY field, scope, folded ORDER BY id) AS name
      FROM rowcall.value_mapping WHERE job_id = %(id)s AND action = 'create' AND folded <> '') g
WHERE v.job_id = %(id)s AND v.id = g.id AND v.target_label IS DISTINCT FROM g.name

-- add_value_field --
-- The values of a field are gathered.
INSERT INTO rowcall.value_field (job_id, field, asks) VALUES (%(id)s, %(field)s, %(asks)s)
ON CONFLICT (job_id, field) DO UPDATE SET asks = excluded.asks

-- value_fields --
-- The fields of a job whose values were gathered.
SELECT field FROM rowcall.value_field WHERE job_id = %(id)s

-- forget_value_fields --
-- The columns of a file go to other fields now: its values are gathered anew.
DELETE FROM rowcall.value_field WHERE job_id = %(id)s

-- forget_proposals --
-- What values were thought to stand for; what a person said of them stays.
DELETE FROM rowcall.value_mapping WHERE job_id = %(id)s AND status IN ('UNRESOLVED', 'AUTO_MATCHED')

-- open_values --
-- The fields that somebody has to say something of: how many values, of how many rows, and the most frequent of them.
SELECT v.field, count(*) AS values, sum(v.occurrences)::bigint AS rows,
       (array_agg(v.value ORDER BY v.occurrences DESC, v.id))[1:5] AS first
FROM rowcall.value_mapping v JOIN rowcall.value_field f ON f.job_id = v.job_id AND f.field = v.field AND f.asks
WHERE v.job_id = %(id)s AND v.status = 'UNRESOLVED'
GROUP BY v.field ORDER BY v.field

-- asked_from --
-- Where a job was before it asked about values.
SELECT before FROM rowcall.job_event
WHERE job_id = %(id)s AND after = 'CELL_MAPPING' AND before <> 'PAUSED' ORDER BY id DESC LIMIT 1

-- remembered_fields --
-- The fields of an importer that an organisation has decided something of.
SELECT DISTINCT field FROM rowcall.value_decision WHERE organisation_id = %(organisation)s AND importer = %(importer)s

-- remembered_values --
-- What an organisation decided of some values of a field.
SELECT g.id, d.action, d.target_key, d.target_label, d.overrode, d.decided_by, d.job_number
FROM unnest(%(ids)s::bigint[], %(values)s::text[], %(scopes)s::text[]) g (id, value, scope)
JOIN rowcall.value_decision d ON d.organisation_id = %(organisation)s AND d.importer = %(importer)s
    AND d.digest = rowcall.value_digest(%(field)s, g.scope, g.value)

-- page_of_values --
-- Values of a job behind one, the most frequent first.
SELECT id, field, scope, scope_label, value, folded, occurrences, status, action, target_key, target_label, confidence, basis,
       reason, candidates, fixed, decided_by, decided_at
FROM rowcall.value_mapping
WHERE job_id = %(id)s AND (%(field)s::text IS NULL OR field = %(field)s) AND (%(status)s::text IS NULL OR status = %(status)s)
  AND (%(text)s::text IS NULL OR strpos(lower(value), lower(%(text)s)) > 0 OR strpos(folded, lower(%(text)s)) > 0)
  AND (%(last)s::bigint IS NULL OR occurrences < %(count)s OR (occurrences = %(count)s AND id > %(last)s))
ORDER BY occurrences DESC, id LIMIT %(most)s

-- count_values --
-- The fields of a job whose values were gathered: how many values and rows, and how many of them are settled.
SELECT f.field, f.asks, count(v.id) AS values, count(v.id) FILTER (WHERE v.status = 'UNRESOLVED') AS unresolved,
       coalesce(sum(v.occurrences), 0)::bigint AS rows,
       coalesce(sum(v.occurrences) FILTER (WHERE v.status <> 'UNRESOLVED'), 0)::bigint AS covered
FROM rowcall.value_field f LEFT JOIN rowcall.value_mapping v ON v.job_id = f.job_id AND v.field = f.field
WHERE f.job_id = %(id)s GROUP BY f.field, f.asks ORDER BY f.field

-- decide_values --
-- What a person says of some values: by id, by value, or all that fit.
WITH chosen AS (
    SELECT v.id FROM rowcall.value_mapping v
    WHERE v.job_id = %(id)s AND (%(ids)s::bigint[] IS NULL OR v.id = ANY (%(ids)s))
      AND (%(field)s::text IS NULL OR v.field = %(field)s) AND (%(value)s::text IS NULL OR v.value = %(value)s)
      AND (%(scope)s::text IS NULL OR v.scope = %(scope)s)
      AND (%(status)s::text IS NULL OR v.status = %(status)s)
      AND (%(text)s::text IS NULL OR strpos(lower(v.value), lower(%(text)s)) > 0 OR strpos(v.folded, lower(%(text)s)) > 0)
    UNION
    SELECT o.id FROM rowcall.value_mapping v JOIN rowcall.value_mapping o
        ON o.job_id = v.job_id AND o.field = v.field AND o.scope = v.scope AND o.folded = v.folded AND o.folded <> ''
    WHERE %(alike)s AND v.job_id = %(id)s AND v.id = ANY (coalesce(%(ids)s::bigint[], '{}'))
), said AS (
    UPDATE rowcall.value_mapping v
    SET overrode = v.overrode OR (v.status = 'AUTO_MATCHED' AND v.basis IN ('exact', 'synonym', 'folded')
            AND (%(action)s <> 'use' OR coalesce(%(key)s, v.target_key) IS DISTINCT FROM v.target_key)),
        status = CASE WHEN %(action)s IN ('empty', 'skip') THEN 'IGNORED'
                      WHEN %(action)s = 'use' AND coalesce(%(key)s, v.target_key) = v.target_key THEN 'USER_CONFIRMED'
                      ELSE 'USER_OVERRIDDEN' END,
        action = %(action)s,
        target_key = CASE WHEN %(action)s = 'use' THEN coalesce(%(key)s, v.target_key) END,
        target_label = CASE WHEN %(action)s <> 'use' THEN NULL WHEN %(key)s::text IS NULL THEN v.target_label ELSE %(label)s END,
        confidence = 1, basis = 'person', reason = %(reason)s, decided_by = %(by)s, decided_at = clock_timestamp()
    FROM chosen c
    WHERE v.job_id = %(id)s AND v.id = c.id AND NOT v.fixed
      AND (%(key)s::text IS NOT NULL OR %(action)s <> 'use' OR v.target_key IS NOT NULL)
      AND (%(within)s::text IS NULL OR v.scope IN ('', %(within)s))
    RETURNING v.id)
SELECT (SELECT count(*) FROM chosen) AS chosen, (SELECT count(*) FROM said) AS said,
       (SELECT count(*) FROM chosen c JOIN rowcall.value_mapping v ON v.job_id = %(id)s AND v.id = c.id WHERE v.fixed) AS fixed,
       (SELECT min(v.value) FROM chosen c JOIN rowcall.value_mapping v ON v.job_id = %(id)s AND v.id = c.id) AS first

-- fields_of_values --
-- The fields of some values of a job.
SELECT DISTINCT field FROM rowcall.value_mapping
WHERE job_id = %(id)s AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s)) AND (%(field)s::text IS NULL OR field = %(field)s)

-- remember_values --
-- Keep for the next file what people decided in a job. What was created is found by then. In one order everywhere: two who
-- keep the same at once wait for each other only one way.
INSERT INTO rowcall.value_decision (id, organisation_id, importer, field, scope, scope_label, value, digest, action, target_key,
    target_label, overrode, decided_by, decided_at, from_job, job_number)
SELECT gen_random_uuid(), j.organisation_id, j.importer, v.field, v.scope, v.scope_label, v.value, v.digest, v.action, v.target_key,
       v.target_label, v.overrode, v.decided_by, v.decided_at, j.id, j.number
FROM rowcall.value_mapping v JOIN rowcall.job j ON j.id = v.job_id
WHERE v.job_id = %(id)s AND v.basis = 'person' AND v.action <> 'create' ORDER BY v.digest
ON CONFLICT (organisation_id, importer, digest) DO UPDATE SET action = excluded.action, target_key = excluded.target_key,
    target_label = excluded.target_label, overrode = excluded.overrode, decided_by = excluded.decided_by,
    decided_at = excluded.decided_at, from_job = excluded.from_job, job_number = excluded.job_number,
    scope_label = excluded.scope_label
WHERE value_decision.decided_at <= excluded.decided_at

-- page_of_decisions --
-- What an organisation has decided, behind one, the latest first.
SELECT id, importer, field, scope, scope_label, value, action, target_key, target_label, decided_by, decided_at, from_job, job_number
FROM rowcall.value_decision
WHERE organisation_id = %(organisation)s AND (%(importer)s::text IS NULL OR importer = %(importer)s)
  AND (%(field)s::text IS NULL OR field = %(field)s) AND (%(text)s::text IS NULL OR strpos(lower(value), lower(%(text)s)) > 0)
  AND (%(last)s::uuid IS NULL OR (decided_at, id) < (%(at)s::timestamptz, %(last)s::uuid))
ORDER BY decided_at DESC, id DESC LIMIT %(most)s

-- decision_used --
-- The jobs that used a decision, the latest first.
SELECT j.id AS job_id, j.number, j.state, sum(v.occurrences)::bigint AS rows
FROM rowcall.value_decision d
JOIN rowcall.value_mapping v ON v.digest = d.digest AND v.basis IN ('remembered', 'person') AND v.action = d.action
    AND v.target_key IS NOT DISTINCT FROM d.target_key
JOIN rowcall.job j ON j.id = v.job_id AND j.organisation_id = d.organisation_id AND j.importer = d.importer AND j.removing_at IS NULL
WHERE d.id = %(id)s AND d.organisation_id = %(organisation)s
GROUP BY j.id ORDER BY j.created_at DESC LIMIT 100

-- revoke_decision --
-- Forget what an organisation decided.
DELETE FROM rowcall.value_decision WHERE id = %(id)s AND organisation_id = %(organisation)s
RETURNING id, importer, field, scope, scope_label, value, action, target_key, target_label, decided_by, decided_at, from_job, job_number

-- retry_left_out --
-- Rows that were left out for a value are to be tried again.
INSERT INTO rowcall.retry (job_id, row_number)
SELECT o.job_id, o.row_number FROM rowcall.outcome o
WHERE o.job_id = %(id)s AND o.status = 'skipped' AND EXISTS (
    SELECT FROM jsonb_array_elements(o.issues) issue
    WHERE issue ->> 'code' = 'VALUE_LEFT_OUT' AND issue ->> 'field' = %(field)s AND issue ->> 'value' = left(%(value)s, 200))
ON CONFLICT DO NOTHING

-- question_value --
-- Nobody knows any more what a value of a job stands for.
UPDATE rowcall.value_mapping SET status = 'UNRESOLVED', action = NULL, target_key = NULL, target_label = NULL, confidence = 0,
    basis = NULL, reason = 'what was decided holds no more', fixed = false, decided_by = NULL, decided_at = NULL
WHERE job_id = %(id)s AND digest = rowcall.value_digest(%(field)s, %(scope)s, %(value)s)
