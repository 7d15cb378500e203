-- lay_edits --
-- Lay texts over cells of a job's rows (`source`: row_number, position, after; null takes a correction back), and keep
-- what was there. Cells that have the text already are left alone; how many rows and cells changed.
WITH changed AS MATERIALIZED (
    SELECT w.row_number, w.position, r.cells[w.position + 1] AS before,
           coalesce(w.after, (coalesce(r.original, r.cells))[w.position + 1]) AS after,
           r.revision + 1 AS revision
    FROM {source} w
    CROSS JOIN LATERAL (SELECT * FROM rowcall.edited_row r WHERE r.job_id = %(id)s AND r.number = w.row_number OFFSET 0) r
    WHERE r.cells[w.position + 1] IS DISTINCT FROM coalesce(w.after, (coalesce(r.original, r.cells))[w.position + 1])),
kept AS (
    INSERT INTO rowcall.cell_edit (job_id, row_number, revision, position, before, after, account, at)
    SELECT %(id)s, row_number, revision, position, before, after, %(who)s, statement_timestamp() FROM changed),
each AS (
    SELECT row_number, revision, array_agg(position ORDER BY position) AS positions,
           array_agg(after ORDER BY position) AS texts
    FROM changed GROUP BY row_number, revision),
laid AS (
    INSERT INTO rowcall.row_edit AS e (job_id, row_number, cells, problems, revision, account, at)
    SELECT %(id)s, each.row_number,
           CASE WHEN cardinality(c.corrected) > 0 THEN u.cells END,
           CASE WHEN cardinality(c.corrected) > 0 THEN rowcall.problems_left(r.problems, c.corrected) END,
           each.revision, %(who)s, statement_timestamp()
    FROM each
    CROSS JOIN LATERAL (SELECT * FROM rowcall.row r WHERE r.job_id = %(id)s AND r.number = each.row_number OFFSET 0) r
    LEFT JOIN LATERAL (SELECT * FROM rowcall.row_edit b WHERE b.job_id = %(id)s AND b.row_number = each.row_number OFFSET 0) b ON true
    CROSS JOIN LATERAL (SELECT rowcall.with_cells(coalesce(b.cells, r.cells), each.positions, each.texts) AS cells OFFSET 0) u
    CROSS JOIN LATERAL (SELECT ARRAY(SELECT place - 1 FROM generate_series(1, cardinality(u.cells)) place
                          WHERE u.cells[place] IS DISTINCT FROM r.cells[place])::int[] AS corrected OFFSET 0) c
    ON CONFLICT (job_id, row_number) DO UPDATE SET cells = excluded.cells, problems = excluded.problems,
        revision = excluded.revision, account = excluded.account, at = excluded.at)
SELECT (SELECT count(*) FROM each) AS rows, (SELECT count(*) FROM changed) AS cells

-- has_edits --
-- Whether rows of a job were corrected, also if all of it is taken back.
SELECT EXISTS (SELECT FROM rowcall.row_edit WHERE job_id = %(id)s)

-- edited_of --
-- Those of some rows that have corrections.
SELECT row_number FROM rowcall.row_edit WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s) AND cells IS NOT NULL

-- next_edited --
-- The next rows of a job that have corrections.
SELECT row_number FROM rowcall.row_edit WHERE job_id = %(id)s AND row_number > %(after)s AND cells IS NOT NULL
ORDER BY row_number LIMIT %(most)s

-- lost_to_edited --
-- Those of some rows that lost against another row of the file which was corrected since, with that one.
SELECT d.row_number, d.winner FROM rowcall.duplicate d
CROSS JOIN LATERAL (SELECT FROM rowcall.row_edit e WHERE e.job_id = d.job_id AND e.row_number = d.winner OFFSET 0) e
WHERE d.job_id = %(id)s AND d.row_number = ANY (%(numbers)s) AND d.winner <> d.row_number

-- row_to_edit --
-- A row with what became of it.
SELECT number AS row, line, status, issues, cells, target_key, attempt, at, original, revision,
       result -> 'changes' AS changes
