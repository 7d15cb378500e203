"""What makes PostgreSQL itself fail on demand, and stops whoever comes by at an exact moment.

Gates: a trigger at each named place asks for a lock that the storm may hold. Mischief: a trigger on the targets raises
whatever error the storm has put down.
"""

from typing import LiteralString

GATES = ("rows", "batch", "duplicates", "target", "outcomes", "mark", "commit", "move", "upload", "nudge")
"""Places where a process can be met: K3 to K12."""
LOCK = 7007

SABOTAGE: LiteralString = """
CREATE SCHEMA storm;
CREATE TABLE storm.gate (place text PRIMARY KEY);
CREATE TABLE storm.mischief (code text NOT NULL, chance float NOT NULL);

CREATE FUNCTION storm.gate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM storm.gate WHERE place = TG_ARGV[0]) THEN PERFORM pg_advisory_xact_lock_shared(7007); END IF;
    RETURN NULL;
END $$;

CREATE TABLE storm.commit_gate (passed boolean);
CREATE FUNCTION storm.at_last() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(7007); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER at_last AFTER INSERT ON storm.commit_gate DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION storm.at_last();
CREATE FUNCTION storm.gate_in_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM storm.gate WHERE place = 'commit') THEN
        SET CONSTRAINTS ALL DEFERRED;
        INSERT INTO storm.commit_gate VALUES (true);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER storm BEFORE INSERT ON rowcall.row EXECUTE FUNCTION storm.gate('rows');
CREATE TRIGGER storm_batch BEFORE INSERT ON rowcall.batch EXECUTE FUNCTION storm.gate('batch');
CREATE TRIGGER storm BEFORE INSERT ON rowcall.duplicate EXECUTE FUNCTION storm.gate('duplicates');
CREATE TRIGGER storm AFTER INSERT OR UPDATE ON users EXECUTE FUNCTION storm.gate('target');
CREATE TRIGGER storm AFTER INSERT OR UPDATE ON articles EXECUTE FUNCTION storm.gate('target');
CREATE TRIGGER storm AFTER INSERT OR UPDATE ON comments EXECUTE FUNCTION storm.gate('target');
CREATE TRIGGER storm AFTER INSERT ON rowcall.outcome EXECUTE FUNCTION storm.gate('outcomes');
CREATE TRIGGER storm AFTER UPDATE ON rowcall.batch EXECUTE FUNCTION storm.gate('mark');
CREATE TRIGGER storm_commit AFTER UPDATE ON rowcall.batch EXECUTE FUNCTION storm.gate_in_commit();
CREATE TRIGGER storm BEFORE UPDATE ON rowcall.job EXECUTE FUNCTION storm.gate('move');
CREATE TRIGGER storm_upload BEFORE INSERT ON rowcall.job EXECUTE FUNCTION storm.gate('upload');
CREATE TRIGGER storm AFTER INSERT ON rowcall_queue.procrastinate_jobs EXECUTE FUNCTION storm.gate('nudge');

CREATE FUNCTION storm.mischief() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE found text := (SELECT code FROM storm.mischief WHERE random() < chance LIMIT 1);
BEGIN
    IF found IS NOT NULL THEN RAISE EXCEPTION 'the storm' USING ERRCODE = found; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER mischief BEFORE INSERT OR UPDATE ON users EXECUTE FUNCTION storm.mischief();
CREATE TRIGGER mischief BEFORE INSERT OR UPDATE ON articles EXECUTE FUNCTION storm.mischief();
CREATE TRIGGER mischief BEFORE INSERT OR UPDATE ON comments EXECUTE FUNCTION storm.mischief();
"""
