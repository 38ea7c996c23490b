"""What ends statements and sessions by time, also between the messages of the extended protocol. PostgreSQL 15 answers the same."""

import struct
import time

import pytest

from pgclient import Sql, port_of

SHORT = 0.3


@pytest.fixture
def port(start):
    return port_of(start(None, "--sql-port", 0))


def client(port, *settings):
    out = Sql(port)
    for setting in settings:
        out.query(f"SET {setting}")
    return out


def parse_and_bind(client, text):
    client.send(b"P", b"\0" + text.encode() + b"\0" + struct.pack("!h", 0))
    client.send(b"B", b"\0\0" + struct.pack("!hhh", 0, 0, 0))


def execute(client):
    client.send(b"E", b"\0" + struct.pack("!i", 0))


def until(client, tag):
    messages = [client.message()]
    while messages[-1][0] != tag:
        messages.append(client.message())
    return messages


def test_a_statement_has_its_time_from_its_first_message_on(port):
    own = client(port, "statement_timeout = 300")
    for text in ["SELECT pg_sleep(5)", "SELECT 1; SELECT pg_sleep(5)", "DO $$ BEGIN PERFORM pg_sleep(5); END $$"]:
        with pytest.raises(RuntimeError, match="57014 canceling statement due to statement timeout"):
            own.query(text)
    with pytest.raises(RuntimeError, match="57014"):
        own.prepared("SELECT pg_sleep(5)", [])
    # The time goes on between Bind and Execute, and not behind a statement.
    parse_and_bind(own, "SELECT 1")
    own.send(b"H")
    until(own, b"2")
    time.sleep(2 * SHORT)
    execute(own)
    own.send(b"S")
    with pytest.raises(RuntimeError, match="57014"):
        own.rows(own.until_ready())
    parse_and_bind(own, "SELECT 1")
    execute(own)
    own.send(b"H")
    until(own, b"C")
    time.sleep(2 * SHORT)
    assert own.prepared("SELECT 2", []) == [[b"2"]]
    # Each statement has it anew.
    own.query("SET statement_timeout = 900")
    assert own.query("SELECT pg_sleep(0.6); SELECT pg_sleep(0.6)") == [[b""], [b""]]


def test_sessions_that_rest_end(port):
    resting = client(port, "idle_session_timeout = 300")
    with pytest.raises(RuntimeError, match="57P05 terminating connection due to idle-session timeout"):
        resting.rows(resting.until_ready())
    for statements in [["BEGIN"], ["BEGIN", "SELECT 1"]]:
        own = client(port, "idle_in_transaction_session_timeout = 300")
        for statement in statements:
            own.query(statement)
        with pytest.raises(RuntimeError, match="25P03 terminating connection due to idle-in-transaction timeout"):
            own.rows(own.until_ready())
    failed = client(port, "idle_in_transaction_session_timeout = 300")
    failed.query("BEGIN")
    with pytest.raises(RuntimeError, match="22012"):
        failed.query("SELECT 1 / 0")
    with pytest.raises(RuntimeError, match="25P03"):
        failed.rows(failed.until_ready())
    # A session in a transaction is not idle as others are.
    own = client(port, "idle_session_timeout = 300")
    own.query("BEGIN")
    time.sleep(2 * SHORT)
    own.query("COMMIT")


def test_a_session_does_not_rest_before_sync_and_while_a_file_comes(port):
    own = client(port, "idle_session_timeout = 300", "idle_in_transaction_session_timeout = 300")
    own.query("CREATE TABLE t (a int)")
    for begin in [[], ["BEGIN"]]:
        for statement in begin:
            own.query(statement)
        parse_and_bind(own, "INSERT INTO t VALUES (1)")
        execute(own)
        own.send(b"H")
        until(own, b"C")
        time.sleep(2 * SHORT)
        own.send(b"S")
        own.rows(own.until_ready())
    own.query("COMMIT")
    own.send(b"Q", b"COPY t FROM STDIN\0")
    until(own, b"G")
    time.sleep(2 * SHORT)
    own.send(b"d", b"5\n")
    own.send(b"c")
    own.rows(own.until_ready())
    assert own.query("SELECT count(*) FROM t") == [[b"3"]]
    with pytest.raises(RuntimeError, match="57P05"):
        own.rows(own.until_ready())


@pytest.mark.parametrize(
    "held, wanted",
    [
        ("UPDATE t SET b = 2 WHERE a = 1", "UPDATE t SET b = 3 WHERE a = 1"),
        ("SELECT * FROM t WHERE a = 1 FOR UPDATE", "SELECT * FROM t WHERE a = 1 FOR UPDATE"),
        ("SELECT pg_advisory_xact_lock(7)", "SELECT pg_advisory_lock(7)"),
        ("SELECT * FROM t", "ALTER TABLE t ADD COLUMN c int"),
        ("UPDATE t SET b = 2 WHERE a = 1", "DROP TABLE t"),
        ("INSERT INTO t VALUES (2, 2)", "CREATE INDEX ON t (b)"),
        ("INSERT INTO t VALUES (2, 2)", "CREATE INDEX CONCURRENTLY ON t (b)"),
    ],
)
def test_locks_are_waited_for_no_longer_than_is_said(port, held, wanted):
    holder = client(port)
    holder.query("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)")
    holder.query("BEGIN")
    holder.query(held)
    own = client(port, "lock_timeout = 300")
    with pytest.raises(RuntimeError, match="55P03 canceling statement due to lock timeout"):
        own.query(wanted)
    holder.query("ROLLBACK")
    own.query(wanted)