FROM rowcall.row_status
WHERE job_id = %(id)s AND number = %(number)s

-- edits_of --
-- The corrections of a row, the latest first.
SELECT revision, position, before, after, account, at FROM rowcall.cell_edit
WHERE job_id = %(id)s AND row_number = %(number)s ORDER BY revision DESC, position

-- count_edits --
-- How many cells of how many rows are corrected now, by who corrected the row last.
SELECT e.account, count(*) AS rows, sum((
           SELECT count(*) FROM generate_series(1, cardinality(e.cells)) place
           WHERE e.cells[place] IS DISTINCT FROM r.cells[place]))::bigint AS cells
FROM rowcall.row_edit e
CROSS JOIN LATERAL (SELECT r.cells FROM rowcall.row r WHERE r.job_id = e.job_id AND r.number = e.row_number OFFSET 0) r
WHERE e.job_id = %(id)s AND e.cells IS NOT NULL GROUP BY e.account ORDER BY rows DESC, e.account

-- duplicates_around --
-- Some rows with those that they lose against, and all that lose against the same; no more than so many.
WITH winners AS (
    SELECT d.winner AS number FROM rowcall.duplicate d WHERE d.job_id = %(id)s AND d.row_number = ANY (%(numbers)s)
    UNION SELECT unnest(%(numbers)s::bigint[]))
SELECT number FROM winners
UNION SELECT row_number FROM rowcall.duplicate WHERE job_id = %(id)s AND winner = ANY (ARRAY(SELECT number FROM winners))
ORDER BY 1 LIMIT %(most)s

-- forget_duplicates --
-- It is to be decided anew whether some rows lose against others.
DELETE FROM rowcall.duplicate WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s)

-- cells_to_replace --
-- Cells of a column in which a text is found, of the rows that are wanted and can still be corrected.
SELECT row_number, %(position)s::int AS position, before, after FROM (
    SELECT s.number AS row_number, s.cells[%(position)s + 1] AS before,
           CASE WHEN %(part)s THEN replace(s.cells[%(position)s + 1], %(find)s, %(with)s) ELSE %(with)s END AS after
    FROM rowcall.row_status s
    WHERE s.job_id = %(id)s
      AND CASE WHEN %(part)s THEN strpos(s.cells[%(position)s + 1], %(find)s) > 0
               ELSE coalesce(s.cells[%(position)s + 1], '') = %(find)s END
      AND (cardinality(%(open)s::text[]) = 0 OR s.status = ANY (%(open)s::text[]))
      AND (cardinality(%(statuses)s::text[]) = 0 OR s.status = ANY (%(statuses)s::text[]))
      AND (%(numbers)s::bigint[] IS NULL OR s.number = ANY (%(numbers)s::bigint[]))
      AND (NOT %(edited)s OR s.original IS NOT NULL)
      AND (%(text)s::text IS NULL OR EXISTS (
          SELECT FROM unnest(s.cells) cell WHERE strpos(lower(cell), lower(%(text)s)) > 0))
      AND ((%(code)s::text IS NULL AND %(field)s::text IS NULL) OR EXISTS (
          SELECT FROM jsonb_array_elements(s.issues) issue
          WHERE (%(code)s::text IS NULL OR issue ->> 'code' = %(code)s)
            AND (%(field)s::text IS NULL OR %(field)s = ANY (string_to_array(issue ->> 'field', ', ')))))) each
WHERE before IS DISTINCT FROM after

-- count_wanted --
-- How many cells some corrections are for, and a number that stands for just these.
SELECT count(*), coalesce(bit_xor(hashtextextended(row_number || ' ' || coalesce(before, ''), position)), 0) FROM {source} w

