-- decided_fields --
-- The fields of a job with values that stand for something else than a look at the table would tell.
SELECT DISTINCT field FROM rowcall.value_mapping
WHERE job_id = %(id)s AND status <> 'UNRESOLVED' AND basis <> 'exact'

-- said_of_values --
-- What was decided of some values of a field, and whether somebody said so when the plan was agreed to already.
SELECT g.value, g.scope, v.action, CASE v.action WHEN 'create' THEN v.target_label ELSE v.target_key END,
       coalesce(v.decided_at > (SELECT submitted_at FROM rowcall.plan WHERE job_id = %(id)s), false)
FROM unnest(%(values)s::text[], %(scopes)s::text[]) g (value, scope)
JOIN rowcall.value_mapping v ON v.job_id = %(id)s AND v.digest = rowcall.value_digest(%(field)s, g.scope, g.value)
WHERE v.status <> 'UNRESOLVED' AND v.basis <> 'exact'

-- gathered_table --
-- Where the distinct values of batches are put together.
CREATE TEMPORARY TABLE rowcall_gathered (scope text NOT NULL, value text NOT NULL, folded text NOT NULL,
    occurrences bigint NOT NULL) ON COMMIT DROP

-- distinct_table --
-- Each of these values once, numbered by how frequent it is.
CREATE TEMPORARY TABLE rowcall_distinct (id bigint PRIMARY KEY, scope text NOT NULL, value text NOT NULL, folded text NOT NULL,
    digest bytea NOT NULL, occurrences bigint NOT NULL) ON COMMIT DROP

-- matched_table --
-- Where it is put together what they stand for.
CREATE TEMPORARY TABLE rowcall_matched (id bigint PRIMARY KEY, status text, action text, target_key text, target_label text,
    confidence real, basis text, reason text, candidates jsonb, scope_label text) ON COMMIT DROP

-- sum_gathered --
-- The distinct values that were gathered of a field.
INSERT INTO rowcall_distinct
SELECT row_number() OVER (ORDER BY sum(occurrences) DESC, scope COLLATE "C", value COLLATE "C"), scope, value, min(folded),
       rowcall.value_digest(%(field)s, scope, value), sum(occurrences)
FROM rowcall_gathered GROUP BY scope, value

-- drop_ungathered --
-- Forget values that the file doesn't bring to a field any more.
DELETE FROM rowcall.value_mapping v
WHERE v.job_id = %(id)s AND v.field = %(field)s AND NOT EXISTS (SELECT FROM rowcall_distinct d WHERE d.digest = v.digest)

-- count_known --
-- Values that the job has get their count, and are not looked at again.
WITH known AS (
    UPDATE rowcall.value_mapping v SET occurrences = d.occurrences FROM rowcall_distinct d
    WHERE v.job_id = %(id)s AND v.digest = d.digest RETURNING d.id)
DELETE FROM rowcall_distinct d USING known k WHERE d.id = k.id

-- drop_known --
-- Values that the job has are not looked at again.
DELETE FROM rowcall_distinct d USING rowcall.value_mapping v WHERE v.job_id = %(id)s AND v.digest = d.digest

-- question_known --
-- Values that the job has stand for nothing any more. They are looked at anew, with the count that they have.
WITH known AS (
    DELETE FROM rowcall.value_mapping v USING rowcall_distinct d WHERE v.job_id = %(id)s AND v.digest = d.digest
    RETURNING d.id, v.occurrences)
UPDATE rowcall_distinct d SET occurrences = k.occurrences FROM known k WHERE d.id = k.id

-- fix_values --
-- Rows were written by what these stand for: that doesn't change any more.
UPDATE rowcall.value_mapping SET fixed = true WHERE job_id = %(id)s AND status <> 'UNRESOLVED' AND NOT fixed

-- free_values --
-- Nothing is written yet: what values stand for may change.
UPDATE rowcall.value_mapping SET fixed = false WHERE job_id = %(id)s AND fixed

-- add_matched --
-- Values of a field, and what they stand for.
INSERT INTO rowcall.value_mapping (job_id, field, scope, scope_label, value, folded, digest, occurrences, status, action, target_key,
    target_label, confidence, basis, reason, candidates)
