-- What operators need: which trace a job belongs to, and which jobs are on their way out.

-- A job that retention has begun to remove is gone for everybody else; its rows go slice by slice, it goes last.
ALTER TABLE rowcall.job
    ADD COLUMN traceparent  text,
    ADD COLUMN removing_at  timestamptz;
