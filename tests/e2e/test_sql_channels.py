"""LISTEN and NOTIFY. With SQL_PORT set the same tests ask that server, PostgreSQL for one."""

import os

import harness
import pytest

from pgclient import port_of

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    if os.environ.get("SQL_PORT"):
        yield int(os.environ["SQL_PORT"])
        return
    with harness.Server(tmp_path_factory.mktemp("channels"), "--sql-port", "0") as server:
        yield port_of(server)


@pytest.fixture
def connect(port):
    user = "postgres" if os.environ.get("SQL_PORT") else "tester"
    open_ones = []

    def connect(database="postgres", handles=True):
        c = psycopg.connect(f"host=127.0.0.1 port={port} user={user} dbname={database}", autocommit=True)
        c.heard = []
        if handles:
            c.add_notify_handler(lambda own: c.heard.append((own.channel, own.payload)))
        open_ones.append(c)
        return c

    yield connect
    for c in open_ones:
        c.close()


def told(c):
    """What has come up to the end of another statement, once."""
    c.execute("SELECT 1")
    heard, c.heard[:] = list(c.heard), []
    return heard


def comes(c, count):
    """What comes by itself to a connection without a handler."""
    return [(own.channel, own.payload, own.pid) for own in c.notifies(timeout=10, stop_after=count)]


def test_who_listens_is_told_at_once(connect):
    one, two = connect(handles=False), connect()
    one.execute("LISTEN jobs")
    one.execute('LISTEN "Jobs"')
    two.execute("NOTIFY jobs, 'first'")
    two.execute('NOTIFY "Jobs"')
    two.execute("SELECT pg_notify('jo' || 'bs', 'é'), pg_notify('nobody', 'x')")
    assert comes(one, 3) == [(*own, two.info.backend_pid) for own in [("jobs", "first"), ("Jobs", ""), ("jobs", "é")]]
    assert sorted(row[0] for row in one.execute("SELECT pg_listening_channels()")) == ["Jobs", "jobs"]
    one.execute("UNLISTEN jobs")
    two.execute("NOTIFY jobs, 'late'")
    two.execute('NOTIFY "Jobs", \'more\'')
    assert comes(one, 1) == [("Jobs", "more", two.info.backend_pid)]
    one.execute("UNLISTEN *")
    assert one.execute("SELECT count(*) FROM pg_listening_channels()").fetchone() == (0,)


def test_a_session_hears_itself_before_it_is_ready(connect):
    c = connect()
    c.execute("LISTEN own")
    c.execute("NOTIFY own, 'a'")
    assert c.heard == [("own", "a")]
    c.execute("DISCARD ALL")
    c.execute("NOTIFY own, 'b'")
    assert c.heard == [("own", "a")]


def test_what_a_transaction_says_is_heard_when_it_commits(connect):
    one, two = connect(), connect()
    one.execute("LISTEN c")
    two.execute("BEGIN")
    two.execute("NOTIFY c, 'kept'")
    two.execute("SAVEPOINT s")
    two.execute("NOTIFY c, 'undone'")
    two.execute("ROLLBACK TO s")
    two.execute("SAVEPOINT t")
    two.execute("NOTIFY c, 'released'")
    two.execute("RELEASE t")
    two.execute("SAVEPOINT u")
    two.execute("ROLLBACK TO u")
    two.execute("NOTIFY c, 'kept'")
    assert told(one) == []
    two.execute("COMMIT")
    assert told(one) == [("c", "kept"), ("c", "released")]
    two.execute("BEGIN")
    two.execute("NOTIFY c, 'never'")
    two.execute("ROLLBACK")
    with pytest.raises(psycopg.errors.DivisionByZero):
        two.execute("SELECT pg_notify('c', 'never'), 1 / (SELECT 0)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        two.execute("NOTIFY c, 'never'; SELECT 1 / 0")
    two.execute("NOTIFY c, 'after'")
    assert told(one) == [("c", "after")]


def test_who_is_in_a_transaction_is_told_behind_it(connect):
    one, two = connect(), connect()
    one.execute("BEGIN")
    one.execute("LISTEN c")
    two.execute("NOTIFY c, 'too early'")
    one.execute("COMMIT")
    one.execute("BEGIN")
    two.execute("NOTIFY c, 'a'")
    assert told(one) == []
    one.execute("UNLISTEN c")
    one.execute("ROLLBACK")
    two.execute("NOTIFY c, 'b'")
    assert told(one) == [("c", "a"), ("c", "b")]


def test_statements_that_write_and_blocks_say_something(connect):
    one, two = connect(), connect()
    one.execute("LISTEN c")
    two.execute("DROP TABLE IF EXISTS said")
    two.execute("CREATE TABLE said (id int, t text)")
    two.execute("INSERT INTO said VALUES (1, 'x'), (2, 'y') RETURNING pg_notify('c', t)")
    two.execute("UPDATE said SET t = 'z' WHERE id = 1 RETURNING pg_notify('c', t)")
    two.execute("""DO $$ BEGIN
        PERFORM pg_notify('c', 'kept');
        BEGIN
            PERFORM pg_notify('c', 'undone');
            RAISE EXCEPTION 'no';
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END $$""")
    assert told(one) == [("c", "x"), ("c", "y"), ("c", "z"), ("c", "kept")]
    with two.transaction(), two.pipeline():
        two.execute("NOTIFY c, 'p'")
        two.execute("SELECT pg_notify('c', %s)", ["q"])
    assert told(one) == [("c", "p"), ("c", "q")]


def test_databases_and_bounds(connect):
    one, two = connect(), connect("template1" if os.environ.get("SQL_PORT") else "elsewhere")
    one.execute("LISTEN c")
    two.execute("NOTIFY c, 'elsewhere'")
    for said, message in [
        ("SELECT pg_notify('', 'x')", "channel name cannot be empty"),
        ("SELECT pg_notify(NULL, 'x')", "channel name cannot be empty"),
        ("SELECT pg_notify(repeat('x', 64), 'x')", "channel name too long"),
        ("SELECT pg_notify('c', repeat('x', 8000))", "payload string too long"),
    ]:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
            one.execute(said)
    one.execute("SELECT pg_notify('c', repeat('x', 7999))")
    assert [(channel, len(payload)) for channel, payload in one.heard] == [("c", 7999)]
    one.execute("SELECT pg_notify('c', NULL)")
    assert one.heard[1:] == [("c", "")]
