"""What clients of SQL are told of is on disk before."""

import threading
import time

import clock
import pytest

from pgclient import port_of

psycopg = pytest.importorskip("psycopg")

# So long takes a sync that nobody is to have waited for.
SYNC_MS = 8000


@pytest.fixture
def slow(start, tmp_path):
    """A server with a table, whose disk takes its time as soon as it is told to."""
    if not clock.library("disk"):
        pytest.skip("there is no C compiler")
    disk = tmp_path / "disk"
    server = start(tmp_path / "db", "--sql-port", 0, env=clock.environment(tmp_path / "clock", disk))

    def connect():
        return psycopg.connect(host="127.0.0.1", port=port_of(server), user="tester", dbname="shop", autocommit=True)

    with connect() as first:
        first.execute("CREATE TABLE t (a int)")
    yield connect, lambda milliseconds: disk.write_text(str(milliseconds))
    disk.write_text("0")


def copied(client):
    with client.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row([1])


def in_a_transaction(client):
    with client.transaction():
        client.execute("INSERT INTO t VALUES (1)")


def in_a_pipeline(client):
    # The rows of the query are more than is kept until an answer ends.
    with client.pipeline():
        client.execute("INSERT INTO t VALUES (1)")
        client.execute("SELECT repeat('x', 1000) FROM generate_series(1, 1000)").fetchone()


@pytest.mark.parametrize("work", [lambda client: client.execute("INSERT INTO t VALUES (1)"), in_a_transaction, copied, in_a_pipeline])
def test_an_answer_comes_after_its_commit_is_on_disk(slow, work):
    connect, set_disk = slow
    with connect() as writer, connect() as reader:
        set_disk(SYNC_MS)
        writing = threading.Thread(target=work, args=[writer])
        begun = time.monotonic()
        writing.start()
        while reader.execute("SELECT count(*) FROM t").fetchone() == (0,):
            assert time.monotonic() < begun + 60
        # It is committed, and nobody who asked for it knows: who did would be done by now.
        writing.join(1)
        assert writing.is_alive() or time.monotonic() > begun + SYNC_MS / 1000
        set_disk(0)
        writing.join(60)
        assert not writing.is_alive()


def test_who_does_not_want_to_wait_is_answered_at_once_and_a_notification_is_not(slow):
    connect, set_disk = slow
    with connect() as writer, connect() as listener:
        listener.execute("LISTEN news")
        writer.execute("SET synchronous_commit = off")
        set_disk(SYNC_MS)
        begun = time.monotonic()
        writer.execute("INSERT INTO t VALUES (1)")
        is_quick = time.monotonic() < begun + SYNC_MS / 1000
        writer.execute("SET synchronous_commit = on")

        def notify():
            with writer.transaction():
                writer.execute("INSERT INTO t VALUES (2)")
                writer.execute("NOTIFY news")

        notifying = threading.Thread(target=notify)
        notifying.start()
        while listener.execute("SELECT count(*) FROM t").fetchone() != (2,):
            assert time.monotonic() < begun + 60
        heard = list(listener.notifies(timeout=0.2))
        assert is_quick
        assert not heard or time.monotonic() > begun + SYNC_MS / 1000
        set_disk(0)
        assert len(list(listener.notifies(timeout=60, stop_after=1))) + len(heard) == 1
        notifying.join(60)
