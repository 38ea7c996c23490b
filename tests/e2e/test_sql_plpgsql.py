"""Functions and triggers in PL/pgSQL between sessions, and as clients call them."""

import concurrent.futures
import time

import psycopg
import pytest

from pgclient import port_of

COUNTER = """
CREATE TABLE counter (k text PRIMARY KEY, n int);
INSERT INTO counter VALUES ('x', 0);
CREATE TABLE items (id serial PRIMARY KEY, v int);
CREATE FUNCTION bump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE counter SET n = n + 1 WHERE k = 'x'; RETURN NEW; END $$;
CREATE TRIGGER b AFTER INSERT ON items FOR EACH ROW EXECUTE FUNCTION bump();
CREATE FUNCTION plus(x int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN x + 1; END $$;
CREATE TABLE q (id int PRIMARY KEY, state text DEFAULT 'new', by int);
INSERT INTO q SELECT g FROM generate_series(1, 60) g;
CREATE FUNCTION take(w int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE j q; BEGIN
    SELECT * INTO j FROM q WHERE state = 'new' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1;
    IF NOT FOUND THEN RETURN NULL; END IF;
    UPDATE q SET state = 'done', by = w WHERE id = j.id;
    RETURN j.id; END $$;
CREATE PROCEDURE pay(a int, INOUT b int) LANGUAGE plpgsql AS $$ BEGIN b := a + b; END $$;
CREATE FUNCTION forever() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LOOP NULL; END LOOP; END $$;
CREATE FUNCTION told() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('said', 'within'); RAISE NOTICE 'told'; END $$;
"""


@pytest.fixture
def connect(start):
    port = port_of(start(None, "--sql-port", 0))

    def one(**options):
        return psycopg.connect(f"host=127.0.0.1 port={port} user=tester dbname=test", autocommit=True, **options)

    with one() as first:
        first.execute(COUNTER)
    return one


def all_of(connect, act, workers=6):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return [done.result() for done in [pool.submit(act, connect(), number) for number in range(workers)]]


def test_triggers_of_sessions_lose_nothing(connect):
    def insert(session, number):
        for each in range(15):
            session.execute("INSERT INTO items (v) VALUES (%s), (%s)", (number, each))

    def update(session, _):
        for _ in range(10):
            session.execute("UPDATE counter SET n = plus(n) WHERE k = 'x'")

    all_of(connect, insert)
    assert connect().execute("SELECT n, (SELECT count(*) FROM items) FROM counter").fetchone() == (180, 180)
    all_of(connect, update, 4)
    assert connect().execute("SELECT n FROM counter").fetchone() == (220,)


def test_a_queue_gives_each_job_once(connect):
    def take(session, number):
        got = []
        while (job := session.execute("SELECT take(%s)", (number,)).fetchone()[0]) is not None:
            got.append(job)
        return got

    jobs = [job for got in all_of(connect, take) for job in got]
    assert sorted(jobs) == list(range(1, 61))


def test_transactions_with_one_snapshot_end_in_conflicts(connect):
    session, other = connect(), connect()
    session.autocommit = False
    session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    session.execute("SELECT n FROM counter")
    other.execute("INSERT INTO items (v) VALUES (1)")
    with pytest.raises(psycopg.errors.SerializationFailure):
        session.execute("INSERT INTO items (v) VALUES (2)")
    session.rollback()
    assert other.execute("SELECT count(*) FROM items").fetchone() == (1,)


def test_calls_of_drivers(connect):
    session = connect()
    assert session.execute("CALL pay(%s, %s)", (3, 4)).fetchone() == (7,)
    assert session.execute("SELECT * FROM generate_series(1, %s) g, LATERAL (SELECT plus(g) p) x", (2,)).fetchall() == [(1, 2), (2, 3)]
    notices = []
    session.add_notice_handler(lambda told: notices.append(told.message_primary))
    session.execute("LISTEN said")
    session.execute("SELECT told()")
    assert notices == ["told"]
    assert [told.payload for told in session.notifies(timeout=5, stop_after=1)] == ["within"]
    with session.cursor().copy("COPY items (v) FROM STDIN") as copy:
        copy.write("1\n2\n")
    assert session.execute("SELECT n FROM counter").fetchone() == (2,)


def test_loops_end_when_they_have_to(connect):
    session = connect(options="-c statement_timeout=300")
    for statement in ("SELECT forever()", "DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$"):
        begin = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            session.execute(statement)
        assert time.monotonic() - begin < 20
    assert session.execute("SELECT plus(1)").fetchone() == (2,)
