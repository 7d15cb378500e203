-- remember_column --
-- What a person decided of columns with a header; the latest counts.
INSERT INTO rowcall.column_decision (id, organisation_id, importer, header, written, target_field, decided_by)
VALUES (%(id)s, %(organisation)s, %(importer)s, %(header)s, %(written)s, %(field)s, %(by)s)
ON CONFLICT (organisation_id, importer, header) DO UPDATE
SET written = excluded.written, target_field = excluded.target_field, decided_by = excluded.decided_by,
    decided_at = clock_timestamp()

-- column_decisions --
-- What was decided, the latest first.
SELECT id, importer, header, written, target_field, decided_by, decided_at FROM rowcall.column_decision
WHERE organisation_id = %(organisation)s AND (%(importer)s::text IS NULL OR importer = %(importer)s)
ORDER BY decided_at DESC, id DESC

-- forget_column --
-- A decision that doesn't count any more.
DELETE FROM rowcall.column_decision WHERE organisation_id = %(organisation)s AND id = %(id)s
RETURNING id, importer, header, written, target_field, decided_by, decided_at

-- save_template --
-- A mapping to be used again; the latest of its kind counts.
INSERT INTO rowcall.mapping_template (id, organisation_id, source_system, importer, variant, columns, constants, saved_by)
VALUES (%(id)s, %(organisation)s, %(source)s, %(importer)s, %(variant)s, %(columns)s, %(constants)s, %(by)s)
ON CONFLICT (organisation_id, source_system, importer, variant) DO UPDATE
SET columns = excluded.columns, constants = excluded.constants, saved_by = excluded.saved_by, saved_at = clock_timestamp()
RETURNING id, source_system, importer, variant, columns, constants, saved_by, saved_at

-- templates --
-- Templates of an organisation, of one source system or importer if named.
SELECT id, source_system, importer, variant, columns, constants, saved_by, saved_at FROM rowcall.mapping_template
WHERE organisation_id = %(organisation)s AND (%(source)s::text IS NULL OR source_system = %(source)s)
  AND (%(importer)s::text IS NULL OR importer = %(importer)s) AND (%(variant)s::text IS NULL OR variant = %(variant)s)
  AND (%(id)s::uuid IS NULL OR id = %(id)s)
ORDER BY source_system, importer, variant

-- delete_template --
-- A template that isn't used again.
DELETE FROM rowcall.mapping_template WHERE organisation_id = %(organisation)s AND id = %(id)s