-- judge_returned --
-- Of rows that came back with their keys: what keeps a row from being merged, if anything does. Each key is taken apart and
-- hashed once (MATERIALIZED).
CREATE TEMPORARY TABLE rowcall_judged ON COMMIT DROP AS
WITH parsed AS MATERIALIZED (
    SELECT t.line, t.cells, t.problem, nullif(btrim(t.key), '') AS key,
           regexp_match(btrim(t.key), '^(BU[0-9]{1,20})\.([0-9]{1,18})\.([0-9]{1,4})\.([0-9]{1,9})\.([0-9a-f]{16})$') AS part
    FROM pg_temp.rowcall_returned t),
known AS MATERIALIZED (
    SELECT p.line, p.cells, p.problem, p.part[2]::bigint AS row_number, p.part[3]::int AS attempt, p.part[4]::int AS revision,
           CASE WHEN p.key IS NULL THEN 'NO_ROW_KEY'
                WHEN p.part[1] <> %(job)s THEN 'FOREIGN_ROW_KEY'
                WHEN p.part IS NULL OR p.part[5] <> left(encode(sha256(convert_to(
                    concat_ws(' ', %(id)s::uuid, p.part[2], p.part[3], p.part[4]), 'UTF8')), 'hex'), 16) THEN 'BAD_ROW_KEY'
                END AS code
    FROM parsed p)
SELECT k.line, k.cells, s.number AS row_number,
       coalesce(k.code, CASE WHEN s.number IS NULL THEN 'BAD_ROW_KEY'
           WHEN k.problem IS NOT NULL THEN k.problem
           WHEN row_number() OVER (PARTITION BY s.number ORDER BY k.line) > 1 THEN 'DUPLICATE_ROW_KEY' END) AS code,
       CASE WHEN cardinality(%(open)s::text[]) > 0 AND s.status <> ALL (%(open)s::text[]) THEN 'ROW_DONE'
            WHEN (k.attempt, k.revision) IS DISTINCT FROM (s.attempt::int, s.revision) THEN 'STALE_ROW_KEY' END AS late
FROM known k
LEFT JOIN LATERAL (
    SELECT * FROM rowcall.row_status s WHERE s.job_id = %(id)s AND s.number = k.row_number AND k.code IS NULL OFFSET 0) s ON true

-- find_returned --
-- The cells of those that differ from what counts now. A blank is like nothing, line ends are like each other, and a text
-- that was too long for a workbook counts as unchanged where only its beginning came back.
CREATE TEMPORARY TABLE rowcall_wanted ON COMMIT DROP AS
SELECT j.row_number, p.position, j.late, coalesce(j.cells[p.place], '') AS after
FROM pg_temp.rowcall_judged j
CROSS JOIN LATERAL (SELECT * FROM rowcall.edited_row r WHERE r.job_id = %(id)s AND r.number = j.row_number OFFSET 0) r
CROSS JOIN LATERAL unnest(%(positions)s::int[]) WITH ORDINALITY AS p (position, place)
CROSS JOIN LATERAL (SELECT replace(coalesce(j.cells[p.place], ''), E'\r\n', E'\n') AS came,
                           replace(coalesce(r.cells[p.position + 1], ''), E'\r\n', E'\n') AS counts) c
WHERE j.code IS NULL AND c.came <> c.counts
  AND NOT (length(c.counts) > %(most)s AND c.came = left(c.counts, %(most)s) || '…')

-- refuse_returned --
-- Rows that came too late are not merged if they would change something.
WITH late AS (DELETE FROM pg_temp.rowcall_wanted WHERE late IS NOT NULL RETURNING row_number, late)
UPDATE pg_temp.rowcall_judged j SET code = l.late FROM late l WHERE j.row_number = l.row_number AND j.code IS NULL

-- returned_refused --
-- Rows that were not merged, the first ones.
SELECT line, row_number, code FROM pg_temp.rowcall_judged WHERE code IS NOT NULL ORDER BY line LIMIT %(most)s

-- count_returned --
-- How many rows came back, and how many of them were not merged.
SELECT count(*), count(code) FROM pg_temp.rowcall_judged

-- retry_returned --
-- Those that were merged are to be tried again.
INSERT INTO rowcall.retry (job_id, row_number) SELECT DISTINCT %(id)s::uuid, row_number FROM pg_temp.rowcall_wanted
