-- What an undo needs to know of an import, and what it leaves: which rows were taken back, and why others were not.

-- The transaction that had last written the row of the target, when it was matched.
ALTER TABLE rowcall.outcome ADD COLUMN seen xid;

-- `stamp` is the transaction that wrote the batch's outcomes, as a value: where it is not theirs any more, the database
-- was restored from a dump since, and transactions tell nothing.
ALTER TABLE rowcall.batch ADD COLUMN reverted integer NOT NULL DEFAULT 0, ADD COLUMN stamp xid;
ALTER TABLE rowcall.batch DROP CONSTRAINT batch_balance;
ALTER TABLE rowcall.batch ADD CONSTRAINT batch_balance CHECK (
    state = 'pending' OR created + updated + unchanged + skipped + failed + reverted = last_row - first_row + 1);

CREATE TABLE rowcall.undo (
    job_id        uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    number        smallint NOT NULL,
    account       text NOT NULL,
    request_id    text,
    which         jsonb NOT NULL,
    partial       boolean NOT NULL,
    came_from     text NOT NULL,
    round         integer NOT NULL DEFAULT 1,
    next_row      bigint NOT NULL,
    standing      bigint NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at  timestamptz,
    results       jsonb,
    PRIMARY KEY (job_id, number)
);
CREATE UNIQUE INDEX undo_under_way ON rowcall.undo (job_id) WHERE completed_at IS NULL;

CREATE TABLE rowcall.reversal (
    job_id      uuid NOT NULL,
    row_number  bigint NOT NULL,
    undo        smallint NOT NULL,
    result      text NOT NULL CHECK (result IN ('deleted', 'restored', 'changed', 'blocked', 'refused', 'gone')),
    target_key  text[],
    issue       jsonb,
    stamp       xid,
    stands_for  xid,
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, row_number)
);
CREATE INDEX reversal_kept ON rowcall.reversal (job_id, row_number) WHERE result IN ('changed', 'blocked', 'refused');
CREATE INDEX reversal_target ON rowcall.reversal USING hash (target_key) WHERE stamp IS NOT NULL;

SELECT rowcall.keep_apart('undo'), rowcall.keep_apart('reversal', 'SELECT');

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
LEFT JOIN rowcall.outcome o ON o.job_id = r.job_id AND o.row_number = r.number
    AND (o.attempt > 0 OR rowcall.shows_plan(j.state, j.paused_from))
LEFT JOIN rowcall.retry t ON t.job_id = r.job_id AND t.row_number = r.number
LEFT JOIN rowcall.reversal v ON v.job_id = r.job_id AND v.row_number = r.number;