SELECT %(id)s, %(field)s, d.scope, m.scope_label, d.value, d.folded, d.digest, d.occurrences, m.status, m.action, m.target_key,
       m.target_label, m.confidence, m.basis, m.reason, m.candidates
FROM rowcall_matched m JOIN rowcall_distinct d ON d.id = m.id ORDER BY d.id

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
SELECT f.field, f.unresolved AS values, f.row_count - f.covered AS rows, ARRAY(
    SELECT v.value FROM rowcall.value_mapping v WHERE v.job_id = f.job_id AND v.field = f.field AND v.status = 'UNRESOLVED'
    ORDER BY v.occurrences DESC, v.id LIMIT 5) AS first
FROM rowcall.value_field f WHERE f.job_id = %(id)s AND f.asks AND f.unresolved > 0 ORDER BY f.field

-- asked_from --
-- Where a job was before it asked about values.
SELECT before FROM rowcall.job_event
WHERE job_id = %(id)s AND after = 'CELL_MAPPING' AND before <> 'PAUSED' ORDER BY id DESC LIMIT 1

-- remembered_fields --
-- The fields of an importer that an organisation has decided something of.
SELECT DISTINCT field FROM rowcall.value_decision WHERE organisation_id = %(organisation)s AND importer = %(importer)s

-- remembered_values --
-- What an organisation decided of some values of a field.
SELECT d.id, r.action, r.target_key, r.target_label, r.overrode, r.decided_by, r.job_number
FROM rowcall_distinct d JOIN rowcall.value_decision r
    ON r.organisation_id = %(organisation)s AND r.importer = %(importer)s AND r.digest = d.digest
WHERE d.id BETWEEN %(first)s AND %(last)s

-- page_of_values --
-- Values of a job behind one, the most frequent first. Each field and status has its run in the index: of each the next few are
-- taken, so that a page costs the same wherever it is, whatever is filtered by them. One with equal counts needs two looks.
WITH found AS (
    SELECT v.id, v.occurrences FROM rowcall.value_field f CROSS JOIN unnest(%(statuses)s::text[]) s (status) CROSS JOIN LATERAL (
        (SELECT v.id, v.occurrences FROM rowcall.value_mapping v
         WHERE v.job_id = %(id)s AND v.field = f.field AND v.status = s.status AND v.occurrences = %(count)s::bigint AND v.id > %(last)s::bigint
           AND (%(text)s::text IS NULL OR strpos(lower(v.value), lower(%(text)s)) > 0 OR strpos(v.folded, lower(%(text)s)) > 0)
         ORDER BY v.id LIMIT %(most)s)
        UNION ALL
        (SELECT v.id, v.occurrences FROM rowcall.value_mapping v
         WHERE v.job_id = %(id)s AND v.field = f.field AND v.status = s.status AND v.occurrences < %(count)s::bigint
           AND (%(text)s::text IS NULL OR strpos(lower(v.value), lower(%(text)s)) > 0 OR strpos(v.folded, lower(%(text)s)) > 0)
         ORDER BY v.occurrences DESC, v.id LIMIT %(most)s)) v
    WHERE f.job_id = %(id)s AND (%(field)s::text IS NULL OR f.field = %(field)s)
    ORDER BY v.occurrences DESC, v.id LIMIT %(most)s)
SELECT v.id, v.field, v.scope, v.scope_label, v.value, v.folded, v.occurrences, v.status, v.action, v.target_key, v.target_label,
       v.confidence, v.basis, v.reason, v.candidates, v.fixed, v.decided_by, v.decided_at
FROM found JOIN rowcall.value_mapping v ON v.job_id = %(id)s AND v.id = found.id
ORDER BY v.occurrences DESC, v.id

-- count_values --
-- How many values a field has, of how many rows, and how many of them are settled.
UPDATE rowcall.value_field f
SET value_count = n.values, unresolved = n.unresolved, row_count = n.rows, covered = n.covered
FROM (SELECT count(*) AS values, count(*) FILTER (WHERE v.status = 'UNRESOLVED') AS unresolved,
             coalesce(sum(v.occurrences), 0) AS rows,
             coalesce(sum(v.occurrences) FILTER (WHERE v.status <> 'UNRESOLVED'), 0) AS covered
      FROM rowcall.value_mapping v WHERE v.job_id = %(id)s AND v.field = %(field)s) n
