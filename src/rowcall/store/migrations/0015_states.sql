-- The states of jobs that ask about values, are checked against what is there, are superseded or taken back.

ALTER TABLE rowcall.job DROP CONSTRAINT job_state_check, DROP CONSTRAINT job_has_file;
ALTER TABLE rowcall.job
    ADD CONSTRAINT job_state_check CHECK (state IN (
        'UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'FINGERPRINT_WARN', 'FINGERPRINT_ABORT',
        'VALIDATING', 'VALIDATED', 'INVALID', 'PROCESSING', 'PAUSED', 'CANCELLED', 'SUPERSEDED',
        'COMPLETED', 'COMPLETED_WITH_ERRORS', 'REVERTING', 'REVERTED', 'FAILED')),
    ADD CONSTRAINT job_has_file CHECK (
        file_sha256 IS NOT NULL OR state IN ('UPLOADED', 'PAUSED', 'CANCELLED', 'SUPERSEDED', 'FAILED'));
DROP INDEX rowcall.job_unfinished, rowcall.job_working;
CREATE INDEX job_unfinished ON rowcall.job (file_sha256, importer)
    WHERE state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING');
CREATE INDEX job_working ON rowcall.job (organisation_id, created_at)
    WHERE background AND state IN ('UPLOADED', 'COLUMN_MAPPING', 'CELL_MAPPING', 'FINGERPRINT_CHECK', 'VALIDATING', 'PROCESSING', 'REVERTING');
