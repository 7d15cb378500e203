-- Each row of a job is looked up by itself (OFFSET 0): where PostgreSQL expects few, it would read all of a job for each row.
CREATE OR REPLACE VIEW rowcall.edited_row WITH (security_invoker = true) AS
SELECT r.job_id, r.number, r.line, coalesce(e.cells, r.cells) AS cells,
       CASE WHEN e.cells IS NULL THEN r.problems ELSE e.problems END AS problems,
       CASE WHEN e.cells IS NOT NULL THEN r.cells END AS original, coalesce(e.revision, 0) AS revision
FROM rowcall.row r
LEFT JOIN LATERAL (SELECT * FROM rowcall.row_edit e WHERE e.job_id = r.job_id AND e.row_number = r.number OFFSET 0) e ON true;
CREATE OR REPLACE VIEW rowcall.row_status WITH (security_invoker = true) AS
SELECT r.job_id, r.number, r.line, r.cells,
       CASE WHEN t.row_number IS NOT NULL AND o.status IS NOT NULL THEN 'pending'
            WHEN v.result IN ('deleted', 'restored') THEN 'reverted'
            WHEN o.status IS NOT NULL THEN o.status::text
            WHEN j.state IN ('CANCELLED', 'SUPERSEDED', 'REVERTING', 'REVERTED') OR j.paused_from = 'REVERTING' THEN 'cancelled'
            WHEN rowcall.shows_plan(j.state, j.paused_from) THEN coalesce((
                SELECT CASE WHEN p.last_row >= r.number THEN p.implied::text END FROM rowcall.plan_piece p
                WHERE p.job_id = r.job_id AND p.first_row <= r.number ORDER BY p.first_row DESC LIMIT 1), 'pending')
            ELSE 'pending' END AS status,
       o.attempt, o.target_key, CASE WHEN v.issue IS NULL THEN o.issues ELSE coalesce(o.issues, '[]') || v.issue END AS issues,
       o.before, o.result, coalesce(v.at, o.at) AS at, r.original, r.revision
FROM rowcall.edited_row r
JOIN rowcall.job j ON j.id = r.job_id
LEFT JOIN LATERAL (SELECT * FROM rowcall.outcome o WHERE o.job_id = r.job_id AND o.row_number = r.number
    AND (o.attempt > 0 OR rowcall.shows_plan(j.state, j.paused_from)) OFFSET 0) o ON true
LEFT JOIN LATERAL (SELECT * FROM rowcall.retry t WHERE t.job_id = r.job_id AND t.row_number = r.number OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT * FROM rowcall.reversal v WHERE v.job_id = r.job_id AND v.row_number = r.number OFFSET 0) v ON true;