WHERE f.job_id = %(id)s AND f.field = %(field)s

-- counted_values --
-- The fields of a job whose values were gathered: how many values and rows, and how many of them are settled.
SELECT field, asks, value_count AS values, unresolved, row_count AS rows, covered
FROM rowcall.value_field WHERE job_id = %(id)s ORDER BY field

-- decide_values --
-- What a person says of some values: by id, by value, or all that fit.
WITH chosen AS (
    SELECT v.id, v.value, v.status, v.fixed FROM rowcall.value_mapping v
    WHERE v.job_id = %(id)s AND (%(ids)s::bigint[] IS NULL OR v.id = ANY (%(ids)s))
      AND (%(field)s::text IS NULL OR v.field = %(field)s) AND (%(value)s::text IS NULL OR v.value = %(value)s)
      AND (%(scope)s::text IS NULL OR v.scope = %(scope)s)
      AND (%(scope)s::text IS NULL OR %(field)s::text IS NULL OR %(value)s::text IS NULL
           OR v.digest = rowcall.value_digest(%(field)s, %(scope)s, %(value)s))
      AND (%(status)s::text IS NULL OR v.status = %(status)s)
      AND (%(text)s::text IS NULL OR strpos(lower(v.value), lower(%(text)s)) > 0 OR strpos(v.folded, lower(%(text)s)) > 0)
    UNION
    SELECT o.id, o.value, o.status, o.fixed FROM rowcall.value_mapping v JOIN rowcall.value_mapping o
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
      AND (%(action)s <> 'create' OR v.scope <> '' OR v.field <> ALL (%(scoped)s::text[]))
    RETURNING v.field, v.occurrences, c.status AS before
), counted AS (
    UPDATE rowcall.value_field f SET unresolved = f.unresolved - n.values, covered = f.covered + n.rows
    FROM (SELECT field, count(*) AS values, sum(occurrences) AS rows FROM said WHERE before = 'UNRESOLVED' GROUP BY field) n
    WHERE f.job_id = %(id)s AND f.field = n.field)
SELECT count(*) AS chosen, (SELECT count(*) FROM said) AS said, count(*) FILTER (WHERE fixed) AS fixed, min(value) AS first
FROM chosen

-- fields_of_values --
-- The fields of some values of a job.
SELECT DISTINCT field FROM rowcall.value_mapping
WHERE job_id = %(id)s AND id = ANY (%(ids)s::bigint[]) AND (%(field)s::text IS NULL OR field = %(field)s)
UNION ALL
SELECT field FROM rowcall.value_field WHERE job_id = %(id)s AND field = %(field)s AND %(ids)s::bigint[] IS NULL

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
-- The jobs that used a decision, the latest first. What went back to its columns had written nothing before.
SELECT j.id AS job_id, j.number, j.state, coalesce((j.config ->> 'dry_run')::boolean, false) AS dry_run,
       EXISTS (SELECT FROM rowcall.job_event e WHERE e.job_id = j.id AND e.after = 'PROCESSING' AND NOT EXISTS (
           SELECT FROM rowcall.job_event b WHERE b.job_id = j.id AND b.after = 'COLUMN_MAPPING' AND b.id > e.id)) AS processed,
       sum(v.occurrences)::bigint AS rows
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

-- forget_value --
-- A value of a job, and what it stands for: it is looked at anew when values are gathered.
DELETE FROM rowcall.value_mapping WHERE job_id = %(id)s AND digest = rowcall.value_digest(%(field)s, %(scope)s, %(value)s)

-- question_value --
-- Nobody knows any more what a value of a job stands for.
UPDATE rowcall.value_mapping SET status = 'UNRESOLVED', action = NULL, target_key = NULL, target_label = NULL, confidence = 0,
    basis = NULL, reason = 'what was decided holds no more', fixed = false, decided_by = NULL, decided_at = NULL
WHERE job_id = %(id)s AND digest = rowcall.value_digest(%(field)s, %(scope)s, %(value)s)
