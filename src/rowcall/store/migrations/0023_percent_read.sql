-- How much of a job's file is brought in, while it is.

ALTER TABLE rowcall.job ADD COLUMN percent_read real CHECK (percent_read BETWEEN 0 AND 100);
