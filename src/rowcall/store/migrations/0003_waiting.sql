-- Rows that are judged only when others of their file are in.

CREATE TABLE rowcall.waiting (
    job_id      uuid NOT NULL REFERENCES rowcall.job ON DELETE CASCADE,
    row_number  bigint NOT NULL,
    PRIMARY KEY (job_id, row_number)
);
