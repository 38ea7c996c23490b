"""Sequences reserve numbers: no number is given twice, whatever ends the process, and none is left out where PostgreSQL leaves none out."""

import re
import threading

import cluster
import harness
from pgclient import Sql, port_of

SESSIONS, EACH = 6, 80


def started(directory):
    return harness.Server(directory, "--sql-port", "0")


def counted(server, work):
    """What `SESSIONS` sessions got that did `work` at once, each `EACH` times."""
    got, failed, port = [], [], port_of(server)

    def run():
        try:
            connection = Sql(port)
            for _ in range(EACH):
                got.append(work(connection))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(SESSIONS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed
    return got


def number(connection, query):
    return int(connection.query(query)[0][0])


def test_sessions_at_once_get_all_numbers_once(tmp_path):
    with started(tmp_path) as server:
        sql = Sql(port_of(server))
        sql.query("CREATE SEQUENCE s")
        sql.query("CREATE TABLE t (id serial PRIMARY KEY, v int)")
        got = counted(server, lambda own: number(own, "SELECT nextval('s')"))
        assert sorted(got) == list(range(1, SESSIONS * EACH + 1))
        got = counted(server, lambda own: number(own, "INSERT INTO t (v) VALUES (1), (2), (3) RETURNING id"))
        assert number(sql, "SELECT count(DISTINCT id) FROM t") == 3 * len(got)
        assert number(sql, "SELECT max(id) FROM t") == 3 * len(got)
        assert number(sql, "SELECT last_value FROM t_id_seq") == 3 * len(got)


def test_an_orderly_end_leaves_no_gap(tmp_path):
    with started(tmp_path) as server:
        sql = Sql(port_of(server))
        sql.query("CREATE SEQUENCE up")
        sql.query("CREATE SEQUENCE down INCREMENT -5 START 100 MAXVALUE 100")
        sql.query("CREATE SEQUENCE next")
        sql.query("CREATE SEQUENCE around MAXVALUE 3 CYCLE")
        sql.query("CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY, v int)")
        sql.query("SELECT nextval('up') FROM generate_series(1, 40)")
        sql.query("SELECT nextval('down'), nextval('down')")
        sql.query("SELECT nextval('next'), setval('next', 70, false)")
        sql.query("SELECT nextval('around'), nextval('around'), nextval('around'), nextval('around')")
        sql.query("INSERT INTO t (v) VALUES (1), (2)")
        # Numbers do not come back with what a transaction takes back.
        for statement in ["BEGIN", "INSERT INTO t (v) VALUES (3)", "ROLLBACK"]:
            sql.query(statement)
        assert number(sql, "SELECT last_value FROM up") == 40
        server.restart()
        sql = Sql(port_of(server))
        assert number(sql, "SELECT last_value FROM up") == 40
        answer = sql.query("SELECT nextval('up'), nextval('down'), nextval('next'), nextval('around')")
        assert [int(own) for own in answer[0]] == [41, 90, 70, 2]
        assert number(sql, "INSERT INTO t (v) VALUES (4) RETURNING id") == 4


def test_a_killed_process_leaves_a_gap_and_repeats_nothing(tmp_path):
    with started(tmp_path) as server:
        sql = Sql(port_of(server))
        sql.query("CREATE SEQUENCE s")
        sql.query("CREATE SEQUENCE set")
        sql.query("CREATE TABLE t (id serial PRIMARY KEY, v int)")
        seen = set()
        for kills in range(2):
            got = counted(server, lambda own: number(own, "SELECT nextval('s')"))
            assert len(set(got)) == len(got) and not seen & set(got)
            assert number(sql, "INSERT INTO t (v) VALUES (1) RETURNING id") == 1 + 33 * kills
            sql.query("SELECT nextval('set')")
            sql.query("SELECT setval('set', 10)")
            seen |= set(got)
            server.kill()
            server.start()
            sql = Sql(port_of(server))
            following = number(sql, "SELECT nextval('s')")
            assert max(seen) < following <= max(seen) + 33
            assert number(sql, "SELECT nextval('set')") == 11
            seen.add(following)


def connected(member):
    """A session of a member, whose process starts anew with another role."""
    ports = re.findall(r'"Waiting for SQL connections".*?"address":"127\.0\.0\.1:(\d+)"', member.said())
    return Sql(int(ports[-1]))


def test_a_new_primary_repeats_nothing(tmp_path):
    cluster.needs_cluster(tmp_path)
    with cluster.Set(tmp_path / "set", flags=("--sql-port", "0")) as members:
        seen, primary = [], members.primary()
        sql = connected(members.members[primary])
        sql.query("CREATE SEQUENCE s")
        for _ in range(2):
            seen += [number(sql, "SELECT nextval('s')") for _ in range(40)]
            members.kill(primary)
            before, primary = primary, members.primary(but=primary)
            sql = connected(members.members[primary])
            seen += [number(sql, "SELECT nextval('s')") for _ in range(3)]
            members.start(before)
        assert len(set(seen)) == len(seen) and seen == sorted(seen)
