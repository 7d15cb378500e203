-- What statistics say of jobs is always of earlier ones: PostgreSQL took a job that it didn't know for one row, and read all rows of
-- the job for each of them. Without statistics it takes every job for a part of the table. Those that are there would stay; where they
-- can't be removed, they go on being made anew.
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'job_id'
                WHERE c.relnamespace = 'rowcall'::regnamespace AND c.relkind = 'r' LOOP
        IF current_setting('server_version_num')::int >= 180000 THEN
            EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, %L, false)', 'rowcall', name, 'job_id');
        ELSIF current_setting('is_superuser')::boolean THEN
            DELETE FROM pg_statistic s USING pg_attribute a
            WHERE a.attrelid = format('rowcall.%I', name)::regclass AND a.attname = 'job_id'
              AND s.starelid = a.attrelid AND s.staattnum = a.attnum;
        END IF;
        IF NOT EXISTS (SELECT FROM pg_stats WHERE schemaname = 'rowcall' AND tablename = name AND attname = 'job_id') THEN
            EXECUTE format('ALTER TABLE rowcall.%I ALTER COLUMN job_id SET STATISTICS 0', name);
        END IF;
    END LOOP;
END $$;
