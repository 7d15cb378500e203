-- Rows can be corrected: what came in stays as it is, corrections are laid over it.

-- Corrections laid over rows: a row's cells as they count now, and what its reader still has to say of them. Without
-- cells they were all taken back. What is not here was never corrected.
CREATE TABLE rowcall.row_edit (
    job_id      uuid NOT NULL,
    row_number  bigint NOT NULL,
    cells       text[],
    problems    jsonb,
    -- how often it was corrected
    revision    integer NOT NULL,
    account     text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (job_id, row_number)
);

-- Every correction of a cell, those taken back included.
CREATE TABLE rowcall.cell_edit (
    job_id      uuid NOT NULL,
    row_number  bigint NOT NULL,
    revision    integer NOT NULL,
    position    integer NOT NULL,
    before      text,
    after       text,
    account     text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (job_id, row_number, revision, position)
);

-- Cells with some of them replaced; positions count from 0.
CREATE FUNCTION rowcall.with_cells(cells text[], positions integer[], texts text[]) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    FOR place IN 1 .. cardinality(positions) LOOP
        cells[positions[place] + 1] := texts[place];
    END LOOP;
    RETURN cells;
END
$$;

-- What a reader said of a row, without what it said of cells that somebody corrected, or of how it was written.
CREATE FUNCTION rowcall.problems_left(problems jsonb, corrected integer[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN count(*) > 0 THEN jsonb_build_object('cells', jsonb_agg(cell)) END
    FROM jsonb_array_elements(problems -> 'cells') cell WHERE (cell ->> 'position')::int <> ALL (corrected)
$$;

-- Rows as they count: as they came in, with the corrections laid over them.
CREATE VIEW rowcall.edited_row WITH (security_invoker = true) AS
SELECT r.job_id, r.number, r.line, coalesce(e.cells, r.cells) AS cells,
       CASE WHEN e.cells IS NULL THEN r.problems ELSE e.problems END AS problems,
       CASE WHEN e.cells IS NOT NULL THEN r.cells END AS original, coalesce(e.revision, 0) AS revision
FROM rowcall.row r
LEFT JOIN rowcall.row_edit e ON e.job_id = r.job_id AND e.row_number = r.number;

CREATE OR REPLACE VIEW rowcall.row_status WITH (security_invoker = true) AS
SELECT r.job_id, r.number, r.line, r.cells,
       CASE WHEN o.status IS NULL AND j.state = 'CANCELLED' THEN 'cancelled'
            WHEN o.status IS NULL OR t.row_number IS NOT NULL THEN 'pending'
            ELSE o.status::text END AS status,
       o.attempt, o.target_key, o.issues, o.before, o.result, o.at, r.original, r.revision
FROM rowcall.edited_row r
JOIN rowcall.job j ON j.id = r.job_id
LEFT JOIN rowcall.outcome o ON o.job_id = r.job_id AND o.row_number = r.number
LEFT JOIN rowcall.retry t ON t.job_id = r.job_id AND t.row_number = r.number;

SELECT rowcall.keep_apart('row_edit'), rowcall.keep_apart('cell_edit', 'SELECT, INSERT');
