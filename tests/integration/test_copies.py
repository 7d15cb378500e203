"""Databases that tests use again are as good as new."""

import pytest

from ..database import Server

LEFT = """
    CREATE SCHEMA s CREATE TABLE t (id serial PRIMARY KEY);
    CREATE TYPE mood AS ENUM ('glad');
    CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, mood mood, other int REFERENCES s.t);
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE TRIGGER f AFTER INSERT ON t EXECUTE FUNCTION f();
    CREATE VIEW v AS SELECT * FROM t;
    INSERT INTO t (mood) VALUES ('glad');
    INSERT INTO rowcall.organisation (id, name) VALUES (gen_random_uuid(), 'another');
    INSERT INTO rowcall.file VALUES (repeat('a', 64), 1, '/nowhere');
    SELECT nextval(format('%I.%I', schemaname, sequencename)::regclass) FROM pg_sequences;
"""
FOUND = """
    SELECT array(SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace),
           array(SELECT name::text FROM rowcall.organisation), (SELECT count(*) FROM rowcall.file),
           (SELECT count(*) FROM pg_sequences WHERE last_value IS NOT NULL)
"""
CHANGES = [
    "ALTER TABLE rowcall.job ADD COLUMN x int",
    "DROP TABLE rowcall.webhook CASCADE",
    "UPDATE rowcall.organisation SET name = 'other'",
    "GRANT SELECT ON rowcall.job TO PUBLIC",
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout TO 5000', current_database()); END $$",
]


def test_what_a_test_left_is_gone(shared_server: Server) -> None:
    with shared_server.new_database() as first, first.connect() as connection:
        new = connection.execute(FOUND).fetchone()
        connection.execute(LEFT)
        assert connection.execute(FOUND).fetchone() != new
    with shared_server.new_database() as second, second.connect() as connection:
        assert second.url == first.url
        assert connection.execute(FOUND).fetchone() == new


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_as_it_was_made_is_not_used_again(shared_server: Server, change: str) -> None:
    with shared_server.new_database() as first, first.connect() as connection:
        connection.execute(change.encode())
    with shared_server.new_database() as second:
        assert second.url != first.url
