-- lay_edits --
-- Lay texts over cells of a job's rows (`source`: row_number, position, after; null takes a correction back), and keep
-- what was there. Cells that have the text already are left alone; how many rows and cells changed.
WITH changed AS MATERIALIZED (
    SELECT w.row_number, w.position, r.cells[w.position + 1] AS before,
           coalesce(w.after, (coalesce(r.original, r.cells))[w.position + 1]) AS after,
           r.revision + 1 AS revision
    FROM {source} w JOIN rowcall.edited_row r ON r.job_id = %(id)s AND r.number = w.row_number
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
           CASE WHEN u.cells IS DISTINCT FROM r.cells THEN u.cells END,
           CASE WHEN u.cells IS DISTINCT FROM r.cells THEN rowcall.problems_left(r.problems, ARRAY(
               SELECT place - 1 FROM generate_series(1, cardinality(u.cells)) place
               WHERE u.cells[place] IS DISTINCT FROM r.cells[place])::int[]) END,
           each.revision, %(who)s, statement_timestamp()
    FROM each JOIN rowcall.row r ON r.job_id = %(id)s AND r.number = each.row_number
    LEFT JOIN rowcall.row_edit b ON b.job_id = %(id)s AND b.row_number = each.row_number,
    LATERAL (SELECT rowcall.with_cells(coalesce(b.cells, r.cells), each.positions, each.texts) AS cells) u
    ON CONFLICT (job_id, row_number) DO UPDATE SET cells = excluded.cells, problems = excluded.problems,
        revision = excluded.revision, account = excluded.account, at = excluded.at)
SELECT (SELECT count(*) FROM each) AS rows, (SELECT count(*) FROM changed) AS cells

-- has_edits --
-- Whether corrections are laid over rows of a job.
SELECT EXISTS (SELECT FROM rowcall.row_edit WHERE job_id = %(id)s AND cells IS NOT NULL)

-- edited_of --
-- Those of some rows that have corrections.
SELECT row_number FROM rowcall.row_edit WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s) AND cells IS NOT NULL

-- row_to_edit --
-- A row with what became of it.
SELECT number AS row, line, status, issues, cells, target_key, attempt, at, original, revision FROM rowcall.row_status
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
FROM rowcall.row_edit e JOIN rowcall.row r ON r.job_id = e.job_id AND r.number = e.row_number
WHERE e.job_id = %(id)s AND e.cells IS NOT NULL GROUP BY e.account ORDER BY rows DESC, e.account

-- duplicates_around --
-- Some rows with those that they lose against, and all that lose against the same; no more than so many.
WITH winners AS (
    SELECT d.winner AS number FROM rowcall.duplicate d WHERE d.job_id = %(id)s AND d.row_number = ANY (%(numbers)s)
    UNION SELECT unnest(%(numbers)s::bigint[]))
SELECT number FROM winners
UNION SELECT d.row_number FROM rowcall.duplicate d JOIN winners w ON d.winner = w.number WHERE d.job_id = %(id)s
ORDER BY 1 LIMIT %(most)s

-- forget_duplicates --
-- It is to be decided anew whether some rows lose against others.
DELETE FROM rowcall.duplicate WHERE job_id = %(id)s AND row_number = ANY (%(numbers)s)
