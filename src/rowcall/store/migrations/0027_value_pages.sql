-- Pages of values cost the same however many there are: each field knows how many it has, each field and status has its run in one index.

ALTER TABLE rowcall.value_field
    ADD COLUMN value_count bigint NOT NULL DEFAULT 0,
    ADD COLUMN unresolved bigint NOT NULL DEFAULT 0,
    ADD COLUMN row_count bigint NOT NULL DEFAULT 0,
    ADD COLUMN covered bigint NOT NULL DEFAULT 0;
UPDATE rowcall.value_field f
SET value_count = n.values, unresolved = n.unresolved, row_count = n.rows, covered = n.covered
FROM (SELECT job_id, field, count(*) AS values, count(*) FILTER (WHERE status = 'UNRESOLVED') AS unresolved, sum(occurrences) AS rows,
             coalesce(sum(occurrences) FILTER (WHERE status <> 'UNRESOLVED'), 0) AS covered
      FROM rowcall.value_mapping GROUP BY job_id, field) n
WHERE f.job_id = n.job_id AND f.field = n.field;
DROP INDEX rowcall.value_mapping_frequent;
CREATE INDEX value_mapping_frequent ON rowcall.value_mapping (job_id, field, status, occurrences DESC, id);
