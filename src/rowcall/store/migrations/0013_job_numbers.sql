-- Numbers of jobs from a counter that nobody waits for: a row that counts is locked until whoever took a number commits.

CREATE SEQUENCE rowcall.job_counter;
CREATE TABLE rowcall.job_day (
    day     date PRIMARY KEY,
    before  bigint NOT NULL
);
ALTER TABLE rowcall.job_day ENABLE ROW LEVEL SECURITY;
INSERT INTO rowcall.job_day (day, before) SELECT day, -last FROM rowcall.job_sequence;
DROP TABLE rowcall.job_sequence;

CREATE FUNCTION rowcall.next_job_number() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path TO pg_catalog, pg_temp AS $$
DECLARE counted bigint;
BEGIN
    LOOP
        SELECT d.before INTO counted FROM rowcall.job_day d WHERE d.day = current_date;
        EXIT WHEN FOUND;
        INSERT INTO rowcall.job_day (day, before)
        SELECT current_date, c.last_value - (NOT c.is_called)::int FROM rowcall.job_counter c
        ON CONFLICT DO NOTHING;
    END LOOP;
    counted := nextval('rowcall.job_counter') - counted;
    RETURN 'BU' || to_char(current_date, 'YYYYMMDD') || lpad(counted::text, greatest(4, length(counted::text)), '0');
END
$$;
