-- Files that are fetched by whoever works on their job: until then it has none.

ALTER TABLE rowcall.job
    ALTER COLUMN file_sha256 DROP NOT NULL,
    ADD COLUMN url               text,
    -- what is fetched, with its login and query; forgotten when the file is there or the job has ended
    ADD COLUMN url_with_secrets  text,
    ADD CONSTRAINT job_has_file CHECK (
        file_sha256 IS NOT NULL OR state IN ('UPLOADED', 'PAUSED', 'CANCELLED', 'FAILED'));
