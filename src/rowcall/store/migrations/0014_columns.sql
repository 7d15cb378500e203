-- Columns that a person is asked about: how sure it is, what else it could be, and who decided.

ALTER TABLE rowcall.column_mapping DROP CONSTRAINT column_mapping_status_check;
ALTER TABLE rowcall.column_mapping
    ADD CONSTRAINT column_mapping_status_check
        CHECK (status IN ('UNRESOLVED', 'AUTO_MATCHED', 'USER_CONFIRMED', 'USER_OVERRIDDEN', 'IGNORED')),
    ADD confidence real NOT NULL DEFAULT 1,
    ADD others jsonb NOT NULL DEFAULT '[]',
    ADD doubtful boolean,
    ADD decided_by text,
    ADD decided_at timestamptz;
ALTER TABLE rowcall.job ADD file_format text;
